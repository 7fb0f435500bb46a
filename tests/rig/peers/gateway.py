"""The gateway that is written in an afternoon: an asyncio priority queue before one model server.

As many workers as the server has slots take the most urgent request that waits, short ones first; whoever runs, runs to
its end. A peer to be measured beside Envoy with Sluice, not a part of it.

    UPSTREAM=http://127.0.0.1:8000 SLOTS=16 uvicorn gateway:app
"""

import asyncio
import itertools
import json
import os
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

UPSTREAM = os.environ["UPSTREAM"]
SLOTS = int(os.environ["SLOTS"])
# What counts as short, as in the policy it is measured beside.
SHORT_CHARS = int(os.environ.get("SHORT_CHARS", 2000))
SHORT_TOKENS = int(os.environ.get("SHORT_TOKENS", 256))

waiting: asyncio.PriorityQueue = asyncio.PriorityQueue()
arrivals = itertools.count()


def urgency(body: bytes) -> int:
    """0 for a short request, 1 for any other."""
    asked = json.loads(body)
    chars = sum(len(message.get("content") or "") for message in asked.get("messages", []))
    return int(chars > SHORT_CHARS or asked.get("max_tokens", 1 << 30) > SHORT_TOKENS)


async def work(client: httpx.AsyncClient) -> None:
    while True:
        _, _, body, answer = await waiting.get()
        try:
            request = client.build_request(
                "POST", "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
            )
            response = await client.send(request, stream=True)
            await answer.put(response.status_code)
            async for piece in response.aiter_raw():
                await answer.put(piece)
            await response.aclose()
        except httpx.HTTPError as error:
            await answer.put(error)
        await answer.put(None)


@asynccontextmanager
async def lifespan(_: FastAPI):
    # Without kept connections: some model servers close theirs while the next request is on its way.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=UPSTREAM, timeout=None, limits=limits) as client:
        workers = [asyncio.create_task(work(client)) for _ in range(SLOTS)]
        yield
        for worker in workers:
            worker.cancel()


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health():
    return {}


@app.post("/v1/chat/completions")
async def chat(request: Request):
    body, answer = await request.body(), asyncio.Queue()
    await waiting.put((urgency(body), next(arrivals), body, answer))
    status = await answer.get()

    async def pieces():
        while isinstance(piece := await answer.get(), bytes):
            yield piece

    if not isinstance(status, int):
        return StreamingResponse(iter(()), status_code=502)
    return StreamingResponse(pieces(), status_code=status, media_type="text/event-stream")
