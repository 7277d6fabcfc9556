"""What a simulation comes to for the queues that divide the cluster."""

from collections.abc import Iterator, Mapping

from dsched.framework.table import PODS
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.tree import Share
from dsched.simulation.outcome import QueueOutcome, QueueUse


class QueueOutcomes:
    """Remembers what queues had before.

    Args:
        ledger: of the cluster as it is before the first decision.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._before = {name: dict(share.usage) for name, share in ledger.tree.shares.items()}

    def outcome(self) -> tuple[QueueOutcome, ...]:
        """What they have now, parents before their children, by name."""
        return tuple(self._of(share) for top in self._ledger.divide().root.children for share in _with_below(top))

    def _of(self, share: Share) -> QueueOutcome:
        before = self._before.get(share.name, {})
        said = share.guaranteed.keys() | share.limits.keys()
        names = said | {name for amounts in (before, share.usage, share.fair) for name in amounts if name != PODS}
        uses = (_use(share, name, before) for name in sorted(names))
        parent = "" if share.parent is None else share.parent.name
        reclaimed = self._ledger.reclaimed[share.name]
        return QueueOutcome(share.name, parent, share.running, share.waiting, reclaimed, tuple(filter(_speaks, uses)))


def _use(share: Share, name: str, before: Mapping[str, int]) -> QueueUse:
    return QueueUse(
        name,
        before.get(name, 0),
        share.usage.get(name, 0),
        round(share.fair.get(name, 0.0)),
        share.guaranteed.get(name, 0),
        share.limits.get(name),
    )


def _speaks(use: QueueUse) -> bool:
    return bool(use.before or use.after or use.fair_share or use.guaranteed or use.limit is not None)


def _with_below(share: Share) -> Iterator[Share]:
    yield share
    for child in share.children:
        yield from _with_below(child)
