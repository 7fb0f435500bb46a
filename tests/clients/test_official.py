"""OpenAI's and Anthropic's own clients: the exception, what it says, how often they try, how long they wait."""

import anthropic
import anthropic._base_client
import httpx
import httpx2
import openai
import openai._base_client
import pytest

from conftest import Clock, eventually
from model import TEXT
from refusals import ALL, ANTHROPIC_KINDS, REFUSALS, TIGHT, stalling

EXCEPTIONS = {
    "openai": {400: openai.BadRequestError, 404: openai.NotFoundError, 408: openai.APIStatusError,
               413: openai.APIStatusError, 415: openai.APIStatusError, 429: openai.RateLimitError,
               500: openai.InternalServerError, 503: openai.InternalServerError},
    "anthropic": {400: anthropic.BadRequestError, 404: anthropic.NotFoundError, 408: anthropic.RequestTimeoutError,
                  413: anthropic.RequestTooLargeError, 415: anthropic.APIStatusError, 429: anthropic.RateLimitError,
                  500: anthropic.InternalServerError, 503: anthropic.ServiceUnavailableError},
}


class Client:
    """The official client of an API, told of every answer that it got."""

    def __init__(self, api, front, monkeypatch, stalls=False):
        self.api, self.answers, self.clock = api, [], Clock()
        self.vendor, library, http = ("anthropic", anthropic, httpx2) if api == "messages" else ("openai", openai, httpx)
        monkeypatch.setattr(library._base_client, "time", self.clock)

        class Transport(http.HTTPTransport):
            def handle_request(self, request):
                if stalls:
                    before = front.outcomes("body_timeout")
                    refused = lambda: eventually(lambda: front.outcomes("body_timeout") > before)
                    request.stream = Stalling(stalling(request.stream, refused))
                return super().handle_request(request)

        class Stalling(http.SyncByteStream):
            def __init__(self, pieces):
                self.pieces = pieces

            def __iter__(self):
                return self.pieces

        client = http.Client(transport=Transport(), event_hooks={"response": [self.answers.append]}, timeout=30)
        make = anthropic.Anthropic if api == "messages" else openai.OpenAI
        url = front.url if api == "messages" else front.url + "/v1"
        self.client = make(api_key="none", base_url=url, http_client=client, max_retries=2)

    def send(self, prompt="Hello", stream=False, **more):
        messages = [{"role": "user", "content": prompt}]
        match self.api:
            case "chat":
                return self.client.chat.completions.create(model="m", messages=messages, stream=stream, **more)
            case "completions":
                return self.client.completions.create(model="m", prompt=prompt, stream=stream, **more)
            case "responses":
                return self.client.responses.create(model="m", input=prompt, stream=stream, **more)
            case "messages":
                return self.client.messages.create(model="m", messages=messages, max_tokens=100, stream=stream, **more)


def text(api, answer):
    match api:
        case "chat":
            return answer.choices[0].message.content
        case "completions":
            return answer.choices[0].text
        case "responses":
            return answer.output_text
        case "messages":
            return answer.content[0].text


def piece(api, event):
    match api:
        case "chat":
            return event.choices[0].delta.content
        case "completions":
            return event.choices[0].text
        case "responses":
            return event.delta if event.type == "response.output_text.delta" else ""
        case "messages":
            return event.delta.text if event.type == "content_block_delta" else ""


@pytest.mark.parametrize("api", ALL)
def test_an_answer_comes_whole_and_as_a_stream(api, fronts, monkeypatch):
    client = Client(api, fronts(None), monkeypatch)
    assert text(api, client.send()) == TEXT
    with client.send(stream=True) as events:
        pieces = [piece(api, event) for event in events]
    assert "".join(pieces) == TEXT and len([piece for piece in pieces if piece]) == 2
    assert [answer.headers["x-sluice-class"] for answer in client.answers] == ["short", "short"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("refusal", "api"), [(refusal, api) for refusal in REFUSALS for api in refusal.apis],
                         ids=lambda value: getattr(value, "reason", value))
def test_a_refusal_is_the_exception_that_it_should_be(refusal, api, stream, meet, model, monkeypatch):
    with meet(refusal) as front:
        client = Client(api, front, monkeypatch, refusal.stalls)
        arrived, before = len(model.arrived), front.outcomes(refusal.reason)
        with pytest.raises(EXCEPTIONS[client.vendor][refusal.status]) as raised:
            client.send(refusal.prompt, stream, extra_body=refusal.body_for(api), extra_headers=refusal.headers)
        eventually(lambda: front.outcomes(refusal.reason) >= before + refusal.attempts)
        assert front.outcomes(refusal.reason) == before + refusal.attempts
        assert len(model.arrived) == arrived, "the model server got it"
    error = raised.value
    assert type(error) is EXCEPTIONS[client.vendor][refusal.status]
    assert error.status_code == refusal.status
    assert error.response.headers["x-sluice-reason"] == refusal.reason
    assert refusal.says in error.message
    if api == "messages":
        kind = ANTHROPIC_KINDS.get(refusal.status, "invalid_request_error")
        assert (error.body["type"], error.body["error"]["type"], error.type) == ("error", kind, kind)
    else:
        assert (error.code, error.type) == (refusal.reason, refusal.kind)
        params = {"LIMIT": refusal.body_for(api).popitem()[0] if refusal.body else None}
        expected = {"invalid_body", "max_tokens_too_large", "too_many_sequences", "unsupported_background"}
        assert error.param == (params["LIMIT"] if refusal.reason in expected else None)
    obeys(client, refusal)


def obeys(client, refusal):
    """It waited as it was told, to the millisecond, where it was told anything."""
    told = [answer.headers.get("retry-after-ms") for answer in client.answers]
    assert len(told) == refusal.attempts and len(client.clock.waits) == refusal.attempts - 1
    if refusal.status in (429, 503):
        assert client.clock.waits == [int(millis) / 1000 for millis in told[:-1]]
        assert len(set(told)) > 1, "not jittered"
        for answer in client.answers:
            assert 1 <= int(answer.headers["retry-after"]) <= 60
    else:
        assert told == [None] * refusal.attempts


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_a_path_that_is_not_served_is_not_found(api, fronts, monkeypatch):
    front = fronts(TIGHT)
    client = Client(api, front, monkeypatch)
    before = front.outcomes("unlisted_endpoint")
    with pytest.raises(EXCEPTIONS[client.vendor][404]) as raised:
        client.client.post("/v1/embeddings", body={"model": "m", "input": "x"}, cast_to=object)
    # A path that nobody serves has no family; its clients are OpenAI's, as most are.
    assert raised.value.body["code" if api == "chat" else "error"] and raised.value.status_code == 404
    assert len(client.answers) == 1
    eventually(lambda: front.outcomes("unlisted_endpoint") == before + 1)
