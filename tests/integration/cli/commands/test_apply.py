"""The commands about objects, against a real Redis."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dsched.cli.main import app
from dsched.cluster.interface import Binding, GroupStatus, SchedulingStatus
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.errors import ClusterError, ManifestError, NotFound
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.pod_groups import GroupKey
from dsched.model.queues import QueueStatus
from dsched.state.client import Store
from tests.devices import asking, make_claim, make_class, make_device, make_slice, result
from tests.manifests import apply, group_manifest, guaranteed, node_manifest, pod_manifest, queue_manifest

Run = Callable[..., Result]


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command against the test's own system; errors that are no usage errors come out as they are."""
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    monkeypatch.setenv("DSCHED_NAME", store.name)

    def run(*words: str, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(app, list(words), input=stdin, catch_exceptions=True)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def file(folder: Path, *objects: dict) -> str:
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def bind(store: Store, key: str = "default/web", node: str = "n1") -> None:
    cluster = StandaloneCluster(store)
    (pod,) = cluster.get_pods([PodKey(key)])
    assert pod is not None
    store.redis.hset(store.key("reservations"), pod.uid, f"{key} {node} 1 binding 1 1")
    cluster.bind([Binding(PodKey(key), PodUid(pod.uid), NodeName(node), 1)])


def test_apply_says_what_became_of_each_object(run: Run, tmp_path: Path):
    path = file(tmp_path, node_manifest(), pod_manifest(), pod_manifest("shop/web"))
    assert lines(run("apply", "-f", path)) == ["node/n1 created", "pod/web created", "pod/shop/web created"]
    path = file(tmp_path, node_manifest(cpu="8"), pod_manifest())
    assert lines(run("apply", "-f", path)) == ["node/n1 configured", "pod/web unchanged"]


def test_apply_sums_up_many_objects(run: Run, tmp_path: Path):
    path = file(tmp_path, node_manifest(), *(pod_manifest(f"default/p{number}") for number in range(20)))
    assert lines(run("apply", "-f", path)) == ["nodes: 1 created", "pods: 20 created"]
    assert lines(run("apply", "-f", path, "-o", "name"))[:2] == ["node/n1", "pod/p0"]
    answer = json.loads(run("apply", "-f", path, "-o", "json").stdout)
    assert answer[0] == {"kind": "Node", "key": "n1", "outcome": "unchanged"}
    assert len(answer) == 21


def test_apply_reads_standard_input(run: Run):
    assert lines(run("apply", "-n", "shop", "-f", "-", stdin=json.dumps(node_manifest()))) == ["node/n1 created"]


def test_apply_without_files_is_a_usage_error(run: Run):
    assert run("apply").exit_code == 2


def test_apply_tells_problems(run: Run, tmp_path: Path):
    with pytest.raises(ManifestError, match=r'objects\.yaml: status\.allocatable\.cpu: "x" is not a quantity'):
        run("apply", "-f", file(tmp_path, node_manifest(cpu="x")))


def test_get_shows_tables(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest(), pod_manifest("shop/db"))
    bind(store)
    (header, web), (_, db) = (lines(run("get", "po")), lines(run("get", "pods", "-n", "shop")))
    assert header.split() == ["NAME", "STATUS", "NODE", "AGE"]
    assert web.split()[:3] == ["web", "Scheduled", "n1"]
    assert db.split()[:3] == ["db", "Pending", "<none>"]
    assert [line.split()[:2] for line in lines(run("get", "po", "-A"))[1:]] == [["default", "web"], ["shop", "db"]]
    assert lines(run("get", "nodes"))[1].split()[:5] == ["n1", "Ready", "0.1/4", "0/8Gi", "1/110"]
    assert len(lines(run("get", "po,no"))) == 5


def test_get_chooses_by_name_and_labels(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("default/a", labels={"app": "web"}), pod_manifest("default/b"))
    assert lines(run("get", "po", "-l", "app in (web)", "-o", "name")) == ["pod/a"]
    assert lines(run("get", "po", "-l", "!app", "-o", "name")) == ["pod/b"]
    assert lines(run("get", "pod/b", "-o", "name")) == ["pod/b"]
    with pytest.raises(NotFound, match="there is no pod default/c, default/d"):
        run("get", "po", "c", "a", "d")


def test_get_of_nothing_says_so(run: Run):
    result = run("get", "po")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No resources found in namespace default.\n")
    assert run("get", "no").stderr == "No resources found.\n"


def test_get_watch_prints_objects_as_they_change(store: Store, tmp_path: Path):
    """The command as a process, which goes on until it is ended."""
    apply(store, tmp_path, node_manifest(), pod_manifest("default/a"))
    command = [sys.executable, "-m", "dsched", "get", "pods", "-w", "--redis-url", store.url, "--name", store.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            told = [process.stdout.readline().split()[:3] for _ in range(2)]
            bind(store, "default/a")
            apply(store, tmp_path, pod_manifest("shop/other"), pod_manifest("default/b"))
            told += [process.stdout.readline().split()[:3] for _ in range(2)]
            Applier(store).delete(kinds.POD, ["default/a"])
            told.append(process.stdout.readline().split())
        finally:
            process.terminate()
    assert told == [
        ["NAME", "STATUS", "NODE"],
        ["a", "Pending", "<none>"],
        ["a", "Scheduled", "n1"],
        ["b", "Pending", "<none>"],
        ["pod/default/a", "deleted"],
    ]


def test_what_get_prints_applies_again(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest())
    bind(store)
    dump = run("get", "po,no", "-o", "yaml").stdout
    assert sorted(lines(run("apply", "-f", "-", stdin=dump))) == ["node/n1 unchanged", "pod/web unchanged"]
    one = json.loads(run("get", "pod", "web", "-o", "json").stdout)
    assert (one["kind"], one["spec"]["nodeName"]) == ("Pod", "n1")


def test_delete_by_name_labels_files_and_all(run: Run, store: Store, tmp_path: Path):
    path = file(tmp_path, *(pod_manifest(f"default/p{number}", labels={"n": str(number)}) for number in range(5)))
    run("apply", "-f", path)
    assert lines(run("delete", "pod", "p0")) == ["pod/p0 deleted"]
    assert lines(run("delete", "pods", "-l", "n=1")) == ["pod/p1 deleted"]
    with pytest.raises(NotFound, match="not there: pod default/p0, pod default/p1"):
        run("delete", "-f", path)
    run("apply", "-f", path)
    assert len(lines(run("delete", "po", "--all"))) == 5
    assert lines(run("delete", "--ignore-not-found", "-f", path)) == []


def test_delete_for_programs(run: Run, tmp_path: Path):
    run("apply", "-f", file(tmp_path, node_manifest(), pod_manifest("default/a"), pod_manifest("shop/b")))
    assert lines(run("delete", "pod", "shop/b", "-o", "name")) == ["pod/shop/b"]
    told = json.loads(run("delete", "pod", "a", "gone", "--ignore-not-found", "-o", "json").stdout)
    assert told == [
        {"kind": "Pod", "key": "default/a", "outcome": "deleted"},
        {"kind": "Pod", "key": "default/gone", "outcome": "not found"},
    ]
    with pytest.raises(NotFound, match="not there: pod default/gone"):
        run("delete", "pod", "gone", "-o", "json")


@pytest.mark.parametrize(
    "words", [[], ["pods"], ["pods", "a", "--all"], ["pods", "-l", "a", "--all"], ["pods", "-f", "x"]]
)
def test_delete_wants_to_know_which(run: Run, words: list[str]):
    assert run("delete", *words).exit_code == 2


def test_describe_pod_shows_what_is_known(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("shop/web", labels={"app": "web"}))
    cluster = StandaloneCluster(store)
    uid = cluster.get_pods([PodKey("shop/web")])[0].uid  # type: ignore[union-attr]
    cluster.report([SchedulingStatus(PodKey("shop/web"), uid, "Unschedulable", "0/0 nodes are available.")])
    store.redis.hset(store.key("pod:shop/web"), mapping={"queue": "unschedulable", "attempts": 3})
    told = lines(run("describe", "pod", "shop/web"))
    assert "Labels:             app=web" in told
    assert "  PodScheduled=False  Unschedulable: 0/0 nodes are available." in told
    assert told[told.index("Scheduling record:") + 1 :][:2] == ["  attempts: 3", "  queue: unschedulable"]
    with pytest.raises(NotFound, match="there is no pod default/web"):
        run("describe", "pod", "web")


def test_describe_pod_shows_events(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest())
    bind(store)
    told = lines(run("describe", "pod", "web"))
    assert told[-1].startswith("  Normal  Scheduled  ")
    assert told[-1].endswith("  Successfully assigned default/web to n1")


def test_describe_node_shows_its_pods(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest(nodeName="n1", priority=5), pod_manifest("shop/other"))
    told = [line.split() for line in lines(run("describe", "node", "n1"))]
    assert ["cpu", "0.1", "4"] in told
    assert told[-1] == ["default/web", "5", "cpu=0.1"]
    with pytest.raises(NotFound, match="there is no node n2"):
        run("describe", "node", "n2")


def test_a_pod_group_is_shown_with_its_pods(run: Run, store: Store, tmp_path: Path):
    pods = [pod_manifest(f"shop/{name}", schedulingGroup={"podGroupName": "train"}) for name in ("a", "b")]
    pods[0]["spec"]["nodeName"] = "n1"
    apply(store, tmp_path, node_manifest(), group_manifest("shop/train"), *pods)
    (value,) = Objects(store).get(kinds.POD_GROUP, ["shop/train"])
    uid = value["metadata"]["uid"]  # type: ignore[index]
    StandaloneCluster(store).report_groups(
        [GroupStatus(GroupKey("shop/train"), uid, False, "Unschedulable", "0/1 nodes are available.")]
    )
    store.redis.hset(store.key("pod:podgroup/shop/train"), mapping={"queue": "backoff", "attempts": 3})
    told = lines(run("describe", "podgroup", "shop/train"))
    assert "Policy:             Gang of at least 2" in told
    assert "  PodGroupInitiallyScheduled=False  Unschedulable: 0/1 nodes are available." in told
    assert told[told.index("Scheduling record:") + 1 :][:2] == ["  attempts: 3", "  queue: backoff"]
    pods_told = [line.split() for line in told[-2:]]
    assert pods_told == [["shop/a", "Scheduled", "n1", "0"], ["shop/b", "Pending", "<none>", "0"]]
    described = json.loads(run("describe", "podgroup", "shop/train", "-o", "json").stdout)
    assert (described["status"], [each["pod"] for each in described["pods"]]) == ("Unschedulable", ["shop/a", "shop/b"])
    header, row = lines(run("get", "podgroups", "-A", "-o", "wide"))
    assert "MIN COUNT" in header
    assert row.split()[:5] == ["shop", "train", "Gang", "<none>", "Unschedulable"]
    assert "1/2" in row.split()
    with pytest.raises(NotFound, match="there is no podgroup default/train"):
        run("describe", "podgroup", "train")
    assert lines(run("delete", "podgroup", "shop/train", "-o", "name")) == ["podgroup/shop/train"]


def test_queues_are_shown_as_a_tree(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, queue_manifest("ml", resources=guaranteed(cpu=10)), queue_manifest("train", "ml", weight=2))
    StandaloneCluster(store).report_queues(
        {"train": QueueStatus({"cpu": "1500m"}, {"cpu": 2}, pending={"cpu": 3}, pending_pods=3)}
    )
    header, ml, train = (line.split() for line in lines(run("get", "queues")))
    assert header[:5] == ["NAME", "WAITING", "RESOURCE", "WEIGHT", "GUARANTEED"]
    assert ml[:5] == ["ml", "0", "cpu", "1", "10"]
    assert train[:9] == ["train", "3", "cpu", "2", "<none>", "<none>", "1.5", "2", "3"]
    assert lines(run("get", "queues"))[2].startswith("  train ")
    assert lines(run("get", "queue", "train", "-o", "wide"))[1].startswith("train ")
    listed = json.loads(run("get", "queues", "-o", "json").stdout)["items"]
    assert [each["kind"] for each in listed] == ["Queue", "Queue"]
    told = lines(run("describe", "queue", "train"))
    assert "Place:              ml > train" in told
    assert ["cpu", "2", "<none>", "<none>", "1.5", "2", "3", "<none>"] in [line.split() for line in told]
    described = json.loads(run("describe", "queue", "ml", "-o", "json").stdout)
    assert (described["path"], described["children"], described["next_pods"]) == (["ml"], ["train"], [])
    with pytest.raises(NotFound, match="there is no queue none"):
        run("describe", "queue", "none")
    with pytest.raises(ClusterError, match="queue ml is the parent of train"):
        run("delete", "queue", "ml")
    assert lines(run("delete", "queues", "ml", "train")) == ["queue/ml deleted", "queue/train deleted"]


def test_describe_pod_for_programs(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest(priority=3))
    bind(store)
    store.redis.hset(store.key("pod:default/web"), mapping={"attempts": 3})
    told = json.loads(run("describe", "pod", "web", "-o", "json").stdout)
    assert told["pod"] == json.loads(run("get", "pod", "web", "-o", "json").stdout)
    assert (told["status"], told["requests"], told["record"]) == ("Scheduled", {"cpu": 100}, {"attempts": "3"})
    (event,) = told["events"]
    assert (event["reason"], event["message"]) == ("Scheduled", "Successfully assigned default/web to n1")
    assert event["first_ms"] <= event["last_ms"]
    assert yaml.safe_load(run("describe", "pod", "web", "-o", "yaml").stdout) == told


def test_describe_node_for_programs(run: Run, store: Store, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest(nodeName="n1", priority=5), pod_manifest("shop/other"))
    told = json.loads(run("describe", "node", "n1", "-o", "json").stdout)
    assert told["node"] == json.loads(run("get", "node", "n1", "-o", "json").stdout)
    assert told["status"] == "Ready"
    assert told["used"] == {"pods": 1, "cpu": 100}
    assert told["allocatable"]["cpu"] == 4000
    assert told["pods"] == [{"pod": "default/web", "priority": 5, "requests": {"cpu": 100}}]
    assert yaml.safe_load(run("describe", "node", "n1", "-o", "yaml").stdout) == told


def test_describe_speaks_of_devices(run: Run, store: Store, tmp_path: Path):
    mine = {"resource": "pods", "name": "web", "uid": "u-1"}
    held = make_claim("default/mine", asking(), allocated=[result("d0")], reservedFor=[mine])
    offered = make_slice("n1", [make_device("d0", attributes={"model": "A100"}), "d1"])
    entries = [{"name": "c", "resourceClaimName": "mine"}]
    apply(
        store,
        tmp_path,
        node_manifest(),
        offered,
        make_class(),
        held,
        pod_manifest(nodeName="n1", resourceClaims=entries),
    )
    device = "gpu.example.com/n1/d0"
    told = [line.split() for line in lines(run("describe", "node", "n1"))]
    assert [device, "held", "default/mine", "default/web", "model=A100"] in told
    assert ["gpu.example.com/n1/d1", "free", "<none>", "<none>", "<none>"] in told
    told = [line.split() for line in lines(run("describe", "pod", "web"))]
    assert ["c", "default/mine", "allocated,", "reserved", "r:", "1", "of", "gpu", device] in told
    described = json.loads(run("describe", "node", "n1", "-o", "json").stdout)
    assert [each["state"] for each in described["devices"]["devices"]] == ["held", "free"]
    assert json.loads(run("describe", "pod", "web", "-o", "json").stdout)["claims"][0]["devices"][0]["device"] == device
    held_devices = lines(run("get", "resourceslices", "-o", "wide"))
    assert held_devices[1].split()[-1] == "1"


def test_import_openb_makes_manifests_that_apply(run: Run, tmp_path: Path):
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,2,T4\n")
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time\np-0,1000,1,1,500,T4,LS,0\n"
    )
    trace = [str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv")]
    result = run("import", "openb", *trace, "-o", str(tmp_path / "trace"))
    assert result.stderr.startswith("1 nodes and 1 pods written to ")
    assert lines(run("apply", "-f", str(tmp_path / "trace"))) == ["node/n-0 created", "pod/p-0 created"]
    stream = run("import", "openb", *trace, "-o", "-").stdout
    assert lines(run("apply", "-f", "-", stdin=stream)) == ["node/n-0 unchanged", "pod/p-0 unchanged"]


@pytest.mark.parametrize("words", [["apply"], ["delete"], ["get"], ["wait"], ["describe", "pod"], ["import", "openb"]])
def test_every_command_has_help_with_an_example(run: Run, words: list[str]):
    assert "Example: dsched" in run(*words, "--help").stdout
