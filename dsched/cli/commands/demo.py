"""``dsched demo``: a private system for a moment, a cluster with all kinds of pods, and where they ended up.

``examples/01-first-cluster`` is the same cluster as files.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dsched import ending
from dsched.cli import console
from dsched.cli.commands import status
from dsched.cli.render.aligned import aligned
from dsched.clock import Clock, SystemClock
from dsched.cluster.standalone import stored
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.objects import Objects
from dsched.errors import DschedError
from dsched.manifests import kinds, load
from dsched.manifests.load import Manifest
from dsched.state import client
from dsched.supervisor import background, commands

POLL_S = 0.05
PATIENCE_S = 60.0
STOP_S = 60.0
Object = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
NODES = 12
PODS = 60
SHOWN_NODES = 40
SHOWN_PODS = 20


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched demo")(demo)


def demo(
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes.")] = NODES,
    pods: Annotated[int, typer.Option(min=1, help="How many pods.")] = PODS,
    folder: Annotated[
        Path | None,
        typer.Option("--filename", "-f", exists=True, show_default=False, help="Manifests to use instead."),
    ] = None,
) -> None:
    """Run a whole system for a moment, let it place a cluster's pods, show where they are, and stop it again."""
    with _private_folder() as data_dir:
        manifests = load.load([str(folder or _generated(data_dir, nodes, pods))])
        with _system(data_dir) as store:
            took_ms = _place(store, manifests, data_dir)
            _show(store, took_ms)
    console.out.print("the system of this demo is stopped and its data removed", markup=False)
    console.out.print(NEXT, markup=False)


