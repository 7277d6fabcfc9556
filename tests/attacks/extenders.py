"""Extenders that answer on purpose what nobody can bear."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from dsched.extenders.extenders import Extenders
from dsched.framework.extender import BindFailure
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.scheduler.decision import Decision
from tests.attacks.attack import Stand, attack
from tests.builders import make_node, make_pod
from tests.extender import Raw, TestExtender, Wire
from tests.integration.extenders.conftest import configuration, made, named
from tests.integration.extenders.deciding import decided

VERBS = ("filter", "prioritize", "preempt", "bind")
HEAD = b"HTTP/1.1 200 OK\r\n"
MOST_SENT = 64 * 2**20
SHORT = {"httpTimeout": "500ms"}
DEADLINE_S = 30.0
TEXT = 2_000
"""No condition or error is longer, whatever an extender says of four nodes."""
NODES = [make_node(f"n{number}", cpu=4) for number in range(1, 5)]
LOW = [make_pod(f"shop/low{number}", cpu=3, node=f"n{number}", uid=f"u{number}", priority=1) for number in range(1, 5)]
HIGH = make_pod("shop/high", cpu=2, priority=100)
SMALL = make_pod("shop/small", cpu=1, priority=100)


def _decide(*extenders: dict[str, Any]) -> list[Decision]:
    """A pod that has to preempt and one that need not, by the leader's own cycle."""
    found = decided(configuration(*extenders), NODES, [*LOW, HIGH, SMALL])
    for decision in found:
        said = str(decision.error or "") + (decision.diagnosis.message if decision.diagnosis else "")
        assert len(said) < TEXT, len(said)
    return found


def _bind(asked: Extenders) -> None:
    (found,) = asked.bind([(PodInfo(SMALL), NodeName("n1"))])
    assert found is None or (isinstance(found, BindFailure) and len(found.message) < TEXT)


def _serve(stand: Stand, answer: Callable[[Any], Any]) -> TestExtender:
    server = TestExtender(**dict.fromkeys(VERBS, answer))
    stand.afterwards(server.stop)
    return server


def _ask_everything(server: TestExtender, **more: Any) -> None:
    _decide(named(server, *VERBS, **SHORT, **more))
    _bind(made(named(server, *VERBS, **SHORT, **more)))


