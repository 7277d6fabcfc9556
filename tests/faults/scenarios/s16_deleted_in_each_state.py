"""Pods are deleted in each place they can be in, and at once created again under the same name."""

import json
import threading

from tests.faults import gangs, points
from tests.faults.churn import wait_for
from tests.faults.history import PREFIX
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario
from tests.faults.standalone import NotNow

MOST = 5
WAITED_S = 30.0


def inject(run: Run) -> None:
    """At the answer to a script pods are where the script has put them, and the leader, or binder, does not know yet
    that it has."""
    moments = [
        ("in flight", points.POP, When.REPLY, _inflight),
        ("reserved", points.RESERVE, When.REPLY, _reserved),
        ("binding", points.BIND_BEGIN, When.REPLY, _reserved),
        ("being bound", points.BIND, When.REQUEST, _reserved),
        ("bound", points.CONFIRM, When.REQUEST, _reserved),
    ]
    run.rng.shuffle(moments)
    for state, marker, when, found in moments:
        run.pause(0.05, 0.3)
        changed = threading.Event()

        def replace(_: int, found=found, state=state, changed=changed) -> None:
            if _replace(run, found(run), state):
                changed.set()

        tap = run.arena.proxy.tap(
            marker, when, replace, wanted=lambda _, data: not data.startswith(points.NOTHING_POPPED)
        )
        tap.fired.wait(5)
    for state in ("active", "backoff", "unschedulable", "gated"):
        members = run.arena.redis.zrange(f"{PREFIX}queue:{state}", 0, MOST)
        _replace(run, [member.rpartition(" ")[2] for member in members], state)
        run.pause(0.05, 0.3)
    _while_waiting(run)


def _while_waiting(run: Run) -> None:
    """Members of a gang that Permit holds back: one fits nowhere, so the others wait for it until their deadline."""
    size = run.rng.randint(3, 5)
    gang = [*gangs.pods(run, "waits", size, size - 1), *gangs.pods(run, "waits", size, 1, cpu="1000")]
    keys = [gangs.key(pod) for pod in gang]
    replaced: list[str] = []

    def struck() -> bool:
        replaced.extend(_replace(run, _waiting(run, keys), "waiting at Permit"))
        return bool(replaced)

    run.arena.put("Pod", *gang)
    run.require(wait_for(struck, WAITED_S), "no member of a gang ever waited at Permit")
    run.pause(0.0, 0.5)
    # Those that were made anew are pods as any other; the rest of the gang would wait for ever.
    run.churn.delete_pods(*sorted(set(keys) - set(replaced)))


def _waiting(run: Run, keys: list[str]) -> list[str]:
    members = run.arena.redis.zrange(f"{PREFIX}queue:waiting", 0, -1)
    return sorted({member.rpartition(" ")[2] for member in members} & set(keys))


def _inflight(run: Run) -> list[str]:
    return list(run.arena.redis.hkeys(PREFIX + "queue:inflight"))


def _reserved(run: Run) -> list[str]:
    return [text.partition(" ")[0] for text in run.arena.redis.hvals(PREFIX + "reservations")]


def _replace(run: Run, keys: list[str], state: str) -> list[str]:
    """Delete pods and create others of the same names; some are only deleted. Returns which."""
    chosen = run.rng.sample(keys, min(len(keys), MOST))
    with run.arena.history.lock:
        chosen = [key for key in chosen if key in run.arena.history.pods]
    try:
        run.churn.delete_pods(*chosen)
        again = [run.churn.pod(key.partition("/")[2]) for key in chosen if run.rng.random() < 0.8]
        if again:
            run.arena.put("Pod", *again)
    except NotNow as error:
        run.notes.append(json.dumps(str(error)))
        return []
    if chosen:
        run.note(f"pod deleted while {state}", len(chosen))
    return chosen


SCENARIO = Scenario(
    16,
    "Pods are deleted in every state and created again under the same name",
    "The old pod is never bound once it is gone; the new one is scheduled as any other",
    inject,
    (STANDALONE, KUBERNETES),
    options=gangs.OPTIONS,
    variables=gangs.VARIABLES,
)
