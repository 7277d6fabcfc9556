"""Volumes and their claims, as PreBind writes them: a compare-and-set each."""

import threading
from typing import Any

import pytest
from msgspec.structs import replace

from dsched.manifests import kinds
from dsched.model.meta import NodeName
from dsched.model.volumes import ClaimBinding, NodeSelection
from tests.contract.systems import System
from tests.manifests import Json
from tests.storage import make_class, make_volume

CLAIMS, VOLUMES = kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME
DATA, MORE = "default/data", "default/more"
SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def claim(name: str = "data", class_name: str = "local") -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "storageClassName": class_name},
    }


def volume(name: str = "pv", size: str = "10Gi", **fields: Any) -> Json:
    found = make_volume(name, size, **fields)
    del found["metadata"]["resourceVersion"]
    return found


def binding(system: System, name: str = "pv", key: str = DATA) -> ClaimBinding:
    """For claim and volume as they are now."""
    uid = system.there(CLAIMS, key)["metadata"]["uid"]
    return ClaimBinding(key, uid, name, system.version_of(VOLUMES, name))


def selection(system: System, node: str = "n1") -> NodeSelection:
    uid = system.there(CLAIMS, DATA)["metadata"]["uid"]
    return NodeSelection(DATA, uid, system.version_of(CLAIMS, DATA), NodeName(node))


class TestBinding:
    @pytest.fixture(autouse=True)
    def there(self, system: System) -> None:
        system.put(make_class(), volume(), volume("other"), claim(), claim("more"))

    def owner(self, system: System, name: str = "pv") -> Json | None:
        found: Json | None = system.there(VOLUMES, name)["spec"].get("claimRef")
        return found

    def test_a_volume_gets_its_claim(self, system: System) -> None:
        before = system.there(VOLUMES, "pv")
        asked = binding(system)
        assert list(system.cluster.bind_volumes([asked])) == [""]
        after, reference = system.there(VOLUMES, "pv"), self.owner(system)
        assert reference is not None
        assert {name: reference[name] for name in ("apiVersion", "kind", "namespace", "name", "uid")} == {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "default",
            "name": "data",
            "uid": asked.claim_uid,
        }
        assert after["metadata"]["annotations"] == {BY_CONTROLLER: "yes"}
        assert after["spec"] == {**before["spec"], "claimRef": reference}

    def test_binding_again_changes_nothing(self, system: System) -> None:
        asked = binding(system)
        assert list(system.cluster.bind_volumes([asked, asked])) == ["", ""]
        before = system.there(VOLUMES, "pv"), system.there(CLAIMS, DATA)
        assert list(system.another().bind_volumes([asked])) == [""]
        assert (system.there(VOLUMES, "pv"), system.there(CLAIMS, DATA)) == before

    def test_a_volume_that_names_the_claim_already_is_its(self, system: System) -> None:
        """As an earlier call has left it, whatever version it has by now."""
        asked = binding(system)
        reference = {"namespace": "default", "name": "data", "uid": asked.claim_uid}
        system.put(volume(claimRef=reference))
        assert list(system.cluster.bind_volumes([asked])) == [""]
        assert self.owner(system) == reference

    def test_a_volume_reserved_for_the_claim_by_name_stays_its_owners_choice(self, system: System) -> None:
        system.put(volume(claimRef={"namespace": "default", "name": "data"}))
        asked = binding(system)
        assert list(system.cluster.bind_volumes([asked])) == [""]
        reference = self.owner(system)
        assert reference is not None and reference["uid"] == asked.claim_uid
        assert BY_CONTROLLER not in (system.there(VOLUMES, "pv")["metadata"].get("annotations") or {})

    def test_a_volume_that_has_changed_is_not_bound(self, system: System) -> None:
        asked = binding(system)
        system.put(volume(size="20Gi"))
        (why,) = system.cluster.bind_volumes([asked])
        assert why.startswith("persistentvolume pv has changed since the pod was reserved: ")
        assert self.owner(system) is None

    def test_one_that_is_somebody_elses(self, system: System) -> None:
        system.cluster.bind_volumes([binding(system)])
        assert list(system.cluster.bind_volumes([binding(system, key=MORE)])) == [
            "persistentvolume pv is bound to persistentvolumeclaim default/data"
        ]
        reference = self.owner(system)
        assert reference is not None and reference["name"] == "data"

    def test_each_is_answered_in_order(self, system: System) -> None:
        asked = binding(system)
        renewed, lost = replace(asked, claim_uid="older"), replace(asked, claim="default/lost")
        wanted = [replace(asked, volume="gone"), renewed, lost, asked]
        assert list(system.cluster.bind_volumes(wanted)) == [
            "persistentvolume gone does not exist",
            f"persistentvolumeclaim default/data has another uid, {asked.claim_uid}",
            "persistentvolumeclaim default/lost does not exist",
            "",
        ]
        assert list(system.cluster.bind_volumes([])) == []

    def test_binders_at_the_same_time(self, system: System) -> None:
        asked = {key: binding(system, key=key) for key in (DATA, MORE)}
        clusters = [system.another() for _ in range(4)]
        start = threading.Barrier(4)
        answers: dict[tuple[int, str], list[str]] = {}

        def run(number: int, key: str) -> None:
            start.wait()
            answers[number, key] = list(clusters[number].bind_volumes([asked[key]]))

        threads = [threading.Thread(target=run, args=(at, key)) for at, key in enumerate(list(asked) * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        reference = self.owner(system)
        assert reference is not None
        won = f"default/{reference['name']}"
        assert [key for (_, key), found in answers.items() if found == [""]] == [won, won]


class TestSelecting:
    @pytest.fixture(autouse=True)
    def there(self, system: System) -> None:
        system.put(make_class("fast", "ssd.example.com"), claim(class_name="fast"))

    def test_the_node_is_written_once(self, system: System) -> None:
        asked = selection(system)
        assert list(system.cluster.select_nodes([asked, asked])) == ["", ""]
        before = system.there(CLAIMS, DATA)
        assert before["metadata"]["annotations"] == {SELECTED: "n1"}
        assert list(system.another().select_nodes([asked])) == [""]
        assert system.there(CLAIMS, DATA) == before

    def test_another_node_is_refused(self, system: System) -> None:
        asked = selection(system, "n2")
        system.cluster.select_nodes([selection(system)])
        (why,) = system.cluster.select_nodes([asked])
        assert why.startswith("persistentvolumeclaim default/data has changed since the pod was reserved: ")
        assert system.there(CLAIMS, DATA)["metadata"]["annotations"] == {SELECTED: "n1"}

    def test_each_is_answered_in_order(self, system: System) -> None:
        asked = selection(system)
        wanted = [replace(asked, claim="default/lost"), replace(asked, claim_uid="older"), asked]
        assert list(system.cluster.select_nodes(wanted)) == [
            "persistentvolumeclaim default/lost does not exist",
            f"persistentvolumeclaim default/data has another uid, {asked.claim_uid}",
            "",
        ]
