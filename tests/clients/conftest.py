"""One model server for all tests, and an Envoy for each policy that is asked for."""

import contextlib
import json
import threading
import time

import httpx
import pytest

from front import Front
from model import Model
from refusals import upload_that_stalls


@pytest.fixture(scope="session")
def model():
    with Model() as server:
        yield server
        server.let_go.set()
        server.shutdown()


@pytest.fixture(scope="session")
def fronts(model):
    """Starts an Envoy at its first use."""
    with contextlib.ExitStack() as stack:
        running = {}

        def front(policy, header_hold=True):
            key = (json.dumps(policy), header_hold)
            if key not in running:
                running[key] = stack.enter_context(Front(model, policy, header_hold))
            return running[key]

        yield front
        model.let_go.set()


@pytest.fixture
def meet(fronts, model):
    """Brings about what a refusal needs beside the request, and hands out the Envoy."""

    @contextlib.contextmanager
    def meet(refusal):
        front = fronts(refusal.policy, refusal.header_hold)
        with contextlib.ExitStack() as stack:
            if refusal.crowded:
                before = front.received()
                stack.enter_context(upload_that_stalls(front, 4000))
                eventually(lambda: front.received() >= before + 4000)
            if refusal.held:
                stack.enter_context(slot_taken(front, model))
            yield front

    return meet


@contextlib.contextmanager
def slot_taken(front, model):
    """The only slot is taken for as long as this lasts."""
    model.holding.clear()
    model.let_go.clear()
    body = {"model": "held", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    request = threading.Thread(target=httpx.post, args=(front.url + "/v1/chat/completions",),
                               kwargs={"json": body, "timeout": 40})
    request.start()
    assert model.holding.wait(10), "the slot is not taken"
    try:
        yield
    finally:
        model.let_go.set()
        request.join()


class Clock:
    """`time` for a client that is to wait between attempts: it is told, and does not wait."""

    def __init__(self):
        self.waits = []

    def sleep(self, seconds):
        self.waits.append(seconds)

    def __getattr__(self, name):
        return getattr(time, name)


def eventually(holds):
    """Waits until it holds; what Envoy counts is there a moment after the answer."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.01)
