"""`dsched fsck`: what it prints, and its exit codes. What it finds is tested with `dsched.fsck`."""

import json

import pytest
from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.state import keys
from tests.integration.fsck.by_hand import ByHand
from tests.manifests import node_manifest, pod_manifest


@pytest.fixture
def system(store, tmp_path):
    return ByHand(store, tmp_path)


@pytest.fixture
def dsched(store):
    """Runs ``dsched fsck`` without a pause."""

    def run(*words):
        words = ["fsck", "--pause", "0", *words, "--redis-url", store.url, "--name", store.name]
        return CliRunner().invoke(app, words)

    return run


def test_a_clean_system(system, dsched):
    system.cluster_with("web", "db")
    system.schedule("web")
    done = dsched()
    assert done.exit_code == 0
    assert done.stdout == (
        "clean: 2 nodes, 2 pods (1 bound, 1 pending, 0 finished), 0 reservations, epoch 1, at work\n"
    )
    assert done.stderr == ""


def test_breaches(system, dsched):
    system.cluster_with("web", "db")
    for name in ("web", "db"):
        system.store.redis.zadd(system.key(keys.GATED.name), {f"default/{name}": 1})
    done = dsched()
    assert done.exit_code == 1
    assert done.stdout == (
        "I1 default/db: stands in active and in gated\nI1 default/web: stands in active and in gated\n"
    )
    assert done.stderr.startswith("breaches: 2; 2 nodes, 2 pods")


def test_json(system, dsched):
    system.cluster_with("web")
    system.store.redis.zadd(system.key(keys.GATED.name), {"default/web": 1})
    done = dsched("-o", "json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["breaches"] == [
        {
            "invariant": "I1",
            "kind": "pod",
            "subject": "default/web",
            "message": "stands in active and in gated",
        }
    ]
    assert {name: found[name] for name in ("clean", "nodes", "pods", "pending", "leader", "epoch", "at_rest")} == {
        "clean": False,
        "nodes": 2,
        "pods": 1,
        "pending": 1,
        "leader": "leader-1",
        "epoch": 1,
        "at_rest": False,
    }


def test_notes_are_no_breaches(system, dsched):
    system.apply(node_manifest(cpu="50m"), pod_manifest("default/web", nodeName="n1"))
    system.take_in()
    done = dsched()
    assert done.exit_code == 0
    assert done.stdout.startswith("clean: ")
    assert done.stderr.startswith(
        "note: I3 n1: its pods (1 bound, 0 reserved) request 100m of cpu, 50m are allocatable"
    )


def test_what_stays_open_is_told(system, dsched):
    system.apply(pod_manifest("default/web"))
    done = dsched()
    assert done.exit_code == 0
    assert done.stderr == "note: suspicions left open: 1; the leader has taken in version -1 of 1\n"
    system.store.redis.delete(system.key(keys.LEADER.name))
    assert dsched().stderr == "note: suspicions left open: 1; nobody leads\n"


def test_a_configuration_says_whose_pods_are_ours(system, dsched, tmp_path):
    system.cluster_with()
    system.apply(pod_manifest("default/web", schedulerName="mine"))
    system.mark()
    assert dsched().exit_code == 0
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: mine\n"
    )
    done = dsched("--config", str(config))
    assert (done.exit_code, done.stdout) == (1, "I1 default/web: is pending and stands nowhere\n")


def test_a_redis_without_a_cluster(store, dsched):
    done = dsched()
    assert done.exit_code == 0
    assert "keeps no cluster" in done.stderr
    assert done.stdout.startswith("clean: 0 nodes")
