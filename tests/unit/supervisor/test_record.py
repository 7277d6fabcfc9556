import pytest

from dsched.clock import ManualClock
from dsched.errors import DschedError
from dsched.supervisor import record
from dsched.supervisor.children import Fleet, Spec


def test_what_is_written_is_read(tmp_path):
    clock = ManualClock()
    fleet = Fleet([Spec("leader-1", ()), Spec("binder-1", ())], clock)
    fleet.started("leader-1", 41)
    fleet.started("binder-1", 42)
    fleet.ended("binder-1")
    record.write(tmp_path, fleet.children.values())
    assert record.read(tmp_path) == [
        record.ChildRecord("leader-1", "running", 41, 0, clock.now_ms()),
        record.ChildRecord("binder-1", "waiting", 0, 1, clock.now_ms()),
    ]


def test_no_file_means_no_children(tmp_path):
    assert record.read(tmp_path) == []


def test_removed_is_gone(tmp_path):
    record.write(tmp_path, [])
    record.remove(tmp_path)
    record.remove(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / record.FILE).write_text("{")
    with pytest.raises(DschedError, match=r"children\.json cannot be read"):
        record.read(tmp_path)
