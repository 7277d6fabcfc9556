"""Where children serve their metrics."""

import json
import socket
from pathlib import Path

import pytest

from dsched.errors import DschedError
from dsched.supervisor import commands, targets


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
    targets.write(tmp_path, specs(None))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")]
)
def test_prometheus_is_told_where_to_look(tmp_path, host, shown):
    targets.write(tmp_path, specs(9400, host))
    found = json.loads((tmp_path / targets.FILE).read_text())
    assert found[0] == {"targets": [f"{shown}:9400"], "labels": {"process": "leader-1"}}
    assert [entry["labels"]["process"] for entry in found] == ["leader-1", "leader-2", "evaluator-1", "binder-1"]
    targets.remove(tmp_path)
    targets.remove(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_in_use_is_told_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DschedError, match=f"leader-1 cannot have port {port} on 127.0.0.1"):
            targets.check(specs(port))


def test_ports_end_somewhere():
    with pytest.raises(DschedError, match="cannot have port 65536"):
        targets.check(specs(65535)[1:])


def test_nothing_is_asked_of_ports_that_nobody_wants():
    targets.check(specs(None))
