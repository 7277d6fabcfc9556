"""What `dsched config reload` waits for, and what it only mentions."""

import pytest
from typer.testing import CliRunner

from dsched.cli.commands import config_reload
from dsched.cli.main import app
from dsched.clock import ManualClock, SystemClock
from dsched.state import keys, leaders, workers
from dsched.state.client import Store
from dsched.state.leaders import LeaderNote
from dsched.state.workers import Worker

FIRST = 1
"""Number of the first request to reload."""


def told(store: Store, now_ms: int, error: str = "", trouble: str = "") -> None:
    """A leader that has answered already and a worker, both with the same configuration."""
    store.redis.set(store.key(keys.LEADER.name), "one 4")
    restart = ("clientConnection.qps",)
    leaders.note(
        store,
        LeaderNote(
            "one", "leading", 4, "abc", "standalone", error=error, restart=restart, reload=FIRST, seen_ms=now_ms
        ),
    )
    workers.note(store, Worker("binder-1@here", "binder", now_ms, "abc", "standalone", trouble=trouble))


def test_what_takes_a_restart_is_no_reason_to_wait(store: Store) -> None:
    clock = ManualClock()
    told(store, clock.now_ms())
    found = config_reload.wait(store, clock, 30.0)
    assert (found.done, found.config) == (True, "abc")
    assert [each.trouble for each in found.processes] == ["", ""]
    assert [each.restart for each in found.processes] == [["clientConnection.qps"], []]


@pytest.mark.parametrize("fault", [{"error": "field is wrong"}, {"trouble": "no such plugin"}])
def test_what_is_refused_is_not_done(store: Store, fault: dict[str, str]) -> None:
    clock = ManualClock()
    told(store, clock.now_ms(), **fault)
    assert not config_reload.wait(store, clock, 0.0).done


def test_what_takes_a_restart_is_a_note(store: Store) -> None:
    told(store, SystemClock().now_ms())
    words = ["config", "reload", "--redis-url", store.url, "--name", store.name]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "note: one: takes a restart: clientConnection.qps" in done.stderr
    assert "error" not in done.output


def test_an_error_and_what_takes_a_restart_are_told_apart(store: Store) -> None:
    told(store, SystemClock().now_ms(), error="field is wrong")
    words = ["config", "reload", "--redis-url", store.url, "--name", store.name]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        "error: one: configuration refused, abc stays: field is wrong",
        "note: one: takes a restart: clientConnection.qps",
    ]
    shown = CliRunner().invoke(app, ["status", *words[2:]]).stdout.splitlines()
    assert [line.split(maxsplit=1) for line in shown if "one: " in line] == [
        ["warning", "one: configuration refused, abc stays: field is wrong"],
        ["note", "one: takes a restart: clientConnection.qps"],
    ]
