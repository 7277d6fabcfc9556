"""Processes with an older and a newer configuration work side by side, and messages of another version come in."""

import json
import os
import signal
import time
from contextlib import suppress

import msgpack

from tests.faults import harm, sites
from tests.faults.history import PREFIX
from tests.faults.scenario import STANDALONE, Run, Scenario

BALANCED = sites.HEAD + "profiles: [{schedulerName: default-scheduler}]\n"
PACKED = sites.HEAD + (
    "profiles:\n"
    "- schedulerName: default-scheduler\n"
    "  pluginConfig:\n"
    "  - name: NodeResourcesFit\n"
    "    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}\n"
)
FILE = sites.written("rolling.yaml", BALANCED)
TASKS = {"evaluators": "dsched.evaluate", "binders": "dsched.bind"}


def inject(run: Run) -> None:
    """The file changes back and forth while processes are killed one by one: who comes back has read the newer one, and
    who goes on the older. Then everybody is asked to read it."""
    try:
        for number in range(4):
            sites.written("rolling.yaml", PACKED if number % 2 == 0 else BALANCED)
            run.note("configuration changed")
            for part in run.rng.sample(("evaluator", "binder", "leader"), 2):
                harm.send(run, part)
                run.pause(0.2, 1.0)
            _strange(run)
            if run.rng.random() < 0.5:
                for pid in run.arena.running("leader"):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGHUP)
            run.pause(0.3, 1.0)
    finally:
        sites.written("rolling.yaml", BALANCED)
        run.arena.wait_healthy()
        for pid in run.arena.running("leader"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGHUP)


def _strange(run: Run) -> None:
    """As a version might send them that does not exist yet: another version number, unknown fields, another form."""
    bodies = [
        {"type": "EvaluateShard", "version": 99, "request": "later", "what": "ever"},
        {"type": "BindRequest", "version": 1, "epoch": 0, "config": "none", "profile": "none", "pods": [], "new": [1]},
        {"type": "Unheard"},
        [1, 2, 3],
    ]
    for queue, task in TASKS.items():
        for body in bodies:
            run.arena.redis.lpush(f"{PREFIX}celery:{queue}", _message(queue, task, msgpack.packb(body)))
            run.note("message of another version")


def _message(queue: str, task: str, payload: bytes) -> str:
    """In the form that Celery has on Redis."""
    import base64
    import uuid

    body = base64.b64encode(msgpack.packb([[payload], {}, {}], use_bin_type=True)).decode()
    number = str(uuid.uuid4())
    headers = {"lang": "py", "task": task, "id": number, "root_id": number, "argsrepr": "", "kwargsrepr": ""}
    properties = {
        "correlation_id": number,
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": str(uuid.uuid4()),
    }
    return json.dumps(
        {
            "body": body,
            "content-encoding": "binary",
            "content-type": "application/x-msgpack",
            "headers": {**headers, "timelimit": [None, None], "expires": None, "eta": None, "sent": time.time()},
            "properties": properties,
        }
    )


SCENARIO = Scenario(
    22,
    "Processes of an older and a newer configuration work side by side; messages of another version come in",
    "Nothing but short pauses: workers take up the leader's configuration, and refuse what they cannot read",
    inject,
    (STANDALONE,),
    options=("--mode", "distributed", "--config", FILE),
    goal_s=90.0,
)
