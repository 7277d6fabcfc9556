"""Taints and the tolerations that put up with them.

Source: k8s.io/api core/v1/toleration.go; k8s.io/component-helpers scheduling/corev1/helpers.go.
"""

from collections.abc import Collection, Iterable

from dsched.model.node import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from dsched.model.pod import Toleration

HARD_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""Effects that keep a pod off a node."""
SOFT_EFFECTS = frozenset({PREFER_NO_SCHEDULE})
"""Effects that only make a node less liked."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration puts up with a taint (``ToleratesTaint``).

    An empty effect or key stands for every one; an empty operator means Equal; an operator that does not exist
    tolerates nothing.
    """
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations puts up with the taint (``TolerationsTolerateTaint``)."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str] = HARD_EFFECTS
) -> Taint | None:
    """The first taint of one of the effects that no toleration puts up with (``FindMatchingUntoleratedTaint``)."""
    return next((taint for taint in taints if taint.effect in effects and not tolerated(taint, tolerations)), None)
