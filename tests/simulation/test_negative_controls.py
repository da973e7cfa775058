"""Each protection is needed: a plan that passes with it fails without it.

The plans stand in `controls.yaml`, shrunk from seeds that fail so or written for it; the table over seeds is
docs/negative-controls.md, written by `make controls`. A protection is switched off in one named place of
`switches.py`, in this process only.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.controls import PAGE, SHORT, Control, plans_of
from tests.simulation.families import family_of, simulate
from tests.simulation.switches import PROTECTIONS, switched_off

TRIED = 60
"""Seeds that are played when a change of the product has made a plan harmless."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PROTECTIONS)
def test_without_it_plans_fail_that_pass_with_it(name: str, record_property: Any) -> None:
    control = Control(name)
    plans = plans_of(name)
    assert plans, "controls.yaml has no plan for it: python -m tests.simulation --controls --off ..."
    for plan in [*plans, *map(family_of(name, SHORT).make, range(TRIED))]:
        with switched_off(name):
            control.add(plan.seed, simulate(plan).findings)
        if control.failing:
            break
    assert control.failing, f"nothing fails in {control.played} plans without: {name}"
    kept = simulate(plan).findings
    assert not kept, "with the protection on:\n" + "\n".join(map(str, kept))
    found = ", ".join(f"{kind} {number}" for kind, number in control.found.most_common())
    record_property("simulation", f"without {name:32} {found} (from seed {control.failing[0]})")


def test_the_page_tells_of_every_protection() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = {cells[1].strip(): cells for line in lines if (cells := line.split("|"))}
    rows.pop("protection")
    assert list(rows) == list(PROTECTIONS), "run: make controls"
    silent = [name for name, cells in rows.items() if cells[4].strip() == "none"]
    assert not silent, f"the page shows no seed that fails without {silent}"
