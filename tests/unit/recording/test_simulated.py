"""A simulation told as a recording."""

from collections.abc import Iterator
from typing import Any

import pytest

from dsched.config import feature_gates
from dsched.framework.interface import Code, PermitResult, Status
from dsched.model import tape
from dsched.plugins import profiles
from dsched.recording import simulated
from dsched.simulation.from_manifests import ManifestCluster
from tests.builders import make_node, make_pod
from tests.devices import asking, make_claim, make_class, make_slice, result
from tests.unit.config.files import with_plugins
from tests.unit.simulation.worlds import NOW_MS, known
from tests.versions import V37


class Holds:
    """Permit holds pod ``a`` back until another one comes."""

    name = "Holds"

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def permit(self, state: Any, pod: Any, node: Any) -> PermitResult:
        for other in self._handle.waiting_pods():
            other.allow(self.name)
        return PermitResult(Status(Code.WAIT), timeout_s=60) if pod.pod.metadata.name == "a" else PermitResult()


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


@pytest.mark.parametrize("plugins", [(), (Holds,)], ids=["at once", "beside one that was held back"])
def test_a_pod_that_cannot_be_bound_leaves_its_node(plugins: tuple[type[Any], ...]) -> None:
    """The claim takes one more pod, the one that is bound first."""
    crowd = [{"resource": "pods", "name": f"other-{n}", "uid": f"uid-other-{n}"} for n in range(255)]
    claim = make_claim("shop/full", asking(), allocated=[result("d0")], reservedFor=crowd)
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "full"}]}
    pods = {name: make_pod(f"shop/{name}", cpu=1, spec=spec) for name in "ab"}
    others = (
        ("DeviceClass", "gpu", make_class("gpu")),
        ("ResourceSlice", "n1", make_slice("n1", ["d0"])),
        ("ResourceClaim", "shop/full", claim),
    )
    given = ManifestCluster((make_node("n1", cpu=4),), (), tuple(pods.values()), others)
    text = with_plugins(multiPoint={"enabled": [each.name for each in plugins]})
    configured = profiles.parsed(text, "test.yaml", known(*plugins), V37)
    lines = simulated.lines(configured, known(*plugins), given, NOW_MS, seed=0)
    released = [each.uid for each in lines if isinstance(each, tape.Released)]
    assert set(released) == {pods["b"].uid}
    assert tape.Bound(pods["b"].uid) not in lines
