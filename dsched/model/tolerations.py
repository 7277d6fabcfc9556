"""Taints and the tolerations that put up with them.

Source: k8s.io/api core/v1/toleration.go; k8s.io/component-helpers scheduling/corev1/helpers.go.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from dsched.model.node import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from dsched.model.pod import Toleration
from dsched.model.quantity import LARGEST, SMALLEST

HARD_EFFECTS = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""Effects that keep a pod off a node."""
GREATER, LESS = "Gt", "Lt"
COMPARISONS = frozenset({GREATER, LESS})
"""Operators that compare numbers."""
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")

SOFT_EFFECTS = frozenset({PREFER_NO_SCHEDULE})
"""Effects that only make a node less liked."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration puts up with a taint (``ToleratesTaint``).

    An empty effect or key stands for every one; an empty operator means Equal; Gt and Lt compare the taint's value with
    the toleration's, both integers of 64 bits: see `usable`. An operator that does not
    exist tolerates nothing.
    """
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in COMPARISONS:
        return _compares(toleration, taint)
    return toleration.operator == "Exists"


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """Source: k8s.io/api core/v1/toleration.go ``compareNumericValues``."""
    bound, value = integer(toleration.value), integer(taint.value)
    if bound is None or value is None:
        return False
    return value > bound if toleration.operator == GREATER else value < bound


def integer(text: str) -> int | None:
    """Decimal without a plus, spaces or leading zeros; None for anything else, and beyond 64 bits."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if SMALLEST <= number <= LARGEST else None


def usable(given: Sequence[Toleration], *, comparing: bool) -> Sequence[Toleration]:
    """The tolerations, without those that compare numbers where that is off (TaintTolerationComparisonOperators)."""
    return given if comparing else [each for each in given if each.operator not in COMPARISONS]


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations puts up with the taint (``TolerationsTolerateTaint``)."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str] = HARD_EFFECTS
) -> Taint | None:
    """The first taint of one of the effects that no toleration puts up with (``FindMatchingUntoleratedTaint``)."""
    return next((taint for taint in taints if taint.effect in effects and not tolerated(taint, tolerations)), None)
