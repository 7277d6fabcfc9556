"""deploy/kubernetes: what kustomize makes of it belongs together, keeps to its rules, and an API server takes it."""

import json
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched.plugins import profiles, registry
from tests.e2e import programs
from tests.e2e.apiserver import ApiServer
from tests.e2e.deployment import KUSTOMIZATIONS, NAMESPACE, Deployment, dry_run

OVERLAYS = ("dev", "production")
COMPONENTS = ("leader", "evaluator", "binder")
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "kubernetes.md"

ADDED = re.compile(r"end of the overlay's `kustomization.yaml`:\n\n +```text\n( +components:.*?)```", re.DOTALL)
"""What the guide adds where dsched is to serve default-scheduler."""

Json = dict[str, Any]


@pytest.fixture(scope="module", params=OVERLAYS)
def objects(request: pytest.FixtureRequest) -> list[Json]:
    """What kubectl makes of an overlay; skipped without kubectl."""
    return rendered(KUSTOMIZATIONS / "overlays" / request.param)


def rendered(folder: Path) -> list[Json]:
    try:
        kubectl = shutil.which("kubectl") or str(programs.folder() / "kubectl")
    except programs.NoPrograms as error:
        pytest.skip(f"there is no kubectl to render deploy/kubernetes with: {error}")
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(params=OVERLAYS)
def varied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[Json], list[Json]]:
    """An overlay, and the same with the lines that the guide adds to its kustomization.yaml."""
    copied = tmp_path / "kubernetes"
    shutil.copytree(KUSTOMIZATIONS, copied)
    (added,) = ADDED.findall(GUIDE.read_text())
    folder = copied / "overlays" / request.param
    with (folder / "kustomization.yaml").open("a") as file:
        file.write(textwrap.dedent(added))
    return rendered(KUSTOMIZATIONS / "overlays" / request.param), rendered(folder)


def of_kind(objects: list[Json], *kinds: str) -> list[Json]:
    return [each for each in objects if each["kind"] in kinds]


def named(objects: list[Json], kind: str) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in of_kind(objects, kind)}


def templates(objects: list[Json]) -> Iterator[tuple[str, Json, Json]]:
    """Name, labels and pod spec of every workload."""
    for workload in of_kind(objects, "Deployment", "StatefulSet"):
        template = workload["spec"]["template"]
        yield workload["metadata"]["name"], template["metadata"]["labels"], template["spec"]


def chosen(selector: Mapping[str, str], objects: list[Json]) -> set[str]:
    return {name for name, labels, _ in templates(objects) if selector.items() <= labels.items()}


def test_every_file_is_used():
    """A file that no kustomization names is forgotten."""
    for path in KUSTOMIZATIONS.rglob("kustomization.yaml"):
        text = path.read_text()
        unused = [each.name for each in path.parent.iterdir() if each.is_file() and each.name not in text]
        assert unused in ([], ["kustomization.yaml"]), f"{path} does not name {unused}"


def test_everything_namespaced_is_in_one_namespace(objects: list[Json]):
    cluster_wide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    elsewhere = [
        each["metadata"]["name"]
        for each in objects
        if each["kind"] not in cluster_wide and each["metadata"].get("namespace") != NAMESPACE
    ]
    assert elsewhere == []
    assert list(named(objects, "Namespace")) == [NAMESPACE]


