"""What an API server says that it is."""

import pytest

from dsched.cluster.kubernetes import version as version_module
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.errors import ClusterUnavailable
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import Json


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ({"major": "1", "minor": "37"}, (1, 37)),
        ({"major": "1", "minor": "35+", "gitVersion": "v1.35.2-eks-7f9249a"}, (1, 35)),
        ({"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "36"}, (1, 36)),
        ({"major": "1", "minor": "112"}, (1, 112)),
    ],
)
def test_the_version(api: FakeApi, cluster: Kubernetes, said: Json, version: tuple[int, int]) -> None:
    api.version = said
    assert cluster.kubernetes_version() == version


@pytest.mark.parametrize("said", [{"major": "", "minor": ""}, {"major": 1}, {"minor": "37"}, None])
def test_one_that_says_nothing_of_use_is_not_guessed(api: FakeApi, cluster: Kubernetes, said: Json | None) -> None:
    api.version = said
    with pytest.raises(ClusterUnavailable, match=r"GET /version.*--emulated-version"):
        cluster.kubernetes_version()


def test_a_fault_that_passes_is_waited_for(api: FakeApi, cluster: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    api.fault("GET", "/version", status=503, times=2)
    assert cluster.kubernetes_version() == (1, 37)
    monkeypatch.setattr(version_module, "PATIENCE_S", 0.0)
    api.fault("GET", "/version", status=503)
    with pytest.raises(ClusterUnavailable, match="503"):
        cluster.kubernetes_version()
