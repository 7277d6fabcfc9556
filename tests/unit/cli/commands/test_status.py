import pytest

from dsched.cli.commands.status import State, Status, _facts, aligned
from dsched.model.meta import NodeName
from dsched.observe.words import duration
from dsched.state.beyond import BeyondSum


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (-1, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (192, "3m12s"),
        (3600, "1h"),
        (7500, "2h5m"),
        (86400, "1d"),
        (3 * 86400 + 4 * 3600 + 5, "3d4h"),
    ],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("state", "well"),
    [
        (None, False),
        (State("7.2.0", None, 1, {}, 0, 0, 0, []), False),
        (State("7.2.0", "leader-1", 1, {}, 0, 0, 0, []), True),
    ],
)
def test_a_system_is_well_when_it_can_schedule(state, well):
    assert Status("default", "redis://h", state is not None, None, [], state).well is well


def test_columns_stand_one_below_the_other():
    assert aligned([("CHILD", "PID"), ("leader-1", "7"), ("a", "12345")]) == [
        "CHILD      PID",
        "leader-1   7",
        "a          12345",
    ]


@pytest.mark.parametrize(("resource", "shown"), [("cpu", f"{2**64}m of cpu"), ("memory", f"{2**64} of memory")])
def test_a_node_with_a_sum_beyond_64_bits_is_told_of(resource, shown):
    state = State("7.2.0", "leader-1", 1, {}, 0, 0, 0, [], beyond=[BeyondSum(NodeName("n1"), resource, str(2**64))])
    lines = [
        line for title, line in _facts(Status("default", "redis://h", True, None, [], state)) if title == "warning"
    ]
    assert lines == [
        f"node n1 counts as full: its pods request {shown}, more than 64 bits hold; dsched fsck names them"
    ]
