"""A whole system tells Prometheus what it does, and whether its processes are well."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.metrics.instruments import DECLARED
from tests.acceptance import processes
from tests.acceptance.fixtures import end
from tests.acceptance.processes import wait_until
from tests.acceptance.scraping import Scrape, page, scrape
from tests.acceptance.system import Json, System
from tests.devices import asking, make_claim, make_class, make_device, make_slice
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import free_port

PROCESSES = ("leader-1", "evaluator-1", "binder-1")


class Watched:
    """A running system that serves metrics."""

    def __init__(self, system: System) -> None:
        self.system = system
        port = free_port(len(PROCESSES))
        options = ["--evaluators", "1", "--binders", "1", "--mode", "distributed"]
        system.up(*options, "--metrics-port", str(port))
        targets = json.loads((system.data_dir / "metrics-targets.json").read_text())
        self.addresses = {target["labels"]["process"]: target["targets"][0] for target in targets}
        # Workers that run may not listen yet.
        wait_until("all listen", lambda: all(processes.listens(port + number) for number in range(len(PROCESSES))))

    def scrape(self, process: str) -> Scrape:
        return scrape(self.addresses[process])

    def place(self, *names: str) -> None:
        """Apply pods and wait until they are bound and the leader knows it."""
        bound = self.bound()
        self.system.apply(*[pod_manifest(f"shop/{name}") for name in names])
        self.system.told("wait", "--for", "scheduled", "-n", "shop", "--timeout", "120")
        wait_until("the leader has counted the pods", lambda: self.bound() >= bound + len(names))

    def bound(self) -> float:
        return self.scrape("leader-1").value("scheduler_schedule_attempts_total", result="scheduled")


@pytest.fixture(scope="module")
def watched(redis_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A system that the tests of this module share; the last one stops it."""
    system = System(tmp_path_factory.mktemp("watched"))
    try:
        found = Watched(system)
        system.apply(node_manifest("n1"), node_manifest("n2"))
        yield found
    finally:
        end([system])


