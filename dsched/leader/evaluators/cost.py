"""What evaluating costs, measured as it happens, and whether asking evaluators would pay."""

from dataclasses import dataclass, field

_NEWEST = 0.2
"""Weight of the newest measurement in the running averages."""
_WORTH_IT = 0.8
"""Fanning out has to be expected to take less than this share of the local time."""
_ANSWER_S = 0.2e-6
"""What the answer about a row and class takes: to carry it through Redis, to unpack and to join it. That is about as
much as judging by table plugins alone (docs/scaling.md, ``take_row`` and ``reply_bytes``)."""
_REPLICA_S = 50e-6
"""What each node and each pod on one takes until evaluators that have no replicas hold it: to write the log, and to
read it (docs/scaling.md, Memory)."""


@dataclass(slots=True)
class Costs:
    """Running averages.

    Attributes:
        per_row_s: one class judged on one row, by profile.
        round_trip_s: what a request to evaluators takes beside the judging itself and the answers' length: publishing,
            messages, gathering.
        forgone_s: what evaluators would have saved since they were without replicas, but for round trips, which many
            classes can share.
    """

    per_row_s: dict[str, float] = field(default_factory=dict)
    round_trip_s: float = 0.005
    forgone_s: float = 0.0

    def judged(self, profile: str, rows: int, seconds: float) -> None:
        """So many rows of one profile took so long."""
        if rows:
            self.per_row_s[profile] = _mix(self.per_row_s.get(profile), seconds / rows)

    def travelled(self, seconds: float, rows: int) -> None:
        """A request about so many rows, over all classes, took so much longer than its slowest shard."""
        self.round_trip_s = _mix(self.round_trip_s, max(seconds - rows * _ANSWER_S, 0.0))

    def local_s(self, profile: str, rows: int) -> float | None:
        """What judging so many rows here would take; None until it has been measured."""
        per_row = self.per_row_s.get(profile)
        return None if per_row is None else per_row * rows

    def saved_s(self, local_s: float, evaluators: int, rows: int) -> float:
        """How much earlier than this process alone so many evaluators would be done; 0 unless they clearly would.

        Args:
            rows: over all classes.
        """
        there_s = local_s / max(evaluators, 1) + self.round_trip_s + rows * _ANSWER_S
        return local_s - there_s if evaluators > 1 and there_s < _WORTH_IT * local_s else 0.0

    def forgo(self, seconds: float, evaluators: int, rows: int) -> None:
        """So many rows, over all classes, took this process so long, and so many evaluators without replicas were not
        asked."""
        self.forgone_s += max(seconds - seconds / evaluators - rows * _ANSWER_S, 0.0)

    def replicas_pay(self, saved_s: float, nodes_and_pods: int) -> bool:
        """Whether evaluators that have no replicas are to build them, to save so much now: once that and what was
        forgone come to what building takes. So work that passes is not held up by it, and work that goes on takes
        about twice what would have been best at most."""
        return self.forgone_s + saved_s >= nodes_and_pods * _REPLICA_S


def _mix(old: float | None, new: float) -> float:
    return new if old is None else (1 - _NEWEST) * old + _NEWEST * new
