"""What evaluating costs, and whether asking evaluators would pay."""

import pytest

from dsched.leader.evaluators.cost import Costs


def test_nothing_is_known_before_it_was_measured() -> None:
    assert Costs().local_s("default", 1000) is None


def test_the_average_follows_the_measurements() -> None:
    costs = Costs()
    costs.judged("default", 100, 0.1)
    assert costs.local_s("default", 1000) == pytest.approx(1.0)
    costs.judged("default", 100, 0.2)  # 0.8 x 0.001 + 0.2 x 0.002 = 0.0012 a row
    assert costs.local_s("default", 1000) == pytest.approx(1.2)
    assert costs.local_s("other", 1000) is None


def test_no_rows_say_nothing() -> None:
    costs = Costs()
    costs.judged("default", 0, 5.0)
    assert costs.local_s("default", 1) is None


def test_a_round_trip_is_never_negative() -> None:
    costs = Costs(round_trip_s=0.01)
    costs.travelled(-1.0, 0)  # 0.8 x 0.01
    assert costs.round_trip_s == pytest.approx(0.008)
    costs.travelled(0.01, 1_000_000)  # the answers alone explain it
    assert costs.round_trip_s == pytest.approx(0.0064)
    costs.travelled(0.21, 1_000_000)  # 0.8 x 0.0064 + 0.2 x 0.01
    assert costs.round_trip_s == pytest.approx(0.00712)


@pytest.mark.parametrize(
    ("local_s", "evaluators", "pays"),
    [
        (0.0, 4, False),
        (0.001, 4, False),  # the round trip alone takes longer
        (1.0, 0, False),
        (1.0, 1, False),
        (1.0, 2, True),  # 0.5 + 0.005 < 0.8
        (0.02, 2, True),  # 0.01 + 0.005 < 0.016
        (0.016, 2, False),  # 0.008 + 0.005 > 0.0128
        (0.012, 4, True),  # 0.003 + 0.005 < 0.0096
    ],
)
def test_when_asking_pays(local_s: float, evaluators: int, pays: bool) -> None:
    assert (Costs(round_trip_s=0.005).saved_s(local_s, evaluators, 0) > 0) is pays


@pytest.mark.parametrize(
    ("row_us", "pays"),
    [
        (0.3, False),  # table plugins: 29 ms here, 14 + 5 + 19 there
        (1.0, True),  # 96 ms here, 48 + 5 + 19 there
        (20.0, True),
    ],
)
def test_answers_that_cost_as_much_as_judging_do_not_pay(row_us: float, pays: bool) -> None:
    """48 classes on 2,000 nodes, two evaluators."""
    rows = 48 * 2000
    assert (Costs(round_trip_s=0.005).saved_s(rows * row_us / 1e6, 2, rows) > 0) is pays


def test_replicas_are_built_once_they_would_have_paid() -> None:
    """100,000 nodes without pods take 5 s."""
    costs = Costs(round_trip_s=0.005)
    assert costs.saved_s(1.0, 2, 0) == pytest.approx(0.495)
    asked = []
    for _ in range(5):
        asked.append(costs.replicas_pay(2.0, 100_000))
        costs.forgo(2.0, 2, 0)
    assert asked == [False, False, False, True, True]
    assert Costs().replicas_pay(2.0, 2_000)


def test_to_ask_whether_replicas_pay_forgoes_nothing() -> None:
    """It is asked of a batch, of what of it is outdated, and of its classes."""
    costs = Costs()
    assert not any(costs.replicas_pay(2.0, 100_000) for _ in range(10))


def test_what_is_forgone_is_what_answers_leave_of_it() -> None:
    costs = Costs()
    costs.forgo(1.0, 4, 1_000_000)  # 0.75 - 0.2
    assert costs.forgone_s == pytest.approx(0.55)
    costs.forgo(0.1, 4, 1_000_000)
    costs.forgo(1.0, 1, 0)
    assert costs.forgone_s == pytest.approx(0.55)
