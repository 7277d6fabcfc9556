"""A leader and a binder over Redis that see to pods with claims, driven step by step."""

import importlib
from types import SimpleNamespace
from typing import Any

from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.framework.runtime import Framework
from dsched.fsck import inspection
from dsched.manifests import kinds
from dsched.model.messages import BindRequest
from dsched.plugins import profiles
from dsched.state.devices import read_ledger
from dsched.state.results import Outcome
from tests.integration.leader.rig import Led, Rig
from tests.integration.workers.agreeing import Agreeing
from tests.manifests import Json, pod_manifest
from workers.running_plugins import RunningPlugins


def device_class(name: str = "gpu") -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}


def template(count: int = 1) -> Json:
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [asked]}}},
    }


def pod(key: str, **spec: Any) -> Json:
    value = pod_manifest(key, **spec)
    value["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return value


def binder_of(rig: Rig, cluster: StandaloneCluster) -> Any:
    """A binder that runs the plugins of the binding cycle, as a worker does. It needs ``DSCHED_REDIS_URL``."""

    def frameworks(config: Any, handle: Any) -> dict[str, Framework]:
        handle.clock = rig.clock  # claims say since when they have their devices, by the cluster's clock
        return profiles.frameworks(rig.configuration, rig.plugins, handle)

    system = SimpleNamespace(
        cluster=cluster, store=rig.store, frameworks=frameworks, config=rig.configuration, following=Agreeing()
    )
    module = importlib.import_module("workers.binder")
    return module.Binder(SimpleNamespace(system=system, name="binder-0", slots=RunningPlugins()))


class Working:
    """A leader that sees to claims, and a binder."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.store = rig, rig.store
        self.lead()
        self.binder = binder_of(rig, StandaloneCluster(rig.store, rig.clock))

    def lead(self) -> None:
        """Another leader takes over."""
        self.led: Led = self.rig.elect()
        claims = self.rig.configuration.features.enabled("DRAWorkloadResourceClaims")
        self.rig.cluster.lead(self.led.epoch, lambda: True, group_claims=claims)
        self.led.take_over()

    def decide(self) -> list[BindRequest]:
        self.led.turns()
        return self.led.requests()

    def bind(self, requests: list[BindRequest]) -> dict[str, str]:
        said: dict[str, str] = {}
        for request in requests:
            outcomes: list[Outcome] = self.binder.run(request)
            self.binder.report(request, outcomes)
            said |= {outcome.key: outcome.verdict for outcome in outcomes}
        return said

    def rest(self) -> None:
        """Until nothing comes any more."""
        for _ in range(20):
            requests = self.decide()
            if not requests:
                return
            self.bind(requests)
            self.led.settle()
        raise AssertionError("it does not come to rest")

    def later(self) -> None:
        """When all backoff is over."""
        self.rig.clock.sleep(60)
        self.led.term.flush_backoff()
        self.rest()

    def devices(self) -> dict[str, list[str]]:
        """Claim to its devices, of those that have some."""
        found = {}
        for claim in Objects(self.store).all_of(kinds.RESOURCE_CLAIM):
            given = (claim.get("status") or {}).get("allocation")
            if given:
                name = claim["metadata"]["name"]
                found[name.rpartition("-gpu-")[0] or name] = [each["device"] for each in given["devices"]["results"]]
        return found

    def healthy(self) -> None:
        """Nothing is held, and fsck has nothing to say."""
        ledger = read_ledger(self.store)
        assert (ledger.held, ledger.used) == ({}, {})
        report = inspection.inspect(self.store, self.rig.clock, pause_s=0.0)
        assert [str(each) for each in report.breaches] == []
