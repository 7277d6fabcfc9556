"""Topology spread constraints: parsing and arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.arithmetic import spreading
from dsched.arithmetic.spreading import DO_NOT_SCHEDULE, IGNORED, Constraint
from dsched.errors import SelectorError
from dsched.model import selectors
from dsched.model.meta import LabelSelector, LabelSelectorRequirement
from dsched.model.pod import TopologySpreadConstraint

WEB = LabelSelector({"app": "web"})


def record(**facts: object) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(1, "zone", DO_NOT_SCHEDULE, **{"label_selector": WEB, **facts})  # type: ignore[arg-type]


def constraint(max_skew: int = 1, min_domains: int = 1) -> Constraint:
    return Constraint(max_skew, "zone", selectors.EVERYTHING, min_domains, True, False)


class TestParse:
    def test_defaults(self) -> None:
        (parsed,) = spreading.parse([record()], {}, DO_NOT_SCHEDULE)
        assert parsed == Constraint(1, "zone", selectors.labels_equal({"app": "web"}), 1, True, False)

    def test_policies(self) -> None:
        given_ = record(min_domains=3, node_affinity_policy="Ignore", node_taints_policy="Honor")
        (parsed,) = spreading.parse([given_], {}, DO_NOT_SCHEDULE)
        assert (parsed.min_domains, parsed.honor_affinity, parsed.honor_taints) == (3, False, True)

    def test_only_those_of_one_action(self) -> None:
        assert spreading.parse([record()], {}, spreading.SCHEDULE_ANYWAY) == ()

    def test_label_keys_narrow_the_selector_but_do_not_replace_an_absent_one(self) -> None:
        labels = {"version": "2", "x": "y"}
        keyed = record(match_label_keys=["version", "absent"])
        (parsed,) = spreading.parse([keyed], labels, DO_NOT_SCHEDULE)
        assert parsed.selector.matches({"app": "web", "version": "2"})
        assert not parsed.selector.matches({"app": "web", "version": "1"})
        (parsed,) = spreading.parse([record(label_selector=None, match_label_keys=["x"])], labels, DO_NOT_SCHEDULE)
        assert parsed.selector.nothing

    def test_a_selector_that_is_not_legal(self) -> None:
        wrong = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", [])])
        with pytest.raises(SelectorError):
            spreading.parse([record(label_selector=wrong)], {}, DO_NOT_SCHEDULE)


class TestFits:
    PODS, PRESENT = np.array([0, 3, 1, 0]), np.array([1, 2])

    def test_skew_against_the_fewest_present(self) -> None:
        """The fewest is 1: 3 + 1 - 1 = 3, 1 + 1 - 1 = 1, and domain 3, which is not present, 0 + 1 - 1 = 0."""
        assert spreading.fits(constraint(2), self.PODS, self.PRESENT, 1).tolist() == [True, False, True, True]
        assert spreading.fits(constraint(2), self.PODS, self.PRESENT, 0).tolist() == [True, True, True, True]

    def test_too_few_domains(self) -> None:
        """The fewest is 0: 3 + 1 and 1 + 1."""
        found = spreading.fits(constraint(1, min_domains=3), self.PODS, self.PRESENT, 1)
        assert found.tolist() == [True, False, False, True]

    def test_no_domain_at_all(self) -> None:
        nowhere = np.zeros(0, dtype=np.intp)
        assert spreading.fits(constraint(), np.array([0, 0]), nowhere, 1).tolist() == [True, True]


def test_penalty() -> None:
    """ln(3 + 2) = 1.609…: 0 + 1, 2 × 1.609 + 1."""
    found = spreading.penalty(constraint(2), np.array([0, 2]), spreading.weight(3))
    assert found.tolist() == pytest.approx([1.0, 4.218875824868201])


@given(st.lists(st.floats(0, 1e9), max_size=9))
def test_rounded_to_the_nearest(values: list[float]) -> None:
    found = spreading.rounded(np.array(values, dtype=np.float64))
    assert all(abs(integer - value) <= 0.5 for integer, value in zip(found, values, strict=True))


def test_halves_go_up() -> None:
    assert spreading.rounded(np.array([0.5, 1.5, 2.5, 0.49999999999999994])).tolist() == [1, 2, 3, 0]


class TestNormalized:
    def test_fewest_best(self) -> None:
        """(7 + 2 - s) / 7: 2 → 100, 7 → 28, 4 → 71."""
        assert spreading.normalized(np.array([2, 7, 4])).tolist() == [100, 28, 71]

    def test_ignored_nodes(self) -> None:
        assert spreading.normalized(np.array([2, IGNORED, 2])).tolist() == [100, 0, 100]
        assert spreading.normalized(np.array([IGNORED, IGNORED])).tolist() == [0, 0]
        assert spreading.normalized(np.array([], dtype=np.int64)).tolist() == []

    def test_no_pods(self) -> None:
        assert spreading.normalized(np.array([0, 0, IGNORED])).tolist() == [100, 100, 0]
