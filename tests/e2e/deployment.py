"""deploy/kubernetes as kubectl renders it: applied to a cluster, and read for how processes are to be started."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.apiserver import ApiServer

KUSTOMIZATIONS = Path(__file__).parents[2] / "deploy" / "kubernetes"
NAMESPACE = "dsched-system"

Json = dict[str, Any]


class Deployment:
    """One overlay.

    Attributes:
        objects: what kubectl makes of it.
    """

    def __init__(self, server: ApiServer, overlay: str, folder: Path = KUSTOMIZATIONS) -> None:
        self._server = server
        self._overlay = folder / "overlays" / overlay
        self._kubeconfigs: dict[str, Path] = {}
        self.objects: list[Json] = list(yaml.safe_load_all(server.kubectl("kustomize", str(self._overlay))))

    def apply(self) -> None:
        """``kubectl apply -k``."""
        self._server.kubectl("apply", "-k", str(self._overlay))

    def find(self, kind: str, name: str) -> Json:
        """An object by kind and name; generated names are found without their hash."""
        (found,) = [
            each
            for each in self.objects
            if each["kind"] == kind and (each["metadata"]["name"] == name or _base_name(each) == name)
        ]
        return found

    def container(self, component: str) -> Json:
        """The container that a Deployment runs."""
        (container,) = self.find("Deployment", f"dsched-{component}")["spec"]["template"]["spec"]["containers"]
        found: Json = container
        return found

    def command(self, component: str) -> list[str]:
        """What a container runs, as a kubelet would run it but for its pod's name."""
        container = self.container(component)
        words = [*container["command"], *container.get("args", ())]
        return [word.replace("$(POD_NAME)", f"dsched-{component}") for word in words]

    def environment(self) -> dict[str, str]:
        """The variables that all containers get from the ConfigMap."""
        data: dict[str, str] = self.find("ConfigMap", "dsched-environment")["data"]
        return data

    def scheduler_configuration(self) -> str:
        """The KubeSchedulerConfiguration that is mounted."""
        text: str = self.find("ConfigMap", "dsched-scheduler")["data"]["scheduler.yaml"]
        return text

    def kubeconfig(self, component: str) -> Path:
        """For what runs under a component's service account, as its token in the cluster would."""
        if component not in self._kubeconfigs:
            account = f"dsched-{component}"
            token = self._server.kubectl("create", "token", account, "-n", NAMESPACE, "--duration=6h").strip()
            self._kubeconfigs[component] = self._server.write_kubeconfig(account, token=token)
        return self._kubeconfigs[component]


def _base_name(item: Json) -> str:
    name: str = item["metadata"]["name"]
    return name.rpartition("-")[0] if item["kind"] in ("ConfigMap", "Secret") else name


def dry_run(server: ApiServer, *objects: Json) -> str:
    """Have the API server judge objects as it would when they were applied; what kubectl says."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return server.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(listed))
