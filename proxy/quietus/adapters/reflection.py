"""What a store tells of its own methods: its descriptor set, by gRPC's server reflection.

Asked once, when the sidecar starts, for a profile that names no set of its own. A set beside the profile is
better: it cannot change under it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import grpc
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection_pb2

from quietus.adapters.grpc_metadata import metadata_of
from quietus.core.exchange import Headers
from quietus.profiles.descriptors import NoDescriptors

METHODS: Final = (
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)
"""The same messages under a newer and an older name."""
FILES_MAX: Final = 1000
"""Files that one store may tell."""


def told(
    target: str,
    services: Iterable[str],
    *,
    deadline: float,
    credentials: grpc.ChannelCredentials | None = None,
    headers: Headers = (),
) -> bytes:
    """The descriptor set of these services, waited for at most `deadline` seconds. Raises NoDescriptors."""
    channel = (
        grpc.insecure_channel(target) if credentials is None else grpc.secure_channel(target, credentials)
    )
    with channel:
        for method in METHODS:
            try:
                return _gathered(channel, method, sorted(services), deadline, headers)
            except grpc.RpcError as error:
                code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
                if code is not grpc.StatusCode.UNIMPLEMENTED:
                    raise NoDescriptors(f"asking the store by reflection ended with {code.name}") from None
    raise NoDescriptors("the store does not serve reflection")


def _gathered(
    channel: grpc.Channel, method: str, services: list[str], deadline: float, headers: Headers
) -> bytes:
    ask = channel.stream_stream(
        method,
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    files: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    def answers(request: reflection_pb2.ServerReflectionRequest) -> Iterator[bytes]:
        metadata = metadata_of(headers)
        for answer in ask(iter([request]), timeout=deadline, wait_for_ready=True, metadata=metadata):
            if not answer.HasField("file_descriptor_response"):
                raise NoDescriptors("the store does not know a service or file that is asked for")
            yield from answer.file_descriptor_response.file_descriptor_proto

    def take(request: reflection_pb2.ServerReflectionRequest) -> None:
        for data in answers(request):
            try:
                found = descriptor_pb2.FileDescriptorProto.FromString(data)
            except DecodeError:
                raise NoDescriptors("the store tells a file that cannot be read") from None
            files[found.name] = found
            if len(files) > FILES_MAX:
                raise NoDescriptors("the store tells more files than a profile can need")

    for service in services:
        take(reflection_pb2.ServerReflectionRequest(file_containing_symbol=service))
    while missing := {name for one in files.values() for name in one.dependency} - files.keys():
        take(reflection_pb2.ServerReflectionRequest(file_by_filename=min(missing)))
        if min(missing) not in files:
            raise NoDescriptors("the store tells other files than are asked for")
    return descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString()