def test_every_process_tells_what_it_does(watched: Watched) -> None:
    before = {process: watched.scrape(process) for process in PROCESSES}
    watched.place("web-1", "web-2", "web-3")
    container = {"name": "main", "resources": {"requests": {"cpu": "64"}}}
    watched.system.apply(pod_manifest("big/huge", containers=[container]))
    watched.system.settle()
    after = {process: watched.scrape(process) for process in PROCESSES}

    def more(process: str, name: str, **labels: str) -> float:
        return after[process].value(name, **labels) - before[process].value(name, **labels)

    attempts = "scheduler_schedule_attempts_total"
    assert more("leader-1", attempts, result="scheduled", profile="default-scheduler") == 3
    assert more("leader-1", attempts, result="unschedulable") >= 1
    assert more("leader-1", "scheduler_pod_scheduling_sli_duration_seconds_count") == 3
    assert more("leader-1", "scheduler_pod_scheduling_attempts_count") == 3
    assert more("leader-1", "scheduler_scheduling_attempt_duration_seconds_count", result="scheduled") == 3
    assert more("leader-1", "scheduler_queue_incoming_pods_total", queue="active", event="UnscheduledPodAdd") == 4
    assert more("evaluator-1", "dsched_tasks_total", task="dsched.evaluate", result="done") >= 2
    filtered = {"plugin": "NodeResourcesFit", "extension_point": "Filter"}
    assert more("evaluator-1", "scheduler_plugin_evaluation_total", **filtered) >= 2
    assert more("binder-1", "dsched_binder_pods_total", verdict="bound") == 3
    assert more("binder-1", "scheduler_framework_extension_point_duration_seconds_count", extension_point="Bind") == 3

    leader = after["leader-1"]
    assert leader.value("scheduler_pending_pods", queue="unschedulable") == 1
    assert leader.value("scheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1
    assert leader.value("scheduler_cache_size", type="nodes") == 2
    assert leader.value("scheduler_cache_size", type="pods") == watched.bound()
    assert leader.value("leader_election_master_status") == 1
    assert leader.value("dsched_workers", state="live") == 2


def test_binders_tell_of_devices(watched: Watched) -> None:
    """One pod's extended resource is a device, another one's device has to become ready."""
    before = watched.scrape("binder-1")
    slow = make_device(
        "slow", attributes={"slow": True}, bindingConditions=["Ready"], bindingFailureConditions=["Dead"]
    )
    classes = (
        make_class(
            "plain", "!('slow' in device.attributes['gpu.example.com'])", extendedResourceName="example.com/gpu"
        ),
        make_class("slow", "'slow' in device.attributes['gpu.example.com']"),
    )
    claim = make_claim("shop/wants", asking(of="slow"))
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    extended = pod_manifest("shop/extended", containers=[{"name": "main", "resources": resources}])
    waits = pod_manifest("shop/waits", resourceClaims=[{"name": "c", "resourceClaimName": "wants"}])
    watched.system.apply(*classes, make_slice("n1", [make_device("d0"), slow]), claim, extended, waits)

    def given() -> Json | None:
        found = next(
            each for each in watched.system.get("resourceclaims", "-n", "shop") if each["metadata"]["name"] == "wants"
        )
        return found if "allocation" in found.get("status", {}) else None

    wait_until("the claim has its device", lambda: given() is not None)
    told = "waiting for binding conditions for device on node n1"
    wait_until("it is said that the pod waits", lambda: told in watched.system.ask("describe", "pod", "shop/waits"))
    claim = given() or {}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Told",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    claim["status"]["devices"] = [{"driver": "gpu.example.com", "pool": "n1", "device": "slow", "conditions": [ready]}]
    watched.system.apply(claim)
    watched.system.told("wait", "--for", "scheduled", "-n", "shop", "--timeout", "120")
    after = watched.scrape("binder-1")

    def more(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    made = {"status": "success", "admin_access": "false", "owner_api_group": "", "owner_api_kind": "Pod"}
    assert more("dynamic_resource_allocation_resourceclaim_creates_total", **made) == 1
    met = {"profile": "default-scheduler", "driver": "gpu.example.com", "status": "success"}
    assert more("scheduler_dra_bindingconditions_allocations_total", **met) == 1
    assert more("scheduler_dra_bindingconditions_wait_duration_seconds_count", **met) == 1


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_exports_its_own_metrics_and_no_others(watched: Watched, process: str) -> None:
    own = {
        name
        for name in watched.scrape(process).names
        if name.startswith(("scheduler_", "dynamic_", "dsched_", "leader_"))
    }
    known = {
        series
        for metric in DECLARED.values()
        if process.split("-")[0] in metric.exporters
        for series in (metric.name, *(f"{metric.name}_{end}" for end in ("bucket", "sum", "count")))
    }
    assert own
    assert own <= known


def test_what_a_killed_pool_process_has_counted_stays(watched: Watched) -> None:
    watched.place("killed-1", "killed-2")
    before = watched.scrape("binder-1").value("dsched_binder_pods_total", verdict="bound")
    (pool_process,) = processes.children(watched.system.pids()["binder-1"])
    processes.kill(pool_process)
    watched.place("killed-3")
    assert watched.scrape("binder-1").value("dsched_binder_pods_total", verdict="bound") == before + 1 >= 3
    assert processes.children(watched.system.pids()["binder-1"]) != [pool_process]


def test_a_port_that_is_taken_is_told_and_nothing_starts(watched: Watched) -> None:
    port = watched.addresses["leader-1"].rpartition(":")[2]
    told = watched.system.ask("leader", "--metrics-port", port, exit_code=1)
    assert f"cannot listen on 127.0.0.1 port {port}" in told
    assert "Traceback" not in told


def test_every_process_is_well_until_it_stops(watched: Watched) -> None:
    for address in watched.addresses.values():
        wait_until(f"{address} is well", lambda address=address: page(address, "healthz") == (200, "ok"))
    watched.system.down()
    assert not any(processes.listens(int(address.rpartition(":")[2])) for address in watched.addresses.values())
    assert not (watched.system.data_dir / "metrics-targets.json").exists()
