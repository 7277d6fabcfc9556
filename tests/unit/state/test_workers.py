"""When a worker counts as silent."""

from dsched.state.versions import LONGEST_LAG
from dsched.state.workers import SILENT_AFTER_MS, Worker


def test_a_worker_that_takes_nothing_for_too_long_is_silent():
    worker = Worker("b@host", "binder", 1_700_000_000_000, "3f2a")
    assert not worker.silent(worker.last_seen_ms + SILENT_AFTER_MS)
    assert worker.silent(worker.last_seen_ms + SILENT_AFTER_MS + 1)


def test_a_replica_is_behind_by_versions_unless_it_is_of_another_table():
    worker = Worker("e@host", "evaluator", 0, "3f2a", table=1000)
    assert worker.behind(1000) == 0
    assert worker.behind(1007) == 7
    assert worker.behind(999) is None  # the log was written anew
    assert worker.behind(1000 + LONGEST_LAG) is None
    assert Worker("b@host", "binder", 0, "3f2a").behind(1000) is None
