"""A model server that answers at once in every family's shape, or holds what it is told to hold, and counts."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = "Four fathoms."

CHAT = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
}
COMPLETION = {
    "id": "c1", "object": "text_completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "text": TEXT, "logprobs": None}],
    "usage": CHAT["usage"],
}
ITEM = {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}
RESPONSE = {
    "id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [ITEM],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}
MESSAGE = {
    "id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": TEXT}],
    "usage": {"input_tokens": 1, "output_tokens": 3},
}


def chunks(whole, delta):
    """OpenAI's stream of a choice: its text in two pieces, and why it ends."""
    for piece, reason in ((TEXT[:4], None), (TEXT[4:], None), ("", "stop")):
        yield None, {**whole, "object": whole["object"] + ".chunk", "usage": None,
                     "choices": [{"index": 0, "finish_reason": reason, **delta(piece)}]}
    yield None, "[DONE]"


def response_events():
    yield "response.created", {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "output": []}}
    for number, piece in enumerate((TEXT[:4], TEXT[4:]), 1):
        yield "response.output_text.delta", {"type": "response.output_text.delta", "sequence_number": number,
                                             "item_id": "m1", "output_index": 0, "content_index": 0,
                                             "delta": piece, "logprobs": []}
    yield "response.completed", {"type": "response.completed", "sequence_number": 3, "response": RESPONSE}


def message_events():
    yield "message_start", {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
    yield "content_block_start", {"type": "content_block_start", "index": 0,
                                  "content_block": {"type": "text", "text": ""}}
    for piece in (TEXT[:4], TEXT[4:]):
        yield "content_block_delta", {"type": "content_block_delta", "index": 0,
                                      "delta": {"type": "text_delta", "text": piece}}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                            "usage": {"output_tokens": 3}}
    yield "message_stop", {"type": "message_stop"}


ANSWERS = {
    "/v1/chat/completions": (CHAT, lambda: chunks(CHAT, lambda piece: {"delta": {"role": "assistant", "content": piece}})),
    "/v1/completions": (COMPLETION, lambda: chunks(COMPLETION, lambda piece: {"text": piece, "logprobs": None})),
    "/v1/responses": (RESPONSE, response_events),
    "/v1/messages": (MESSAGE, message_events),
}


class Model(ThreadingHTTPServer):
    """Serves on a free port of 127.0.0.1 until it is closed."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.arrived = []
        self.holding = threading.Event()
        self.let_go = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return "{}:{}".format(*self.server_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.arrived.append((self.path, body))
        if body.get("model") == "held":
            self.server.holding.set()
            self.server.let_go.wait(30)
        whole, stream = ANSWERS[self.path]
        if not body.get("stream"):
            return self.answer("application/json", json.dumps(whole).encode())
        lines = []
        for event, data in stream():
            if event:
                lines.append(f"event: {event}\n")
            lines.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
        self.answer("text/event-stream", "".join(lines).encode())

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Quiet: the tests say what went wrong."""
