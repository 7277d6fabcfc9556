"""Answers, outcomes and requests that the leader reads from Redis and that none of dsched's processes has written."""

import random
from typing import Any

import msgspec

from dsched.engine.diagnosis import diagnose
from dsched.leader.evaluators.router import Mode
from dsched.model import messages
from dsched.model.messages import ClassResult, EvaluateShard, ScoreColumn, ShardResult, Trouble, VerdictColumn
from dsched.state import keys, replies
from dsched.state.requests import Requests
from dsched.state.results import Results
from tests.attacks.attack import Stand, attack
from tests.integration.leader.scattering import EPOCH, Evaluators, Room, answer

NUMBERS = [0.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e308, 5e-324]
EDGES = [0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1]
DEEP = b"\x91" * 100_000


@attack(
    "answers to the leader that no evaluator gave: other plugins, missing scores, times without an end, of any shape",
    sees="the leader drops the answer, counts it in dsched_stale_replies_total, and judges those nodes itself",
)
def answers_of_nobody(stand: Stand) -> None:
    room = Room(stand.store(), Mode.DISTRIBUTED)
    rng = stand.rng

    def forged(shard: EvaluateShard, evaluators: Evaluators) -> None:
        for _ in range(rng.randrange(1, 4)):
            evaluators.push(shard, _reply(rng, evaluators.result(shard)))
        if rng.random() < 0.2:
            room.store.redis.delete(room.store.key(keys.REPLIES.name + shard.request))
            room.store.redis.set(room.store.key(keys.REPLIES.name + shard.request), "no list")
        else:
            answer(shard, evaluators)

    for _ in range(stand.rounds):
        room.evaluators.habits = [forged]
        evaluations = room.open()
        room.router(evaluations)
        for evaluation in evaluations:
            if evaluation.failure is None:
                evaluation.best_rows()
                diagnose(evaluation, len(room.cache.snapshot.table))
        room.evaluators.habits = [answer]
        room.judged_right()


def _reply(rng: random.Random, right: ShardResult) -> bytes:
    if rng.random() < 0.2:
        return rng.choice([b"", DEEP, rng.randbytes(20), messages.encode(right)[:-3], b"\xa1\xff", b"\x81" * 50_000])
    change = rng.choice(
        [
            {"seconds": rng.choice(NUMBERS)},
            {"classes": [_class(rng, each) for each in right.classes]},
            {"classes": []},
            {"shard": rng.choice(EDGES)},
            {"trouble": Trouble(rng.choice(EDGES), _text(rng), rng.choice(NUMBERS), rng.choice(["", "", _text(rng)]))},
            {"refusal": _text(rng), "evaluator": _text(rng)},
            {"request": _text(rng)},
            {"epoch": rng.choice(EDGES)},
        ]
    )
    return messages.encode(msgspec.structs.replace(right, **change))


def _class(rng: random.Random, right: ClassResult) -> ClassResult:
    verdicts = [VerdictColumn(*_bent(rng, each.plugin, each.index, each.statuses)) for each in right.verdicts]
    scores = [
        ScoreColumn(
            rng.choice([each.plugin, _text(rng)]),
            rng.choice([each.scores, each.scores[:-1], rng.randbytes(len(each.scores))]),
        )
        for each in right.scores
    ]
    kept = rng.choice([verdicts, [], verdicts[:1]]), rng.choice([scores, [], scores * 2])
    return ClassResult(*kept, rng.choice(["", _text(rng)]), rng.choice(["", "", _text(rng)]), rng.random() < 0.5)


def _bent(rng: random.Random, plugin: str, index: bytes, statuses: Any) -> tuple[str, Any, bytes]:
    codes = [(rng.choice([*range(-1, 9), 2**63]), [_text(rng)]) for _ in statuses]
    return (
        rng.choice([plugin, plugin, _text(rng)]),
        rng.choice([statuses, codes, []]),
        rng.choice([index, index[:-1], index]),
    )


def _text(rng: random.Random) -> str:
    return rng.choice(["", "x", "NodeAffinity", "\x00\n", "x" * 1_000_000])


@attack(
    "requests and bind outcomes in Redis that are none: of any shape and type",
    sees="the leader drops them with a line in its log, and answers the next right one",
)
def outcomes_of_nobody(stand: Stand) -> None:
    store, rng = stand.store(), stand.rng
    store.redis.set(store.key(keys.EPOCH.name), EPOCH)
    results, requests = Results(store, EPOCH), Requests(store, EPOCH)
    for _ in range(stand.rounds * 5):
        fields: dict[str, Any] = {"epoch": EPOCH, "binder": "b", "outcomes": _outcomes(rng)}
        for name in rng.sample(list(fields), rng.randrange(2)):
            fields[name] = rng.choice([b"", b"\xff", b"9" * 5000, DEEP, rng.randbytes(10)])
        if rng.random() < 0.1:
            fields = {"x": "y"}
        store.redis.xadd(store.key(keys.RESULTS.name), fields)
        store.redis.rpush(store.key(keys.REQUESTS.name), _request(rng))
    last, read = "0", 0
    while found := results.read(last, 0.01):
        last, read = found[-1].entry, read + len(found)
        for outcome in (each for result in found for each in result.outcomes):
            for part in (outcome.key, outcome.uid, outcome.node, outcome.verdict, outcome.message, outcome.plugin):
                assert isinstance(part, str)
                assert len(part) < 10_000
            assert isinstance(outcome.attempt, int)
    assert read == stand.rounds * 5
    while store.redis.exists(store.key(keys.REQUESTS.name)):
        for request in requests.take():
            assert len(request.id) <= 100
            replies.push(store, request.id, b"x")
    for key in (keys.RESULTS, keys.REQUESTS):
        store.redis.delete(store.key(key.name))
        store.redis.set(store.key(key.name), "of another type")
    assert results.read("0", 0.01) == []
    assert requests.take() == []


def _outcomes(rng: random.Random) -> bytes:
    rows = [["a/b", "u", "n", "bound", "", 1, ""] for _ in range(rng.randrange(3))]
    for row in rows:
        for _ in range(rng.randrange(3)):
            odd = [None, 5, -1.5, "x" * 1_000_000, [], {}, True, b"\xff", 2**64 - 1, [[[]]]]
            row[rng.randrange(7)] = rng.choice(odd)
        if rng.random() < 0.1:
            row.append("more")
    return rng.choice([msgspec.msgpack.encode(rows), msgspec.msgpack.encode(5), b"", DEEP])


def _request(rng: random.Random) -> bytes:
    right = {"id": "i", "what": "requeue", "pods": ["a/b"], "namespace": None}
    right |= {rng.choice(list(right)): rng.choice([None, 5, "x" * 1_000_000, [], {}, [[]], "\x00"])}
    return rng.choice(
        [msgspec.json.encode(right), b"[" * 100_000, b'{"id":"\xff"}', b"", b"1e999", b'{"id":"\\ud800"}']
    )
