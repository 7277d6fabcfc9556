"""The API server answers writes with errors, closes connections, or is not there at all for a while."""

import os
import time

from tests.faults import waits
from tests.faults.scenario import KUBERNETES, Run, Scenario

ERRORS = (409, 404, 429, 500, 503, 504)
OUTAGE_S = float(os.environ.get("DSCHED_FAULTS_OUTAGE_S", "0"))
SHORT_S = (6.0, 12.0)
"""Unless asked for not the five minutes of a real one: longer than every deadline that dsched has."""


def inject(run: Run) -> None:
    """A burst of errors at binds, statuses and events; then nothing at all is answered."""
    api = run.arena.api
    run.pause(0.3, 0.8)
    for path in ("/binding", "/status", "/events"):
        for _ in range(8):
            what = run.rng.choice(ERRORS)
            headers = {"Retry-After": "1"} if what == 429 else {}
            api.fault("POST" if path != "/status" else "PATCH", path, status=what, headers=headers, times=3)
        api.fault("POST" if path != "/status" else "PATCH", path, drop=run.rng.choice(("before", "after")), times=5)
    run.note("API server answers with errors")
    run.pause(1.0, 3.0)
    before = sum(api.requests.values())
    for method in ("GET", "POST", "PATCH", "DELETE"):
        api.fault(method, "/", drop="before", times=1_000_000)
    api.end_watches()
    run.note("API server is not there")
    run.churn.pausing.set()
    gone_at = time.monotonic()
    run.pause(*((OUTAGE_S, OUTAGE_S) if OUTAGE_S else SHORT_S))
    asked = sum(api.requests.values()) - before
    run.notes.append(f"{asked} requests during the outage")
    with api.lock:
        api._faults.clear()
    run.deaf_s = time.monotonic() - gone_at
    run.churn.pausing.clear()
    waits.go_on(run, "API server is back")


SCENARIO = Scenario(
    10,
    "The API server answers with 409, 404, 429 and 5xx, drops connections, or is not there for a while",
    "Pods wait in the queue or are looked up; within seconds of its return all goes on, each pod bound once",
    inject,
    (KUBERNETES,),
    goal_s=120.0,
)
