"""The store's stand-in: nginx with a fixed answer, or a small server in Python where nginx is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

from bench import traffic
from bench.processes import Process, free_port, python

_HTTP = """
worker_processes 1;
daemon off;
master_process off;
pid {folder}/{name}.pid;
error_log {folder}/{name}.error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/{name}-body;
  proxy_temp_path {folder}/{name}-proxy;
  fastcgi_temp_path {folder}/{name}-fastcgi;
  uwsgi_temp_path {folder}/{name}-uwsgi;
  scgi_temp_path {folder}/{name}-scgi;
  client_body_buffer_size 64k;
  keepalive_requests 1000000000;
  keepalive_timeout 3600s;
  default_type application/json;
{rest}
}}
"""


def nginx() -> str | None:
    """Where nginx is, or None."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


def nginx_process(name: str, folder: Path, rest: str) -> Process:
    """An nginx of one worker with this in its http block."""
    found = nginx()
    assert found is not None
    config = folder / f"{name}.conf"
    config.write_text(_HTTP.format(folder=folder, name=name, rest=rest))
    command = [found, "-p", str(folder), "-e", str(folder / f"{name}.error.log"), "-c", str(config)]
    return Process(name, command, folder / f"{name}.log")


def start(folder: Path) -> tuple[Process, int, int]:
    """The process, the port that always answers the same, and one whose texts are new in each answer."""
    port, fresh_port = free_port(), free_port()
    if nginx() is None:
        process = Process("upstream", python("-m", "bench.upstream", str(port), str(fresh_port)),
                          folder / "upstream.log")  # fmt: skip
    else:
        rest = _server(port, "") + _server(fresh_port, "$request_id")
        process = nginx_process("upstream", folder, rest)
    process.start()
    process.wait_for_port(port)
    process.wait_for_port(fresh_port)
    return process, port, fresh_port


def _server(port: int, fresh: str) -> str:
    # One word of an nginx configuration has 4 KB at most, so the answer is put together from its rows.
    whole = traffic.answer_body("\0" * 32 if fresh else "").decode()
    mark = "\\u0000" * 32
    sets, parts = [], []
    for number, piece in enumerate(_pieces(whole.replace(mark, "\1"))):
        text = piece.replace("\1", fresh)
        sets.append(f"    set $part{number} '{text}';")
        parts.append(f"$part{number}")
    said = "".join(f"${{{part[1:]}}}" for part in parts)
    return (
        f"  server {{\n    listen 127.0.0.1:{port} backlog=1024;\n" + "\n".join(sets)
        + f"\n    location / {{ return 200 '{said}'; }}\n  }}\n"
    )  # fmt: skip


def _pieces(text: str) -> list[str]:
    size = 1500
    return [text[at : at + size] for at in range(0, len(text), size)]


class _Fixed(asyncio.Protocol):
    """Answers each request of known length with the same bytes."""

    def __init__(self, fresh: bool) -> None:
        self._fresh = fresh
        self._count = 0
        self._buffer = b""
        body = traffic.answer_body("f" * 32 if fresh else "")
        kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._answer = b"HTTP/1.1 200 OK\r\n" + kind + body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers every request that is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n")[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._count += 1
            answer = self._answer
            if self._fresh:
                answer = answer.replace(b"f" * 32, b"%032x" % (id(self) + self._count))
            assert isinstance(self._transport, asyncio.Transport)
            self._transport.write(answer)


async def _serve(port: int, fresh_port: int) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: _Fixed(False), "127.0.0.1", port)
    await loop.create_server(lambda: _Fixed(True), "127.0.0.1", fresh_port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