def test_what_pods_refer_to_is_there(objects: list[Json]):
    maps, accounts = named(objects, "ConfigMap"), named(objects, "ServiceAccount")
    # The production overlay's Secret is made by hand.
    secrets = {**named(objects, "Secret"), "dsched-redis": {}}
    for name, _, spec in templates(objects):
        if "serviceAccountName" in spec:
            assert spec["serviceAccountName"] in accounts, name
        claimed = {claim["metadata"]["name"] for claim in claims(objects, name)}
        volumes = {volume["name"] for volume in spec["volumes"]} | claimed
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert volume["configMap"]["name"] in maps, name
            if "secret" in volume:
                assert volume["secret"]["secretName"] in secrets, name
        (container,) = spec["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes, name
        for source in container.get("envFrom", ()):
            assert source["configMapRef"]["name"] in maps, name
        for variable in container.get("env", ()):
            reference = variable["valueFrom"].get("secretKeyRef")
            assert reference is None or reference["name"] in secrets, name


def claims(objects: list[Json], workload: str) -> list[Json]:
    found: list[Json] = named(objects, "StatefulSet").get(workload, {}).get("spec", {}).get("volumeClaimTemplates", [])
    return found


def test_selectors_select_their_own_pods_alone(objects: list[Json]):
    for kind in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
        for name, each in named(objects, kind).items():
            assert chosen(each["spec"]["selector"]["matchLabels"], objects) == {name}, f"{kind} {name}"
    for name, service in named(objects, "Service").items():
        assert chosen(service["spec"]["selector"], objects) == {name}, f"Service {name}"
    for name, scaler in named(objects, "HorizontalPodAutoscaler").items():
        target = scaler["spec"]["scaleTargetRef"]
        scaled = named(objects, target["kind"])[target["name"]]
        assert "replicas" not in scaled["spec"], f"{name}: applying would undo what the autoscaler does"


def test_nobody_reaches_the_pods_but_who_must(objects: list[Json]):
    policies = named(objects, "NetworkPolicy")
    isolated = policies["dsched"]["spec"]
    assert set(isolated["policyTypes"]) == {"Ingress", "Egress"}
    assert "ingress" not in isolated
    dsched = {f"dsched-{component}" for component in COMPONENTS}
    assert chosen(isolated["podSelector"]["matchLabels"], objects) == dsched
    others = {name for name, _, _ in templates(objects)} - dsched
    guarded = [chosen(each["spec"]["podSelector"].get("matchLabels", {}), objects) for each in policies.values()]
    assert all({name} in guarded for name in others)


def test_pods_are_as_restricted_as_can_be(objects: list[Json]):
    for name, _, spec in templates(objects):
        pod, (container,) = spec["securityContext"], spec["containers"]
        assert pod["runAsNonRoot"] is True, name
        assert pod["runAsUser"] > 0, name
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert container["resources"].keys() == {"requests", "limits"}, name
        assert {"readinessProbe", "livenessProbe"} <= container.keys(), name
        # Who schedules with dsched must not need dsched to start.
        assert spec["schedulerName"] == "default-scheduler", name


def test_where_dsched_serves_default_scheduler_kube_scheduler_starts_it(varied: tuple[list[Json], list[Json]]):
    """And nothing else becomes another thing: kustomize takes the last of two equal keys without a word."""
    plain, changed = varied
    assert {spec["schedulerName"] for _, _, spec in templates(changed)} == {"kube-scheduler"}
    for _, _, spec in templates(changed):
        spec["schedulerName"] = "default-scheduler"
    assert changed == plain


def test_a_quota_admits_pods_of_critical_priority(objects: list[Json]):
    """GKE admits them outside kube-system only where there is one."""
    (quota,) = of_kind(objects, "ResourceQuota")
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    classes = {spec["priorityClassName"] for _, _, spec in templates(objects)}
    assert (scope["scopeName"], scope["operator"], set(scope["values"])) == ("PriorityClass", "In", classes)


def test_only_those_that_speak_with_the_api_server_get_a_token(objects: list[Json]):
    given = {name for name, _, spec in templates(objects) if spec.get("automountServiceAccountToken") is not False}
    assert given == {"dsched-leader", "dsched-binder"}
    bound = {subject["name"] for each in of_kind(objects, "ClusterRoleBinding") for subject in each["subjects"]}
    assert bound == given
    for binding in of_kind(objects, "ClusterRoleBinding"):
        assert binding["roleRef"]["name"] in named(objects, "ClusterRole")
        assert all(subject["namespace"] == NAMESPACE for subject in binding["subjects"])


def test_probes_ask_where_the_processes_serve(objects: list[Json]):
    (environment,) = [each["data"] for each in of_kind(objects, "ConfigMap") if "DSCHED_CLUSTER" in each["data"]]
    for name, _, spec in templates(objects):
        if name == "dsched-redis":
            continue
        (container,) = spec["containers"]
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        for probe in ("readinessProbe", "livenessProbe"):
            assert ports[container[probe]["httpGet"]["port"]] == environment["DSCHED_METRICS_PORT"], name


def test_no_rule_gives_everything(objects: list[Json]):
    for name, role in named(objects, "ClusterRole").items():
        words = [word for rule in role["rules"] for part in rule.values() for word in part]
        assert "*" not in words, name
        assert not {"secrets", "configmaps", "pods/exec", "impersonate", "escalate", "bind"} & set(words), name


def test_the_scheduler_configuration_is_one_that_dsched_takes(objects: list[Json], tmp_path: Path):
    (text,) = [
        each["data"]["scheduler.yaml"]
        for each in of_kind(objects, "ConfigMap")
        if "scheduler" in each["metadata"]["name"]
    ]
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    configuration = profiles.configuration(path, registry.load())
    assert [profile.scheduler_name for profile in configuration.profiles] == ["dsched"]


def test_the_image_is_the_one_that_compose_builds(objects: list[Json]):
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    images = {spec["containers"][0]["image"] for name, _, spec in templates(objects) if name != "dsched-redis"}
    assert images == {compose["x-dsched"]["image"]}


def test_redis_in_the_cluster_keeps_what_redis_elsewhere_keeps():
    def settings(path: Path) -> list[str]:
        return [line for line in path.read_text().splitlines() if not line.startswith("#")]

    assert settings(KUSTOMIZATIONS / "overlays/dev/redis.conf") == settings(ROOT / "deploy/redis.conf")


def test_what_the_guide_names_is_there():
    named = set(re.findall(r"deploy/[\w./-]+", GUIDE.read_text()))
    assert "deploy/kubernetes/overlays/dev" in named
    assert [path for path in named if not (ROOT / path.rstrip(".")).exists()] == []


# -- an API server's judgement ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_api_server_takes_everything(api_server: ApiServer, deployment: Deployment, overlay: str):
    told = dry_run(api_server, *Deployment(api_server, overlay).objects)
    assert "Warning" not in told


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_are_admitted_to_their_restricted_namespace(api_server: ApiServer, deployment: Deployment, overlay: str):
    """Pod security is judged when pods are created, which is not the Deployment's business."""
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-0", "namespace": NAMESPACE, "labels": labels},
            "spec": spec | {"volumes": [*spec["volumes"], *claimed_volumes(deployed.objects, name)]},
        }
        for deployed in [Deployment(api_server, overlay)]
        for name, labels, spec in templates(deployed.objects)
    ]
    assert dry_run(api_server, *pods).count("created (server dry run)") == len(pods)
    pods[0]["spec"]["securityContext"]["runAsNonRoot"] = False
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        dry_run(api_server, pods[0])


def claimed_volumes(objects: list[Json], workload: str) -> list[Json]:
    return [
        {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": "some"}}
        for claim in claims(objects, workload)
    ]


def test_applying_twice_changes_nothing(api_server: ApiServer, deployment: Deployment):
    told = json.loads(api_server.kubectl("apply", "-k", str(KUSTOMIZATIONS / "overlays/dev"), "-o", "json"))
    generations = {each["metadata"].get("generation", 1) for each in told["items"]}
    assert generations == {1}


def test_the_guides_pod_is_one_that_dsched_would_take(api_server: ApiServer, deployment: Deployment):
    (pod,) = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)]
    assert "created (server dry run)" in dry_run(api_server, pod)
    served = yaml.safe_load(deployment.scheduler_configuration())["profiles"]
    assert pod["spec"]["schedulerName"] in [profile["schedulerName"] for profile in served]
