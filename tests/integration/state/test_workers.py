"""Which workers there are, by what they noted themselves."""

from dsched.state import workers
from dsched.state.workers import Worker
from tests.integration.state.support import NOW_MS


def test_workers_are_listed_by_name_as_they_were_seen_last(store):
    one = Worker("b@host", "binder", NOW_MS, "3f2a", trouble="cannot read the file")
    other = Worker("a@host", "evaluator", NOW_MS - 5, "3f2a", "standalone", 123456)
    workers.note(store, Worker("b@host", "binder", NOW_MS - 100, "0000"))
    workers.note(store, one)
    workers.note(store, other)
    assert workers.read(store) == [other, one]
    workers.leave(store, "a@host")
    workers.leave(store, "unheard-of")
    assert workers.read(store) == [one]


def test_workers_of_an_older_version_are_read(store):
    name = store.key("workers")
    store.redis.hset(name, mapping={"a@host": "binder 5 3f2a", "b@host": "binder 6 3f2a standalone cannot read it"})
    assert workers.read(store) == [
        Worker("a@host", "binder", 5, "3f2a"),
        Worker("b@host", "binder", 6, "3f2a", "standalone", 0, "cannot read it"),
    ]
