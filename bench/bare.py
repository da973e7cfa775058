"""A proxy as anybody writes it in an afternoon: aiohttp's server, aiohttp's client, and no policy."""

from __future__ import annotations

import asyncio
import sys

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web


def main(port: int, upstream: int) -> None:
    """Serves until it is ended."""
    address = f"http://127.0.0.1:{upstream}"

    async def run() -> None:
        session = ClientSession(
            connector=TCPConnector(limit=256), timeout=ClientTimeout(60), auto_decompress=False
        )

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            body = await request.read()
            async with session.request(request.method, address + request.path_qs, data=body,
                                       headers={"Content-Type": request.content_type}) as answer:  # fmt: skip
                return web.Response(status=answer.status, body=await answer.read(),
                                    content_type=answer.content_type)  # fmt: skip

        runner = web.ServerRunner(web.Server(handle))  # type: ignore[arg-type]
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()

    uvloop.run(run())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
