"""What travels: a shard's answer, the node table for replicas, objects as they are stored."""

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from dsched.bench.making import Maker
from dsched.cluster.standalone import objects, stored
from dsched.engine import judge, replica_delta, wire
from dsched.engine.evaluation import Evaluation
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model import messages
from dsched.model.messages import ShardResult
from dsched.model.pod import Pod
from dsched.scheduler.memory import Memory
from tests.builders import make_pod


def test_answer_of_a_shard(memory: Memory, framework: Framework, benchmark: BenchmarkFixture) -> None:
    rows = len(memory.snapshot.table)
    evaluation = Evaluation(framework, PodInfo(make_pod("shop/web", "100m", "500Mi")), memory.snapshot)
    columns = evaluation.judge_shard(np.arange(rows), np.full(rows, judge.OPEN, dtype=np.int16))

    def there_and_back() -> judge.Columns:
        packed = wire.pack(columns)
        answer = ShardResult(request="r", epoch=1, shard=0, evaluator="e", seconds=0.0, classes=[packed], refusal="")
        (found,) = messages.decode(messages.encode(answer), ShardResult).classes
        return wire.unpack(found, rows)

    benchmark(there_and_back)


def test_table_for_replicas(memory: Memory, benchmark: BenchmarkFixture) -> None:
    whole = replica_delta.whole(memory.snapshot)

    found = benchmark(lambda: replica_delta.decode(replica_delta.encode(whole)))

    assert len(found) == len(whole)


def test_pod_from_the_store(benchmark: BenchmarkFixture) -> None:
    (made,) = Maker(0).pods(None, "shop", 1)
    raw = b'{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"7' + stored.tail(made.value)
    line = f"{made.value['metadata']['uid']} - 0 - - Pending 7".encode()

    found: Pod = benchmark(lambda: objects.read_pod(raw, line, None))

    assert found.metadata.resource_version == "7"


def test_pod_to_the_store(benchmark: BenchmarkFixture) -> None:
    (made,) = Maker(0).pods(None, "shop", 1)

    assert benchmark(lambda: stored.tail(made.value))


def test_class_of_a_pod(benchmark: BenchmarkFixture) -> None:
    pod = make_pod("shop/web", "100m", "500Mi", labels={"app": "web"})

    assert benchmark(lambda: PodInfo(pod).class_key)
