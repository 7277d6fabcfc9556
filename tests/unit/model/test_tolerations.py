"""Taints and tolerations."""

import pytest

from dsched.model import tolerations
from dsched.model.node import Taint
from dsched.model.pod import Toleration

GPU = Taint("gpu", "a100", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", "Equal", "a100", "NoSchedule"), True),
        (Toleration("gpu", "", "a100", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "A100", "NoSchedule"), False),
        (Toleration("gpu", "Equal", "", "NoSchedule"), False),
        (Toleration("gpu", "Exists", "", ""), True),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("", "", "", ""), False),  # an empty key tolerates all keys, but the value has to be equal
        (Toleration("", "Equal", "a100", ""), True),
        (Toleration("other", "Exists", "", ""), False),
        (Toleration("gpu", "Like", "a100", ""), False),
    ],
)
def test_tolerates(toleration: Toleration, expected: bool) -> None:
    assert tolerations.tolerates(toleration, GPU) is expected


def test_first_untolerated_looks_at_hard_taints_in_order() -> None:
    soft, first, second = Taint("s", "", "PreferNoSchedule"), Taint("a", "", "NoSchedule"), Taint("b", "", "NoExecute")
    taints = [soft, first, second]
    assert tolerations.first_untolerated(taints, []) == first
    assert tolerations.first_untolerated(taints, [Toleration("a", "Exists")]) == second
    assert tolerations.first_untolerated(taints, [Toleration("", "Exists")]) is None
    assert tolerations.first_untolerated(taints, [], tolerations.SOFT_EFFECTS) == soft
