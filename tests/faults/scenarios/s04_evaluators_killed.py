"""All evaluators are killed while they evaluate, and stay away for a while."""

import os
import signal
from contextlib import suppress

from tests.faults import waits
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

ASKED = b"dsched.evaluate"
"""The task, in the message that brings a shard to an evaluator."""


def inject(run: Run) -> None:
    """kill -9 at the moment when a shard has been handed out; the supervisor is stopped, so that nobody comes back."""
    run.pause(0.3, 1.2)
    supervisor = run.arena.system.status()["supervisor_pid"]
    run.arena.halt(supervisor)
    try:
        killed: list[int] = []

        def kill(_: int) -> None:
            for pid in (*run.arena.running("evaluator"), *run.arena.forked("evaluator")):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        tap = run.arena.proxy.tap(ASKED, When.REPLY, kill, wanted=lambda pid, _: pid in run.arena.leading())
        run.require(tap.fired.wait(20), "no shard was handed out")
        run.note("kill -9 evaluator and its child", len(killed))
        waits.go_on(run, "evaluators killed")
        run.pause(0.5, 2.0)
        waits.go_on(run, "evaluators away")
    finally:
        run.arena.go_on(supervisor)


SCENARIO = Scenario(
    4,
    "All evaluators are killed while they evaluate, and do not come back for a while",
    "Nothing but a second's pause: shards that do not come back are judged by the leader",
    inject,
    (STANDALONE, KUBERNETES),
    options=("--mode", "distributed"),
)
