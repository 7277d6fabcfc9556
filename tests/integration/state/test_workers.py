"""Which workers there are, by what they noted themselves."""

from dsched.state import workers
from dsched.state.workers import Worker
from tests.integration.state.support import NOW_MS


def test_workers_are_listed_by_name_as_they_were_seen_last(store):
    one, other = Worker("b@host", "binder", NOW_MS, "3f2a"), Worker("a@host", "evaluator", NOW_MS - 5, "3f2a")
    workers.note(store, Worker("b@host", "binder", NOW_MS - 100, "0000"))
    workers.note(store, one)
    workers.note(store, other)
    assert workers.read(store) == [other, one]
    workers.leave(store, "a@host")
    workers.leave(store, "unheard-of")
    assert workers.read(store) == [one]
