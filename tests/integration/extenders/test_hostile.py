"""Extenders that answer on purpose what nobody can bear: the call fails within its time, and nothing of it stays."""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from dsched.extenders import limits, wire
from dsched.extenders.client import CallFailed, Client, Ending
from dsched.framework.extender import BindFailure, ExtenderFailure
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod
from tests.extender import Raw, Refusal, TestExtender, Wire, names
from tests.integration.extenders.conftest import Start, configuration, made, named
from tests.integration.extenders.deciding import decision, text

DEADLINE_S = 60.0
MOST_SENT = 512 * 2**20
"""What an answer without an end sends at most, so that a caller that takes it all does not take the machine."""
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNK = b"10000\r\n" + b" " * 65536 + b"\r\n"
SHORT = {"httpTimeout": "300ms"}
POD = make_pod("shop/web", cpu=1)
NODES = [make_node(f"n{number}") for number in range(1, 4)]


def client(server: TestExtender | str, **more: Any) -> Client:
    (extender,) = configuration(named(server, "filter", **more)).extenders
    return Client(extender)


def failure(server: TestExtender | str, question: bytes = b"{}", **more: Any) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        client(server, **more).ask("filter", question, wire.filter_result)
    return raised.value


def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    yield head
    yield from repeat(piece, MOST_SENT // len(piece))


# -- without an end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK),
        (HEAD + b"\r\n", b" " * 65536),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", b" " * 65536),
    ],
)
def test_an_answer_without_an_end_is_cut_off(start: Start, head: bytes, piece: bytes) -> None:
    answer = Wire(endless(head, piece))
    found = failure(start(filter=lambda question: answer), httpTimeout="30s")
    assert str(found).endswith(f"the answer is larger than {limits.bytes_for(b'{}')} bytes")
    assert found.ending is Ending.ERROR
    assert answer.refused.wait(DEADLINE_S)
    assert answer.sent < 10 * limits.ANSWER_BYTES


@pytest.mark.parametrize(
    "piece",
    [b"", HEAD, HEAD + b"X: ", HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", HEAD + b"Content-Length: 99\r\n\r\n"],
)
def test_the_thread_of_an_answer_that_drips_in_ends_with_its_call(start: Start, piece: bytes) -> None:
    def dripping() -> Iterator[bytes]:
        yield piece
        yield from repeat(b"x", 100_000)

    answer = Wire(dripping(), pause_s=0.02)
    made = client(start(filter=lambda question: answer), **SHORT)
    with pytest.raises(CallFailed):
        made.ask("filter", b"{}", wire.filter_result)
    assert answer.refused.wait(DEADLINE_S), "nobody reads on"
    made._threads.shutdown(wait=True)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 1000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    ],
)
def test_an_answer_that_takes_long_to_take_apart_ends_in_time(start: Start, head: bytes, piece: bytes) -> None:
    answer = Wire(endless(head, piece))
    made = client(start(filter=lambda question: answer), **SHORT)
    with pytest.raises(CallFailed):
        made.ask("filter", b"{}", wire.filter_result)
    assert answer.refused.wait(DEADLINE_S)
    made._threads.shutdown(wait=True)


def test_a_head_without_an_end(start: Start) -> None:
    answer = Wire(endless(HEAD, b"A: b\r\n" * 10_000))
    assert failure(start(filter=lambda question: answer), httpTimeout="30s").ending is Ending.BROKEN
    assert answer.refused.wait(DEADLINE_S)


def test_a_handshake_that_never_ends_counts_into_the_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = client(f"https://127.0.0.1:{listening.getsockname()[1]}", **SHORT)
        with pytest.raises(CallFailed, match=r"no (connection|answer in)"):
            made.ask("filter", b"{}", wire.filter_result)
        made._threads.shutdown(wait=True)


