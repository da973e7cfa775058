"""What a policy has answered before, so that most calls are decided by one look into a dictionary.

Nearly all calls look alike to a policy: most rules say nothing of who calls, and never of whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from quietus.core.policy import Policy

KEPT: Final = 4096
"""Answers of a kind that are remembered."""


class Memory:
    """The answers of one policy: its rules never change, a changed policy is another one."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.firsts: dict[tuple[object, ...], Any] = {}
        self.decisions: dict[tuple[object, ...], Any] = {}
        """What `decision` has decided where no erasure is near."""
        names = ("tenant", "principal", "purpose")
        self._looks_at = tuple(
            name for name in names if any(getattr(rule.when, name) is not None for rule in policy.rules)
        )

    def told_apart(
        self, tenant: frozenset[str], principal: str, purpose: frozenset[str]
    ) -> tuple[object, ...]:
        """Of what is different with every caller, that which some rule looks at: mostly nothing."""
        if not self._looks_at:
            return ()
        said = {"tenant": tenant, "principal": principal, "purpose": purpose}
        return tuple(said[name] for name in self._looks_at)

    @staticmethod
    def keep(answers: dict[tuple[object, ...], Any], key: tuple[object, ...], found: object) -> None:
        """Remembers an answer; the memory is emptied when it is full."""
        if len(answers) >= KEPT:
            answers.clear()
        answers[key] = found
