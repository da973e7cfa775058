"""The intervals that an erasure is judged by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Terms:
    """The intervals that an erasure is judged by, as they stood at its intent. Seconds."""

    settling_interval: float = 900.0
    effectuation_bound: float = 1800.0
    clean_rounds: int = 3
    watch_for: float = 90 * 86400.0
    patrol_every: float = 3600.0
    claims_completion: bool = True

    @property
    def spacing(self) -> float:
        """Seconds between two counted rounds."""
        room = (self.effectuation_bound - self.settling_interval) / (self.clean_rounds + 1)
        return max(0.05, min(max(self.settling_interval / 30, 0.25), 10.0, room))

    def stricter(self, other: Terms) -> Terms:
        """The stricter of each term: a reload never shortens what an erasure must wait."""
        return Terms(
            settling_interval=max(self.settling_interval, other.settling_interval),
            effectuation_bound=max(self.effectuation_bound, other.effectuation_bound),
            clean_rounds=max(self.clean_rounds, other.clean_rounds),
            watch_for=max(self.watch_for, other.watch_for),
            patrol_every=min(self.patrol_every, other.patrol_every),
            claims_completion=self.claims_completion or other.claims_completion,
        )
