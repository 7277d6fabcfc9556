"""What is left of children in the data folder: how they are, and where they serve their metrics."""

import json
import socket
from pathlib import Path

import pytest

from dsched.clock import ManualClock
from dsched.errors import DschedError
from dsched.supervisor import commands, record
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


def specs(port: int | None, host: str = "127.0.0.1"):
    system = commands.System(Path("/data"), leaders=2, evaluators=1, binders=1, metrics_port=port, metrics_host=host)
    return commands.specs(system)


def test_each_child_has_a_port_of_its_own_in_a_row():
    found = {spec.name: spec.environment for spec in specs(9400)}
    assert [environment["DSCHED_METRICS_PORT"] for environment in found.values()] == ["9400", "9401", "9402", "9403"]
    assert list(found) == ["leader-1", "leader-2", "evaluator-1", "binder-1"]
    assert {environment["DSCHED_METRICS_HOST"] for environment in found.values()} == {"127.0.0.1"}


def test_without_one_the_users_environment_does_not_name_one_either(tmp_path):
    assert {spec.environment["DSCHED_METRICS_PORT"] for spec in specs(None)} == {""}
    record.write_targets(tmp_path, specs(None))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")]
)
def test_prometheus_is_told_where_to_look(tmp_path, host, shown):
    record.write_targets(tmp_path, specs(9400, host))
    found = json.loads((tmp_path / record.TARGETS).read_text())
    assert found[0] == {"targets": [f"{shown}:9400"], "labels": {"process": "leader-1"}}
    assert [entry["labels"]["process"] for entry in found] == ["leader-1", "leader-2", "evaluator-1", "binder-1"]
    record.remove_targets(tmp_path)
    record.remove_targets(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_in_use_is_told_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DschedError, match=f"leader-1 cannot have port {port} on 127.0.0.1"):
            record.check_ports(specs(port))


def test_ports_end_somewhere():
    with pytest.raises(DschedError, match="cannot have port 65536"):
        record.check_ports(specs(65535)[1:])


def test_nothing_is_asked_of_ports_that_nobody_wants():
    record.check_ports(specs(None))
