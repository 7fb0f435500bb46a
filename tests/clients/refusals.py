"""Every refusal that a client can meet, once: what it takes to meet it, and what is to come of it."""

import contextlib
import dataclasses
import socket

# Limits that are easily passed, and slots and times that are soon over.
TIGHT = {
    "limits": {"body_bytes": 4000, "prompt_chars": 500, "max_tokens": 512, "default_max_tokens": 64,
               "over_max_tokens": "reject", "sequences": 2},
    "unlisted_posts": "reject",
}
HASTY = {"limits": {"body_timeout": "0.2s"}}
FULL = {"classes": [{"name": "all", "concurrency": 1, "queue": {"capacity": 0}}]}
QUEUED = {"classes": [{"name": "all", "concurrency": 1, "queue": {"capacity": 9, "timeout": "0.1s"}}]}
CROWDED = {"limits": {"body_bytes": 4000, "buffered_bytes": 4000, "body_timeout": "60s"}}

# The output limit's name, by API.
LIMITS = {"chat": "max_tokens", "completions": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}
ALL = tuple(LIMITS)


@dataclasses.dataclass(frozen=True)
class Refusal:
    """One reason. `says` stands in the message; `attempts` are made by a client that may try twice more."""

    reason: str
    status: int
    says: str
    policy: dict
    apis: tuple = ALL
    attempts: int = 1
    kind: str = "invalid_request_error"
    prompt: str = "Hello"
    body: dict = dataclasses.field(default_factory=dict)
    headers: dict = dataclasses.field(default_factory=dict)
    header_hold: bool = True
    stalls: bool = False
    held: bool = False
    crowded: bool = False

    def body_for(self, api):
        return {LIMITS[api] if key == "LIMIT" else key: value for key, value in self.body.items()}


REFUSALS = [
    Refusal("body_too_large", 413, "at most 4000", TIGHT, prompt="x" * 5000),
    Refusal("prompt_too_long", 413, "has 600 characters", TIGHT, prompt="x" * 600),
    Refusal("invalid_body", 400, "must be a whole number", TIGHT, body={"LIMIT": "many"}),
    Refusal("max_tokens_too_large", 400, "at most 512", TIGHT, body={"LIMIT": 100_000}),
    Refusal("too_many_sequences", 400, "at most 2", TIGHT, ("chat", "completions"), body={"n": 3}),
    Refusal("unsupported_background", 400, "background", TIGHT, ("responses",), body={"background": True}),
    Refusal("unsupported_encoding", 415, "content-encoding", TIGHT, headers={"content-encoding": "gzip"}),
    Refusal("unsupported_type", 415, "content-type", TIGHT, headers={"Content-Type": "multipart/mixed"}),
    Refusal("unsupported_upgrade", 400, "no upgrade", TIGHT,
            headers={"connection": "upgrade", "upgrade": "websocket"}),
    Refusal("body_timeout", 408, "did not end within 0.2 s", HASTY, attempts=3, kind="timeout_error", stalls=True),
    Refusal("queue_full", 429, "no free slot of class all", FULL, attempts=3, kind="rate_limit_error", held=True),
    Refusal("queue_timeout", 503, "became free within", QUEUED, attempts=3, kind="overloaded_error", held=True),
    Refusal("overloaded", 503, "at once", CROWDED, attempts=3, kind="overloaded_error", crowded=True),
    Refusal("misconfigured", 500, "allow_on_headers_stop_iteration", {}, kind="server_error", header_hold=False),
]

# What Anthropic's clients are told, by status.
ANTHROPIC_KINDS = {408: "timeout_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
                   503: "overloaded_error"}


@contextlib.contextmanager
def upload_that_stalls(front, size):
    """A body of which all but the last byte has come, and no more will."""
    with socket.create_connection(front.clients.split(":"), timeout=10) as stream:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: models.test\r\ncontent-length: {size}\r\n\r\n"
        stream.sendall(head.encode() + b" " * (size - 1))
        yield


def stalling(pieces, goes_on):
    """The pieces of a body, the last byte only once `goes_on` has returned."""
    whole = b"".join(pieces)
    yield whole[:-1]
    goes_on()
    yield whole[-1:]
