"""A plugin that does not end is ended, and named; one that cannot be ended takes its process with it."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.engine.evaluation import evaluate
from dsched.errors import ConfigError
from dsched.framework import plugin_timeout
from dsched.framework.interface import Code, Hazard, Scope
from dsched.framework.plugin_timeout import WATCH
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import PluginFailure, guarded, guarded_each
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import framework_of


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(600)


def shrug() -> None:
    """Goes on after whatever it takes for a failure of its own."""
    while True:
        try:
            spin()
        except Exception:  # noqa: BLE001  # as careless plugins do
            continue


@pytest.fixture
def quick() -> Iterator[None]:
    with plugin_timeout.watched(0.2):
        yield
    assert WATCH.plugin == ""


@pytest.mark.parametrize("plugin", [spin, sleep, shrug])
def test_a_plugin_that_does_not_end_is_told_to(quick: None, plugin: Callable[[], None]) -> None:
    with pytest.raises(PluginFailure) as failure:
        guarded("Mad", plugin)
    status = failure.value.status
    assert (status.code, status.plugin, status.hazard) == (Code.ERROR, "Mad", Hazard.OVERRAN)
    assert status.message == 'running plugin "Mad": did not answer within 0.2 s'
    assert guarded("Sane", lambda: 7) == 7


def test_the_one_that_hangs_is_named_not_the_one_that_asked_it(quick: None) -> None:
    with pytest.raises(PluginFailure) as failure:
        guarded("Asks", lambda: guarded("Mad", spin))
    assert failure.value.status.plugin == "Mad"


def test_of_several_that_are_called_in_one_go_the_one_that_hangs_is_named(quick: None) -> None:
    called: list[str] = []
    asked = guarded_each([("Sane", lambda: 7), ("Asks", lambda: guarded("Sane", lambda: 8))])
    with pytest.raises(PluginFailure) as failure:
        guarded_each([("Sane", lambda: called.append("Sane")), ("Mad", spin), ("Late", lambda: called.append("Late"))])
    assert asked == [7, 8]
    assert (failure.value.status.plugin, failure.value.status.hazard) == ("Mad", Hazard.OVERRAN)
    assert called == ["Sane"]


def test_one_that_has_others_work_is_not_told(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call takes long, but not too long; all together take too long."""
    clock = ManualClock()
    monkeypatch.setattr(plugin_timeout, "time", clock)

    def work() -> int:
        seen = WATCH.look()
        clock.sleep(0.15)
        return int(seen and WATCH.look())

    assert guarded("Asks", lambda: sum(guarded("Works", work) for _ in range(8)) + work()) == 9


def test_a_plugin_that_goes_node_by_node_has_one_limit_for_all_nodes(quick: None) -> None:
    class Slow:
        name = "Slow"
        filter_scope = Scope.NODE

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def filter(self, state: Any, pod: Any, node: Any) -> None:
            time.sleep(0.02)

    nodes = [make_node(f"n{number}") for number in range(500)]
    evaluation = evaluate(framework_of(Slow), PodInfo(make_pod("shop/web")), make_snapshot(nodes))
    assert evaluation.failure is not None
    assert evaluation.failure.hazard is Hazard.OVERRAN


def test_nothing_is_limited_outside_of_the_main_thread_or_without_a_limit() -> None:
    seen: list[bool] = []

    def look() -> None:
        with plugin_timeout.watched(0.1):
            seen.append(WATCH.on)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    with plugin_timeout.watched(0):
        seen.append(WATCH.on)
    assert seen == [False, False]


DEAF = """
import sys
from dsched.framework import plugin_timeout
from dsched.framework.validation import guarded

def deaf():
    while True:
        try:
            while True:
                {what}
        except BaseException:
            pass

with plugin_timeout.watched(0.1):
    guarded("Mad", deaf)
"""


@pytest.mark.parametrize("what", ["pass", "sum(range(10**11))"], ids=["swallows everything", "hears no signal"])
def test_one_that_cannot_be_told_ends_its_process_and_says_where(what: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", DEAF.format(what=what)], capture_output=True, text=True, timeout=60, check=False
    )
    assert told.returncode == 1
    assert "Timeout" in told.stderr
    assert "in deaf" in told.stderr


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan", "1e9"])
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(plugin_timeout.VARIABLE, text)
    with pytest.raises(ConfigError, match="a number of seconds"):
        plugin_timeout.from_environment()


def test_a_limit_is_read_and_0_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugin_timeout.VARIABLE, "2.5")
    assert plugin_timeout.from_environment() == 2.5
    monkeypatch.setenv(plugin_timeout.VARIABLE, "")
    assert plugin_timeout.from_environment() == plugin_timeout.DEFAULT_S


def test_a_wait_for_something_to_do_ends_in_time_however_signals_fall() -> None:
    """See `limits.undisturbed`; without it one of some hundred waits does not end."""
    waits: SimpleQueue[int] = SimpleQueue()
    with plugin_timeout.watched(0.004):
        for _ in range(300):
            with plugin_timeout.undisturbed(), pytest.raises(Empty):
                waits.get(timeout=0.001)
