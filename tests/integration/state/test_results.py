"""Outcomes of binds on a real Redis: none is lost, each may be seen twice, and what cannot be read holds nobody up."""

import logging

import msgpack
import pytest

from dsched.errors import StaleEpoch
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state import keys, replies
from dsched.state.results import Binds, Outcome, Results
from tests.integration.state.support import take_over

MOMENT_S = 0.001


def outcome(name: str, verdict: str = "bound") -> Outcome:
    return Outcome(PodKey(f"ns/{name}"), PodUid(f"uid-{name}"), NodeName("n1"), verdict, "wärum", 3, "Plugin")


def test_outcomes_come_as_they_were_reported(store, epoch):
    binds, results = Binds(store), Results(store, epoch)
    assert results.read("0", MOMENT_S) == []
    binds.report(epoch, "binder-1", [outcome("a"), outcome("b", "gone")])
    binds.report(epoch, "binder-2", [])
    found = results.read("0", MOMENT_S)
    assert [(each.epoch, each.binder, each.outcomes) for each in found] == [
        (epoch, "binder-1", [outcome("a"), outcome("b", "gone")]),
        (epoch, "binder-2", []),
    ]
    assert results.read(found[0].entry, MOMENT_S) == found[1:]


def test_what_was_not_acted_on_is_read_again_by_the_next_leader(store, epoch):
    Binds(store).report(epoch, "binder", [outcome("a")])
    Binds(store).report(epoch, "binder", [outcome("b")])
    results = Results(store, epoch)
    first, second = results.read("0", MOMENT_S)
    results.ack([first])
    after = take_over(store)
    assert Results(store, after).read("0", MOMENT_S) == [second]
    with pytest.raises(StaleEpoch):
        results.ack([second])
    Results(store, after).ack([first, second])
    assert Results(store, after).read("0", MOMENT_S) == []


def test_many_results_are_read_a_part_at_a_time(monkeypatch, store, epoch):
    monkeypatch.setattr("dsched.state.results.READ_AT_ONCE", 2)
    for number in range(5):
        Binds(store).report(epoch, f"binder-{number}", [])
    results, last, found = Results(store, epoch), "0", []
    while part := results.read(last, MOMENT_S):
        assert len(part) <= 2
        last = part[-1].entry
        found += part
    assert [each.binder for each in found] == [f"binder-{number}" for number in range(5)]


def test_acknowledging_nothing_needs_no_server(connect):
    Results(connect("nobody leads here"), 1).ack([])


@pytest.mark.parametrize(
    "fields",
    [
        {"epoch": "1", "binder": "newer", "outcomes": msgpack.packb([["ns/a", "uid", "n1"]])},
        {"epoch": "1", "binder": "broken", "outcomes": b"\xc1"},
        {"epoch": "1", "binder": "cut off", "outcomes": msgpack.packb([["ns/a"]])[:-1]},
        {"epoch": "1", "binder": "odd", "outcomes": msgpack.packb(7)},
        {"epoch": "first", "binder": "odd", "outcomes": msgpack.packb([])},
        {"binder": "older"},
    ],
    ids=["another form", "no msgpack", "cut off", "no list", "no epoch", "fields missing"],
)
def test_a_result_that_cannot_be_read_is_named_dropped_and_hides_no_other(store, epoch, caplog, fields):
    """A binder of another version may write it; the pods it was about are looked up when they are overdue."""
    store.redis.xadd(store.key(keys.RESULTS.name), fields)
    Binds(store).report(epoch, "binder", [outcome("a")])
    results = Results(store, epoch)
    with caplog.at_level(logging.WARNING):
        unread, read = results.read("0", MOMENT_S)
    assert unread.outcomes == ()
    assert read.outcomes == [outcome("a")]
    assert [record.action for record in caplog.records] == ["unreadable_result"]
    results.ack([unread, read])
    assert results.read("0", MOMENT_S) == []


# -- replies -----------------------------------------------------------------------------------------------------------


def test_answers_are_taken_in_order_once_each_by_request(store):
    for answer in (b"1", b"2"):
        replies.push(store, "mine", answer)
    replies.push(store, "other", b"3")
    assert [replies.take(store, "mine", MOMENT_S) for _ in range(3)] == [b"1", b"2", None]
    assert store.redis.ttl(store.key("replies:other")) > 0


@pytest.mark.parametrize("patience_s", [0.0, -1.0])
def test_no_patience_is_not_for_ever(store, patience_s):
    assert replies.take(store, "nobody", patience_s) is None


def test_patience_may_be_longer_than_that_of_the_connection(monkeypatch, connect):
    monkeypatch.setattr("dsched.state.client.SOCKET_TIMEOUT_S", 0.5)
    assert replies.take(connect("short of patience"), "nobody", 0.7) is None
