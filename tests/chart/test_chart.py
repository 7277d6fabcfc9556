"""deploy/helm/dsched: what it takes, what it refuses and says then, and what it carries."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched.config.feature_gates import VERSIONS
from dsched.emulation import asked
from tests.chart.chart import CASES, CHART, NAMESPACE, PRODUCTION, RELEASE, ROOT, VALUES, Json, helm, rendered

CARRIED = {
    "rules.yml": "deploy/monitoring/rules.yml",
    "dsched.json": "deploy/monitoring/grafana/dashboards/dsched.json",
    "redis.conf": "deploy/kubernetes/overlays/dev/redis.conf",
}
"""Files of the chart, and what they are copies of: a chart that is packed can refer to nothing outside."""


def named(objects: list[Json], kind: str, name: str) -> Json:
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pod(objects: list[Json], component: str) -> Json:
    found: Json = named(objects, "Deployment", f"dsched-{component}")["spec"]["template"]
    return found


def write(folder: Path, values: Json) -> Path:
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_helm_finds_nothing_wrong(values: Path):
    done = helm("lint", "--strict", CHART, "--values", values)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"\[(WARNING|ERROR)\]", done.stdout), done.stdout


def test_chart_and_image_are_of_the_version_of_dsched():
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert about["version"] == about["appVersion"] == version
    assert pod(rendered(), "leader")["spec"]["containers"][0]["image"] == f"dsched:{version}"


@pytest.mark.parametrize("name", CARRIED)
def test_copies_are_equal(name: str):
    source = ROOT / CARRIED[name]
    assert (CHART / "files" / name).read_text() == source.read_text(), f"cp {CARRIED[name]} deploy/helm/dsched/files/"


def test_there_are_no_other_copies():
    assert {path.name for path in (CHART / "files").iterdir()} == CARRIED.keys()


def test_a_packed_chart_makes_the_same(tmp_path: Path):
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (packed,) = tmp_path.glob("*.tgz")
    made = [
        helm("template", RELEASE, what, "--values", VALUES / "monitoring.yaml", "--namespace", NAMESPACE).stdout
        for what in (packed, CHART)
    ]
    assert "kind: PrometheusRule" in made[0]
    assert made[0] == made[1]


# -- values ----------------------------------------------------------------------------------------------------------


def keys(values: Any, path: str = "") -> set[str]:
    """Of all values, those that users name themselves left out."""
    if not isinstance(values, dict) or not values or path.endswith(("labels", "requests", "limits")):
        return {path}
    return {inner for key, value in values.items() for inner in keys(value, f"{path}.{key}" if path else key)}


def schema_keys(schema: Json, types: Json, path: str = "") -> set[str]:
    if "$ref" in schema:
        schema = types[schema["$ref"].rpartition("/")[2]]
    if not schema.get("properties") or path.endswith(("affinity", "tolerations")):
        return {path}
    assert schema["additionalProperties"] is False, f"{path} takes anything"
    return {
        each
        for key, inner in schema["properties"].items()
        for each in schema_keys(inner, types, f"{path}.{key}" if path else key)
    }


def test_the_schema_knows_every_value_and_no_other():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # Helm hands "global" to every chart.
    assert schema_keys(schema, schema["definitions"]) - {"global"} == keys(values)


REFUSED = {
    "foo: 1": "additional properties 'foo' not allowed",
    "leader: {replica: 3}": "'/leader': additional properties 'replica' not allowed",
    "leader: {replicas: two}": "'/leader/replicas': got string, want integer",
    "leader: {resources: {request: {cpu: 1}}}": "additional properties 'request' not allowed",
    "leader: {tolerations: [{key: a, effect: Never}]}": "must be one of 'NoSchedule'",
    "image: {digest: latest}": "'/image/digest': 'latest' does not match pattern",
    "image: {pullPolicy: Sometimes}": "must be one of 'Always', 'IfNotPresent', 'Never'",
    "redis: {mode: cluster}": "'/redis/mode': value must be one of 'embedded', 'external'",
    "redis: {mode: external, external: {url: 'redis.example.com:6379'}}": "'/redis/external/url': 'redis.example.com",
    "environment: {my-variable: a}": "invalid propertyName 'my-variable'",
    "emulatedVersion: 1.36": "'/emulatedVersion': value must be one of '', '1.34', '1.35', '1.36', '1.37'",
    "featureGates: {StorageCapacityScoring: 'yes'}": "'/featureGates/StorageCapacityScoring': got string, want boolean",
    "networkPolicies: {redis: {cidrs: [redis.example.com]}}": "does not match pattern",
    "evaluator: {autoscaling: {by: memory}}": "must be one of 'cpu', 'tasks'",
    # What no schema can say.
    "redis: {mode: external}": "name a Secret with entry url as redis.external.existingSecret",
    "redis: {external: {existingSecret: a}}": "set redis.mode to external",
    "redis: {mode: external, external: {existingSecret: a, url: 'redis://a'}}": "leave redis.external.url and",
    "redis: {mode: external, external: {url: 'rediss://a', tls: true}}": "give the authority's certificate",
    "redis: {mode: external, external: {url: 'rediss://a', tls: true, ca: PEM}}": "append ?ssl_ca_certs=",
    "{configuration: {profiles: []}, existingConfiguration: {name: a}}": "leave one of them empty",
    "schedulerName: dsched": "dsched serves dsched and would have to start itself",
    "configuration: {profiles: [{}]}": "dsched serves default-scheduler and would have to start itself",
    "{insteadOfKubeScheduler: true, configuration: {profiles: [{schedulerName: a}]}}": "no profile of configuration",
    "ui: {enabled: true}": "create secret generic dsched-ui --from-literal=token=",
    "ui: {enabled: true, existingSecret: a, ingress: {enabled: true}}": "as ui.ingress.host",
}


@pytest.mark.parametrize("values", REFUSED)
def test_what_cannot_be_is_refused_with_a_reason(values: str, tmp_path: Path):
    done = helm("template", RELEASE, CHART, "--values", write(tmp_path, yaml.safe_load(values)))
    assert done.returncode != 0
    assert REFUSED[values] in done.stderr


# -- what values do --------------------------------------------------------------------------------------------------


def test_two_releases_in_one_namespace_keep_to_their_own_pods():
    one, other = (
        [each for each in yaml.safe_load_all(helm("template", name, CHART).stdout) if each] for name in ("a", "b")
    )
    assert not {(each["kind"], each["metadata"]["name"]) for each in one} & {
        (each["kind"], each["metadata"]["name"]) for each in other
    }
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in other if "template" in each.get("spec", {})]
    for each in one:
        spec = each.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector", {}))
        wanted = selector.get("matchLabels", selector)
        if each["kind"] not in ("ResourceQuota", "ServiceAccount") and wanted:
            assert not any(wanted.items() <= of_pod.items() for of_pod in labels), each["metadata"]["name"]


@pytest.mark.parametrize(
    "values", [{"environment": {"A": "b"}}, {"configuration": {"parallelism": 8}}, {"system": "other"}], ids=str
)
def test_what_processes_read_once_starts_them_anew(values: Json, tmp_path: Path):
    before, after = rendered(), rendered(write(tmp_path, values))
    for component in ("leader", "evaluator", "binder"):
        assert pod(before, component)["metadata"] != pod(after, component)["metadata"]


def test_a_configuration_may_leave_out_what_it_is(tmp_path: Path):
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    own = {"profiles": [{"schedulerName": "dsched"}]}
    for given in ({"parallelism": 8}, {"parallelism": 8, "profiles": [{"schedulerName": "mine"}]}):
        made = named(rendered(write(tmp_path, {"configuration": given})), "ConfigMap", "dsched-scheduler")
        assert yaml.safe_load(made["data"]["scheduler.yaml"]) == kind | own | given


def test_arguments_and_variables_reach_the_processes():
    objects = rendered(VALUES / "sentinel.yaml")
    container = pod(objects, "leader")["spec"]["containers"][0]
    assert container["args"] == ["--identity", "$(POD_NAME)", "--explain"]
    assert container["image"] == f"registry.example.com/dsched@sha256:{'0123456789abcdef' * 4}"
    environment = named(objects, "ConfigMap", "dsched-environment")["data"]
    assert (environment["DSCHED_NAME"], environment["DSCHED_PLUGIN_TIMEOUT"]) == ("blue", "5")


def test_what_is_emulated_reaches_the_processes(tmp_path: Path):
    given = {"emulatedVersion": "1.36", "featureGates": {"StorageCapacityScoring": True, "NodeDeclaredFeatures": False}}
    environment = named(rendered(write(tmp_path, given)), "ConfigMap", "dsched-environment")["data"]
    assert environment["DSCHED_EMULATED_VERSION"] == "1.36"
    assert environment["DSCHED_FEATURE_GATES"] == "NodeDeclaredFeatures=false,StorageCapacityScoring=true"
    assert dict(asked("1.36", [environment["DSCHED_FEATURE_GATES"]]).gates) == given["featureGates"]
    environment = named(rendered(), "ConfigMap", "dsched-environment")["data"]
    assert environment["DSCHED_EMULATED_VERSION"] == environment["DSCHED_FEATURE_GATES"] == "", "the API server's own"


def test_the_schema_knows_the_versions_that_there_are():
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["properties"]["emulatedVersion"]["enum"] == ["", *map(str, VERSIONS)]


def test_the_page_is_served_with_its_token_and_for_its_host():
    objects = rendered(VALUES / "ui.yaml")
    spec = pod(objects, "ui")["spec"]
    args = spec["containers"][0]["args"]
    assert args[args.index("--token-file") + 1] == "/etc/dsched-ui/token"
    assert {args[at + 1] for at, word in enumerate(args) if word == "--allow-host"} >= {
        "dsched.example.com",
        "dsched-ui",
    }
    assert "--allow-write" in args
    role = named(objects, "ClusterRole", "dsched-ui")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_nothing_is_made_that_was_not_asked_for():
    kinds = [each["kind"] for each in rendered(VALUES / "bare.yaml")]
    assert sorted(kinds) == ["ConfigMap", "Deployment", "Deployment", "Deployment"]


def test_wheels_are_unpacked_where_plugins_are_found(tmp_path: Path):
    """With the very commands of the container, and Python's own way from a folder to an entry point."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install -e '.[dev]'")
    wheels, plugins = tmp_path / "wheels", tmp_path / "plugins"
    plugins.mkdir()
    build = ["-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run([sys.executable, *build], cwd=ROOT / "examples/02-gang-plugin", check=True, capture_output=True)
    objects = rendered(VALUES / "plugins.yaml")
    for component in ("leader", "evaluator", "binder"):
        assert pod(objects, component)["spec"]["initContainers"] == pod(objects, "leader")["spec"]["initContainers"]
    (init,) = pod(objects, "leader")["spec"]["initContainers"]
    mounted = {mount["mountPath"]: mount["name"] for mount in init["volumeMounts"]}
    assert mounted == {"/wheels": "wheels", "/plugins": "plugins"}
    program, *words = init["command"]
    assert program == "python"
    script = [word.replace("/wheels/", f"{wheels}/").replace('"/plugins"', f'"{plugins}"') for word in words]
    subprocess.run([sys.executable, *script], check=True)
    environment = named(objects, "ConfigMap", "dsched-environment")["data"]
    assert environment["PYTHONPATH"] == "/plugins"
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text(named(objects, "ConfigMap", "dsched-scheduler")["data"]["scheduler.yaml"])
    check = [sys.executable, "-m", "dsched", "config", "check", str(configuration)]
    without = subprocess.run(check, capture_output=True, text=True, check=False)
    assert without.returncode != 0
    assert "Gang" in without.stdout + without.stderr
    kept = os.environ.get("PYTHONPATH")
    paths = os.pathsep.join([str(plugins), *([kept] if kept else [])])
    with_it = subprocess.run(check, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert with_it.returncode == 0, with_it.stdout + with_it.stderr
    for wheel in wheels.iterdir():
        wheel.unlink()
    none = subprocess.run([sys.executable, *script], capture_output=True, text=True, check=False)
    assert "no *.whl in the volume" in none.stderr


def test_production_needs_no_more_than_it_says():
    """Everything that its pods refer to is made, but for the Secret."""
    objects = rendered(PRODUCTION)
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for component in ("leader", "evaluator", "binder"):
        for volume in pod(objects, component)["spec"]["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in there
            assert volume.get("secret", {}).get("secretName", "dsched-redis") == "dsched-redis"
