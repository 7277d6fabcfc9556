"""How many there are of what stands in Redis."""

from dsched.leader.dispatch import Dispatcher
from dsched.model.messages import BINDERS, EVALUATORS, BindRequest
from dsched.state import counts, workers
from dsched.state.client import Store
from dsched.state.results import Binds
from dsched.state.workers import Worker


def test_there_is_nothing_at_first(store: Store) -> None:
    found = counts.read(store)
    assert found.queues == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
    assert (found.inflight, found.waiting, found.results, found.node_log) == (0, 0, 0, 0)
    assert found.tasks == {EVALUATORS: 0, BINDERS: 0}


def test_messages_that_no_worker_has_taken_are_counted_where_celery_keeps_them(store: Store) -> None:
    dispatcher = Dispatcher(store)
    for name in ("evaluator-1@here", "evaluator-2@here"):
        workers.note(store, Worker(name, "evaluator", 1, ""))
    try:
        for _ in range(3):
            dispatcher.bind(BindRequest(epoch=1, config="", profile="", pods=[]))
        for name in ("evaluator-1@here", "evaluator-2@here", "evaluator-2@here", "evaluator-3@there"):
            dispatcher.ping([name], expires_s=60)
    finally:
        dispatcher.close()
    assert counts.read(store).tasks == {EVALUATORS: 3, BINDERS: 3}


def test_results_are_counted_until_the_leader_has_acted_on_them(store: Store) -> None:
    for _ in range(2):
        Binds(store).report(1, "binder-1", [])
    assert counts.read(store).results == 2
