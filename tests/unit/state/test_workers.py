"""When a worker counts as silent."""

from dsched.state.workers import SILENT_AFTER_MS, Worker


def test_a_worker_that_takes_nothing_for_too_long_is_silent():
    worker = Worker("b@host", "binder", 1_700_000_000_000, "3f2a")
    assert not worker.silent(worker.last_seen_ms + SILENT_AFTER_MS)
    assert worker.silent(worker.last_seen_ms + SILENT_AFTER_MS + 1)
