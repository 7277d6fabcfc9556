"""deploy/kubernetes: what kustomize makes of it belongs together, keeps to its rules, and an API server takes it."""

import json
import re
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched.plugins import profiles, registry
from tests.e2e import programs
from tests.e2e.apiserver import ApiServer
from tests.e2e.deployment import KUSTOMIZATIONS, NAMESPACE, Deployment, dry_run

OVERLAYS = ("dev", "production")
MONITORING, BY_TASKS = "monitoring", "autoscaling-by-tasks"
VARIANTS = (
    ("dev",),
    ("production",),
    ("dev", MONITORING),
    ("production", MONITORING, BY_TASKS),
)
"""An overlay, and what a user adds to it."""
COMPONENTS = ("leader", "evaluator", "binder")
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "kubernetes.md"

ADDED = re.compile(r"end of the overlay's `kustomization.yaml`:\n\n +```text\n( +components:.*?)```", re.DOTALL)
"""What the guide adds where dsched is to serve default-scheduler."""

Json = dict[str, Any]


@pytest.fixture(scope="module", params=VARIANTS, ids="+".join)
def objects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    """What kubectl makes of an overlay; skipped without kubectl."""
    overlay, *components = request.param
    if not components:
        return rendered(KUSTOMIZATIONS / "overlays" / overlay)
    return rendered(with_components(tmp_path_factory.mktemp("kustomize"), overlay, components))


