"""Of a message in a queue, only a task of ours and its one argument goes on."""

import base64
import json
from typing import Any

import msgspec
import pytest
from kombu.serialization import loads

from dsched.model.messages import BIND, BINDERS, EVALUATE
from workers import channel
from workers.channel import TOLD, Refusals

EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def sent(body: Any = ([b"payload"], {}, EMBED), **more: Any) -> dict[str, Any]:
    """As kombu writes what the leader sends."""
    packed = body if isinstance(body, bytes) else msgspec.msgpack.encode(body)
    return {
        "body": base64.b64encode(packed).decode(),
        "content-encoding": "binary",
        "content-type": "application/x-msgpack",
        "headers": {"lang": "py", "task": BIND, "id": "1", "retries": 0, "timelimit": [None, None], "origin": "x"},
        "properties": {"body_encoding": "base64", "delivery_tag": "1", "delivery_info": {"exchange": "", "x": 1}},
        **more,
    }


def clean(message: Any) -> dict[str, Any]:
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    return channel.clean(raw, BINDERS, (BIND,))


def why(message: Any) -> str:
    with pytest.raises(channel.Foreign) as raised:
        clean(message)
    assert len(str(raised.value)) < 300
    return str(raised.value)


def test_the_task_and_its_argument_go_on() -> None:
    found = clean(sent())
    assert found["headers"]["task"] == BIND
    body = loads(found["body"], found["content-type"], found["content-encoding"], accept=["application/x-msgpack"])
    assert body == [[b"payload"], {}, EMBED]
    assert found["properties"]["delivery_info"] == {"exchange": "", "routing_key": BINDERS}


@pytest.mark.parametrize(
    "headers",
    [
        {"eta": "2999-01-01T00:00:00"},
        {"expires": "x"},
        {"timelimit": [0.001, 0.001]},
        {"compression": "application/x-gzip"},
        {"retries": "x"},
        {"group": "g"},
        {"stamped_headers": ["task"]},
        {"ignore_result": False},
    ],
)
def test_what_else_celery_would_obey_does_not(headers: dict[str, Any]) -> None:
    message = sent()
    expected = clean(message)
    message["headers"] |= headers
    found = clean(message)
    for own in (found, expected):
        for name in ("id", "root_id"):
            own["headers"].pop(name)
        for name in ("correlation_id", "delivery_tag"):
            own["properties"].pop(name)
    assert found == expected


@pytest.mark.parametrize("name", list(EMBED))
def test_no_other_task_is_sent_for_it(name: str) -> None:
    other = [{"task": BIND, "args": [], "options": {"queue": "elsewhere"}}]
    assert clean(sent(([b"payload"], {}, EMBED | {name: other})))["body"] == clean(sent())["body"]


def test_an_id_that_comes_again_is_another_one() -> None:
    assert clean(sent())["headers"]["id"] != clean(sent())["headers"]["id"]


@pytest.mark.parametrize(
    "message",
    [
        *(b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"x":' * 100_000),
        sent(**{"content-type": "application/data"}),
        sent(**{"content-type": "application/x-python-serialize" + "x" * 100_000}),
        sent(headers=None),
        sent(headers={"task": ["x"]}),
        sent(properties={}),
        sent(properties={"body_encoding": "rot13"}),
        sent() | {"body": "no base64"},
        sent() | {"body": 5},
        sent(b""),
        sent(b"\x93\x91\xc4\x01x" + b"\x91" * 100_000 + b"\xc0"),
        sent(([], {}, {})),
        sent((["text"], {}, {})),
        sent(([b"one", b"two"], {}, {})),
        sent({"args": [b"x"]}),
    ],
)
def test_what_is_none_of_ours(message: Any) -> None:
    assert why(message)


def test_a_task_that_is_not_carried_out_here() -> None:
    assert why(sent(headers={"task": EVALUATE})) == f"no task '{EVALUATE}' is carried out here"
    assert "100000 characters" in why(sent(headers={"task": "x" * 100_000}))


def test_a_message_of_any_size_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "LARGEST", 100)
    assert why(sent()) == "it is larger than 100 bytes"


def test_a_flood_of_them_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    refusals = Refusals(lambda: now)
    for _ in range(1000):
        refusals.tell(BINDERS, "none of ours", 5)
    assert len(caplog.records) == TOLD
    now = 1.0
    refusals.tell(BINDERS, "none of ours", 5)
    assert len(caplog.records) == TOLD + 1
    assert vars(caplog.records[-1])["untold"] == 1000 - TOLD
