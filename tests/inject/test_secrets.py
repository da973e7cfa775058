"""Keys as Kubernetes hands them over: the file is root's, and the pod's group may read it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from quietus.key_file import open_to_others
from quietus.keys import Keyring, KeysRefused


def found(mode: int, owner: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 1, 1, 1, owner, 0, 10, 0, 0, 0))


OURS, OTHERS = os.geteuid(), os.geteuid() + 1


@pytest.mark.requirement("R200")
@pytest.mark.parametrize(
    ("mode", "owner", "is_open"),
    [
        (0o600, OURS, False), (0o400, OURS, False), (0o640, OURS, True), (0o440, OURS, True),
        (0o604, OURS, True),
        (0o440, OTHERS, False), (0o640, OTHERS, False), (0o460, OTHERS, True), (0o444, OTHERS, True),
        (0o441, OTHERS, True), (0o450, OTHERS, True),
    ],
)  # fmt: skip
def test_who_may_read_a_keys_file(mode: int, owner: int, is_open: bool) -> None:
    assert open_to_others(found(mode, owner)) is is_open


def test_our_own_file_must_be_ours_alone(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    Keyring.load_or_make(file, ledger_is_new=True)
    file.chmod(0o640)
    with pytest.raises(KeysRefused, match="chmod 600"):
        Keyring.load_or_make(file, ledger_is_new=False)
    if os.geteuid() == 0:
        os.chown(file, OTHERS, 0)
        assert Keyring.load_or_make(file, ledger_is_new=False).ids
