"""Whether a worker says that it is well: by what its pool has counted and by what Redis says."""

import time

from prometheus_client.metrics_core import GaugeMetricFamily

from dsched.clock import SystemClock
from dsched.state import client, workers
from dsched.state.lease import Lease
from dsched.state.workers import SILENT_AFTER_MS, Worker
from workers.health import LAST_TASK, STUCK_AFTER_S, Health

NAME = "binder-1@host"


class Counted:
    """What a pool has counted: when it last ran a task."""

    def __init__(self, ago_s):
        self.ago_s = ago_s

    def collect(self):
        yield GaugeMetricFamily(LAST_TASK, "-", value=time.time() - self.ago_s)


def health(store, ago_s, running_s=10 * STUCK_AFTER_S):
    found = Health(store, Counted(ago_s))
    found.name = NAME
    found._since -= running_s
    return found


def wrong(found):
    """What fails, by page."""
    return {page: [check.wrong() for check in checks if check.wrong()] for page, checks in found.checks().items()}


def note(store, ago_ms):
    workers.note(store, Worker(NAME, "binder", SystemClock().now_ms() - ago_ms, "3f2a"))


def test_a_worker_that_runs_tasks_is_well(store):
    note(store, 0)
    assert wrong(health(store, ago_s=1)) == {"livez": [], "readyz": []}


def test_one_that_runs_none_although_it_is_pinged_is_not_live(store):
    Lease(store, "leader-1", 60_000).acquire()
    note(store, 0)
    found = wrong(health(store, ago_s=STUCK_AFTER_S + 30))
    assert found["readyz"] == []
    assert "though leader-1 leads" in found["livez"][0]


def test_one_that_has_just_started_is_given_time(store):
    Lease(store, "leader-1", 60_000).acquire()
    assert wrong(health(store, ago_s=STUCK_AFTER_S + 30, running_s=0))["livez"] == []


def test_while_nobody_leads_nobody_pings_and_that_is_not_the_workers_fault(store):
    found = health(store, ago_s=STUCK_AFTER_S + 30)
    assert wrong(found)["livez"] == []
    Lease(store, "leader-1", 60_000).acquire()
    assert wrong(found)["livez"] == []  # the leader has only just begun


def test_one_that_the_leader_does_not_reckon_with_is_not_ready(store):
    assert wrong(health(store, ago_s=1))["readyz"] == [f"{NAME} has not run a task"]
    note(store, SILENT_AFTER_MS + 30_000)
    assert wrong(health(store, ago_s=1))["readyz"] == [f"{NAME} last ran a task 40 s ago"]


def test_losing_redis_makes_it_unready_and_not_dead():
    nowhere = client.connect("redis://127.0.0.1:1/0")
    found = wrong(health(nowhere, ago_s=STUCK_AFTER_S + 30))
    assert found["livez"] == []
    assert "Redis does not answer" in found["readyz"][0]


def test_one_that_has_lost_redis_for_long_is_given_time_once_it_is_back(store):
    """The first ping is on its way; starting every worker again would not bring it sooner."""
    Lease(store, "leader-1", 60_000).acquire()
    found = health(client.connect("redis://127.0.0.1:1/0"), ago_s=STUCK_AFTER_S + 30)
    assert wrong(found)["livez"] == []
    found._store = store
    assert wrong(found)["livez"] == []