def with_components(folder: Path, overlay: str, components: Sequence[str]) -> Path:
    """A copy of an overlay that names components, as the guide says: at its end."""
    copied = folder / "kubernetes"
    shutil.copytree(KUSTOMIZATIONS, copied)
    with (copied / "overlays" / overlay / "kustomization.yaml").open("a") as file:
        file.write("components:\n" + "".join(f"  - ../../components/{name}\n" for name in components))
    return copied / "overlays" / overlay


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
    cluster_wide = {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
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
    for name, scaler in named(objects, "ScaledObject").items():
        scaled = named(objects, "Deployment")[scaler["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in scaled["spec"], f"{name}: applying would undo what KEDA does"
        # KEDA takes over the one that may be there of this name, and makes it otherwise.
        assert scaler["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["name"] == name
        assert name not in named(objects, "HorizontalPodAutoscaler"), f"{name}: two would say how many there are"


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


def test_names_are_found_in_every_kind_of_cluster(objects: list[Json]):
    """kube-dns itself, NodeLocal DNSCache before it, and OpenShift's, whose pods listen at 5353."""
    (egress,) = [named(objects, "NetworkPolicy")["dsched"]["spec"]["egress"]]
    allowed = {
        (json.dumps(to, sort_keys=True), port["protocol"], port["port"])
        for rule in egress
        for to in rule["to"]
        for port in rule["ports"]
    }
    asked: list[tuple[Json, int]] = [
        ({"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}, 53),
        ({"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "node-local-dns"}}}, 53),
        ({"ipBlock": {"cidr": "169.254.20.10/32"}}, 53),
        (
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}},
                "podSelector": {"matchLabels": {"dns.operator.openshift.io/daemonset-dns": "default"}},
            },
            5353,
        ),
    ]
    wanted = {(json.dumps(to, sort_keys=True), protocol, port) for to, port in asked for protocol in ("UDP", "TCP")}
    assert allowed == wanted


def test_prometheus_reaches_what_it_is_to_scrape(objects: list[Json]):
    (rule,) = named(objects, "NetworkPolicy")["dsched-metrics"]["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": "metrics"}]
    for monitor in of_kind(objects, "PodMonitor"):
        spec = monitor["spec"]
        scraped = chosen(spec["selector"]["matchLabels"], objects)
        assert scraped == {f"dsched-{component}" for component in COMPONENTS}
        (endpoint,) = spec["podMetricsEndpoints"]
        for name, labels, pod in templates(objects):
            if name in scraped:
                assert endpoint["port"] in {port["name"] for port in pod["containers"][0]["ports"]}
                # What the alerts ask for: up{job="dsched"}, and $labels.process in what they say.
                assert labels[spec["jobLabel"]] == "dsched"
                assert labels["app.kubernetes.io/component"] in COMPONENTS


def test_replicas_keep_apart(objects: list[Json]):
    """Over the zones where that can be had; and leaders never on one node, where nodes are to be had."""
    for name, workload in named(objects, "Deployment").items():
        labels, pod = workload["spec"]["selector"]["matchLabels"], workload["spec"]["template"]["spec"]
        assert pod["topologySpreadConstraints"] == [
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
                "matchLabelKeys": ["pod-template-hash"],
            }
        ], name
        # The production overlays have more than one node.
        required = of_kind(objects, "HorizontalPodAutoscaler", "ScaledObject") and name == "dsched-leader"
        affinity = pod["affinity"]["podAntiAffinity"]
        assert list(affinity) == [f"{'required' if required else 'preferred'}DuringSchedulingIgnoredDuringExecution"]
        ((term,),) = affinity.values()
        term = term.get("podAffinityTerm", term)
        assert (term["topologyKey"], term["labelSelector"]) == ("kubernetes.io/hostname", {"matchLabels": labels})


def test_everything_has_the_recommended_labels(objects: list[Json]):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for each in objects:
        what, labels = f"{each['kind']} {each['metadata']['name']}", each["metadata"]["labels"]
        own = "dsched-redis" if "redis" in what and labels["app.kubernetes.io/name"] != "dsched" else "dsched"
        assert labels["app.kubernetes.io/name"] == own, what
        assert labels["app.kubernetes.io/part-of"] == "dsched", what
        assert labels["app.kubernetes.io/managed-by"] == "kustomize", what
        assert labels.get("app.kubernetes.io/version", version) == version, what
    for name, labels, spec in templates(objects):
        tag = spec["containers"][0]["image"].partition(":")[2]
        if name != "dsched-redis":
            assert labels["app.kubernetes.io/version"] == tag == version, name


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


def test_all_components_go_together(tmp_path: Path):
    """Each in its part: none undoes another's."""
    every = sorted(folder.name for folder in (KUSTOMIZATIONS / "components").iterdir())
    assert set(every) >= {MONITORING, BY_TASKS}
    made = rendered(with_components(tmp_path, "production", every))
    plain = rendered(KUSTOMIZATIONS / "overlays" / "production")
    assert {spec["schedulerName"] for _, _, spec in templates(made)} == {"kube-scheduler"}
    assert len(of_kind(made, "ScaledObject")) == 2
    assert not of_kind(made, "HorizontalPodAutoscaler")
    assert len(of_kind(made, "PodMonitor", "PrometheusRule")) == 2
    for (_, _, spec), (_, _, was) in zip(templates(made), templates(plain), strict=True):
        assert {**spec, "schedulerName": was["schedulerName"]} == was
    assert all(name in GUIDE.read_text() for name in every)


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


def test_an_api_server_takes_what_operators_of_others_define(
    api_server: ApiServer, deployment: Deployment, tmp_path: Path
):
    """Strictly: a field that the Prometheus operator or KEDA does not know is refused."""
    definitions = sorted((api_server.programs / "crds").glob("*.yaml"))
    if not definitions:
        pytest.skip("no definitions of PodMonitors and others: run tests/e2e/build-assets")
    files = [word for path in definitions for word in ("-f", str(path))]
    api_server.kubectl("apply", "--server-side", *files)
    try:
        api_server.kubectl("wait", "--for=condition=Established", "--timeout=60s", *files)
        made = rendered(with_components(tmp_path, "production", [MONITORING, BY_TASKS]))
        custom = of_kind(made, "PodMonitor", "PrometheusRule", "ScaledObject")
        assert len(custom) == 4
        assert dry_run(api_server, *custom).count("created (server dry run)") == len(custom)
        custom[0]["spec"]["podMetricsEndpoint"] = []
        with pytest.raises(AssertionError, match="unknown field"):
            dry_run(api_server, *custom)
    finally:
        api_server.kubectl("delete", *files)


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


def test_the_guides_deployment_is_one_that_dsched_would_take(api_server: ApiServer, deployment: Deployment):
    shown = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)]
    (hello,) = [each for each in shown if each["kind"] == "Deployment"]
    assert "created (server dry run)" in dry_run(api_server, hello)
    served = yaml.safe_load(deployment.scheduler_configuration())["profiles"]
    assert hello["spec"]["template"]["spec"]["schedulerName"] in [profile["schedulerName"] for profile in served]


# -- sizes -------------------------------------------------------------------------------------------------------------

SIZES = (ROOT / "docs" / "sizes.md").read_text()
UNITS = {"Mi": 1, "Gi": 1024}


def mebibytes(amount: str) -> int:
    return int(amount[:-2]) * UNITS[amount[-2:]]


def measured(process: str) -> list[int]:
    """MiB for 100, 1,000 and 5,000 nodes."""
    (row,) = re.findall(rf"^\| {process}, memory \|(.*)\|$", SIZES, re.MULTILINE)
    return [int(cell.split()[0]) for cell in row.split("|")]


@pytest.mark.parametrize(("overlay", "column"), [("dev", 0), ("production", 2)])
def test_memory_is_what_was_measured_and_to_spare(overlay: str, column: int):
    deployments = named(rendered(KUSTOMIZATIONS / "overlays" / overlay), "Deployment")
    for component in COMPONENTS:
        (container,) = deployments[f"dsched-{component}"]["spec"]["template"]["spec"]["containers"]
        given = container["resources"]
        took = measured(component)[column]
        assert mebibytes(given["requests"]["memory"]) >= 1.5 * took, component
        assert mebibytes(given["limits"]["memory"]) >= 3 * took, component
        assert "cpu" not in given["limits"], "throttled, a leader loses its lease"
        (row,) = re.findall(rf"^\| {component}: request, limit \|(.*)\|$", SIZES, re.MULTILINE)
        told = [cell.strip() for cell in row.split("|")][0 if overlay == "dev" else 1]
        assert told == f"{given['requests']['memory']}, {given['limits']['memory']}"
