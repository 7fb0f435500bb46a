// k6 (https://k6.io): requests at a constant rate to a server of OpenAI's chat, each at its moment whatever the answers
// do. docs/rig.md holds `rig load` against it.
import http from "k6/http";

const rate = Number(__ENV.RATE), seconds = Number(__ENV.SECONDS);

export const options = {
  discardResponseBodies: true,
  noConnectionReuse: true,
  summaryTrendStats: ["p(50)", "p(90)", "p(99)", "max"],
  scenarios: {
    constant: {
      executor: "constant-arrival-rate",
      rate,
      duration: `${seconds}s`,
      preAllocatedVUs: 64,
      maxVUs: 512,
    },
  },
};

const body = JSON.stringify({
  model: "any",
  messages: [{ role: "user", content: "river lock ".repeat(18) }],
  max_tokens: Number(__ENV.TOKENS),
  ignore_eos: true,
  cache_prompt: false,
});

export default function () {
  http.post(`${__ENV.URL}/v1/chat/completions`, body, { headers: { "content-type": "application/json" } });
}
