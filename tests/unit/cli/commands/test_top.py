"""What `dsched top` works out of two looks, and how it is shown."""

import pytest

from dsched.cli.commands import top
from dsched.cli.commands.top import Answer, Node, bar, between, lines, node
from dsched.state.phases import Written


def written(number: int, scheduled: int, failed: int = 0, **seconds: float) -> Written:
    attempts = {"scheduled": (scheduled - 1, 1), "unschedulable": (failed, 0)}
    return Written(number, seconds, (0.1,), attempts, 1.0)


def test_the_first_look_has_shares_of_the_leaders_life_and_no_rates():
    assert between(None, (5.0, "a", written(3, 10, wait=3.0, evaluate=1.0))) == (
        {},
        {"wait": 0.75, "evaluate": 0.25},
        None,
    )


def test_later_looks_tell_what_changed():
    before = (5.0, "a", written(3, 10, wait=3.0, evaluate=1.0))
    rates, shares, seconds = between(before, (7.0, "a", written(9, 110, 5, wait=3.5, evaluate=2.5, pop=0.0)))
    assert rates == {"scheduled": 50.0, "unschedulable": 2.5}
    assert shares == {"evaluate": 0.75, "wait": 0.25, "pop": 0.0}
    assert seconds == 2.0


@pytest.mark.parametrize(
    "before", [(5.0, "b", written(3, 10)), (5.0, "a", written(10, 10))], ids=["another leader", "its process is new"]
)
def test_looks_at_two_leaders_are_not_compared(before):
    rates, _, seconds = between(before, (7.0, "a", written(9, 110, wait=1.0)))
    assert (rates, seconds) == ({}, None)


def test_where_nobody_leads_there_is_nothing_to_tell():
    assert between((5.0, "a", written(3, 10)), (7.0, "", written(3, 10, wait=1.0))) == ({}, {}, None)


def test_a_node_is_as_full_as_its_fullest_resource():
    fields = {"allocatable.cpu": "4000", "allocatable.memory": "100", "allocatable.gpu": "0", "version": "7"}
    found = node("n1", {**fields, "used.cpu": "1000", "used.memory": "90", "used.gpu": "0"})
    assert (found.full, found.resource) == (0.9, "memory")
    assert found.used == {"cpu": 1000, "memory": 90, "gpu": 0}
    assert node("n2", fields).resource == ""
    assert node("n3", {}) == Node("n3", 0.0, "", {}, {})


@pytest.mark.parametrize(("share", "filled"), [(0, 0), (0.5, 10), (1, 20), (1.7, 20), (-1, 0)])
def test_bars_stay_within_their_width(share, filled):
    assert bar(share) == "#" * filled + "." * (top.BAR - filled)


def test_lines():
    full = node("n1", {"allocatable.cpu": "4000", "used.cpu": "3000"})
    told = list(
        lines(Answer("a", 2, [], {"active": 3}, 1.0, {"scheduled": 12.34}, {"wait": 0.996, "pop": 0.004}, [full], 5), 0)
    )
    assert told[:4] == ["leader: a, epoch 2", "queues: active 3", "pods/s: scheduled 12.3", "time:   wait 100%"]
    assert told[-2].split()[:5] == ["n1", "75%", bar(0.75), "cpu", "3/4"]
    assert told[-1] == "(4 more nodes; --nodes 0 shows all)"
    assert next(lines(Answer(None, 0, [], {}, None, {}, {}, [], 0), 0)) == "leader: nobody leads, epoch 0"
