"""What a line of the log says: the sentence, the pod, and what its thread works on."""

import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched import log

PACKAGE = Path(log.__file__).parent
ALL_THAT_PYTHON_WRITES = """
import threading, warnings
from dsched import log

class Broken:
    def __del__(self):
        raise ValueError("passed over")

def fail():
    raise ValueError("in a thread")

log.configure()
log.say("test.log", "in a signal handler")
warnings.warn("a warning")
Broken()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
raise ValueError("at the end")
"""


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is written by a logger of the test, as JSON."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(log.JsonFormatter())
    tested = log.logger("test.log")
    tested.addHandler(handler)
    yield written
    tested.removeHandler(handler)
    log.about()


def test_a_line_names_pod_epoch_and_batch(lines: io.StringIO) -> None:
    log.about(epoch=3, batch="3-17")
    log.logger("test.log").warning("bind failed", extra={"action": "bind", "pod": "shop/web", "uid": "u-1"})
    told = json.loads(lines.getvalue())
    assert {name: told[name] for name in ("message", "action", "pod", "uid", "epoch", "batch")} == {
        "message": "bind failed",
        "action": "bind",
        "pod": "shop/web",
        "uid": "u-1",
        "epoch": 3,
        "batch": "3-17",
    }


def test_what_a_line_says_itself_goes_before(lines: io.StringIO) -> None:
    log.about(epoch=3)
    log.logger("test.log").warning("stale", extra={"epoch": 2})
    log.about()
    log.logger("test.log").warning("free")
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first["epoch"] == 2
    assert "epoch" not in second


def test_another_thread_works_on_something_else(lines: io.StringIO) -> None:
    log.about(epoch=3)
    thread = threading.Thread(target=lambda: log.logger("test.log").warning("watch ended"))
    thread.start()
    thread.join()
    assert "epoch" not in json.loads(lines.getvalue())


def test_the_console_form_begins_with_the_pod() -> None:
    log.about(epoch=3, batch="3-17")
    record = logging.makeLogRecord({"msg": "bind failed", "levelname": "WARNING", "pod": "shop/web", "uid": "u-1"})
    text = log.ConsoleFormatter().format(record)
    log.about()
    assert re.fullmatch(r"\S+Z WARNING \[shop/web\] bind failed uid=u-1 epoch=3 batch=3-17", text)


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    """A process that is to log as JSON."""
    environment = {**os.environ, "DSCHED_LOG": "json"}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_what_python_writes_is_json_as_well() -> None:
    done = run("-c", ALL_THAT_PYTHON_WRITES)
    assert done.returncode == 1
    said, warned, *exceptions = map(json.loads, done.stderr.splitlines())
    assert (said["logger"], said["message"]) == ("test.log", "in a signal handler")
    assert "a warning" in warned["message"]
    assert [each["exception"].splitlines()[-1] for each in exceptions] == [
        "ValueError: passed over",
        "ValueError: in a thread",
        "ValueError: at the end",
    ]


def test_what_ends_a_process_is_json_and_what_a_command_answers_is_text(tmp_path: Path) -> None:
    nothing = ("--data-dir", str(tmp_path))
    for process in (("leader", *nothing), ("up", *nothing, "--redis-url", "redis://127.0.0.1:1/0")):
        done = run("-m", "dsched", *process)
        assert done.returncode == 1
        (line,) = map(json.loads, done.stderr.splitlines())
        assert line["level"] == "CRITICAL"
        assert line["message"]
    assert run("-m", "dsched", "get", "pods", *nothing).stderr.startswith("error: ")


def test_lines_about_a_pod_say_which_of_that_name() -> None:
    """A pod's name may come again; its UID does not."""
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parts[-2] in ("cli", "ui", "model", "simulation"):
            continue
        for call in re.finditer(r"extra=\{[^}]*\}", path.read_text()):
            if '"pod": ' in call[0] and '"uid"' not in call[0]:
                wrong.append(f"{path.name}: {' '.join(call[0].split())}")
    assert wrong == []
