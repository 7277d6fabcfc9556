from pathlib import Path

import pytest

from dsched.clock import ManualClock
from dsched.errors import DschedError
from dsched.supervisor import background, commands, record
from dsched.supervisor.children import Fleet, Spec


def test_the_background_supervisor_gets_everything_that_was_asked_for():
    system = commands.System(
        Path("/data"),
        redis_url="redis://:secret@h/0",
        name="blue",
        leaders=2,
        evaluators=3,
        binders=4,
        config=Path("/etc/scheduler.yaml"),
        mode="distributed",
        decisions=Path("/tmp/d.jsonl"),
    )
    words = background.arguments(system)
    assert words == [
        *("up", "--data-dir", "/data", "--name", "blue", "--mode", "distributed"),
        *("--leaders", "2", "--evaluators", "3", "--binders", "4"),
        *("--config", "/etc/scheduler.yaml", "--decisions", "/tmp/d.jsonl"),
    ]
    assert "secret" not in " ".join(words)


def test_what_was_not_asked_for_is_left_out():
    words = background.arguments(commands.System(Path("/data")))
    assert "--config" not in words
    assert "--decisions" not in words


def fleet_with_deaths(data_dir, deaths):
    fleet = Fleet([Spec("leader-1", ())], ManualClock())
    for _ in range(deaths):
        fleet.started("leader-1", 7)
        fleet.ended("leader-1")
    record.write(data_dir, fleet.children.values())


def test_a_child_that_keeps_dying_is_named_with_the_end_of_its_log(tmp_path):
    fleet_with_deaths(tmp_path, background.HOPELESS_RESTARTS)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "leader-1.log").write_text("starting\nerror: scheduler.yaml: no such profile\n")
    with pytest.raises(DschedError, match=r"leader-1 keeps ending.*\n.*\nerror: scheduler\.yaml: no such profile$"):
        background.check(tmp_path)


def test_a_few_deaths_may_happen(tmp_path):
    fleet_with_deaths(tmp_path, background.HOPELESS_RESTARTS - 1)
    background.check(tmp_path)
