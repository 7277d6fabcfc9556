"""Claims that nobody names beforehand, in a sequence: those for extended resources that devices of a class meet, and
those that are made from templates.

What the controllers do is part of the sequence: it makes the claims of templates, and names them in the status of their
pods, together or one after the other. Claims for extended resources are made by the scheduler itself.
"""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.devices import DRIVER, asking, make_claim, result
from tests.parity.sequence_devices import Devices, Happening
from tests.parity.sequence_settings import CARD

Json = dict[str, Any]

FAST, IMPLICIT = "example.com/fast", "deviceclass.resource.kubernetes.io/slow"
RESOURCES = (CARD, CARD, CARD, FAST, IMPLICIT)
"""Any class stands for a resource of its own name; two of them for others besides. Some nodes have cards themselves."""
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


class Generated(Devices):
    """Devices that pods ask for by templates, and as extended resources.

    Args:
        waiting: the pods that wait, by name, as they are now.
    """

    def __init__(self, chance: Random, nodes: Sequence[str], rack: str, waiting: dict[str, Json]) -> None:
        super().__init__(chance, nodes, rack)
        self._waiting = waiting
        self._late_made: list[Json] = []
        self._unnamed: dict[str, list[Json]] = {}
        """Pods to what their status is to say of claims."""
        for made, resource in zip(self._classes, (CARD, FAST), strict=False):
            made["spec"]["extendedResourceName"] = resource

    def amounts(self) -> Json:
        """What a node has of the resources itself."""
        chance = self._chance
        found = {CARD: str(chance.randint(0, 3))} if chance.random() < 0.35 else {}
        return found | ({FAST: str(chance.choice([0, 1, 2]))} if chance.random() < 0.15 else {})

    # -- what pods ask for ---------------------------------------------------------------------------------------------

    def claimed_by(self, pods: Sequence[Json], group: str) -> list[Json]:
        chance, found = self._chance, list[Json]()
        how = chance.choice(["extended", "extended", "extended", "template", "template", "both", "other"])
        if how == "other":
            return super().claimed_by(pods, group)
        share = chance.choice([1.0, 1.0, 0.6])
        names = (IMPLICIT,) if how == "both" else RESOURCES
        asked, (requests, more) = self._containers(names), self._wish()
        for pod in pods:
            if chance.random() >= share:
                continue
            if how != "template":
                self._ask(pod, asked if chance.random() < 0.8 else self._containers(names))
            if how != "extended":
                found += self._from_template(pod, requests, more)
        return found

    def _containers(self, names: Sequence[str]) -> list[Json]:
        """What the containers of a pod ask for, the first of which it has already; ``init`` for those before them.

        Nobody but devices may meet what a pod asks for that has other claims, too: kube-scheduler tries to bind such
        a pod again and again where the node has the resource itself (``patchPodExtendedResourceClaimStatus``).
        """
        chance = self._chance
        found: list[Json] = [{"main": self._few(names)}]
        if chance.random() < 0.25:
            found.append({"other": self._few(names)})
        if chance.random() < 0.3:
            found.append({"init": self._few(names), "sidecar": chance.random() < 0.3})
            if chance.random() < 0.3:
                found.append({"init": self._few(names), "sidecar": chance.random() < 0.3})
        return found

    def _few(self, names: Sequence[str]) -> Json:
        chance = self._chance
        mine = chance.sample(names, min(2, len(names))) if chance.random() < 0.25 else [chance.choice(names)]
        return {name: str(chance.choice([1, 1, 1, 2, 3, 0])) for name in mine}

    def _ask(self, pod: Json, containers: Sequence[Json]) -> None:
        spec = pod["spec"]
        for number, each in enumerate(containers):
            (wanted,) = [each[name] for name in ("main", "other", "init") if name in each]
            if "main" in each:
                amounts = spec["containers"][0]["resources"]
                amounts["requests"] = {**amounts["requests"], **wanted}
                amounts["limits"] = {**amounts.get("limits", {}), **wanted}
                continue
            made: Json = {"name": f"c{number}", "image": "nginx", "resources": {"requests": wanted, "limits": wanted}}
            if "other" in each:
                spec["containers"].append(made)
            else:
                made |= {"restartPolicy": "Always"} if each["sidecar"] else {}
                spec.setdefault("initContainers", []).append(made)

    def _from_template(self, pod: Json, requests: Sequence[Json], more: Json) -> list[Json]:
        """A claim for the pod alone. It is there, and named in the pod's status, when the pod comes, or one of both is,
        or none."""
        chance, name = self._chance, f"{pod['metadata']['name']}-device"
        pod["spec"].setdefault("resourceClaims", []).append({"name": "own", "resourceClaimTemplateName": "own"})
        how = chance.random()
        if how < 0.08:  # the controller has found that it needs none
            pod["status"] = {"resourceClaimStatuses": [{"name": "own"}]}
            return []
        claim = self._claim(name, *copy.deepcopy(requests), **more)
        metadata = pod["metadata"] if how > 0.14 else {"name": "somebody", "uid": ""}
        if metadata["uid"]:
            claim["metadata"]["ownerReferences"] = [_owner(metadata)]
        says = [{"name": "own", "resourceClaimName": name}]
        if how < 0.45:
            pod["status"] = {"resourceClaimStatuses": says}
            return [claim]
        if how < 0.6:
            pod["status"] = {"resourceClaimStatuses": says}
            self._late_made.append(claim)
            return []
        self._unnamed[pod["metadata"]["name"]] = says
        if how < 0.75:
            return [claim]
        self._late_made.append(claim)
        return []

    def _in_use(self, pod: Json) -> Json | None:
        """The claim of a pod that runs may be one for its extended resources."""
        claim = super()._in_use(pod)
        if claim is None or self._chance.random() < 0.5:
            return claim
        device = claim["status"]["allocation"]["devices"]["results"][0]
        request = "container-0-request-1"  # after cpu, before memory
        name = f"{pod['metadata']['name']}-extended"
        self._claims.pop(claim["metadata"]["name"])
        made = make_claim(f"default/{name}", asking(request), **claim["status"])
        made["spec"]["devices"]["requests"][0]["exactly"].pop("selectors")
        made["status"]["allocation"]["devices"]["results"] = [
            result(device["device"], pool=device["pool"], request=request, driver=DRIVER)
        ]
        made["metadata"] |= {
            "uid": f"uid-claim-{name}",
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [_owner(pod["metadata"])],
            "finalizers": claim["metadata"]["finalizers"],
        }
        self._ask(pod, [{"main": {CARD: "1"}}])
        del pod["spec"]["resourceClaims"]
        mapping = {"containerName": "main", "resourceName": CARD, "requestName": request}
        pod["status"] = {
            **pod.get("status", {}),
            "extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": [mapping]},
        }
        self._claims[name] = made
        return made

    # -- what happens --------------------------------------------------------------------------------------------------

    def happening(self) -> Happening:
        if (self._late_made or self._unnamed) and self._chance.random() < 0.6:
            return self._controller()
        if self._chance.random() < 0.12:
            return self._resource_changes()
        return super().happening()

    def _controller(self) -> Happening:
        """Claims that were to come are there, pods are told of theirs, or both."""
        chance = self._chance
        how = chance.choice(["claims", "names", "both", "both"])
        found: Happening = {}
        if how != "names":
            found["resourceClaims"], self._late_made = self._late_made, []
        if how != "claims":
            pods = []
            for name in [each for each in self._unnamed if each in self._waiting]:
                pod = self._waiting[name] = copy.deepcopy(self._waiting[name])
                pod["status"] = {"resourceClaimStatuses": self._unnamed[name]}
                pods.append(pod)
            self._unnamed = {}
            found["pods"] = pods
        return found

    def _resource_changes(self) -> Happening:
        """A class stands for another resource, or for none of its own."""
        place = self._chance.randrange(len(self._classes))
        if self._late and place:
            return {}
        made = self._classes[place] = copy.deepcopy(self._classes[place])
        taken = [each["spec"].get("extendedResourceName") for each in self._classes]
        free = [name for name in (CARD, FAST) if name not in taken]
        if "extendedResourceName" in made["spec"]:
            del made["spec"]["extendedResourceName"]
        elif free:
            made["spec"]["extendedResourceName"] = free[0]
        else:
            return {}
        return {"deviceClasses": [made]}


def _owner(metadata: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
