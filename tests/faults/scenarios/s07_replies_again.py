"""Evaluation messages come twice and out of order, and answers come again after their question was settled."""

import socket
import time

from tests.faults.proxy import When
from tests.faults.scenario import STANDALONE, Run, Scenario

EVALUATORS = "dsched:{default}:celery:evaluator*.dq2"
"""The evaluators' own queues."""
ANSWER = b"}:replies:"
MOST = 40


def inject(run: Run) -> None:
    """Evaluators sleep for a moment; what waits for them is doubled and shuffled. Their answers are kept and said again
    later, to the same lists, word by word."""
    run.pause(0.2, 0.5)
    kept: list[bytes] = []
    tap = run.arena.proxy.tap(
        ANSWER,
        When.REQUEST,
        lambda _: kept.append(tap.data),
        times=MOST,
        wanted=lambda pid, _: pid in run.arena.forked("evaluator"),
    )
    for _ in range(4):
        _double(run)
        run.pause(0.1, 0.4)
        for answer in run.rng.sample(kept, len(kept)):
            _say(run, answer)
        run.note("answer again", len(kept))
        run.pause(0.1, 0.3)


def _double(run: Run) -> None:
    evaluators = [*run.arena.running("evaluator"), *run.arena.forked("evaluator")]
    run.arena.halt(*evaluators)
    until = time.monotonic() + 3
    waiting: dict[str, list[str]] = {}
    while not waiting and time.monotonic() < until:
        queues = run.arena.redis.keys(EVALUATORS)
        waiting = {queue: found for queue in queues if (found := run.arena.redis.lrange(queue, 0, -1))}
        time.sleep(0.002)
    for queue, messages in waiting.items():
        again = [*messages, *messages]
        run.rng.shuffle(again)
        run.arena.redis.lpush(queue, *again)
        run.note("evaluation message twice more, out of order", len(messages))
    run.pause(0, 1.5)
    run.arena.go_on(*evaluators)


def _say(run: Run, raw: bytes) -> None:
    """To Redis, past the proxy."""
    with socket.create_connection(("127.0.0.1", run.arena.server.port), 5) as connection:
        connection.sendall(raw)
        connection.settimeout(5)
        connection.recv(1 << 16)


SCENARIO = Scenario(
    7,
    "Evaluations are delivered twice and out of order, and answers come again after they were settled",
    "Nothing: an answer that does not fit its question is dropped and counted in dsched_stale_replies_total",
    inject,
    (STANDALONE,),
    options=("--mode", "distributed"),
)
