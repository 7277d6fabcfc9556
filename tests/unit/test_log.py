"""What a line of the log says: the sentence, the pod, and what its thread works on."""

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched import log

PACKAGE = Path(log.__file__).parent


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
