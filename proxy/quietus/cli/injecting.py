"""`quietus inject`: the sidecar into pods, by a webhook or on paper."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import structlog
import typer
import yaml
from pydantic import ValidationError

from quietus import logs
from quietus.app import SystemClock, harden
from quietus.cli.root import fail, guarded
from quietus.config import cluster_address
from quietus.inject.certificates import CertificateRefused
from quietus.inject.cluster import Cluster, ClusterRefused
from quietus.inject.manifests import injected
from quietus.inject.renewal import Files, Kept, Source
from quietus.inject.server import InjectorServer, Places
from quietus.inject.wishes import InjectionRefused, InjectorSettings
from quietus.keys import Keyring
from quietus.settings import address

inject = typer.Typer(
    help="Put the sidecar into pods. With -f: into a manifest, without a cluster.",
    invoke_without_command=True,
)
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The injector's settings.", show_default=False),
]


def settings_of(config: Path | None) -> InjectorSettings:
    """The injector's settings; faults end the command."""
    if config is None:
        return InjectorSettings()
    try:
        found = yaml.safe_load(config.read_text(encoding="utf-8"))
        return InjectorSettings.model_validate({} if found is None else found)
    except OSError as error:
        fail(f"{config} cannot be read: {error.strerror}")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        fail(f"{config}:{mark.line + 1 if mark else 1}: is not YAML; correct it")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        fail(f"{config}: {'.'.join(map(str, first['loc'])) or 'document'}: {first['msg']}")


@inject.callback()
def offline(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="Manifests; - for stdin.", show_default=False)
    ] = None,
    config: Config = None,
) -> None:
    """Put the sidecar into pods: prints the manifests of --file with it.

    Example:

      quietus inject -f deployment.yaml | kubectl apply -f -
    """
    if context.invoked_subcommand is not None:
        return
    if file is None:
        fail("say which manifests: quietus inject -f FILE; or: quietus inject serve")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        made, warnings = injected(text, settings_of(config))
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read ({type(error).__name__})")
    except InjectionRefused as error:
        fail(str(error), 1)
    for warning in warnings:
        typer.echo(warning, err=True)
    typer.echo(made, nl=False)


@inject.command()
def serve(
    config: Config = None,
    listen: Annotated[str, typer.Option(help="Where the API server finds it: HOST:PORT.")] = "0.0.0.0:8443",
    probes: Annotated[str, typer.Option(help="Probes and metrics: HOST:PORT.")] = "0.0.0.0:8711",
    cert: Annotated[Path | None, typer.Option(help="Certificate, PEM; read anew when it changes.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    secret: Annotated[str, typer.Option(help="NAMESPACE/NAME of a Secret for an own certificate.")] = "",
    webhook: Annotated[str, typer.Option(help="The webhook that is to accept it.")] = "",
    service: Annotated[str, typer.Option(help="Name that the API server calls: NAME.NAMESPACE.svc.")] = "",
    days: Annotated[int, typer.Option(min=2, max=825, help="Days that an own certificate holds.")] = 90,
) -> None:
    """Run the webhook that puts the sidecar into labelled pods.

    Example:

      quietus inject serve --config injector.yaml --cert tls.crt --key tls.key
    """
    settings = settings_of(config)
    logs.setup(SystemClock().now)
    own = (secret, webhook, service)
    if (cert is None) != (key is None) or (cert is None) == (not any(own)) or (any(own) and not all(own)):
        fail("give --cert and --key, or --secret, --webhook and --service")
    if cert is None and secret.count("/") != 1:
        fail("--secret is NAMESPACE/NAME")
    try:
        places = Places(address(listen), address(probes))
    except ValueError:
        fail("--listen and --probes are HOST:PORT, such as 0.0.0.0:8443")

    api: str = guarded(cluster_address) if cert is None else ""

    async def forever() -> None:
        async with AsyncExitStack() as stack:
            source: Source
            if cert is not None and key is not None:
                source = Files(cert, key)
            else:
                cluster = await stack.enter_async_context(Cluster(api))
                namespace, _, name = secret.partition("/")
                source = Kept(cluster, namespace, name, webhook, (service, f"{service}.cluster.local"), days)
            server = InjectorServer(settings, source, places, SystemClock(), structlog.get_logger())
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            stack.push_async_callback(server.stop)
            await server.start()
            await stop.wait()

    harden()
    try:
        asyncio.run(forever())
    except (CertificateRefused, ClusterRefused, OSError) as error:
        fail(str(error))


@inject.command("secret")
def new_secret(
    name: Annotated[str, typer.Argument(help="Name of the Secret.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "",
) -> None:
    """Print a Secret with new keys and a new admin token. Keep a copy: without the keys a ledger is lost.

    Example:

      quietus inject secret quietus-keys | kubectl apply -f -
    """
    with tempfile.TemporaryDirectory(prefix="quietus-keys-") as folder:
        file = Path(folder) / "keys.json"
        Keyring.load_or_make(file, ledger_is_new=True)
        parts = {"keys.json": file.read_bytes(), "admin.token": secrets.token_urlsafe(32).encode()}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    data = {key: base64.b64encode(value).decode() for key, value in parts.items()}
    # Immutable: keys that are replaced by mistake would shut every gate.
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "immutable": True}
    typer.echo(json.dumps({**made, "data": data}, indent=2))


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(inject, name="inject")
