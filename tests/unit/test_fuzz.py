"""Whatever comes in from outside, only the errors that are promised come out."""

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched import config
from dsched.engine import replica_delta, wire
from dsched.errors import ConfigError, DschedError, ManifestError, QuantityError, SelectorError, StateError
from dsched.framework.validation import PluginFailure
from dsched.manifests import documents, load
from dsched.manifests.reader import Document
from dsched.model import messages, quantity, tape
from dsched.model.messages import BindRequest, ClassResult, EvaluateShard, ScoreColumn, ShardResult, VerdictColumn
from dsched.model.meta import PodUid
from dsched.state import location, reservations

SOME = settings(max_examples=150)

WORDS = st.sampled_from(
    [
        *("a", "b", "kind", "Pod", "Node", "List", "metadata", "name", "spec", "containers", "null", "true", "~", "y"),
        *(
            "1",
            "-1",
            "1:30",
            "0x_",
            "0b_",
            "1e999",
            ".nan",
            ".inf",
            "2024-01-01",
            "9" * 400,
            "<<",
            "=",
            "''",
            '"',
            "\\",
        ),
        *(":", ": ", "- ", "? ", "[", "]", "{", "}", ",", "&a ", "*a ", "!!set ", "!!binary ", "!!int ", "!!map "),
        *(
            "!!python/object:os.system ",
            "\n",
            "\n  ",
            "\n    ",
            "---\n",
            "...\n",
            "%YAML 1.1\n",
            "#",
            "|",
            ">",
            "\t",
            "\x00",
        ),
        *("apiVersion", "v1", "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration", "profiles", "\ufeff"),
    ]
)
TEXTS = st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=60)
BYTES = st.binary(max_size=80) | TEXTS.map(lambda text: text.encode(errors="surrogatepass"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=6), inner, max_size=4)
)


