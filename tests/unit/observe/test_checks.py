from dsched.observe import checks
from dsched.state.workers import Worker

NOW_MS = 1_700_000_000_000


def seen(name, seconds_ago, kind="evaluator"):
    return Worker(name, kind, NOW_MS - round(seconds_ago * 1000), "3f2a")


def test_a_worker_that_has_just_run_a_task_is_well():
    assert checks.idle([seen("evaluator@a", 2)], "evaluator", "a", NOW_MS, 15) == ""


def test_a_worker_that_runs_nothing_is_named():
    assert (
        checks.idle([seen("evaluator@a", 16)], "evaluator", "a", NOW_MS, 15) == "evaluator@a last ran a task 16 s ago"
    )


def test_one_stuck_worker_of_two_on_a_host_is_enough():
    found = checks.idle([seen("evaluator-1@a", 2), seen("evaluator-2@a", 20)], "evaluator", "a", NOW_MS, 15)
    assert found == "evaluator-2@a last ran a task 20 s ago"


def test_a_worker_that_is_gone_does_not_make_the_others_unwell():
    old = seen("evaluator-9@a", 3600)
    assert checks.idle([old, seen("evaluator-1@a", 2)], "evaluator", "a", NOW_MS, 15) == ""


def test_workers_of_other_hosts_and_kinds_do_not_count():
    others = [seen("evaluator@b", 2), seen("binder@a", 2, kind="binder")]
    assert checks.idle(others, "evaluator", "a", NOW_MS, 15) == "no evaluator on a has run a task within 120 s"
