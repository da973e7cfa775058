"""The spans: one for each call of an agent, one for each request to the store.

What W3C headers a caller sent go to the store as they came, whoever traces: the store's own span is a child
of the caller's, and ours stand beside it. Attributes are names that the policy gives, and numbers: no
address, path, query, header, id or text, and no words of an exception.
"""

from __future__ import annotations

from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from quietus.adapters.grpc import Handler, Talker
from quietus.answers import Answer
from quietus.conversation_ports import Client, Streams
from quietus.core.exchange import Headers, Request, Wire, header
from quietus.ports import Upstream
from quietus.recording import Measures
from quietus.tracing.storing import Storing, ended, operation

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
_DRAIN: Final = 2_000
"""Milliseconds that the last spans may take to leave at the end: a pod that is ended has no more."""


def exporter_for(protocol: str) -> SpanExporter:
    """The exporter of a protocol, set up by OTEL_EXPORTER_OTLP_*. Raises ImportError, ValueError."""
    if protocol == "http/protobuf":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

        made: SpanExporter = OverGrpc()
        return made
    raise ValueError("neither http/protobuf nor grpc")


class Spans:
    """Makes spans, and puts what makes them around the parts of a sidecar."""

    def __init__(self, exporter: SpanExporter, store: str, version: str) -> None:
        resource = Resource.create({SERVICE_VERSION: version})
        if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "quietus"}))
        # Its queue is bounded; what does not fit is dropped, and no call waits for a span to leave.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = self._provider.get_tracer("quietus", version)
        self.store = store

    def door(self, handler: Handler) -> Door:
        """The gateway, with a span around each call."""
        return Door(self, handler)

    def talks(self, talker: Talker) -> Talks:
        """The same of calls of many messages."""
        return Talks(self, talker)

    def storing(self, upstream: Upstream, streams: Streams) -> Storing:
        """The store, with a span around each request."""
        return Storing(self.tracer, self.store, upstream, streams)

    def measuring(self, measures: Measures) -> Measuring:
        """The counters, from which a call's span learns what was decided."""
        return Measuring(measures)

    def begin(self, request: Request) -> tuple[trace.Span, Any]:
        """The span of a call that has come in; and what ends its being the current one."""
        attributes = {"quietus.wire": request.wire, "quietus.store": self.store}
        if request.wire == "http":
            attributes["http.request.method"] = request.method if request.method in METHODS else "_OTHER"
        operation.set("")
        span = self.tracer.start_span("quietus call", _caller(request.headers), SpanKind.SERVER, attributes)
        return span, contexts.attach(trace.set_span_in_context(span))

    def close(self) -> None:
        """Sends what is left, within two seconds, and ends. It blocks: not for the event loop."""
        self._provider.force_flush(_DRAIN)
        self._provider.shutdown()


class Door:
    """Satisfies the `Handler` of both wires."""

    def __init__(self, spans: Spans, handler: Handler) -> None:
        self._spans = spans
        self._handler = handler

    async def handle(self, request: Request, principal: str) -> Answer:
        """The answer to one request; its span ends when its last byte is written."""
        span, token = self._spans.begin(request)
        try:
            answer = await self._handler.handle(request, principal)
        except BaseException as error:
            ended(span, type(error).__name__)
            raise
        finally:
            contexts.detach(token)
        return _told(span, request.wire, answer)

    def refuse(self, name: str, detail: str = "", wire: Wire = "http") -> Answer:
        """A refusal of the wire's own: there was no call."""
        return self._handler.refuse(name, detail, wire)


class Talks:
    """Satisfies `Talker`."""

    def __init__(self, spans: Spans, talker: Talker) -> None:
        self._spans = spans
        self._talker = talker

    async def hold(self, request: Request, principal: str, client: Client) -> Answer:
        """A whole call of many messages."""
        span, token = self._spans.begin(request)
        try:
            answer = await self._talker.hold(request, principal, client)
        except BaseException as error:
            ended(span, type(error).__name__)
            raise
        finally:
            contexts.detach(token)
        return _told(span, request.wire, answer)


class Measuring:
    """Satisfies `Measures`: passes everything on, and tells a call's span what was decided."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Adds to the series of these labels."""
        self._measures.count(name, amount, **labels)
        if name == "operations":
            does = labels["operation"]
            operation.set(does)
            span = trace.get_current_span()
            if span.is_recording():
                span.update_name(f"quietus {does}")
                for key in ("operation", "effect", "rule", "mode"):
                    span.set_attribute(f"quietus.{key}", labels[key])

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Adds a value to the histogram of these labels."""
        self._measures.observe(name, value, **labels)


def _caller(headers: Headers) -> contexts.Context:
    """The caller's span as the parent of ours, without what else it says of itself (`tracestate`)."""
    given = header(headers, "traceparent")
    if given is None:
        return contexts.Context()
    found = TraceContextTextMapPropagator().extract({"traceparent": given}, contexts.Context())
    theirs = trace.get_current_span(found).get_span_context()
    if not theirs.is_valid:
        return contexts.Context()
    plain = SpanContext(theirs.trace_id, theirs.span_id, True, theirs.trace_flags)
    return trace.set_span_in_context(NonRecordingSpan(plain), contexts.Context())


def _told(span: trace.Span, wire: Wire, answer: Answer) -> Answer:
    failed = str(answer.status) if answer.status >= 500 else ""
    if wire == "http":
        span.set_attribute("http.response.status_code", answer.status)
    elif answer.code not in (None, "OK"):
        failed = str(answer.code)
    if answer.refused is not None:
        failed = answer.refused.name
    finish = answer.finish

    def written() -> None:
        finish()
        ended(span, failed)

    answer.finish = written
    return answer
