"""What happens to devices in a sequence, made by chance: who offers which, who claims them, alone or together, and what
changes about that while pods wait."""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.devices import (
    DRIVER,
    alternative,
    asking,
    make_claim,
    make_class,
    make_device,
    make_slice,
    one_of,
    result,
    taint_rule,
)

Json = dict[str, Any]
Happening = dict[str, Any]
"""Objects that come or change, by the lists that they are in; ``gone``: list and name of those that go."""

NET = "net"
"""A pool that any node can reach, or those of a rack."""
MOST = 256
"""So many may use a claim."""
SLOW = 0.3
READY, FAILED = "ready", "failed"
"""What drivers may say of devices that pods wait for, and the conditions that say so."""
BROKEN = {"key": "broken", "effect": "NoSchedule"}


class Devices:
    """Slices, classes, claims and rules.

    Args:
        nodes: names of nodes that may offer devices.
        rack: the label of nodes that share devices.
    """

    def __init__(self, chance: Random, nodes: Sequence[str], rack: str) -> None:
        self._chance, self._nodes, self._rack = chance, list(nodes), rack
        self._claims: dict[str, Json] = {}
        self._gone: dict[str, Json] = {}
        self._slices: dict[str, Json] = {}
        self._rules: dict[str, Json] = {}
        self._late = chance.random() < 0.15
        """Whether two of the classes are not there."""
        self.slow = chance.random() < SLOW
        """Whether some devices have to be made ready for their pods, which wait for that."""
        self._number = 0
        self._classes = [
            make_class("gpu"),
            make_class("fast", f'device.attributes["{DRIVER}"].model == "a"'),
            make_class("slow", f'device.attributes["{DRIVER}"].model == "b"'),
        ]

    # -- the beginning -------------------------------------------------------------------------------------------------

    def begin(self, running: Sequence[Json]) -> Happening:
        """What is there first; some of these pods have devices already."""
        for node in self._nodes:
            if count := self._chance.choice([0, 1, 2, 2, 3, 4]):
                self._put(make_slice(node, [self._device(f"d{at}") for at in range(count)]))
        if self._chance.random() < 0.25:
            self._put(self._shared_slice())
        claims = [claim for pod in running if (claim := self._in_use(pod)) is not None]
        if self._chance.random() < 0.15:
            self._rule()
        return {
            "deviceClasses": self._classes[:1] if self._late else self._classes,
            "resourceSlices": list(self._slices.values()),
            "deviceTaintRules": list(self._rules.values()),
            "resourceClaims": claims,
        }

    def _device(self, name: str) -> Json:
        chance = self._chance
        attributes = {"model": chance.choice("ab"), "numa": chance.randrange(2)}
        more: Json = {"taints": [BROKEN]} if chance.random() < 0.05 else {}
        if self.slow and chance.random() < 0.5:
            more |= {"bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
        return make_device(name, attributes=attributes, **more)

    def _shared_slice(self) -> Json:
        devices = [self._device(f"net{at}") for at in range(self._chance.randint(1, 3))]
        if self._chance.random() < 0.5:
            return make_slice("", devices, pool=NET, allNodes=True)
        among = [{"key": self._rack, "operator": "In", "values": [self._chance.choice(["r0", "r1"])]}]
        return make_slice("", devices, pool=NET, nodeSelector={"nodeSelectorTerms": [{"matchExpressions": among}]})

    def _put(self, made: Json) -> Json:
        self._slices[made["metadata"]["name"]] = made
        return made

    def _in_use(self, pod: Json) -> Json | None:
        """A claim that a pod on a node has devices of that node with."""
        node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
        taken = {
            (each["pool"], each["device"])
            for claim in self._claims.values()
            for each in claim["status"].get("allocation", {"devices": {"results": ()}})["devices"]["results"]
        }
        offered = self._slices.get(f"{DRIVER}-{node}", {"spec": {"devices": ()}})["spec"]["devices"]
        free = [each["name"] for each in offered if (node, each["name"]) not in taken]
        if not free or self._chance.random() < 0.5:
            return None
        claim = self._claim(name, asking())
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        claim["status"]["allocation"] = {
            "devices": {"results": [result(free[0], pool=node)]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        }
        claim["status"]["reservedFor"] = [{"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}]
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
        return claim

    def _claim(self, name: str, *requests: Json, **more: Any) -> Json:
        claim = self._claims[name] = make_claim(f"default/{name}", *requests, **more)
        claim["metadata"]["uid"] = f"uid-claim-{name}"
        return claim

    # -- claims --------------------------------------------------------------------------------------------------------

    def claimed_by(self, pods: Sequence[Json], group: str) -> list[Json]:
        """The claims of pods of one group: one for all, one for each, or both."""
        chance = self._chance
        how, share = chance.choice(["each", "each", "all", "all", "both"]), chance.choice([1.0, 1.0, 0.6])
        mine = [pod for pod in pods if chance.random() < share]
        found: list[Json] = []
        if how != "all":
            requests, more = self._wish()
            for pod in mine:
                name = pod["metadata"]["name"]
                found.append(self._claim(name, *copy.deepcopy(requests), **more))
                pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
        if how != "each" and mine:  # the claim of all comes last: kube-scheduler mixes up what comes after it
            found.append(self._of_any_kind(f"{group}-all"))
            for pod in mine:
                pod["spec"].setdefault("resourceClaims", []).append(self.of_all(group))
            if chance.random() < 0.15:
                self._used_by_others(found[-1], len(mine))
        return found

    @staticmethod
    def of_all(group: str) -> Json:
        """How pods name the claim that they share, and their group, where it has claims."""
        return {"name": "shared", "resourceClaimName": f"{group}-all"}

    def made_from_template(self, group: str) -> Json:
        """The claim of a group, which it names itself."""
        claim = self._of_any_kind(f"{group}-made")
        claim["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "shared"}
        return claim

    def _of_any_kind(self, name: str) -> Json:
        requests, more = self._wish()
        return self._claim(name, *requests, **more)

    def _wish(self) -> tuple[list[Json], Json]:
        """What a claim asks for."""
        chance = self._chance
        tolerates = [{"operator": "Exists"}] if chance.random() < 0.2 else []
        more: Json = {"tolerations": tolerates} if tolerates else {}
        kinds: list[tuple[list[Json], Json]] = [
            ([asking(count=1, **more)], {}),
            ([asking(count=2, **more)], {}),
            ([asking(of="fast", **more)], {}),
            ([asking(count=None, of=chance.choice(["gpu", "fast"]), **more)], {}),
            ([asking(adminAccess=True, count=chance.choice([1, None]))], {}),
            ([one_of("r", alternative("two", 2, of="fast"), alternative("one", 1, of="slow"))], {}),
            ([one_of("r", alternative("a", 1, of="fast"), alternative("b", 2), alternative("c", 1))], {}),
            ([asking("x"), asking("y")], {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]}),
            ([asking("x", count=2)], {"constraints": [{"requests": ["x"], "matchAttribute": f"{DRIVER}/model"}]}),
            ([asking("x", of="fast"), asking("y", of="slow")], {}),
            ([asking(where=[f'device.attributes["{DRIVER}"].numa == 1'])], {}),
            ([asking(where=[f'device.attributes["{DRIVER}"].nothing == 1'])], {}),
        ]
        return kinds[0] if chance.random() < 0.35 else chance.choice(kinds)

    def _used_by_others(self, claim: Json, pods: int) -> None:
        """So many others that only some of these pods may use it as well."""
        nodes = [name for name in self._nodes if f"{DRIVER}-{name}" in self._slices]
        if not nodes:
            return
        node = self._chance.choice(nodes)
        device = self._slices[f"{DRIVER}-{node}"]["spec"]["devices"][0]["name"]
        request = claim["spec"]["devices"]["requests"][0]["name"]
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        claim["status"]["allocation"] = {
            "devices": {"results": [result(device, pool=node, request=request, adminAccess=True)]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        }
        others = MOST - self._chance.choice([0, 1, pods, pods + 3])
        claim["status"]["reservedFor"] = [
            {"apiGroup": "example.com", "resource": "things", "name": f"t{at}", "uid": f"uid-t{at}"}
            for at in range(others)
        ]
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]

    # -- what happens --------------------------------------------------------------------------------------------------

    def happening(self) -> Happening:
        """Something changes; perhaps nothing."""
        changes = [
            self._class_comes,
            self._slice_changes,
            self._slice_changes,
            self._slice_goes,
            self._slice_comes,
            self._rule_comes_or_goes,
            self._claim_goes,
            self._claim_comes,
        ]
        if self.slow and self._chance.random() < 0.5:
            return {"drivers": self._chance.choice([READY, READY, FAILED])}
        return self._chance.choice(changes)()

    def _class_comes(self) -> Happening:
        if self._late:
            self._late = False
            return {"deviceClasses": self._classes[1:]}
        if self._chance.random() < 0.3:
            self._late = True
            return {"gone": [("deviceClasses", each["metadata"]["name"]) for each in self._classes[1:]]}
        return {}

    def _slice_changes(self) -> Happening:
        """Its pool has other devices."""
        if not self._slices:
            return {}
        name = self._chance.choice(sorted(self._slices))
        made = copy.deepcopy(self._slices[name])
        made["spec"]["pool"]["generation"] += self._chance.choice([0, 1, 1])
        count = self._chance.randint(1, 4)
        made["spec"]["devices"] = [self._device(f"d{at}") for at in range(count)]
        if self._chance.random() < 0.15:  # another one is to come
            made["spec"]["pool"]["resourceSliceCount"] += 1
        return {"resourceSlices": [self._put(made)]}

    def _slice_goes(self) -> Happening:
        if not self._slices:
            return {}
        name = self._chance.choice(sorted(self._slices))
        del self._slices[name]
        return {"gone": [("resourceSlices", name)]}

    def _slice_comes(self) -> Happening:
        missing = [each for each in self._nodes if f"{DRIVER}-{each}" not in self._slices]
        if not missing:
            return {}
        node = self._chance.choice(missing)
        devices = [self._device(f"d{at}") for at in range(self._chance.randint(1, 4))]
        return {"resourceSlices": [self._put(make_slice(node, devices))]}

    def _rule_comes_or_goes(self) -> Happening:
        if self._rules:
            name = self._chance.choice(sorted(self._rules))
            del self._rules[name]
            return {"gone": [("deviceTaintRules", name)]}
        return {"deviceTaintRules": [self._rule()]}

    def _rule(self) -> Json:
        self._number += 1
        which = {"pool": self._chance.choice(self._nodes)} if self._chance.random() < 0.7 else {"driver": DRIVER}
        effect = self._chance.choice(["NoSchedule", "NoSchedule", "None"])
        made = self._rules[f"rule{self._number}"] = taint_rule(f"rule{self._number}", effect, **which)
        return made

    def _claim_goes(self) -> Happening:
        if not self._claims:
            return {}
        name = self._chance.choice(sorted(self._claims))
        self._gone[name] = self._claims.pop(name)
        return {"gone": [("resourceClaims", name)]}

    def _claim_comes(self) -> Happening:
        """One of the name of one that went, if that has gone."""
        if not self._gone:
            return self._claim_goes()
        name = self._chance.choice(sorted(self._gone))
        self._number += 1
        claim = copy.deepcopy(self._gone.pop(name))
        claim["metadata"] = {"namespace": "default", "name": name, "uid": f"uid-claim-{name}-{self._number}"}
        claim["status"] = {}
        self._claims[name] = claim
        return {"resourceClaims": [claim]}
