"""What an evaluator says arrives at the leader as it was said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.engine import wire
from dsched.engine.judge import OPEN, Columns
from dsched.errors import CannotEvaluate
from dsched.framework.interface import Code, Status, Verdict
from dsched.framework.validation import PluginFailure
from dsched.model import messages
from dsched.model.messages import ClassResult, ShardResult

REJECTIONS = st.builds(
    Status,
    st.sampled_from([Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING]),
    st.lists(st.text(max_size=5), max_size=2).map(tuple),
)


def travelled(found: ClassResult) -> ClassResult:
    answer = ShardResult(request="r", epoch=1, shard=0, evaluator="e", seconds=0.1, classes=[found])
    return messages.decode(messages.encode(answer), ShardResult).classes[0]


@given(st.data(), st.integers(0, 20))
def test_round_trip(data: st.DataObject, rows: int) -> None:
    columns = Columns(np.ones(rows, dtype=np.bool_))
    for plugin in data.draw(st.lists(st.sampled_from("ABC"), unique=True)):
        statuses = tuple(data.draw(st.lists(REJECTIONS, max_size=3)))
        numbers = st.lists(st.integers(0, len(statuses)), min_size=rows, max_size=rows)
        columns.verdicts[plugin] = Verdict(np.array(data.draw(numbers), dtype=np.int32), statuses)
        columns.passed &= columns.verdicts[plugin].index == 0
    for plugin in data.draw(st.lists(st.sampled_from("XY"), unique=True)):
        scores = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=rows, max_size=rows)
        columns.raw_scores[plugin] = np.array(data.draw(scores), dtype=np.int64)
    found = wire.unpack(travelled(wire.pack(columns)), rows)
    assert found.passed.tolist() == columns.passed.tolist()
    assert list(found.verdicts) == list(columns.verdicts)
    for plugin, verdict in columns.verdicts.items():
        assert found.verdicts[plugin].statuses == verdict.statuses
        assert found.verdicts[plugin].index.tolist() == verdict.index.tolist()
    assert {name: raw.tolist() for name, raw in found.raw_scores.items()} == {
        name: raw.tolist() for name, raw in columns.raw_scores.items()
    }


def test_what_arrives_can_be_written_over() -> None:
    sent = Columns(np.ones(2, dtype=np.bool_), {"A": Verdict(np.zeros(2, dtype=np.int32), ())})
    sent.raw_scores["X"] = np.zeros(2, dtype=np.int64)
    found = wire.unpack(travelled(wire.pack(sent)), 2)
    found.verdicts["A"].index[0] = 1
    found.raw_scores["X"][0] = 1
    found.passed[0] = False


def test_a_failure_arrives_as_one() -> None:
    with pytest.raises(PluginFailure) as raised:
        wire.unpack(travelled(wire.pack_failure(PluginFailure("A", "ValueError: no"))), 5)
    assert raised.value.status == PluginFailure("A", "ValueError: no").status


@pytest.mark.parametrize("rows", [1, 3])
def test_columns_of_another_length_are_refused(rows: int) -> None:
    verdicts = Columns(np.ones(2, dtype=np.bool_), {"A": Verdict(np.zeros(2, dtype=np.int32), ())})
    scores = Columns(np.ones(2, dtype=np.bool_), raw_scores={"X": np.zeros(2, dtype=np.int64)})
    for columns in (verdicts, scores):
        with pytest.raises(ValueError, match=f"about 2 rows of {rows}"):
            wire.unpack(travelled(wire.pack(columns)), rows)


@given(st.lists(st.sampled_from([0, 1, 7, OPEN]), max_size=9))
def test_what_other_plugins_say_arrives_as_it_was_sent(closed: list[int]) -> None:
    raw = wire.pack_closed(np.array(closed, dtype=np.int16))
    assert wire.unpack_closed(raw, len(closed)).tolist() == closed
    assert (raw == b"") == (set(closed) <= {OPEN})


@pytest.mark.parametrize("rows", [1, 3])
def test_what_other_plugins_say_of_other_rows_is_refused(rows: int) -> None:
    raw = wire.pack_closed(np.zeros(2, dtype=np.int16))
    with pytest.raises(CannotEvaluate, match=f"about 2 rows of {rows}"):
        wire.unpack_closed(raw, rows)
