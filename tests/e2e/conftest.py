"""One sidecar with a proxy on either side, for the tests of what fails between the parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.between import Parts, standing


@pytest.fixture(scope="session")
def between(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    yield from standing(tmp_path_factory.mktemp("chaos"))


@pytest.fixture
def parts(between: Parts) -> Iterator[Parts]:
    between.store._served.receipts.clear()
    yield between
    between.far.use()
    between.near.use()
