"""Commands that run something: the sidecar, the demo, the store that lies."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from quietus import logs
from quietus.app import Sidecar, SystemClock
from quietus.app import run as run_sidecar
from quietus.cli.root import NO, fail, guarded, screen
from quietus.config import load
from quietus.legacy import demo as story
from quietus.legacy.faults import FAULTS, FOUNDING, UnknownFault, parse_faults
from quietus.legacy.grpc_server import serve_grpc
from quietus.legacy.server import serve as serve_store
from quietus.legacy.store import LegacyStore
from quietus.profiles.loader import load_profile
from quietus.settings import Settings, address

Config = Annotated[Path | None, typer.Option("--config", "-c", help="YAML or JSON file.", show_default=False)]


def settings_of(config: Path | None, flags: dict[str, Any]) -> Settings:
    """Settings from file, environment and flags; faults end the command."""
    found: Settings = guarded(lambda: load(config, flags))
    return found


def serve(
    config: Config = None,
    upstream: Annotated[str | None, typer.Option(help="The store, such as http://127.0.0.1:8000.")] = None,
    profile: Annotated[str | None, typer.Option(help="A profile that ships, or a path.")] = None,
    listen: Annotated[str | None, typer.Option(help="Where agents connect: HOST:PORT.")] = None,
    grpc_upstream: Annotated[str | None, typer.Option(help="The store over gRPC: HOST:PORT.")] = None,
    grpc_listen: Annotated[
        str | None, typer.Option(help="Where agents connect over gRPC; the same as --listen: one port.")
    ] = None,
    admin: Annotated[str | None, typer.Option(help="Where the admin API listens: HOST:PORT.")] = None,
    ledger: Annotated[str | None, typer.Option(help="sqlite:///PATH, or memory:")] = None,
    policy: Annotated[str | None, typer.Option(help="default, strict, observe, or a path.")] = None,
) -> None:
    """Run the sidecar.

    Examples:

      quietus serve --config quietus.yaml

      quietus serve --upstream http://127.0.0.1:8000 --profile chroma --ledger sqlite:///quietus.db

      quietus serve --grpc-upstream 127.0.0.1:19530 --profile milvus --ledger sqlite:///quietus.db
    """
    settings = settings_of(
        config,
        {
            "store.http.upstream": upstream,
            "store.profile": profile,
            "store.http.listen": listen,
            "store.grpc.upstream": grpc_upstream,
            "store.grpc.listen": grpc_listen,
            "admin.listen": admin,
            "ledger.url": ledger,
            "policy": policy,
        },
    )
    logs.setup(SystemClock().now)
    guarded(lambda: run_sidecar(settings))


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the store and the sidecar running.")] = False,
    grpc: Annotated[bool, typer.Option("--grpc", help="Let everybody speak gRPC.")] = False,
) -> None:
    """Show a store that lies, and Quietus in front of it, side by side.

    Examples:

      quietus demo

      quietus demo --grpc
    """
    with tempfile.TemporaryDirectory(prefix="quietus-demo-") as folder:
        logs.setup(SystemClock().now, stream=(Path(folder) / "log").open("w"))
        held = asyncio.run(_tell(Path(folder), keep, grpc))
    raise typer.Exit(0 if held else NO)


async def _tell(folder: Path, keep: bool, grpc: bool) -> bool:
    profile = _hurried(folder)
    wire = "grpc" if grpc else "http"

    async def factory(upstream: str) -> story.Sidecar:
        settings = load(
            None,
            {
                "store.name": "demo",
                "store.profile": str(profile),
                f"store.{wire}.upstream": upstream,
                f"store.{wire}.listen": "127.0.0.1:0",
                "admin.listen": "127.0.0.1:0",
                "ledger.url": f"sqlite:///{folder}/ledger.db",
            },
            {},
        )
        sidecar = Sidecar(settings)
        await sidecar.start()
        place = sidecar.grpc_address if grpc else sidecar.data_url
        return story.Sidecar(place, sidecar.admin_url, sidecar.admin.token, sidecar.stop)

    return await story.run(screen(), sidecar_factory=factory, keep=keep, clock=SystemClock(), grpc=grpc)


def _hurried(folder: Path) -> Path:
    """The profile `memory-tool` with intervals of seconds: the store's compaction comes at five."""
    import yaml

    from quietus.profiles.loader import find_profile

    document = yaml.safe_load(find_profile("memory-tool").read_text(encoding="utf-8"))
    document["store"] |= {"settling_interval": "8s", "effectuation_bound": "40s"}
    path = folder / "memory-tool.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    load_profile(path)
    return path




def legacy_serve(
    listen: Annotated[str, typer.Option(help="HOST:PORT.")] = "127.0.0.1:8000",
    grpc_listen: Annotated[str | None, typer.Option(help="HOST:PORT, for gRPC too.")] = None,
    fault: Annotated[list[str] | None, typer.Option("--fault", help="NAME or NAME=VALUE.")] = None,
    faults: Annotated[bool, typer.Option("--faults", help="List the faults and end.")] = False,
) -> None:
    """Serve the store that lies, by hand. Without --fault: as in the first founding scenario.

    Examples:

      quietus legacy serve

      quietus legacy serve --fault lazy_index=60 --fault chunk_cache

      quietus legacy serve --grpc-listen 127.0.0.1:50051
    """
    if faults:
        for name, each in FAULTS.items():
            screen().print(f"[bold]{name}[/bold]  {each.says}")
        return
    try:
        chosen = parse_faults(fault) if fault else FOUNDING
        host, port = address(listen)
        second = address(grpc_listen) if grpc_listen is not None else None
    except (UnknownFault, ValueError) as error:
        fail(str(error))

    async def forever() -> None:
        store = LegacyStore(SystemClock(), seed=1, faults=chosen)
        async with AsyncExitStack() as stack:
            served = await serve_store(host, port, store)
            stack.push_async_callback(served.close)
            places = served.url
            if second is not None:
                over_grpc = await serve_grpc(*second, store)
                stack.push_async_callback(over_grpc.close)
                places += f" and, over gRPC, on {over_grpc.address}"
            typer.echo(f"the store listens on {places}; stop it with Ctrl-C", err=True)
            await asyncio.Event().wait()

    try:
        guarded(lambda: asyncio.run(forever()))
    except KeyboardInterrupt:
        sys.exit(0)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command()(serve)
    app.command()(demo)
    legacy = typer.Typer(help="The store that lies, by hand.", no_args_is_help=True)
    legacy.command("serve")(legacy_serve)
    app.add_typer(legacy, name="legacy")


