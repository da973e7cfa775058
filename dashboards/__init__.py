"""Grafana dashboards, as code: `panels` says what is shown, `build` makes Grafana's JSON of it."""
