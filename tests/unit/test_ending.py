"""How a process ends by signals, in processes of their own."""

import signal
import subprocess
import sys

import pytest

LOADING = """
import importlib.abc, signal, sys, time
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "dsched.cli.main":
            print("loading", flush=True)
            for _ in range(600):  # a signal that comes just before a sleep is looked at after it
                time.sleep(0.1)
sys.meta_path.insert(0, Slow())
sys.argv = ["dsched", *sys.argv[1:]]
import runpy
runpy.run_module("dsched", run_name="__main__")
"""
FINALIZING = """
import time
from dsched import ending
ending.at_once_while_loading()
ending.with_interrupts()
class Finalized:
    def __del__(self):
        print("finalizing", flush=True)
        for _ in range(600):
            time.sleep(0.1)
try:
    Finalized()
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


def begun(text: str, *words: str) -> "subprocess.Popen[str]":
    """A process that has printed its first line; it ends by signals, whoever runs the tests: nohup ignores SIGHUP."""
    process = subprocess.Popen(
        [sys.executable, "-c", text, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_end_by_signals,  # noqa: PLW1509
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _end_by_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_only_loading_ends_by_the_signal_without_a_word(number: signal.Signals) -> None:
    process = begun(LOADING, "status")
    process.send_signal(number)
    assert process.communicate(timeout=30) == ("", None)
    assert process.returncode == -number


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR2])
def test_what_asks_a_leader_for_something_ends_commands_that_load_but_no_leader(number: signal.Signals) -> None:
    command, leader = begun(LOADING, "status"), begun(LOADING, "leader")
    with command, leader:
        for process in (command, leader):
            process.send_signal(number)
        assert command.wait(30) == -number
        leader.send_signal(signal.SIGTERM)
        assert leader.wait(30) == -signal.SIGTERM


def test_an_interrupt_that_meets_a_finalizer_is_not_lost() -> None:
    process = begun(FINALIZING)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("interrupted\n", None)
    assert process.returncode == 0
