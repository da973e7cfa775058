"""Several workers as users run them: real processes on one port, killed, frozen and left alone."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Quietus, Response, request, shipped
from tests.e2e.stores import Served
from tests.harness.servers import Valkey

pytestmark = pytest.mark.timeout(240)
TENANT = "acme"
LEASE = 3.0


@pytest.fixture
def store() -> Iterator[Served]:
    running = Served()
    yield running
    running.close()


@pytest.fixture
def quietus(store: Served, tmp_path: Path) -> Iterator[Quietus]:
    """Two workers over one SQLite ledger; nothing settles while a test looks."""
    running = begun(store, tmp_path, "600s")
    yield running
    running.stop()


def begun(store: Served, folder: Path, interval: str) -> Quietus:
    profile = shipped("memory-tool", folder, settling_interval=interval, effectuation_bound="3600s")
    return Quietus(
        folder,
        store.url,
        str(profile),
        settings={
            "workers": 2,
            "ledger": {"url": f"sqlite:///{folder}/ledger.db", "lease": f"{LEASE}s"},
            "timeouts": {"barrier": "20s"},
            "limits": {"probe_rate_per_second": 200},
        },
    ).start()


def workers_of(quietus: Quietus) -> list[int]:
    """The processes that its log says serve, and that live."""
    found = re.findall(r'"event": "worker_serves".*?"pid": (\d+)', quietus.log())
    return [int(pid) for pid in found if alive(int(pid))]


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def until(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come"
        threading.Event().wait(0.05)
    return found


def write(quietus: Quietus, subject: str, key: str, value: str, **more: Any) -> Response:
    body = {"tenant": TENANT, "key": key, "value": value, "retention": {"subject": subject}, **more}
    return quietus.call("POST", "/v1/memories", body)


def recalls(quietus: Quietus, subject: str, times: int = 12) -> set[int]:
    """What new connections are answered with: the kernel gives each to either worker."""
    body = {"tenant": TENANT, "subject": subject, "query": "cat"}
    return {quietus.call("POST", "/v1/recall", body).status for _ in range(times)}


def forget(quietus: Quietus, subject: str) -> Response:
    return quietus.call("POST", "/v1/forget", {"tenant": TENANT, "subject": subject})


def counted(quietus: Quietus, line: str) -> float:
    """The sum of the series whose line begins so."""
    page = request("GET", quietus.admin + "/metrics").body.decode()
    return sum(float(each.rpartition(" ")[2]) for each in page.splitlines() if each.startswith(line))


@pytest.mark.requirement("R183")
def test_what_one_worker_forgets_no_worker_recalls(quietus: Quietus) -> None:
    for n in range(6):
        assert write(quietus, f"s{n}", f"k{n}", f"the cat of house {n} is called Zorro").status == 201
    assert recalls(quietus, "s0") == {200}
    for n in range(6):
        assert forget(quietus, f"s{n}").status == 202
        assert recalls(quietus, f"s{n}") == {409}, "whoever answers, from the first answer on"
    assert len(quietus.erasures()) == 6
    for view in quietus.erasures():
        assert view["upstream_calls"] == 1
    made = counted(quietus, 'quietus_operations_total{effect="block"')
    assert made == 6 * 12, "what both have counted, on one page"
    decided = quietus.office("/v1/decisions")["calls"]
    assert sum(row["count"] for row in decided if row["effect"] == "block") == 6 * 12
    assert quietus.stop() == 0


def test_erasures_settle_whichever_worker_they_came_through(store: Served, tmp_path: Path) -> None:
    quietus = begun(store, tmp_path, "1s")
    for n in range(4):
        assert write(quietus, f"s{n}", f"k{n}", f"the cat of house {n} is called Zorro").status == 201
        assert forget(quietus, f"s{n}").status == 202
    for view in quietus.erasures():
        assert quietus.until("settled", view["id"], 150.0)["verdict"] == "partial"
    assert recalls(quietus, "s0") == {200}
    assert quietus.stop() == 0


@pytest.mark.requirement("R183")
def test_a_worker_that_is_killed_comes_back_and_knows_what_was_erased(quietus: Quietus) -> None:
    assert write(quietus, "s", "k", "the cat is called Zorro").status == 201
    assert forget(quietus, "s").status == 202
    assert recalls(quietus, "s") == {409}
    before = counted(quietus, 'quietus_operations_total{effect="block"')
    first = workers_of(quietus)
    assert len(first) == 2
    os.kill(first[0], signal.SIGKILL)
    until(lambda: len(set(workers_of(quietus)) - {first[0]}) == 2)
    assert recalls(quietus, "s", 24) == {409}
    assert counted(quietus, 'quietus_operations_total{effect="block"') == before + 24, "no count shrinks"
    assert '"worker_lost"' in quietus.log()


@pytest.mark.requirement("R189")
def test_no_forget_passes_a_frozen_worker(quietus: Quietus) -> None:
    assert write(quietus, "s", "k", "the cat is called Zorro").status == 201
    frozen = workers_of(quietus)[0]
    os.kill(frozen, signal.SIGSTOP)
    # The kernel may give the call to the frozen one: who waits in vain asks again, as a client does.
    answers: list[int] = []

    def asked() -> bool:
        with contextlib.suppress(TimeoutError, OSError):
            began = time.monotonic()
            answer = forget(quietus, "s")
            answers.append(answer.status)
            assert time.monotonic() - began < 30
        return bool(answers)

    until(asked)
    assert answers == [202]
    assert not alive(frozen), "forgotten only once nobody could answer from before"
    assert recalls(quietus, "s", 24) == {409}
    assert '"worker_hung"' in quietus.log()


def test_no_worker_outlives_its_supervisor_and_the_next_one_goes_on(quietus: Quietus) -> None:
    assert write(quietus, "s", "k", "the cat is called Zorro").status == 201
    assert forget(quietus, "s").status == 202
    orphans = workers_of(quietus)
    quietus.kill()
    until(lambda: not any(alive(pid) for pid in orphans))
    quietus.start()
    assert recalls(quietus, "s") == {409}


def test_a_supervisor_waits_for_a_frozen_worker_of_the_one_before(quietus: Quietus) -> None:
    orphan = workers_of(quietus)[0]
    os.kill(orphan, signal.SIGSTOP)
    quietus.kill()
    with pytest.raises(AssertionError, match="workers of an earlier run still hold the ledger"):
        quietus.start()
    os.kill(orphan, signal.SIGCONT)
    until(lambda: not alive(orphan))
    assert recalls(quietus.start(), "s") == {200}


def test_what_was_derived_is_known_to_whichever_worker_forgets(quietus: Quietus) -> None:
    for n in range(8):
        said = f"the cat of house {n} is called Zorro and likes tuna"
        assert write(quietus, "s", f"k{n}", said).status == 201
        derived = write(quietus, "digest", f"d{n}", f"a pet lives at {n}", derived_from=[f"k{n}"])
        assert derived.status == 201
    assert forget(quietus, "s").status == 202
    assert quietus.erasures()[0]["lineage"]["descendants"] == 8, "whoever of the two has learned of each"


def test_what_people_order_through_the_supervisor_holds_at_every_worker(quietus: Quietus) -> None:
    assert write(quietus, "ada", "k", "the cat is called Zorro").status == 201
    scope = {"subject": "ada", "tenant": TENANT, "reason": "under review"}
    name = quietus.office("/v1/quarantines", "POST", scope)["id"]
    assert recalls(quietus, "ada", 24) == {409}, "from the answer on, whoever is asked"
    assert quietus.ask("DELETE", f"/v1/quarantines/{name}", {"reason": "reviewed"}).status == 204
    until(lambda: recalls(quietus, "ada") == {200})
    hold = {"subject": "ada", "tenant": TENANT, "exception": "gdpr_art17_3_e", "reason": "case 12",
            "until": "2127-06-01T00:00:00Z"}  # fmt: skip
    quietus.office("/v1/holds", "POST", hold)
    assert {forget(quietus, "ada").json["reason"] for _ in range(12)} == {"LEGAL_HOLD"}


def test_a_port_that_is_taken_is_said(quietus: Quietus, store: Served, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    listen = quietus.data.removeprefix("http://")
    other = Quietus(
        folder, store.url, quietus.profile,
        settings={"workers": 2, "store": {"profile": quietus.profile,
                                          "http": {"listen": listen, "upstream": store.url}}},
    )  # fmt: skip
    with pytest.raises(AssertionError, match=f"cannot listen on {listen}"):
        other.start()


def test_over_a_server_each_worker_is_a_replica_of_its_own(store: Served, tmp_path: Path) -> None:
    server = Valkey()
    try:
        url = server.start().url
        profile = shipped("memory-tool", tmp_path, settling_interval="600s", effectuation_bound="3600s")
        quietus = Quietus(
            tmp_path, store.url, str(profile),
            settings={"workers": 2, "ledger": {"url": url, "lease": f"{LEASE}s"},
                      "keys": {"file": str(tmp_path / "keys.json")}},
        ).start()  # fmt: skip
        assert len(workers_of(quietus)) == 2
        assert write(quietus, "s", "k", "the cat is called Zorro").status == 201
        assert forget(quietus, "s").status == 202
        assert recalls(quietus, "s", 24) == {409}
        decided = quietus.office("/v1/decisions")["calls"]
        assert sum(row["count"] for row in decided if row["effect"] == "block") == 24
        assert quietus.stop() == 0
    finally:
        server.stop()
