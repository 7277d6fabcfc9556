"""Claims for devices, written by binders and leaders."""

import threading
from typing import Any

import pytest
from msgspec.structs import replace

from dsched.manifests import kinds
from dsched.model.claim_requests import FINALIZER, ClaimDeletion, ClaimRelease, ClaimWrite
from dsched.model.meta import PodUid
from dsched.model.resource_claims import ClaimConsumer
from tests.contract.device_claims import KEY, UID, WEB, WEB_UID, allocation, claim, devices, extended, now, users, write
from tests.contract.systems import System
from tests.manifests import pod_manifest


@pytest.fixture(autouse=True)
def there(system: System) -> None:
    system.put(claim(), pod_manifest(WEB, uid=WEB_UID))
    system.hold(WEB_UID, UID, "gpu-0", "gpu-1")


def test_a_claim_gets_its_devices_its_finalizer_and_its_pod(system: System) -> None:
    assert system.cluster.allocate_claims([write("gpu-0", "gpu-1")]) == [""]
    assert now(system)["metadata"]["finalizers"] == [FINALIZER]
    assert devices(system) == ["gpu-0", "gpu-1"]
    assert now(system)["status"]["reservedFor"] == [{"resource": "pods", "name": "web", "uid": WEB_UID}]
    assert "allocationTimestamp" not in now(system)["status"]["allocation"]


def test_writing_it_again_changes_nothing(system: System) -> None:
    wanted = write("gpu-0", stamped=True)
    assert system.cluster.allocate_claims([wanted]) == [""]
    before = now(system)
    assert before["status"]["allocation"]["allocationTimestamp"]
    assert system.another().allocate_claims([wanted, wanted]) == ["", ""]
    assert now(system) == before