def _packed(value: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return b""


def mutated(template: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The template with one of its values, at any depth, replaced by anything."""
    paths = list(_paths(template, ()))

    def replace(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
        made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(template))
        place: Any = made
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        return made

    return st.builds(replace, st.sampled_from(paths), VALUES)


def _paths(value: Any, at: tuple[Any, ...]) -> Any:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*at, step)
        yield from _paths(inner, (*at, step))


POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"a/b": "c"}},
    "spec": {
        "priority": 5,
        "schedulerName": "default-scheduler",
        "nodeSelector": {"zone": "a"},
        "containers": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": 1}},
                "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
            }
        ],
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}},
                    }
                ]
            },
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "spec": {"unschedulable": False, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "images": [{"names": ["x"], "sizeBytes": 1}],
    },
}
CONFIGURATION: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 50,
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 10,
    "profiles": [
        {
            "schedulerName": "one",
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 2}]}},
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}
                    },
                }
            ],
        }
    ],
}


@SOME
@given(BYTES, st.sampled_from(["x.yaml", "x.json"]))
def test_any_bytes_are_a_manifest_or_refused(content: bytes, name: str) -> None:
    with contextlib.suppress(ManifestError, RecursionError):  # the reader names the file of the latter
        documents.parse(content, name)


@settings(max_examples=50)
@given(BYTES)
def test_any_file_is_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content)
    with contextlib.suppress(ManifestError):
        load.load([str(path)])


@SOME
@given(mutated(POD) | mutated(NODE) | VALUES.map(lambda value: {"kind": "Pod", "apiVersion": "v1", "metadata": value}))
def test_any_object_is_taken_or_refused(value: dict[str, Any]) -> None:
    with contextlib.suppress(ManifestError):
        load.check([Document("x", value)])


@SOME
@given(BYTES)
def test_any_bytes_are_a_configuration_or_refused(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        config.load(content)


@SOME
@given(mutated(CONFIGURATION))
def test_any_configuration_is_taken_or_refused(value: dict[str, Any]) -> None:
    with contextlib.suppress(ConfigError):
        config.load(yaml.safe_dump(value))


def test_a_configuration_nested_without_end_is_refused() -> None:
    for text in ("[" * 20_000, "- " * 20_000, '{"a":' * 20_000):
        with pytest.raises(ConfigError):
            config.load(text)


QUANTITIES = st.text("0123456789.+-eEmkMGTPEinu _", max_size=12) | st.text(max_size=8)


@SOME
@given(QUANTITIES | st.integers() | st.floats() | st.integers(1, 9000).map(lambda n: "9" * n + "Ei"))
def test_any_text_is_a_quantity_or_refused(text: str | int | float) -> None:
    with contextlib.suppress(QuantityError):
        assert isinstance(quantity.nano(text), int)


def test_more_digits_than_python_reads_are_a_large_number_or_a_small_one() -> None:
    assert quantity.nano("9" * 5000) >= quantity.nano("1e900")
    assert quantity.nano("0." + "0" * 5000 + "1") == 1
    assert quantity.nano("0" * 5000 + "7") == quantity.nano("7")


@SOME
@given(BYTES | VALUES.map(_packed), st.sampled_from([EvaluateShard, ShardResult, BindRequest]))
def test_any_bytes_are_a_message_or_refused(raw: bytes, kind: Any) -> None:
    with contextlib.suppress(msgspec.MsgspecError):
        messages.decode(raw, kind)


def test_a_text_that_is_none_is_refused() -> None:
    """Found by `tests.fuzz`: msgspec has another error for it."""
    for raw in (b"\x81\xa4type\xa1\xff", b"\x82\xa4type\xabBindRequest\xa6config\xa1\xff"):
        with pytest.raises(msgspec.MsgspecError):
            messages.decode(raw, BindRequest)
    with pytest.raises(msgspec.MsgspecError):
        replica_delta.decode(b"\x91\x92\xff\x81\xa4type\xa1\xff")
    with pytest.raises(msgspec.MsgspecError):
        tape.decode(b'{"type": "\xff"}')
    with pytest.raises(ManifestError, match=r"x\.json: is not JSON: .*UTF-8"):
        documents.parse(b'{"kind": "\xff"}', "x.json")


@SOME
@given(BYTES | VALUES.map(_packed))
def test_any_bytes_are_changes_or_refused(raw: bytes) -> None:
    with contextlib.suppress(msgspec.MsgspecError):
        replica_delta.decode(raw)


COLUMNS = st.lists(st.integers(-2, 4), max_size=5).map(lambda rows: np.array(rows, dtype="<i4").tobytes())
STATUSES = st.lists(st.tuples(st.integers(-1, 9), st.lists(st.text(max_size=3), max_size=2)), max_size=3)


@SOME
@given(
    st.lists(st.builds(VerdictColumn, st.just("P"), STATUSES, COLUMNS | st.binary(max_size=9)), max_size=2),
    st.lists(st.builds(ScoreColumn, st.just("P"), st.binary(max_size=25)), max_size=2),
)
def test_any_answer_of_an_evaluator_is_sound_or_refused(verdicts: Any, scores: Any) -> None:
    rows = 3
    with contextlib.suppress(ValueError, PluginFailure):
        columns = wire.unpack(ClassResult(verdicts, scores), rows)
        for verdict in columns.verdicts.values():
            assert verdict.index.shape == (rows,)
            assert all(0 <= number <= len(verdict.statuses) for number in verdict.index)


@SOME
@given(st.text(max_size=30) | TEXTS | st.from_regex(r"rediss?(\+sentinel)?://[^ ]{0,30}"))
def test_any_text_is_a_redis_url_or_refused(url: str) -> None:
    with contextlib.suppress(StateError):
        location.broker(url)
    location.shown(url)


@SOME
@given(st.text(max_size=30))
def test_any_text_is_a_reservation_or_refused(text: str) -> None:
    with contextlib.suppress(StateError):
        reservations.parse(PodUid("u"), text)


def test_all_of_these_are_the_projects_own() -> None:
    assert all(issubclass(each, DschedError) for each in (ManifestError, ConfigError, QuantityError, SelectorError))


@pytest.mark.parametrize("name", ["x.yaml", "x.json"])
def test_a_file_of_nulls_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x00" * 100)
    with pytest.raises(ManifestError):
        load.load([str(path)])