@attack(
    "an extender's answer without an end: body, head, chunks, or one byte at a time",
    sees="the pod's condition says that the answer is too large or did not come in time; nothing is read after that",
)
def without_an_end(stand: Stand) -> None:
    heads = [b"", HEAD, HEAD + b"\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"]
    heads.append(HEAD + b"Content-Length: 99999999999\r\n\r\n")
    pieces = [
        b" " * 65536,
        b"[" * 65536,
        b"A: b\r\n" * 1000,
        b"1\r\n[\r\n" * 1000,
        b"10000\r\n" + b"[" * 65536 + b"\r\n",
    ]
    pieces.append(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
    put: list[Wire] = []

    def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
        yield head
        yield from repeat(piece, MOST_SENT // len(piece))

    def answer(question: Any) -> Wire:
        drips = stand.rng.random() < 0.3
        piece = b" " if drips else stand.rng.choice(pieces)
        put.append(Wire(endless(stand.rng.choice(heads), piece), pause_s=0.01 if drips else 0.0))
        return put[-1]

    server = _serve(stand, answer)
    for _ in range(max(1, stand.rounds // 10)):
        _ask_everything(server, ignorable=stand.rng.random() < 0.5)
    assert put
    for each in put:
        assert each.refused.wait(DEADLINE_S), "an answer is read on after its call has ended"


@attack(
    "an extender's answers of any shape: nested 100,000 deep, megabytes of text, numbers beyond any range, wrong types",
    sees="the pod's condition says in 200 characters what is wrong with the answer; other pods are scheduled",
)
def of_any_shape(stand: Stand) -> None:
    server = _serve(stand, lambda question: Raw(_answer(stand.rng)))
    for _ in range(stand.rounds):
        more = {"ignorable": stand.rng.random() < 0.5, "nodeCacheCapable": stand.rng.random() < 0.5}
        _ask_everything(server, **more)


@attack(
    "an extender that speaks no HTTP, compresses, or sends elsewhere",
    sees="the pod's condition says so; nobody else is asked, nothing is unpacked",
)
def of_any_protocol(stand: Stand) -> None:
    server = _serve(stand, lambda question: Wire([_response(stand.rng)]))
    for _ in range(stand.rounds):
        _ask_everything(server, ignorable=stand.rng.random() < 0.5)
    assert threading.active_count() < 500


def _answer(rng: random.Random) -> bytes:
    """A whole answer: something near to what is expected, or nothing like it."""
    if rng.random() < 0.2:
        return rng.choice([b"[", b'{"a":', b'{"Nodes":{"items":[']) * rng.choice([500, 1000, 100_000])
    if rng.random() < 0.1:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(50)))
    raw = _json(rng, rng.choice([_filtered, _scored, _agreed, _value])(rng)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        at = rng.randrange(len(raw) + 1)
        raw = raw[:at] + bytes([rng.randrange(256)]) + raw[at + rng.randrange(3) :]
    return raw


def _json(rng: random.Random, value: Any) -> str:
    """With what `json` would not write: names that come twice or in another case, numbers that are none."""
    if isinstance(value, dict):
        pairs = [f"{json.dumps(rng.choice([name, name.lower()]))}:{_json(rng, item)}" for name, item in value.items()]
        return "{" + ",".join(pairs + rng.choices(pairs, k=rng.randrange(2)) if pairs else pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_json(rng, item) for item in value) + "]"
    if isinstance(value, int) and rng.random() < 0.3:
        return rng.choice(["1e999", "NaN", "-Infinity", "9" * 400, "9" * 5000, "1.5", "-0", str(2**63), str(-(2**63))])
    return json.dumps(value)


def _filtered(rng: random.Random) -> Any:
    names = [_text(rng) for _ in range(rng.randrange(6))]
    return {
        "NodeNames": _or_any(rng, names),
        "Nodes": _or_any(rng, {"items": _or_any(rng, [{"metadata": {"name": _or_any(rng, name)}} for name in names])}),
        "FailedNodes": _or_any(rng, {_text(rng): _or_any(rng, _text(rng)) for _ in range(3)}),
        "FailedAndUnresolvableNodes": _or_any(rng, {_text(rng): _text(rng) for _ in range(2)}),
        "Error": _or_any(rng, rng.choice(["", "", "", _text(rng)])),
    }


def _scored(rng: random.Random) -> Any:
    return [{"Host": _or_any(rng, _text(rng)), "Score": _or_any(rng, rng.randrange(-(2**63), 2**63))} for _ in range(5)]


def _agreed(rng: random.Random) -> Any:
    pods = [{"UID": _or_any(rng, rng.choice(["u1", "u2", _text(rng)]))} for _ in range(rng.randrange(4))]
    victims = {"Pods": _or_any(rng, pods), "NumPDBViolations": _or_any(rng, rng.choice([0, 2**63 - 1, -(2**63)]))}
    return {"NodeNameToMetaVictims": _or_any(rng, {_text(rng): _or_any(rng, victims) for _ in range(3)})}


def _or_any(rng: random.Random, value: Any) -> Any:
    return _value(rng) if rng.random() < 0.08 else value


def _value(rng: random.Random) -> Any:
    return rng.choice([None, True, 0, 7, "", "x", [], {}, [[]], {"a": 1}, [None], 10**30])


def _text(rng: random.Random) -> str:
    known = ["n1", "n2", "n3", "n4"]
    return rng.choice(
        [*known, *known, "", "\x00", "\ud800", "n1\n[shop/web] bound", "ü" * 300, "x" * 1_000_000, "{}{0}%s"]
    )


def _response(rng: random.Random) -> bytes:
    """What stands on the wire, from the status line on."""
    status = rng.choice(
        ["200 OK", "99999 X", "-1", "307 Away", "302 Away", "101 Up", "204 None", "", "\udcff", "200" * 99]
    )
    headers = rng.choices(
        [
            *("Content-Encoding: gzip", "Content-Encoding: \udcff", "Transfer-Encoding: gzip", "Connection: upgrade"),
            *("Transfer-Encoding: chunked", "Content-Length: 2", "Content-Length: -1", "Content-Length: " + "9" * 5000),
            *("Location: http://127.0.0.1:1/", "Location: file:///etc/passwd", "Location: \udcfe" + "x" * 9000),
            *("no colon", ": no name", "X" * 9000 + ": y", "\x00: y", "Set-Cookie: a=b"),
        ],
        k=rng.randrange(4),
    )
    body = rng.choice(
        [b"{}", b"zz\r\n", b"-1\r\n", b"f" * 999 + b"\r\n", b"\x1f\x8b\x08", b"2\r\n{}\r\n0\r\n\r\n", b""]
    )
    head = "\r\n".join([f"{rng.choice(['HTTP/1.1', 'HTTP/9', 'SSH-2.0'])} {status}", *headers, "", ""])
    return head.encode("utf-8", "surrogateescape") + body