def test_who_has_a_claim_that_is_being_deleted_keeps_it(system: System) -> None:
    """Its bind may be asked for once more. Source: dynamicresources.go ``PreBind``, ``IsReservedForPod``."""
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]
    system.put({**now(system), "metadata": {**now(system)["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    before = now(system)
    other = write(pod="default/other", pod_uid="pod-2")
    assert system.cluster.allocate_claims([write("gpu-0"), other]) == ["", f"claim {KEY} got deleted in the meantime"]
    assert now(system) == before


def test_a_pod_comes_to_a_claim_that_has_devices(system: System) -> None:
    other = write(pod="default/other", pod_uid="pod-2")
    (told,) = system.cluster.allocate_claims([other])
    assert told == f"claim {KEY} got deallocated elsewhere in the meantime"
    assert system.cluster.allocate_claims([write("gpu-0"), other]) == ["", ""]
    assert users(system) == [WEB_UID, "pod-2"]


def test_what_stands_in_the_way_is_said(system: System) -> None:
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]
    (told,) = system.cluster.allocate_claims([write("gpu-1")])
    assert told == f"claim {KEY} got allocated elsewhere in the meantime"
    none = ClaimWrite("default/none", UID, WEB, WEB_UID)
    another = ClaimWrite(KEY, "claim-2", WEB, WEB_UID)
    assert system.cluster.allocate_claims([none, another]) == [
        "resourceclaim default/none does not exist",
        f"resourceclaim {KEY} has another uid, {UID}",
    ]


def test_many_claims_at_once_are_each_as_if_alone(system: System) -> None:
    """More than an API server is asked at once; some are there already, in the way, or not there at all."""
    wanted = {f"default/c{n}": replace(write(f"gpu-{n}"), key=f"default/c{n}", uid=f"uid-{n}") for n in range(20)}
    for number, key in enumerate(wanted):
        made = claim()
        made["metadata"] |= {"name": key.partition("/")[2], "uid": f"uid-{number}"}
        if number != 3:
            system.put(made)
    system.hold(WEB_UID, "uid-4", *(f"gpu-{n}" for n in range(20)))
    system.hold(WEB_UID, WEB_UID, *(f"gpu-{n}" for n in range(20)))
    assert system.cluster.allocate_claims([wanted["default/c0"]]) == [""]
    assert system.cluster.allocate_claims([replace(wanted["default/c1"], allocation=allocation("gpu-x"))]) in (
        [""],
        ["the devices of resourceclaim default/c1 are no longer held for its pod"],
    )
    answers = system.cluster.allocate_claims(list(wanted.values()))
    alone = system.another()
    assert answers == [alone.allocate_claims([each])[0] for each in wanted.values()]
    assert [number for number, answer in enumerate(answers) if answer] in ([3], [1, 3])
    given = system.read(kinds.RESOURCE_CLAIM, "default/c19")
    assert given is not None
    assert given["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-19"


def test_a_claim_has_so_many_users_and_no_more(system: System) -> None:
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]
    full = now(system)
    full["status"]["reservedFor"] = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(256)]
    system.put(full)
    (told,) = system.cluster.allocate_claims([write()])
    assert told == (
        f'add reservation to claim {KEY}: ResourceClaim.resource.k8s.io "{KEY.partition("/")[2]}" is invalid: '
        "status.reservedFor: Too many: 257: must have at most 256 items"
    )


def test_two_binders_at_once_give_it_once(system: System) -> None:
    wanted = [write("gpu-0"), *(write(pod=f"default/p{n}", pod_uid=f"u{n}") for n in range(5))]
    assert system.cluster.allocate_claims(wanted[:1]) == [""]
    answers: list[str] = []
    clusters = [system.another() for _ in range(2)]
    threads = [threading.Thread(target=lambda own=own: answers.extend(own.allocate_claims(wanted))) for own in clusters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [""] * 12
    assert sorted(users(system)) == sorted(each.pod_uid for each in wanted)
    assert devices(system) == ["gpu-0"]


def test_a_claim_is_given_back(system: System) -> None:
    other = write(pod="default/other", pod_uid="pod-2")
    system.cluster.allocate_claims([write("gpu-0"), other])
    release = ClaimRelease(KEY, UID, WEB_UID, deallocate=True)
    for _ in range(2):
        assert system.cluster.release_claims([release]) == [""]
        assert (users(system), devices(system)) == (["pod-2"], ["gpu-0"]), "the other pod uses it"
    assert system.cluster.release_claims([ClaimRelease(KEY, UID, PodUid("pod-2"))]) == [""]
    assert (users(system), devices(system)) == ([], ["gpu-0"]), "its devices stay its own"
    assert system.cluster.release_claims([release]) == [""]
    assert "allocation" not in now(system).get("status", {})


def test_the_claim_of_a_group_is_reserved_for_it_once_and_given_back_by_it_alone(system: System) -> None:
    group = ClaimConsumer("scheduling.k8s.io", "podgroups", "train", "group-1")
    system.hold("pod-2", UID, "gpu-0")
    pods = [write("gpu-0"), write("gpu-0", pod="default/other", pod_uid="pod-2")]
    assert system.cluster.allocate_claims([replace(each, consumer=group) for each in pods]) == ["", ""]
    wanted = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "group-1"}
    assert now(system)["status"]["reservedFor"] == [wanted]
    assert system.cluster.release_claims([ClaimRelease(KEY, UID, WEB_UID)]) == [""]
    assert users(system) == ["group-1"], "other pods of the group use it"
    assert system.cluster.release_claims([ClaimRelease(KEY, UID, "group-1")]) == [""]
    assert (users(system), devices(system)) == ([], ["gpu-0"])


def test_another_claim_of_the_name_is_left_alone(system: System) -> None:
    system.cluster.allocate_claims([write("gpu-0")])
    gone = [ClaimRelease(KEY, "claim-0", WEB_UID, True), ClaimRelease("default/none", UID, WEB_UID, True)]
    assert system.cluster.release_claims(gone) == ["", ""]
    assert system.cluster.delete_claim(ClaimDeletion(KEY, "claim-0")) == ""
    assert devices(system) == ["gpu-0"]


def test_the_claim_of_extended_resources_is_made_once(system: System) -> None:
    made = system.cluster.create_claim(extended())
    assert (made.problem, made.made) == ("", True)
    assert system.another().create_claim(extended()) == made._replace(made=None)
    claims = [each for each in system.cluster.get_objects("ResourceClaim", [made.key]) if each]
    (found,) = claims
    assert made.key.startswith("default/web-extended-resources-")
    assert found["metadata"]["uid"] == made.uid
    pod = system.read(kinds.POD, WEB)
    assert pod is not None
    assert pod["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": found["metadata"]["name"],
        "requestMappings": [{"containerName": "main", "resourceName": "x/gpu", "requestName": "container-0-request-0"}],
    }
    assert "already" not in system.cluster.create_claim(extended()).problem
    assert "asks for something else" in system.cluster.create_claim(extended(of="tpu")).problem


def test_it_is_made_again_after_it_was_deleted(system: System) -> None:
    made = system.cluster.create_claim(extended())
    system.hold(WEB_UID, WEB_UID, "gpu-0")
    given = ClaimWrite(made.key, made.uid, WEB, WEB_UID, allocation("gpu-0"))
    assert system.cluster.allocate_claims([given]) == [""]
    for _ in range(2):
        assert system.cluster.delete_claim(ClaimDeletion(made.key, made.uid)) == ""
        assert system.read(kinds.RESOURCE_CLAIM, made.key) is None
    again = system.cluster.create_claim(extended())
    assert (again.problem, again.key) == ("", made.key)
    assert again.uid != made.uid


def test_a_name_that_is_taken_is_passed_over(system: System) -> None:
    first = system.cluster.create_claim(extended())
    value = system.read(kinds.RESOURCE_CLAIM, first.key)
    assert value is not None
    system.cluster.delete_claim(ClaimDeletion(first.key, first.uid))
    foreign = {name: item for name, item in value["metadata"].items() if name in ("name", "namespace")}
    system.put({**value, "metadata": {**foreign, "uid": "foreign"}})
    second = system.cluster.create_claim(extended())
    assert second.problem == ""
    assert second.key != first.key


def test_two_binders_at_once_make_one(system: System) -> None:
    made: list[Any] = []
    clusters = [system.another() for _ in range(4)]
    threads = [threading.Thread(target=lambda own=own: made.append(own.create_claim(extended()))) for own in clusters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(each.key, each.uid, each.problem) for each in made}) == 1
    assert made[0].problem == ""
    assert sum(each.made is not None for each in made) == 1, "one of them says that it was made"


def test_no_claim_is_made_for_a_pod_that_is_gone(system: System) -> None:
    assert system.cluster.create_claim(extended(pod_uid="pod-0")).problem == f"pod {WEB} does not exist any more"
