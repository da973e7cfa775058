"""Who takes part in the measurement over gRPC: the store, a bare proxy, Envoy, and whoever asks."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from bench.traffic import request_body, rows

METHOD = "/quietus.memory.v1.MemoryService/Recall"
CHANNELS = 4


def question(wide: bool) -> bytes:
    """The recall as a message; a wide one names no subject."""
    from google.protobuf.json_format import ParseDict

    from quietus.stubs import memory_v1_pb2 as pb

    return ParseDict(json.loads(request_body(wide)), pb.RecallRequest()).SerializeToString()


def answer() -> bytes:
    """Ten hits, 4 KB."""
    from google.protobuf.json_format import ParseDict

    from quietus.stubs import memory_v1_pb2 as pb

    return ParseDict({"results": rows()}, pb.RecallResponse()).SerializeToString()


async def store(port: int) -> None:
    """Answers every call with the same bytes."""
    import grpc

    fixed = answer()

    async def same(_message: bytes, _context: Any) -> bytes:
        return fixed

    class Any_(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            return grpc.unary_unary_rpc_method_handler(same)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Any_(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


async def bare(port: int, upstream: int) -> None:
    """A proxy as anybody writes it with grpc.aio, on uvloop like ours: bytes in, bytes out, no policy."""
    import grpc

    channel = grpc.aio.insecure_channel(f"127.0.0.1:{upstream}")
    ask: Any = channel.unary_unary(METHOD)

    async def passed(message: bytes, context: Any) -> bytes:
        got: bytes = await ask(message, metadata=context.invocation_metadata(), timeout=60)
        return got

    class Any_(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            return grpc.unary_unary_rpc_method_handler(passed)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Any_(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


async def load(port: int, at_once: int, seconds: float, wide: bool) -> None:
    """Calls, so many at a time, and prints what it saw; latencies in microseconds."""
    import grpc

    message, seen, errors = question(wide), [], 0
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) for _ in range(CHANNELS)]
    asks: list[Any] = [channel.unary_unary(METHOD) for channel in channels]
    until = time.perf_counter() + seconds

    async def one(ask: Any) -> None:
        nonlocal errors
        while (began := time.perf_counter()) < until:
            try:
                await ask(message)
            except grpc.aio.AioRpcError:
                errors += 1
            seen.append((time.perf_counter() - began) * 1e6)

    await asyncio.gather(*(one(asks[number % CHANNELS]) for number in range(at_once)))
    seen.sort()
    p10, p50 = seen[len(seen) // 10], seen[len(seen) // 2]
    told = {"requests": len(seen), "errors": errors, "p10": p10, "p50": p50}
    print(json.dumps(told))


def envoy_config(port: int, upstream: int) -> str:
    """Envoy as a reverse proxy for HTTP/2 without anything else."""
    return json.dumps({
        "static_resources": {
            "listeners": [{
                "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
                "filter_chains": [{"filters": [{
                    "name": "envoy.filters.network.http_connection_manager",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.network"
                                 ".http_connection_manager.v3.HttpConnectionManager",
                        "stat_prefix": "in", "codec_type": "HTTP2",
                        "route_config": {"virtual_hosts": [{
                            "name": "all", "domains": ["*"],
                            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "store"}}],
                        }]},
                        "http_filters": [{
                            "name": "envoy.filters.http.router",
                            "typed_config": {
                                "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
                            },
                        }],
                    },
                }]}],
            }],
            "clusters": [{
                "name": "store", "connect_timeout": "3s", "type": "STATIC",
                "typed_extension_protocol_options": {
                    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                        "explicit_http_config": {"http2_protocol_options": {}},
                    }
                },
                "load_assignment": {"cluster_name": "store", "endpoints": [{"lb_endpoints": [{
                    "endpoint": {"address": {"socket_address": {
                        "address": "127.0.0.1", "port_value": upstream,
                    }}},
                }]}]},
            }],
        },
    })  # fmt: skip
