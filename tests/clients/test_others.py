"""litellm and langchain-openai, which sit on the official clients and have exceptions or habits of their own."""

import os

# Its table of prices is fetched over the network otherwise.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import pytest
from langchain_openai import ChatOpenAI

from conftest import eventually
from model import TEXT
from refusals import REFUSALS
from test_official import EXCEPTIONS, Client

litellm.telemetry = False
litellm.suppress_debug_info = True

CHAT = [refusal for refusal in REFUSALS if "chat" in refusal.apis]
LITELLM = {400: litellm.BadRequestError, 408: litellm.Timeout, 413: litellm.BadRequestError,
           415: litellm.BadRequestError, 429: litellm.RateLimitError, 500: litellm.InternalServerError,
           503: litellm.ServiceUnavailableError}


def completion(client, front, refusal=None, **more):
    if refusal:
        more |= {"extra_body": refusal.body_for("chat"), "extra_headers": refusal.headers}
    messages = [{"role": "user", "content": refusal.prompt if refusal else "Hello"}]
    return litellm.completion(model="openai/m", api_base=front.url + "/v1", api_key="none", messages=messages,
                              client=client.client, **more)


def chat(client, front, refusal=None):
    more = {"extra_body": refusal.body_for("chat"), "default_headers": refusal.headers} if refusal else {}
    return ChatOpenAI(model="m", base_url=front.url + "/v1", api_key="none", max_retries=2,
                      http_client=client.client._client, **more)


@pytest.mark.parametrize("refusal", CHAT, ids=lambda refusal: refusal.reason)
def test_litellm_raises_its_own(refusal, meet, monkeypatch):
    with meet(refusal) as front:
        client = Client("chat", front, monkeypatch, refusal.stalls)
        before = front.outcomes(refusal.reason)
        with pytest.raises(LITELLM[refusal.status]) as raised:
            completion(client, front, refusal, max_retries=2)
        eventually(lambda: front.outcomes(refusal.reason) >= before + len(client.answers))
        assert front.outcomes(refusal.reason) == before + refusal.attempts
    assert type(raised.value) is LITELLM[refusal.status]
    assert raised.value.status_code == refusal.status and refusal.says in str(raised.value)


@pytest.mark.parametrize("refusal", CHAT, ids=lambda refusal: refusal.reason)
def test_langchain_raises_what_openai_raises(refusal, meet, monkeypatch):
    with meet(refusal) as front:
        client = Client("chat", front, monkeypatch, refusal.stalls)
        before = front.outcomes(refusal.reason)
        with pytest.raises(EXCEPTIONS["openai"][refusal.status]) as raised:
            chat(client, front, refusal).invoke(refusal.prompt)
        eventually(lambda: front.outcomes(refusal.reason) >= before + refusal.attempts)
        assert front.outcomes(refusal.reason) == before + refusal.attempts
    assert (raised.value.status_code, raised.value.code) == (refusal.status, refusal.reason)


def test_answers_pass_whole_and_as_streams(fronts, monkeypatch):
    front = fronts(None)
    client = Client("chat", front, monkeypatch)
    assert completion(client, front).choices[0].message.content == TEXT
    pieces = [chunk.choices[0].delta.content for chunk in completion(client, front, stream=True)]
    assert "".join(piece or "" for piece in pieces) == TEXT
    assert chat(client, front).invoke("Hello").content == TEXT
    assert "".join(chunk.content for chunk in chat(client, front).stream("Hello")) == TEXT


def test_what_litellm_asks_of_anthropic_is_bounded(fronts, model):
    """It puts in a limit of its own, far above the ceiling."""
    front = fronts(None)
    messages = [{"role": "user", "content": "Hello"}]
    answer = litellm.completion(model="anthropic/m", api_base=front.url, api_key="none", messages=messages)
    assert answer.choices[0].message.content == TEXT
    assert model.arrived[-1][1]["max_tokens"] == 1024
