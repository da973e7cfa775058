"""Whether there are traces: only where they are asked for and the extra `otel` is installed.

Otherwise nothing of this is imported, nothing is wrapped, and a call costs what it cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quietus.recording import Log

if TYPE_CHECKING:
    from quietus.tracing.spans import Spans


def open_traces(protocol: str | None, store: str, version: str, log: Log) -> Spans | None:
    """What makes spans, by the OTEL_* variables of the process; None where there are none.

    `protocol` is how they are sent: `http/protobuf` or `grpc`; None: they are not asked for. What stands in
    the way is told in the log, and keeps no sidecar from starting.
    """
    if protocol is None:
        return None
    try:
        from quietus.tracing.spans import Spans, exporter_for

        exporter = exporter_for(protocol)
    except ImportError:
        log.error("traces_off", cause="extra_otel_is_not_installed")
        return None
    except ValueError:
        log.error("traces_off", cause="settings_of_the_exporter")
        return None
    return Spans(exporter, store, version)
