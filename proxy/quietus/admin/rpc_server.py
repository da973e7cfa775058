"""Serves the admin API's gRPC side, with the sidecar's own health and reflection, behind the admin port."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import aiohttp
import grpc
from aiohttp import web
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quietus.adapters.sharing import Sharing
from quietus.admin.figures import Figures
from quietus.admin.health import why_unready
from quietus.admin.rpc import SERVICE, AdminRpc
from quietus.erasures import Erasures

BODY_MAX: Final = 64 * 1024
CALLS_MAX: Final = 256
"""Calls at one time; a watch is one."""
_LOOK: Final = 1.0
"""Seconds between two looks of whoever watches the health."""


class RpcServer:
    """A gRPC server on a socket that only this process's user can reach, and what it asks the HTTP API by."""

    def __init__(self, erasures: Erasures, figures: Figures) -> None:
        self._figures = figures
        self._folder = Path(tempfile.mkdtemp(prefix="quietus-admin-"))
        self._erasures = erasures
        self._server: aio.Server | None = None
        self._session: aiohttp.ClientSession | None = None
        self.sharing = Sharing(str(self._folder / "rpc"))

    async def start(self, runner: web.AppRunner) -> None:
        """Begins; `runner` is set up and gets one more address to listen on."""
        inside = str(self._folder / "http")
        await web.UnixSite(runner, inside).start()
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.UnixConnector(path=inside, limit=CALLS_MAX)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        options = [("grpc.max_receive_message_length", BODY_MAX)]
        server = aio.server(options=options, maximum_concurrent_rpcs=CALLS_MAX)
        server.add_generic_rpc_handlers((AdminRpc(self._session),))
        health_pb2_grpc.add_HealthServicer_to_server(_Health(self._erasures, self._figures), server)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        server.add_insecure_port(f"unix:{self.sharing.inside}")
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Ends whatever is under way."""
        if self._server is not None:
            await self._server.stop(0)
        if self._session is not None:
            await self._session.close()
        self.sharing.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Health(health_pb2_grpc.HealthServicer):
    """Whether calls are decided, as `/readyz` says it; of the sidecar as a whole and of the one service."""

    def __init__(self, erasures: Erasures, figures: Figures) -> None:
        self._erasures = erasures
        self._figures = figures

    def _status(self, name: str) -> Any:
        if name not in ("", SERVICE):
            return health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        ready = why_unready(self._erasures, self._figures) is None
        kinds = health_pb2.HealthCheckResponse
        return kinds.SERVING if ready else kinds.NOT_SERVING

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 (the service's own name)
        status = self._status(request.service)
        if status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service here")
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 (the service's own name)
        shown: Any = None
        while True:
            status = self._status(request.service)
            if status != shown:
                shown = status
                await context.write(health_pb2.HealthCheckResponse(status=status))
            await self._erasures.clock.sleep(_LOOK)
