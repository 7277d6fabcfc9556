"""How far the binders are behind: which binds are overdue, and whether there is any use in deciding more.

Binders take what they are handed in turn. A bind without an outcome is overdue when binds that were handed out well
after it have one, or when no outcome comes any more; while the binders work through a long queue, waiting is no sign
that anything was lost, and handing out again would only make the queue longer.
"""

IN_BINDERS = 2048
"""Pods that are handed out and not settled at most: what is decided beyond that waits in the binders' queue, where a
pod of higher priority cannot overtake."""
SOME_LEFT = 1024
"""Once there were so many, nothing is decided until this few are left: one large batch costs less than many small."""
STUCK_S = 60.0
"""A pod that has been bound for so long waits for something else (its volumes), and takes up no binder."""


class Pace:
    """Times of one epoch's hand-outs and outcomes, by the monotonic clock."""

    def __init__(self) -> None:
        self._newest = 0.0
        self._heard_at = 0.0

    def settled(self, handed_out_at: float, now: float) -> None:
        """A bind that was handed out then has an outcome."""
        self._newest = max(self._newest, handed_out_at)
        self._heard_at = now

    def overdue(self, handed_out_at: float, patience_s: float, now: float) -> bool:
        """Whether the outcome of a bind that was handed out then should be here by now."""
        if now - handed_out_at <= patience_s:
            return False
        return self._newest - handed_out_at > patience_s or now - self._heard_at > patience_s
