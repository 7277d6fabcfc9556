"""What no manifest may hold, whoever wrote it: numbers that no field has, keys given twice, files without an end."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dsched.errors import ManifestError
from dsched.manifests import limits, load
from tests.manifests import Json, loaded, node_manifest, other_manifest, pod_manifest

WIDE = 10**20


def refused(folder: Path, value: Json) -> str:
    """The only problem of an object, without its place in the file."""
    with pytest.raises(ManifestError) as error:
        loaded(folder, value)
    (problem,) = error.value.problems
    return problem.partition(".items[0]: ")[2]


def text_refused(folder: Path, text: str | bytes, name: str = "x.yaml") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ManifestError) as error:
        load.load([str(path)])
    return str(error.value).removeprefix(f"{folder}/")


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}


def port(**fields: int) -> Json:
    return pod_manifest(containers=[{"name": "main", "ports": [fields]}])


BOUNDED: dict[str, tuple[Json, str]] = {
    "priority": (pod_manifest(priority=2**31), "spec.priority: 2147483648 is more than 2147483647"),
    "low priority": (pod_manifest(priority=-(2**31) - 1), "spec.priority: -2147483649 is less than -2147483648"),
    "toleration": (
        pod_manifest(tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**63}]),
        "spec.tolerations[0].tolerationSeconds: 9223372036854775808 is beyond 64 bits",
    ),
    "skew": (
        pod_manifest(topologySpreadConstraints=[{"maxSkew": 2**31, **SPREAD}]),
        "spec.topologySpreadConstraints[0].maxSkew: 2147483648 is more than 2147483647",
    ),
    "domains": (
        pod_manifest(topologySpreadConstraints=[{"maxSkew": 1, "minDomains": 2**31, **SPREAD}]),
        "spec.topologySpreadConstraints[0].minDomains: 2147483648 is more than 2147483647",
    ),
    "weight": (
        pod_manifest(affinity={"nodeAffinity": {PREFERRED: [{"weight": 2**31, "preference": {}}]}}),
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: 2147483648 is more than 2147483647",
    ),
    "container port": (
        port(containerPort=2**31),
        "spec.containers[0].ports[0].containerPort: 2147483648 is more than 2147483647",
    ),
    "host port": (
        port(containerPort=1, hostPort=2**31),
        "spec.containers[0].ports[0].hostPort: 2147483648 is more than 2147483647",
    ),
    "unquoted quantity": (
        pod_manifest(containers=[{"name": "main", "resources": {"requests": {"cpu": WIDE}}}]),
        f"spec.containers[0].resources.requests.cpu: {WIDE} is beyond 64 bits",
    ),
    "image": (
        {**node_manifest(), "status": {"images": [{"names": ["a"], "sizeBytes": WIDE}]}},
        f"status.images[0].sizeBytes: {WIDE} is beyond 64 bits",
    ),
    "priority class": (
        other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=2**31),
        "value: 2147483648 is more than 2147483647",
    ),
    "budget": (
        other_manifest("PodDisruptionBudget", "policy/v1", "some", spec={"minAvailable": 2**31}),
        "spec.minAvailable: 2147483648 is more than 2147483647",
    ),
    "attachable volumes": (
        other_manifest(
            "CSINode", "storage.k8s.io/v1", "n1", spec={"drivers": [{"name": "a", "allocatable": {"count": 2**31}}]}
        ),
        "spec.drivers[0].allocatable.count: 2147483648 is more than 2147483647",
    ),
    "what nobody reads": (
        pod_manifest(terminationGracePeriodSeconds=WIDE),
        f"spec.terminationGracePeriodSeconds: {WIDE} is beyond 64 bits",
    ),
}


@pytest.mark.parametrize(("value", "problem"), BOUNDED.values(), ids=BOUNDED)
def test_integers_have_their_fields_range(tmp_path: Path, value: Json, problem: str) -> None:
    assert refused(tmp_path, value) == problem


def test_the_ends_of_the_ranges_are_taken(tmp_path: Path) -> None:
    tolerations = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**63 - 1}]
    assert loaded(tmp_path, pod_manifest(priority=-(2**31), tolerations=tolerations))
    assert loaded(tmp_path, pod_manifest(priority=2**31 - 1))


def test_digits_within_texts_are_no_numbers(tmp_path: Path) -> None:
    assert loaded(tmp_path, pod_manifest(labels={"digits": "9" * 40}))


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main}], %s}\n"


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("priority: 0x" + "f" * 1_000_000, "x.yaml:4:46: is not YAML: a number is too long"),
        ("priority: " + "9" * 5_000, "x.yaml:4:46: is not YAML: a number is too long"),
        ("some: .inf", "x.yaml:4:42: is not YAML: .inf is no finite number"),
        ("some: 1.0e+400", "x.yaml:4:42: is not YAML: 1.0e+400 is no finite number"),
    ],
)
def test_yaml_has_no_numbers_that_nothing_can_be_made_of(tmp_path: Path, field: str, problem: str) -> None:
    assert text_refused(tmp_path, POD % field) == problem


def json_pod(**fields: Any) -> str:
    return json.dumps({**pod_manifest(), **fields})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"kind": "Pod", "kind": "Node"}', "$.kind"),
        ('{"spec": {"containers": [{"name": "a"}, {"name": "b", "name": "c"}]}}', "$.spec.containers[1].name"),
        ('[{"a": 1}, {"a": {"b": 1, "c": 2, "b": 1}}]', "$[1].a.b"),
        (r'{"a": "\u0022:", "b": 1, "b": 2}', "$.b"),  # one text has a quotation mark more than its copy
    ],
)
def test_a_key_of_json_that_is_given_twice_is_refused(tmp_path: Path, text: str, key: str) -> None:
    assert text_refused(tmp_path, text, "x.json") == f"x.json: is not JSON: the key {key} is given twice"


def test_also_in_lines_of_json(tmp_path: Path) -> None:
    lines = json_pod() + "\n\n" + '{"a": 1, "a": 2}\n'
    assert text_refused(tmp_path, lines, "x.json") == "x.json: is not JSON: the key $.a is given twice"


@pytest.mark.parametrize("text", [r'"\":\":\":"', r'"\u0022: \u0022:"', '"a\\\\"', '"é\\u00e9"'])
def test_texts_with_quotation_marks_are_taken(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json_pod().replace('"image"', f'"text": {text}, "image"'), encoding="utf-8")
    assert load.load([str(path)])


class Endless(io.RawIOBase):
    """A device that never ends; counts what was read of it."""

    def __init__(self, piece: bytes) -> None:
        self.given = 0
        self._piece = piece

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "all of it was asked for"
        self.given += size
        return (self._piece * size)[:size]


@pytest.mark.parametrize(("piece", "most"), [(b"\0", 1 << 20), (b"y\n", 3 << 20)])
def test_no_more_is_read_than_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, piece: bytes, most: int
) -> None:
    monkeypatch.setattr(limits, "LARGEST_FILE", 2 << 20)
    endless = Endless(piece)
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": endless}))
    with pytest.raises(ManifestError) as error:
        load.load(["-"])
    assert "is no text" in str(error.value) if piece == b"\0" else "is larger than 2 MiB" in str(error.value)
    assert endless.given <= most


def test_a_device_is_not_read_to_its_end() -> None:
    with pytest.raises(ManifestError, match="/dev/zero: is no text"):
        load.load(["/dev/zero"])


def test_no_path_is_not_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.json").write_text(json_pod())
    for read in (load.load, load.load_names):
        with pytest.raises(ManifestError, match="is no path; name a file"):
            read([""])
    assert load.load(["."])


def huge(**requests: str) -> Json:
    resources = {"requests": {"cpu": "1", **requests}, "limits": requests}
    return pod_manifest(containers=[{"name": "main", "resources": resources}])


@pytest.mark.parametrize("amount", ["3Mi", "1", "2097153"])
def test_huge_pages_come_whole(tmp_path: Path, amount: str) -> None:
    """Source: pkg/apis/core/helper/helpers.go ``IsHugePageResourceValueDivisible``."""
    with pytest.raises(ManifestError, match="is not a whole number of pages of 2Mi"):
        loaded(tmp_path, huge(**{"hugepages-2Mi": amount}))
    assert loaded(tmp_path, huge(**{"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}))


@pytest.mark.parametrize("size", ["x", "0", "-2Mi", "1500m"])
def test_pages_have_a_size(tmp_path: Path, size: str) -> None:
    with pytest.raises(ManifestError, match=r"is no size of a page|is not a qualified name"):
        loaded(tmp_path, huge(**{f"hugepages-{size}": "4Mi"}))


@pytest.mark.parametrize("name", ["a b", "a\nb", "-a", "x" * 254, "Ünïcode", "a\0b"])
def test_names_of_schedulers_can_be_read(tmp_path: Path, name: str) -> None:
    assert "is not a name of a scheduler" in refused(tmp_path, pod_manifest(schedulerName=name))


@pytest.mark.parametrize("name", ["default-scheduler", "my_Scheduler.v2", "example.com/scheduler", "x" * 253])
def test_ordinary_names_of_schedulers_are_taken(tmp_path: Path, name: str) -> None:
    assert loaded(tmp_path, pod_manifest(schedulerName=name))