NEXT = """
next:  dsched up --detach                           a system that stays
       dsched apply -f examples/01-first-cluster    the same cluster, as files to change
       dsched get pods -o wide                      where the pods are, or why they are nowhere
       dsched describe pod too-big                  everything about one of them
       dsched status                                what runs, who leads, how full the queues are
       dsched down                                  stop it; the data stays"""


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder that is removed in the end, unless something went wrong that its logs may explain."""
    data_dir = Path(tempfile.mkdtemp(prefix="dsched-demo-"))
    ending.in_order()
    keep = False
    try:
        yield data_dir
    except DschedError:
        keep = (data_dir / "logs").exists()
        if keep:
            console.err.print(f"the logs of the demo are kept in {data_dir / 'logs'}", markup=False)
        raise
    finally:
        if not keep:
            shutil.rmtree(data_dir)


def _generated(data_dir: Path, nodes: int, pods: int) -> Path:
    path = data_dir / "cluster.json"
    items = [*node_manifests(nodes), *pod_manifests(pods)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


@contextmanager
def _system(data_dir: Path) -> Iterator[client.Store]:
    """A system that runs as long as the block; it stops as well when this process is killed."""
    system = commands.System(data_dir)
    console.err.print(
        f"starting Redis, {system.leaders} leader, {system.evaluators} evaluators and {system.binders} binders …",
        markup=False,
    )
    clock = SystemClock()
    found = background.start(system, clock, survives=False)
    try:
        store = client.connect(found.redis_url, found.name)
        yield store
        store.close()
    finally:
        _stop(data_dir, clock)


def _stop(data_dir: Path, clock: Clock) -> None:
    """Stop the system; interrupted while it stops, make it hurry, and still see it gone before its folder goes."""
    try:
        background.stop(data_dir, STOP_S, clock)
    except (KeyboardInterrupt, SystemExit):
        background.stop(data_dir, STOP_S, clock)
        raise


def _place(store: client.Store, manifests: Sequence[Manifest], data_dir: Path) -> int:
    """Apply everything, wait until each pod is bound or found not to fit; ms from the first apply to the last bind."""
    clock = SystemClock()
    pods = sum(manifest.kind is kinds.POD for manifest in manifests)
    console.err.print(f"applying {len(manifests)} objects, {pods} of them pods …", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task("scheduling", total=pods)
        began_ms = clock.now_ms()
        Applier(store, clock).apply(manifests)
        decided, deadline = 0, clock.monotonic() + PATIENCE_S
        while True:
            before, (decided, settled) = decided, _decided(store)
            progress.update(task, completed=decided)
            if settled:
                break
            background.check(data_dir)
            if decided != before:
                deadline = clock.monotonic() + PATIENCE_S
            elif clock.monotonic() >= deadline:
                raise DschedError(f"only {decided} of {pods} pods were decided on, and no more in {PATIENCE_S:g} s")
            clock.sleep(POLL_S)
    return max((int(each.bound_ms) for each in _bound(store)), default=began_ms) - began_ms


def _decided(store: client.Store) -> tuple[int, bool]:
    """How many pods are bound, do not fit or are held back, and whether those are all and nothing is under way."""
    state = status.read(store)
    decided = len(_bound(store)) + state.queues["unschedulable"] + state.queues["gated"]
    busy = sum(state.queues[queue] for queue in ("active", "backoff", "inflight", "waiting")) + state.reservations
    return decided, decided == state.pods and busy == 0


def _bound(store: client.Store) -> list[stored.PodState]:
    return [state for piece in Objects(store).scan_states() for _, state in piece if state.bound_to]


def _show(store: client.Store, took_ms: int) -> None:
    objects = Objects(store)
    nodes, pods = objects.all_of(kinds.NODE), objects.all_of(kinds.POD)
    console.out.print("\nwhere the pods are\n", markup=False)
    for line in placements(nodes, pods):
        console.out.print(line, markup=False)
    bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
    if bound < len(pods):
        console.out.print("\npods without a node, and why\n", markup=False)
        for line in without_node(pods):
            console.out.print(line, markup=False)
    console.out.print(f"\n{pace(bound, len(pods), took_ms)}\n", markup=False)


def node_manifests(count: int = NODES) -> list[Object]:
    """Nine ordinary nodes (one of them cordoned), two with GPUs, one that may go away at any time; further ones are
    ordinary."""
    found = [
        *(_ordinary(zone, number) for number in (1, 2, 3) for zone in "abc"),
        _node_manifest("gpu-a", "a", cpu="32", memory="128Gi", extended={GPU: "4"}, taint=(GPU, "present")),
        _node_manifest("gpu-b", "b", cpu="32", memory="128Gi", extended={GPU: "4"}, taint=(GPU, "present")),
        _node_manifest("spot-c", "c", cpu="8", memory="32Gi", labels={"lifetime": "spot"}, taint=("lifetime", "spot")),
        *(_ordinary("abc"[number % 3], 4 + number // 3) for number in range(count - NODES)),
    ]
    return found[:count]


def pod_manifests(count: int = PODS) -> list[Object]:
    """54 pods that fit, four that do not fit for different reasons, one twin of a pod that takes its port, one that
    waits for an approval; further ones are small."""
    found = [
        *_several("db", 3, _requests("2", "8Gi"), nodeSelector={"disk": "ssd"}),
        *_several("web", 18, _requests("500m", "512Mi")),
        *_several("api", 12, _requests("1", "1Gi"), affinity=_rather("disk", ["ssd"])),
        *_several("cache", 6, _requests("250m", "2Gi", port=6379)),
        *_several("train", 6, _requests("4", "16Gi", gpus=1), tolerations=[_tolerate(GPU, "present")]),
        *_several(
            "batch",
            6,
            _requests("1", "2Gi"),
            tolerations=[_tolerate("lifetime", "spot")],
            affinity=_only("lifetime", ["spot"]),
        ),
        *_several("ingress", 3, _requests("250m", "256Mi", port=443), affinity=_only(ZONE, ["a", "b"])),
        *_several("exporter", 2, _requests("50m", "64Mi", port=9100), nodeSelector={HOST: "node-b3"}),
        _pod_manifest("too-big", "too-big", _requests("64", "1Gi")),
        _pod_manifest("too-many-gpus", "too-many-gpus", _requests("1", "1Gi", gpus=8), tolerations=[_tolerate(GPU)]),
        _pod_manifest("on-mars", "on-mars", _requests("100m", "64Mi"), nodeSelector={ZONE: "mars"}),
        _pod_manifest(
            "approval", "approval", _requests("100m", "64Mi"), schedulingGates=[{"name": "example.com/approval"}]
        ),
        *_several("load", count - PODS, _requests("100m", "128Mi")),
    ]
    return found[:count]


def _ordinary(zone: str, number: int) -> Object:
    name = f"node-{zone}{number}"
    disk = "ssd" if number == 1 else "hdd"
    return _node_manifest(name, zone, cpu="8", memory="32Gi", labels={"disk": disk}, cordoned=name == "node-c3")


def _node_manifest(
    name: str,
    zone: str,
    *,
    cpu: str,
    memory: str,
    labels: Mapping[str, str] | None = None,
    extended: Mapping[str, str] | None = None,
    taint: tuple[str, str] | None = None,
    cordoned: bool = False,
) -> Object:
    spec: Object = {}
    if taint is not None:
        spec["taints"] = [{"key": taint[0], "value": taint[1], "effect": "NoSchedule"}]
    if cordoned:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, **(labels or {})}},
        **({"spec": spec} if spec else {}),
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110", **(extended or {})}},
    }


def _several(app: str, count: int, container: Object, **spec: Any) -> list[Object]:
    return [_pod_manifest(f"{app}-{number}", app, container, **spec) for number in range(1, count + 1)]


def _pod_manifest(name: str, app: str, container: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {**spec, "containers": [container]},
    }


def _requests(cpu: str, memory: str, *, port: int = 0, gpus: int = 0) -> Object:
    """A container; GPUs are given as limits, which are their requests as well."""
    container: Object = {
        "name": "main",
        "image": "example.com/app:1.0",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    if gpus:
        container["resources"]["limits"] = {GPU: str(gpus)}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    return container


def _tolerate(key: str, value: str = "") -> Object:
    wanted: Object = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": key, **wanted, "effect": "NoSchedule"}


def _expressions(key: str, values: Sequence[str]) -> Object:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def _rather(key: str, values: Sequence[str]) -> Object:
    term = {"weight": 50, "preference": _expressions(key, values)}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _only(key: str, values: Sequence[str]) -> Object:
    terms = {"nodeSelectorTerms": [_expressions(key, values)]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def placements(nodes: Sequence[Object], pods: Sequence[Object]) -> Iterator[str]:
    """A line a node: its zone, how many pods it has and of which apps."""
    by_node: dict[str, list[Object]] = {node["metadata"]["name"]: [] for node in nodes}
    for pod in pods:
        if place := pod["spec"].get("nodeName"):
            by_node.setdefault(place, []).append(pod)
    zones = {node["metadata"]["name"]: node["metadata"].get("labels", {}).get(ZONE, "-") for node in nodes}
    rows = [
        (name, zones.get(name, "-"), str(len(there)), _apps(there))
        for name, there in sorted(by_node.items())[:SHOWN_NODES]
    ]
    yield from aligned([("NODE", "ZONE", "PODS", "APPS"), *rows])
    if len(by_node) > SHOWN_NODES:
        yield f"… and {len(by_node) - SHOWN_NODES} more nodes"


def without_node(pods: Sequence[Object]) -> Iterator[str]:
    """Each pod that has no node, and the scheduler's reason."""
    found = [pod for pod in pods if not pod["spec"].get("nodeName")]
    for pod in found[:SHOWN_PODS]:
        metadata = pod["metadata"]
        yield f"{metadata['namespace']}/{metadata['name']}"
        yield f"    {reason(pod)}"
    if len(found) > SHOWN_PODS:
        yield f"… and {len(found) - SHOWN_PODS} more"


def reason(pod: Object) -> str:
    """Why a pod has no node."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("message"):
            return str(condition["message"])
    if gates := pod["spec"].get("schedulingGates"):
        return "waits until its scheduling gates are removed: " + ", ".join(gate["name"] for gate in gates)
    return "not decided yet"


def pace(bound: int, pods: int, took_ms: int) -> str:
    """How many pods found a node, and how fast: milliseconds from the first apply to the last bind."""
    if bound == 0:
        return f"none of {pods} pods found a node"
    rate = bound * 1000 / max(took_ms, 1)
    took = f"{took_ms / 1000:.2f} s, from the first apply to the last bind"
    return f"{bound} of {pods} pods bound in {took}: {rate:.0f} pods/s"


def _apps(pods: Sequence[Object]) -> str:
    """``db 1, web 2``; pods without the label ``app`` go by their own name."""
    names = Counter(pod["metadata"].get("labels", {}).get("app") or pod["metadata"]["name"] for pod in pods)
    return ", ".join(f"{name} {count}" for name, count in sorted(names.items()))
