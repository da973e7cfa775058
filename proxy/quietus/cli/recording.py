"""The command `quietus profile record`: calls of a store, masked before they are written."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer
from aiohttp import web

from quietus.cli import recording_grpc
from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.config import load
from quietus.core.exchange import Reply, Request, Wire
from quietus.describing.masking import Masker
from quietus.describing.masks import TooMany
from quietus.describing.pairs import NoPair, Pair, of_archive, pairs_of, written
from quietus.documents import DocumentError, read
from quietus.permits import Granted, Purpose
from quietus.ports import UpstreamError
from quietus.profiles.loader import find_profile, load_profile
from quietus.profiles.profile import Profile
from quietus.settings import Settings, address
from quietus.wires import StoreClient, told_by

REQUEST_MAX: Final = 8 << 20
BODY_MAX: Final = 1 << 20
"""Of an answer; a longer one passes and is not recorded."""
FILE_MAX: Final = 64 << 20
GRPC: Final = "grpc://"


class Recording:
    """A file of masked pairs that ends by itself: after so many calls, or at its size."""

    def __init__(self, masker: Masker, file: TextIO, most: int) -> None:
        self._masker = masker
        self._file = file
        self._most = most
        self._bytes = 0
        self.count = 0
        self.left_out = 0
        self.full = asyncio.Event()

    def add(self, pair: Pair) -> None:
        """Masks a pair and writes it; one that is not recorded is counted."""
        if self.full.is_set():
            return
        try:
            line = written(self._masker.masked(pair))
        except (TooMany, UnicodeDecodeError):
            self.left_out += 1
            return
        if self._bytes + len(line) > FILE_MAX:
            self.left_out += 1
            self.full.set()
            return
        self._bytes += len(line)
        self._file.write(line + "\n")
        self._file.flush()
        self.count += 1
        if self.count >= self._most:
            self.full.set()


def profile_record(
    name: Annotated[
        str, typer.Argument(help="A profile that ships, or a path: what it names stays readable.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write; it must not exist.")],
    upstream: Annotated[
        str | None, typer.Option(help="The store, where calls go: http://HOST:PORT, or grpc://HOST:PORT.")
    ] = None,
    listen: Annotated[
        str, typer.Option(help="Where agents connect meanwhile: a loopback address.")
    ] = "127.0.0.1:8700",
    saved: Annotated[
        Path | None, typer.Option("--from", help="No proxy: calls saved before, as .har or .jsonl.")
    ] = None,
    calls: Annotated[int, typer.Option(min=1, max=10_000, help="How many are recorded; then it ends.")] = 200,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Record calls of a store, to test a profile with. Every value is masked before it is written.

    Of what passes only the profile's own names stay, 0, 1, true, false, null, and whether two values are the
    same. Nothing in clear is written, and no mask can be turned back. The file is 0600, and at most 64 MiB.

    Examples:

      quietus profile record mine.yaml --upstream http://127.0.0.1:8000 --out calls.jsonl

      quietus profile record mine.yaml --upstream grpc://127.0.0.1:50051 --out calls.jsonl

      quietus profile record mine.yaml --from browser.har --out calls.jsonl
    """
    if (upstream is None) == (saved is None):
        fail("give --upstream, to record what passes, or --from, for what was saved before")
    settings = _settings(name, upstream) if upstream is not None else None
    if settings is not None and not _loopback(listen):
        fail("a recorder listens on a loopback address only: it passes on whatever comes, for anybody")
    given = _saved(saved) if saved is not None else None
    profile = _profile(name, settings, given or ())
    document = guarded(lambda: read(find_profile(name))).value
    masker = Masker(profile, document, secrets.token_bytes(32))
    handle = guarded(lambda: os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        recording = Recording(masker, file, calls)
        if given is not None:
            _taken(given, recording)
        elif settings is not None:
            guarded(lambda: asyncio.run(_listened(settings, profile, listen, recording)))
    if json:
        say({"recording": str(out), "calls": recording.count, "left_out": recording.left_out})
    else:
        screen().print(
            f"{out}: {recording.count} calls, masked; {recording.left_out} left out", soft_wrap=True
        )
    raise typer.Exit(0 if recording.count else NO)


def _settings(name: str, upstream: str) -> Settings:
    wire = "grpc" if upstream.startswith(GRPC) else "http"
    flags = {"store.profile": name, f"store.{wire}.upstream": upstream.removeprefix(GRPC)}
    found: Settings = guarded(lambda: load(None, flags, {}))
    return found


def _profile(name: str, settings: Settings | None, given: Iterable[Pair]) -> Profile:
    """The profile for the wires that are recorded, or were."""
    wires: frozenset[Wire] = frozenset(pair.request.wire for pair in given) or frozenset({"http"})
    told = None
    if settings is not None:
        wires, told = settings.store.wires, told_by(settings.store.grpc, settings.timeouts)
    found: Profile = guarded(lambda: load_profile(name, wires, told))
    return found


def _loopback(listen: str) -> bool:
    host = guarded(lambda: address(listen))[0]
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _saved(path: Path) -> Iterable[Pair]:
    try:
        if path.suffix.lower() == ".har":
            return list(of_archive(guarded(lambda: read_archive(path))))
        with guarded(lambda: path.open(encoding="utf-8")) as lines:
            return list(pairs_of(lines))
    except (NoPair, UnicodeDecodeError, DocumentError) as error:
        fail(f"{path}: {error if isinstance(error, NoPair) else 'it cannot be read as UTF-8 text'}")


def read_archive(path: Path) -> Any:
    """The JSON of an archive. Raises OSError, NoPair."""
    import json

    if path.stat().st_size > 4 * FILE_MAX:
        raise NoPair(f"more than {4 * FILE_MAX >> 20} MiB: save a shorter session")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise NoPair("it is no JSON") from None


def _taken(given: Iterable[Pair], recording: Recording) -> None:
    for pair in given:
        recording.add(pair)


async def _listened(settings: Settings, profile: Profile, listen: str, recording: Recording) -> None:
    """Passes calls on until enough were recorded or somebody ends it."""
    client = StoreClient(settings.store, settings.timeouts)
    ended = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        ended.add_signal_handler(each, recording.full.set)
    try:
        if client.grpc is not None:
            await recording_grpc.listened(client, profile, listen, recording, BODY_MAX)
        else:
            await _listened_http(client, listen, recording)
    finally:
        await client.close()


async def _listened_http(client: StoreClient, listen: str, recording: Recording) -> None:

    async def answer(incoming: web.BaseRequest) -> web.StreamResponse:
        return await passed(client, incoming, recording)

    server = web.Server(answer, auto_decompress=False, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=2.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, *address(listen)).start()
        host, port = runner.addresses[0][:2]
        typer.echo(f"recording on http://{host}:{port}, masked; end it with Ctrl-C", err=True)
        await recording.full.wait()
    finally:
        await runner.cleanup()


async def passed(client: StoreClient, incoming: web.BaseRequest, recording: Recording) -> web.StreamResponse:
    """One call to the store and back as it came; a copy of it is recorded."""
    body = bytearray()
    while chunk := await incoming.content.readany():
        body += chunk
        if len(body) > REQUEST_MAX:
            return web.Response(
                status=413, text="quietus profile record: the request is larger than it passes on\n"
            )
    headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in incoming.raw_headers)
    request = Request(incoming.method, incoming.raw_path, headers, bytes(body))
    try:
        reply = await client.open(request, Granted(Purpose.CLIENT, "recording"))
    except UpstreamError as error:
        return web.Response(status=502, text=f"quietus profile record: the store did not answer: {error}\n")
    response = web.StreamResponse(status=reply.status)
    for name, value in reply.headers:
        if name.lower() not in ("transfer-encoding", "connection", "keep-alive"):
            response.headers.add(name, value)
    kept = bytearray()
    try:
        await response.prepare(incoming)
        async for part in reply.chunks():
            if len(kept) <= BODY_MAX:
                kept += part
            await response.write(part)
    except (UpstreamError, ConnectionError):
        recording.left_out += 1
        reply.abort()
        if incoming.transport is not None:
            incoming.transport.abort()
        return response
    await response.write_eof()
    if len(kept) > BODY_MAX:
        recording.left_out += 1
    else:
        recording.add(Pair(request, Reply(reply.status, reply.headers, bytes(kept))))
    return response


def register(group: typer.Typer) -> None:
    """Adds the command to the group `quietus profile`."""
    group.command("record")(profile_record)