def test_a_question_that_nobody_takes_ends_in_time() -> None:
    """The connection is accepted by the system, and nothing is read from it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = client(f"http://127.0.0.1:{listening.getsockname()[1]}", **SHORT)
        with pytest.raises(CallFailed, match="no answer in"):
            made.ask("filter", b" " * (64 * 2**20), wire.filter_result)
        made._threads.shutdown(wait=True)


# -- too large, too deep, too many -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bracket", [b"[", b'{"a":', b'{"Nodes":{"items":['])
def test_an_answer_that_is_nested_without_an_end(start: Start, bracket: bytes) -> None:
    found = failure(start(filter=lambda question: Raw(bracket * 50_000)))
    assert str(found).endswith("no JSON: nested too deep")
    assert found.ending is Ending.ERROR


def test_an_answer_of_many_small_values(start: Start) -> None:
    found = failure(start(filter=lambda question: Raw(b"[" + b"[]," * 2_000_000 + b"0]")))
    assert "the answer holds some 4000001 values, 500002 are taken at most" in str(found)


def test_a_large_cluster_fits_in() -> None:
    """Every node whole, of 16 KiB and 600 values, and a sentence about each."""
    node = b'{"metadata":{"name":"node-00000"},"values":[' + b"1," * 600 + b'0],"text":"' + b"x" * 14_000 + b'"}'
    question = b'{"Nodes":{"items":[' + b",".join([node] * 5000) + b"]}}"
    said = b",".join(
        b'"node-%05d":"node(s) had too little of what this pod asks for"' % number for number in range(5000)
    )
    answer = question[:-1] + b',"FailedNodes":{' + said + b"}}"
    assert len(answer) < limits.bytes_for(question)
    limits.check_values(answer, question)


def test_a_large_cluster_by_names_fits_in() -> None:
    names = [f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.ec2.internal" for number in range(100_000)]
    question = json.dumps({"NodeNames": names}).encode()
    said = dict.fromkeys(names, "node(s) had too little of what this pod asks for")
    answer = json.dumps({"NodeNames": names[:50_000], "FailedNodes": said}).encode()
    assert len(answer) < limits.bytes_for(question)
    limits.check_values(answer, question)


# -- what is quoted ----------------------------------------------------------------------------------------------------

LONG = "x" * 4_000_000


@pytest.mark.parametrize(
    "answer",
    [
        {"NodeNames": [LONG]},
        {"Nodes": {"items": [{"metadata": {"name": LONG}}]}},
        {"Error": LONG},
        {"FailedNodes": {"n1": LONG, "n2": LONG[:-1]}},
        {"FailedAndUnresolvableNodes": {"n1": LONG}},
    ],
)
def test_what_is_quoted_of_an_answer_is_short(start: Start, answer: Any) -> None:
    server = start(filter=lambda question: answer)
    found = decision(configuration(named(server, "filter", nodeCacheCapable="NodeNames" in answer)), NODES, [POD])
    said = text(found) if found.diagnosis is not None else str(found.error)
    assert "xxx" in said
    assert len(said) < 1000


def test_many_different_reasons_are_not_all_told(start: Start) -> None:
    nodes = [make_node(f"n{number}") for number in range(300)]
    server = start(filter=lambda question: {"FailedNodes": {name: f"no room on {name}" for name in names(question)}})
    said = text(decision(configuration(named(server, "filter")), nodes, [POD]))
    assert said.count("no room on") == limits.REASONS
    assert f"200 {limits.OTHER_REASON}" in said


def test_what_preemption_quotes_is_short(start: Start) -> None:
    low, high = make_pod("shop/low", cpu=3, node="n1", uid="u1"), make_pod("shop/high", cpu=2, priority=100)
    answers: list[Any] = [
        {"NodeNameToMetaVictims": {LONG: {"Pods": [{"UID": "u1"}]}}},
        {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": LONG}]}}},
    ]
    for answer in answers:
        server = start(preempt=lambda question, answer=answer: answer)
        found = decision(configuration(named(server, "preempt")), [make_node("n1", cpu=4)], [low, high])
        assert found.nominated is None
        assert found.diagnosis is not None
        assert len(str(found.error) + text(found)) < 2000


@pytest.mark.parametrize(
    "answer", [{"Error": LONG[:200_000]}, Raw(b"[" * 100_000), Refusal(500), {"Error": 5}, Raw(b" " * 300_000)]
)
def test_a_bind_that_is_answered_so_fails(start: Start, answer: Any) -> None:
    asked = made(named(start(bind=lambda question: answer), "bind"))
    (found,) = asked.bind([(PodInfo(POD), NodeName("n1"))])
    assert isinstance(found, BindFailure)
    assert not found.unclear
    assert len(found.message) < 1000


# -- other ways --------------------------------------------------------------------------------------------------------


def test_a_compressed_answer_is_refused(start: Start) -> None:
    bomb = gzip.compress(b" " * 200_000_000, 9)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    server = start(filter=lambda question: Wire([head + bomb]))
    assert "the answer is compressed (gzip), which was not asked for" in str(failure(server))
    assert server.headers[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(start: Start, code: int) -> None:
    elsewhere = start(filter=lambda question: {"NodeNames": []})
    head = f"HTTP/1.1 {code} Away\r\nLocation: {elsewhere.url}/filter\r\nContent-Length: 0\r\n\r\n".encode()
    found = failure(start(filter=lambda question: Wire([head])))
    assert f"code {code}: redirects are not followed; set urlPrefix to where it leads, '{elsewhere.url}" in str(found)
    assert elsewhere.verbs() == []


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 -1 OK\r\n\r\n",
        b"\xff\xfe\x00",
        b"SSH-2.0-x\r\n",
        HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
        HEAD + b"Content-Length: -1\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 1000 + b"\r\n",
        HEAD + b"Content-Encoding: \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"A" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 302 Away\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_what_is_no_http(start: Start, raw: bytes) -> None:
    found = failure(start(filter=lambda question: Wire([raw])))
    assert len(str(found)) < 1000
    assert found.ending is not Ending.OK


# -- scores ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "score", ["1e999", "NaN", "1" * 400, "1" * 5000, "9223372036854775808", "0.5", '"1"', "true", "[1]", "-1e3"]
)
def test_scores_that_are_none_have_no_say(start: Start, score: str) -> None:
    server = start(prioritize=lambda question: Raw(f'[{{"Host": "n1", "Score": {score}}}]'.encode()))
    assert decision(configuration(named(server, "prioritize")), NODES, [POD]).node in ("n1", "n2", "n3")
    assert server.verbs() == ["prioritize"]


@pytest.mark.parametrize("score", [2**63 - 1, -(2**63), -5, 10**6])
def test_scores_beyond_their_range_wrap_around_as_in_go(start: Start, score: int) -> None:
    answer = [{"Host": "n1", "Score": score}, {"Host": "n1", "Score": score}, {"Host": "nobody", "Score": 1}]
    server = start(prioritize=lambda question: answer)
    assert decision(configuration(named(server, "prioritize", weight=2**31)), NODES, [POD]).node is not None


def test_one_that_must_not_be_ignored_fails_its_pod_alone(start: Start) -> None:
    before = set(threading.enumerate())
    asked = made(named(start(filter=lambda question: Raw(b"[" * 100_000)), "filter"))
    with pytest.raises(ExtenderFailure, match="nested too deep"):
        asked.filter(PodInfo(POD), NODES)
    ignored = made(named(start(filter=lambda question: Raw(b"[" * 100_000)), "filter", ignorable=True))
    assert len(ignored.filter(PodInfo(POD), NODES).kept) == 3
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert sum(thread.name.startswith("extender") for thread in started) <= 2, "a thread for each call that was made"
