"""Objects that somebody has written into Redis past all checks: one unreadable object each, and the rest goes on."""

import json
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.cluster.standalone import keys
from dsched.errors import ClusterError
from dsched.fsck.inspection import inspect
from dsched.manifests import kinds
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest

WIDE = 10**20


def write(rig: Rig, kind: kinds.Kind, value: dict[str, Any] | str) -> None:
    """As in redis-cli, under the name ``odd``."""
    key = "default/odd" if kind.namespaced else "odd"
    if isinstance(value, dict):
        place = {"namespace": "default"} if kind.namespaced else {}
        metadata = {"name": "odd", "uid": "uid-odd", "resourceVersion": "1", **place, **value.pop("metadata", {})}
        value = json.dumps({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **value})
    rig.store.redis.hset(rig.store.key(keys.objects(kind).name), key, value)
    if kind is kinds.POD:
        rig.store.redis.hset(rig.store.key(keys.STATE.name), key, "uid-odd n1 5 - - Running 1")


def container(**requests: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}


ODD: dict[str, tuple[kinds.Kind, Any]] = {
    "toleration": (kinds.POD, {"spec": {"tolerations": [{"operator": "Exists", "tolerationSeconds": WIDE}]}}),
    "unquoted request": (kinds.POD, container(cpu=WIDE)),
    "request of a bound pod": (kinds.POD, container(cpu="lots")),
    "below 64 bits": (kinds.POD, container(memory="-1e40")),
    "allocatable": (kinds.NODE, {"status": {"allocatable": {"cpu": "1e4000"}}}),
    "negative allocatable": (kinds.NODE, {"status": {"allocatable": {"cpu": "-1e40"}}}),
    "unquoted allocatable": (kinds.NODE, {"status": {"allocatable": {"cpu": WIDE}}}),
    "image": (kinds.NODE, {"status": {"images": [{"names": ["a"], "sizeBytes": WIDE}]}}),
    "version": (kinds.NODE, {"metadata": {"resourceVersion": "9" * 5000}}),
    "superscript": (kinds.NODE, {"metadata": {"resourceVersion": "²"}}),
    "port": (kinds.SERVICE, {"spec": {"ports": [{"port": WIDE}]}}),
    "selector": (kinds.SERVICE, {"spec": {"selector": 5}}),
    "metadata": (kinds.SERVICE, '{"metadata": []}'),
    "no name": (kinds.SERVICE, '{"metadata": {"resourceVersion": "1"}}'),
    "budget": (kinds.POD_DISRUPTION_BUDGET, {"status": {"disruptionsAllowed": "many"}}),
    "driver": (kinds.CSI_NODE, {"spec": {"drivers": [{"name": "d", "allocatable": {"count": WIDE}}]}}),
    "class": (kinds.PRIORITY_CLASS, {"value": WIDE}),
    "deep": (kinds.SERVICE, {"spec": {"a": json.loads("[" * 900 + "]" * 900)}}),
    "very deep": (kinds.SERVICE, "[" * 100_000),
    "no text": (kinds.SERVICE, '{"metadata":{"name":"\\ud800","resourceVersion":"1"}}'),
}


@pytest.mark.parametrize(("kind", "value"), ODD.values(), ids=ODD)
def test_an_object_that_cannot_be_taken_in_holds_nobody_up(
    rig: Rig, kind: kinds.Kind, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("default/before"))
    write(rig, kind, dict(value) if isinstance(value, dict) else value)
    led = rig.lead()
    rig.apply(pod_manifest("default/later"))
    led.run()
    assert rig.node_of("default/before") == rig.node_of("default/later") == "n1"
    left_out = [(each.kind, each.key) for each in caplog.records if getattr(each, "action", "") == "decode"]  # type: ignore[attr-defined]
    assert (kind.name, "default/odd" if kind.namespaced else "odd") in left_out
    if kind in (kinds.POD, kinds.NODE):
        assert [note.rule for note in inspect(rig.store, rig.clock, pause_s=0).notes] == ["unreadable"]


def run(rig: Rig, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--redis-url", rig.store.url, "--name", rig.store.name])


@pytest.mark.parametrize(("kind", "value"), ODD.values(), ids=ODD)
def test_commands_show_the_others_and_name_it(rig: Rig, kind: kinds.Kind, value: Any) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("default/before"))
    write(rig, kind, dict(value) if isinstance(value, dict) else value)
    for asked, name in (("nodes", "n1"), ("pods", "before")):
        shown = run(rig, "get", asked)
        assert (shown.exit_code, name in shown.output) == (0, True), shown.output
    assert "odd cannot be read and is left out" in run(rig, "get", kind.plural).output
    assert run(rig, "describe", "node", "n1").exit_code == 0
    assert isinstance(run(rig, "get", kind.plural, "odd").exception, ClusterError)
    rig.apply(pod_manifest("default/later"))
    assert run(rig, "delete", kind.plural, "odd").exit_code == 0
    assert "odd" not in run(rig, "get", kind.plural).output
