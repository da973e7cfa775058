"""One evening with a store that lies, told to a real sidecar that a real Prometheus watches."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from quietus.inject.certificates import make
from quietus.legacy.faults import Faults
from tests.deploy.tooling import ROOT, tool
from tests.e2e.process import Quietus, request, shipped
from tests.e2e.stores import Served
from tests.harness.servers import free_port

RULES = ROOT / "dashboards" / "rules" / "quietus.yaml"
TENANT = "bay"
PATIENCE = 150.0
"""Seconds that anything here may take on a loaded machine."""
SHOULD = {
    "QuietusPrematureAssurance", "QuietusViolation", "QuietusResurrection", "QuietusLaunderingSpike",
    "QuietusRefusalsBurning", "QuietusRefusalsElevated", "QuietusReloadFailed", "QuietusAttestationExpiring",
    "QuietusCertificateExpiring", "QuietusBypass",
}  # fmt: skip
"""What this evening is about; nothing else may fire."""
MAY = {"QuietusErasureOverdue"}
"""Between the bound and the probe that finds the leak an erasure is overdue, for as long as that takes."""


def hurried(rules: Path) -> Path:
    """The shipped rules with every `for` cut to a second: nobody waits five minutes in a test."""
    text, count = re.subn(r"(?m)^(\s+for: ).*$", r"\g<1>1s", RULES.read_text())
    assert count > 5
    rules.write_text(text)
    return rules


class Prometheus:
    """A real one, in a folder, scraping every second."""

    def __init__(self, folder: Path, target: str) -> None:
        self.port = free_port()
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s", "scrape_timeout": "1s"},
            "rule_files": [str(hurried(folder / "rules.yaml"))],
            "scrape_configs": [{"job_name": "quietus", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            [
                str(tool("prometheus")),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/tsdb",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self._log, stderr=self._log,
        )  # fmt: skip

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        answer = request("GET", url)
        assert answer.status == 200, answer.body
        return answer.json["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        alerts = self.ask("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()


class Evening:
    """The parts, and what happens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Served(Faults(lazy_index=20.0))
        self.metrics = free_port()
        documents = folder / "documents"
        documents.mkdir()
        self.profile = shipped("memory-tool", documents, settling_interval="1s", effectuation_bound="4s")
        text = self.profile.read_text()
        soon = "{condition: single_writer, by: store team, expires: " + _in_days(3) + "}"
        self.profile.write_text(text.replace("store:\n", f"store:\n  attestations: [{soon}]\n", 1))
        self.policy = documents / "policy.yaml"
        shipped_policy = (ROOT / "policies" / "rules" / "default.yaml").read_text()
        self.policy.write_text(shipped_policy.replace("patrol_every: 1h", "patrol_every: 1s"))
        pair = make(["localhost"], time.time(), 2)
        for name, data in (("crt", pair.certificate), ("key", pair.key)):
            (documents / name).write_bytes(data)
        upstream_tls = {"cert": str(documents / "crt"), "key": str(documents / "key")}
        http = {"listen": "127.0.0.1:0", "upstream": self.store.url, "upstream_tls": upstream_tls}
        settings = {
            "store": {"name": "memories", "profile": str(self.profile), "http": http},
            "metrics": {"listen": f"127.0.0.1:{self.metrics}"},
            "limits": {"probe_rate_per_second": 200},
            "bypass": {"every": "1s"},
        }
        self.sidecar = Quietus(folder, self.store.url, str(self.profile), settings, str(self.policy))

    def call(self, method: str, path: str, body: Any = None) -> int:
        return self.sidecar.call(method, path, body).status

    def recall(self, subject: str) -> int:
        return self.call(
            "POST", "/v1/recall", {"query": "what is known", "tenant": TENANT, "subject": subject}
        )

    def write(self, subject: str, text: str, key: str) -> int:
        memory = {"tenant": TENANT, "key": key, "value": text, "retention": {"subject": subject}}
        return self.call("POST", "/v1/memories", memory)

    def play(self, prometheus: Prometheus) -> None:
        """Usual traffic, a forget that the store lies about, calls in its scope, what comes back."""
        text = "Alice Moreau moved to the old lighthouse at Saint Martin in the month of May"
        assert self.write("alice", text, "alice-00001") < 300
        assert self.write("bob", "Bob Keller prefers the early morning train to Basel", "bob-00001") < 300
        for _ in range(20):
            assert self.recall("bob") == 200
        self.call("GET", "/v1/nobody/knows/this")
        assert self.call("POST", "/v1/forget", {"tenant": TENANT, "subject": "alice"}) == 202

        def refusals_seen() -> bool:  # a series that begins with a burst has no rate
            assert self.recall("alice") == 409
            return bool(prometheus.query('rate(quietus_operations_total{effect="block"}[2m]) > 0'))

        until(refusals_seen, "Prometheus saw no refusal")
        for _ in range(60):
            assert self.recall("alice") == 409
        for number in range(15):
            assert self.write("carol", text, f"carol-{number:05}") == 409
        self.policy.write_text("kind: Nonsense\n")
        self.sidecar.until("violation", seconds=PATIENCE)
        self.sidecar.until("settled", seconds=PATIENCE)
        until(lambda: bool(prometheus.query("quietus_bypass_round_timestamp_seconds > 0")), "it never looked")
        self.store.store.put("Dave Miller rows", key="dave-00001", subject="dave", tenant=TENANT)
        self.store.store.put(text, key="alice-00002", subject="alice", tenant=TENANT)
        until(
            lambda: self.sidecar.erasures()[-1]["state"] in ("relapsed", "violation"), "it came back unseen"
        )

    def go_on(self, prometheus: Prometheus) -> None:
        """Usual traffic until Prometheus has seen it grow: a burst between two scrapes has no rate."""

        def grown() -> bool:
            self.recall("bob")
            self.call("GET", f"/v1/memories/bob-00001?tenant={TENANT}")
            return len(prometheus.query("rate(quietus_upstream_seconds_count[2m]) > 0")) >= 2

        until(grown, "Prometheus saw no traffic")

    def close(self) -> None:
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.sidecar.stop()
        self.store.close()


def _in_days(days: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + days * 86400))


def until(holds: Callable[[], bool], otherwise: str, seconds: float = PATIENCE) -> None:
    """Waits until it holds, looking four times a second."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, otherwise
        threading.Event().wait(0.25)  # nothing announces what another process has come to


def told(folder: Path) -> Iterator[tuple[Evening, Prometheus]]:
    """The evening, played, under a Prometheus that has seen all of it."""
    evening = Evening(folder)
    prometheus = None
    try:
        evening.sidecar.start()
        prometheus = Prometheus(folder, f"127.0.0.1:{evening.metrics}")
        until(lambda: bool(_up(prometheus)), "Prometheus does not scrape")
        evening.play(prometheus)
        evening.go_on(prometheus)
        yield evening, prometheus
    finally:
        if prometheus is not None:
            prometheus.close()
        evening.close()


def _up(prometheus: Prometheus) -> list[dict[str, Any]]:
    try:
        return prometheus.query("up == 1")
    except (OSError, AssertionError):
        return []


def panels(name: str) -> Iterator[tuple[str, str]]:
    """Title and query of every target of a dashboard, with its variables filled in."""
    board = json.loads((ROOT / "dashboards" / "json" / f"{name}.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets") or ():
            text = target["expr"]
            for variable in ("job", "instance", "store"):
                text = text.replace(f"${variable}", ".+")
            text = text.replace("$__rate_interval", "2m")
            assert "$" not in text, text
            yield panel["title"], text
