"""Traces: own spans, as OpenTelemetry has them, where the OTEL_* variables ask for some."""
