"""A client of an API that allows 50 calls a second: it uses all of that, and is never answered 429.

The API is a real HTTP server in this process with a token bucket of its own: 50 a second, 10 at once. The client's
bucket is 50 a second, 5 at once: the same rate with a smaller burst, for calls reach the server a little late or early.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter

from mirab import Context, Pool, Resource, Retryable, Scheduler

RATE = 50.0


class Api:
    """Answers 200 while its bucket has a token, else 429."""

    def __init__(self, rate: float, burst: int) -> None:
        self.answers: Counter[int] = Counter()
        self._rate, self._burst = rate, burst
        self._tokens, self._at = float(burst), time.monotonic()

    def _allows(self) -> bool:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection."""
        await reader.readuntil(b"\r\n\r\n")
        status = 200 if self._allows() else 429
        self.answers[status] += 1
        reason = "OK" if status == 200 else "Too Many Requests\r\nRetry-After: 1"
        writer.write(f"HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()


async def call(ctx: Context, port: int) -> int:
    """A GET; what the API says of its limit is obeyed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    status = int((await reader.readline()).split()[1])
    headers = (await reader.read()).decode().splitlines()
    writer.close()
    if status == 429:
        pause = next(float(line.split(":")[1]) for line in headers if line.lower().startswith("retry-after"))
        ctx.cooldown("api", pause)
        raise Retryable("too many requests", retry_after=pause)
    return status


async def main(seconds: float, least: float) -> int:
    """Calls for so long; 1 when the API had to refuse, or when less than that share of its limit was used."""
    api = Api(RATE, burst=10)
    server = await asyncio.start_server(api.answer, "127.0.0.1")
    port: int = server.sockets[0].getsockname()[1]
    limit = Resource.token_bucket("api", rate=RATE, burst=5)
    async with Scheduler([Pool("calls", call, resources={"api": 1})], [limit]) as scheduler:
        # More than there is time for: what has not started by then expires.
        await scheduler.submit_many([port] * int(RATE * seconds * 2), retries=3, start_within=seconds)
    server.close()
    used = api.answers[200] / (RATE * seconds)
    print(f"{seconds:g} s: {api.answers[200]} calls, {used:.1%} of the limit, {api.answers[429]} answered 429")
    return int(api.answers[429] > 0 or used < least)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--least", type=float, default=0.98, help="share of the limit that must be used")
    given = options.parse_args()
    sys.exit(asyncio.run(main(given.seconds, given.least)))
