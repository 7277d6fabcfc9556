"""What happens in clusters with pod groups, made by chance: nodes, pods and groups come, change and go, and time goes
by.

Each sequence has the form that ``scripts/judge/README.md`` describes. Nodes are of distinct sizes, so that few are
equally good; what is there before anybody is scheduled began to run at distinct times.
"""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from dsched.judging.cluster import KINDS
from dsched.manifests import defaulting, kinds
from tests.builders import make_term
from tests.devices import asking, make_claim, make_slice
from tests.extender import TestExtender
from tests.integration.leader.binders.working import device_class
from tests.manifests import group_manifest, node_manifest, pod_manifest
from tests.parity import sequence_settings, sequence_sizes
from tests.parity.sequence_devices import Devices
from tests.parity.sequence_extenders import Extenders
from tests.parity.sequence_generated import Generated
from tests.parity.sequence_settings import ANOTHER, CARD
from tests.parity.sequence_singles import Singles
from tests.parity.sequence_volumes import Volumes
from tests.storage import make_claim as make_volume_claim
from tests.storage import make_volume

Json = dict[str, Any]

HOST, RACK, ZONE = "kubernetes.io/hostname", "rack", "topology.kubernetes.io/zone"
TAINT = {"key": "own", "value": "v"}
CLAIMS, DEVICES = 0.12, 0.25
"""How often there are devices of one kind, and pods that have a claim each; and of many kinds, with claims of many."""
SAMPLED, SETTINGS = 0.06, 0.2
"""How often there are so many nodes that not all are looked at, and plugins with settings of their own."""
IMPATIENT = 0.35
"""How often binds that wait for devices or volumes do so for a few seconds only."""
BITS = 7
"""Nodes of a sample have a number, in binary digits, that pods prefer to be high: few are equally good."""
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HIGH_NUMBERS = [
    {
        "weight": 1 << (BITS - 1 - place),
        "preference": {"matchExpressions": [{"key": f"bit{place}", "operator": "In", "values": ["1"]}]},
    }
    for place in range(BITS)
]
SECONDS = (0, 1, 3, 12)
BUDGETS: tuple[Json, ...] = ({"minAvailable": 1}, {"maxUnavailable": 1}, {"minAvailable": "50%"})
APPS = ("g0", "g1", "web", "db")
ELSEWHERE = "elsewhere"
"""Another namespace."""
VOLUMES = ("v0", "v1")
"""Claims with a volume."""
LONG_S = 310
"""Longer than a pod waits for an event to move it."""
LISTS = {"nodes": kinds.NODE, "pods": kinds.POD, "podGroups": kinds.POD_GROUP} | {
    name: kinds.BY_NAME[kind] for kind, name in KINDS.items()
}
"""Kinds by the names that their lists have in the judge's program."""
_ORDER = {name: kinds.ALL.index(kind) for name, kind in LISTS.items()}
"""In which objects that come at once are told, as they are when they are applied."""
BY_TEMPLATE: Json = {"name": "shared", "resourceClaimTemplateName": "shared"}
"""How a group, and its pods, name the claim that they share where it is made from a template."""
ENDING = "2023-11-14T22:13:20Z"
STARTS = "example.com/starts"
"""Annotation: when a pod begins to run once it is bound, which the kubelet says. Of pods that began at the same time it
is up to chance in kube-scheduler which is the less important one."""


class Sequence:
    """One of them.

    Attributes:
        steps: what happens at once, and how many seconds go by then.
        config: a KubeSchedulerConfiguration that is not the default one.
        extenders: what the configuration is to have besides; somebody has to serve them.
        graceful: whether pods on nodes that preemption deletes stay until somebody takes them away.
        grouped: whether there are pod groups.
    """

    def __init__(
        self,
        seed: int,
        *,
        group_claims: bool = False,
        generated: bool = False,
        volumes: bool = False,
        singles: bool = False,
        devices: bool = False,
        extenders: bool = False,
        older: bool = False,
        refusing: bool = True,
    ) -> None:
        """
        Args:
            group_claims: groups may have claims, which are their pods'.
            generated: pods ask for devices as extended resources, and by templates.
            volumes: pods have claims for volumes.
            singles: there are no groups, and pods ask for all sorts of things.
            devices: pods have claims for devices of many kinds.
            extenders: they have a say in where pods go.
            older: it is for releases before 1.37: pods come without their groups, and there is nothing that dsched
                means to have otherwise there.
            refusing: binds are refused now and then. Of pods without a group that were promised the devices of one
                claim, which they may be since 1.36, kube-scheduler has all written before it binds the first.
        """
        self._singles: Singles | None = None
        self._older, self.grouped, self._refusing = older, not (older or singles), refusing
        self._group_claims = group_claims
        self._chance = chance = Random(seed)
        self.name = str(seed)
        self.graceful = chance.random() < 0.35
        self._sampled = chance.random() < SAMPLED
        self.config = self._configuration()
        self.extenders = Extenders(chance) if extenders else None
        self._two = self.config is not None and len(self.config["profiles"]) > 1
        self.steps: list[Json] = []
        self._number, self._told = 0, 0
        self._refuse: dict[str, int] = {}
        self._written: dict[tuple[str, str], Json] = {}
        self._waiting: dict[str, Json] = {}
        self._groups: dict[str, Json] = {}
        self._late_claims: list[Json] = []
        self._own_claims: list[Json] = []
        """Of pods that are to come, made for them."""
        self._made_for_groups: dict[str, Json] = {}
        """Claims of groups that come from a template, and are there once somebody names them."""
        self._named: dict[str, list[Json]] = {}
        """What statuses say of them, by name and uid of the group; nothing yet, where nobody has named them."""
        self._crowded, self._large = chance.random() < 0.3, chance.random() < 0.1
        fewest = 101 if self._sampled else 5 if self._large else 1
        self._nodes = [self._node(f"n{number}") for number in range(chance.randint(fewest, fewest + 7))]
        self._there: list[Json] = []
        drawn = CLAIMS if group_claims or devices else chance.random()
        self._claims = drawn < CLAIMS
        names = [node["metadata"]["name"] for node in self._nodes]
        self._devices_of_kinds = Devices(chance, names, RACK) if CLAIMS <= drawn < CLAIMS + DEVICES else None
        self._generated: Generated | None = None
        self._volumes: Volumes | None = None
        self._tried(names, generated=generated, volumes=volumes, singles=singles)
        patience = Random(f"{seed}-patience")
        if self._slow and not (older and self._volumes is None) and patience.random() < IMPATIENT:
            self.config = sequence_settings.impatient(patience, self.config, devices=self._volumes is None)
        self._begin()
        for number in range(chance.randint(1, 3)):
            self._come(f"g{number}")
        for _ in range(chance.randint(2, 6)):
            chance.choice(self._changes)()

    def _tried(self, names: list[str], *, generated: bool, volumes: bool, singles: bool) -> None:
        """One thing besides, and not devices with it."""
        if generated:
            self._devices_of_kinds = self._generated = Generated(self._chance, names, RACK, self._waiting)
            self._claims = False
            for node in self._nodes:
                self._amounts_differ(node)
        if volumes:
            self._devices_of_kinds, self._claims = None, False
            self._volumes = Volumes(self._chance, self._nodes, ZONE, RACK)
        if singles:
            self._devices_of_kinds, self._claims = None, False
            self._singles = Singles(self._chance, self._nodes, older=self._older)

    def extended_by(self, server: TestExtender) -> None:
        """Has a server answer for its extenders."""
        if self.extenders is not None:
            config = self.config or sequence_settings.configuration({"schedulerName": "default-scheduler"})
            self.config = config | {"extenders": self.extenders.served_by(server)}

    @property
    def plain(self) -> Json:
        """As the judge's program reads it."""
        return {"name": self.name, "config": self.config, "steps": self.steps, "graceful": self.graceful}

    @property
    def _slow(self) -> bool:
        """Whether pods may wait in their binds, for devices or volumes.

        What is being deleted then ends that in dsched at once, pods and nodes, and so does a node that becomes too
        small, while kube-scheduler goes on until it fails.
        """
        return self._volumes is not None or (self._devices_of_kinds is not None and self._devices_of_kinds.slow)

    def shuffled(self, seed: int) -> Json:
        """The same, but that the nodes of a step come in another order, which may decide between equally good ones."""
        chance, steps = Random(seed), copy.deepcopy(self.steps)
        for step in steps:
            nodes = [each for each in step.get("set", ()) if each["kind"] == "nodes"]
            rest = [each for each in step.get("set", ()) if each["kind"] != "nodes"]
            if not self._sampled:  # which are looked at hangs on their order
                chance.shuffle(nodes)
            step["set"] = nodes + rest
        return {**self.plain, "steps": steps}

    def _configuration(self) -> Json | None:
        chance = self._chance
        if self._sampled:
            return sequence_settings.sampling(chance)
        if chance.random() < SETTINGS:
            return sequence_settings.another(chance, ZONE, RACK)
        return sequence_settings.TWO_PROFILES if chance.random() < 0.15 else None

    # -- objects -------------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> Json:
        chance = self._chance
        rack, cpu = chance.randrange(3), chance.randrange(800, 4500)
        labels = {HOST: name, RACK: f"r{rack}", ZONE: f"z{rack % 2}"}
        if self._sampled:
            bits = f"{int(name[1:]) * 37 % (1 << BITS):0{BITS}b}"
            labels |= {f"bit{place}": bit for place, bit in enumerate(bits)}
        if chance.random() < 0.05:
            del labels[RACK]
        memory = cpu + chance.randrange(400) if chance.random() < 0.6 else chance.randrange(800, 6000)
        sizes = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": chance.choice(["3", "10", "110"])}
        if chance.random() < 0.3:
            sizes[CARD] = str(chance.randint(1, 4))
        found = node_manifest(name, labels=labels, **sizes)
        found["metadata"]["uid"] = f"uid-{name}"
        if chance.random() < 0.1:
            found["spec"] = {"taints": [{**TAINT, "effect": chance.choice(["NoSchedule", "PreferNoSchedule"])}]}
        return found

    def _amounts_differ(self, node: Json) -> None:
        """What it has itself of resources that devices may meet."""
        if self._generated is not None:
            there = node["status"]["allocatable"]
            kept = {name: amount for name, amount in there.items() if not name.startswith("example.com/")}
            node["status"]["allocatable"] = kept | self._generated.amounts()

    def _pod(
        self, name: str, size: int, group: str = "", *, cards: int = 0, port: int = 0, memory: int = 0, **spec: Any
    ) -> Json:
        if group and self.grouped:
            spec["schedulingGroup"] = {"podGroupName": group}
        labels = {"app": group or self._chance.choice(["web", "db"])}
        if self._sampled:
            spec.setdefault("affinity", {}).setdefault("nodeAffinity", {}).setdefault(PREFERRED, HIGH_NUMBERS)
        found = pod_manifest(f"default/{name}", labels=labels, uid=f"uid-{name}", **{"priority": 0, **spec})
        self._told += 1
        starts = f"2023-02-{1 + self._told // 60:02}T00:{self._told % 60:02}:00Z"
        found["metadata"]["annotations"] = {STARTS: starts}
        (container,) = found["spec"]["containers"]
        more = {CARD: str(cards)} if cards else {}
        asked = {"cpu": f"{size}m", "memory": f"{memory or size}Mi", **more}
        container["resources"] = {"requests": asked, "limits": more}
        if self._chance.random() < sequence_sizes.LEVEL:
            sequence_sizes.of_the_pod(self._chance, found["spec"], size, memory or size)
        if port:
            container["ports"] = [{"containerPort": port, "hostPort": port}]
        return found

    def _there_already(self, name: str, group: str = "", priority: int = 0) -> Json:
        """A pod that runs."""
        self._number += 1
        node = self._chance.choice(self._nodes)["metadata"]["name"]
        found = self._pod(name, self._chance.randrange(100, 1800), group, priority=priority, nodeName=node)
        began = f"2023-01-{1 + self._number // 60:02}T00:{self._number % 60:02}:00Z"
        status: Json = {"phase": "Running", "startTime": began}
        if self._chance.random() < sequence_sizes.RESIZED:
            status |= sequence_sizes.told_by_the_kubelet(self._chance)
        self._there.append({**found, "status": status})
        return self._there[-1]

    def _group(self, name: str, min_count: int | None, priority: int, **spec: Any) -> Json:
        mode = {self._chance.choice(["single", "single", "all"]): {}}
        found = group_manifest(f"default/{name}", min_count, priority=priority, disruptionMode=mode, **spec)
        found["metadata"]["uid"] = f"uid-{name}"
        if priority == 0 and self._chance.random() < 0.3:
            del found["spec"]["priority"]
        self._groups[name] = found
        return found

    def _kind_of_pod(self, group: str) -> Json:
        """What the pods of one template ask for besides resources."""
        own = {"labelSelector": {"matchLabels": {"app": group}}}
        level = self._chance.choice([HOST, RACK])
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        wish = [{"weight": 60, "podAffinityTerm": {**own, "topologyKey": level}}]
        racks = {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["r0", "r1"]}]}
        spread: Json = {"topologyKey": level, "labelSelector": {}, "maxSkew": self._chance.randint(1, 2)}
        anybody: Json = {"topologyKey": level, "labelSelector": {"matchLabels": {"app": self._chance.choice(APPS)}}}
        away: Json = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
        named = [node["metadata"]["name"] for node in self._chance.sample(self._nodes, min(2, len(self._nodes)))]
        these = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in named]
        soft: list[Json] = [
            {"affinity": {"podAffinity": {preferred: wish}}},
            {"affinity": {"podAntiAffinity": {preferred: wish}}},
            {"affinity": {"nodeAffinity": {preferred: [{"weight": 30, "preference": racks}]}}},
            {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [racks]}}}},
            {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": these}}}},
            {
                "topologySpreadConstraints": [
                    {**own, "maxSkew": 1, "topologyKey": level, "whenUnsatisfiable": "ScheduleAnyway"}
                ]
            },
            {"cards": self._chance.randint(1, 2)},
            {"memory": self._chance.randrange(100, 3000)},
            {"port": 8080},
            {
                "topologySpreadConstraints": [
                    {**spread, "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"},
                    {**spread, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
                ]
            },
            {"affinity": {"podAffinity": {preferred: [{"weight": 40, "podAffinityTerm": {**anybody, **away}}]}}},
        ]
        if self._chance.random() < 0.5:
            return self._chance.choice(soft)
        hard: Json = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        among: list[Json] = [
            {"affinity": {"podAntiAffinity": {required: [{**own, "topologyKey": level}]}}},
            {"affinity": {"podAffinity": {required: [{**own, "topologyKey": level}]}}},
            {
                "topologySpreadConstraints": [
                    {**own, "maxSkew": 1, "topologyKey": level, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            {"nodeSelector": {RACK: self._chance.choice(["r0", "r9"])}},
            {
                "topologySpreadConstraints": [
                    {**own, **hard, "topologyKey": level, "minDomains": self._chance.randint(1, 4)}
                ]
            },
            {
                "topologySpreadConstraints": [
                    {**spread, **hard, "labelSelector": own["labelSelector"], "matchLabelKeys": ["version"]}
                ]
            },
            {"topologySpreadConstraints": [{**own, **hard, "topologyKey": level, "nodeAffinityPolicy": "Ignore"}]},
            {"affinity": {"podAntiAffinity": {required: [{**anybody, **away}]}}},
            {"affinity": {"podAffinity": {required: [anybody]}}},
            {"affinity": {"podAffinity": {required: [{**own, "topologyKey": ZONE, "matchLabelKeys": ["version"]}]}}},
            {"volumes": [self._volume()]},
            {"tolerations": [{"key": TAINT["key"], "operator": "Exists"}]},
        ]
        return self._chance.choice(among)

    def _volume(self) -> Json:
        """One of those that there are, see `_volumes`."""
        name = self._chance.choice(VOLUMES)
        return {"name": "data", "persistentVolumeClaim": {"claimName": name}}

    def _pods(self, group: str, count: int, priority: int) -> list[Json]:
        chance = self._chance
        templates = [
            (chance.randrange(200, 2200), self._kind_of_pod(group) if chance.random() < 0.55 else {})
            for _ in range(chance.choice([1, 1, 2, 3]))
        ]
        never: Json = {"preemptionPolicy": "Never"} if chance.random() < 0.1 else {}
        found = []
        for number in range(count):
            size, more = chance.choice(templates)
            odd: Json = {"schedulingGates": [{"name": "later"}]} if chance.random() < 0.04 else {}
            if chance.random() < (0.1 if self._two else 0.02):
                odd["schedulerName"] = ANOTHER
            own = priority if chance.random() < 0.97 else priority + 1
            found.append(self._pod(f"{group}-{number}", size, group, priority=own, **more, **never, **odd))
            if chance.random() < 0.3:
                found[-1]["metadata"]["labels"]["version"] = chance.choice(["1", "2"])
            found[-1] = copy.deepcopy(found[-1])
            defaulting.fill_in(kinds.POD, found[-1])  # as the API server does, labels by key are in selectors then
        if self._claims:
            self._claim(found)
        if self._generated is not None and chance.random() < 0.4:
            for pod in found:
                pod["spec"].pop("schedulingGroup", None)
        if self._devices_of_kinds is not None:
            claims = self._devices_of_kinds.claimed_by(found, group)
            late = chance.random() < 0.15
            if self._generated is not None:
                self._own_claims += [each for each in claims if _owner(each)]
                claims = [each for each in claims if not _owner(each)]
            self._happens(resourceClaims=[] if late else claims, seconds=0)
            self._late_claims += claims if late else []
        if self._volumes is not None:
            self._volumes_come(self._volumes.claimed_by(found, group))
        if self._singles is not None:
            self._singles.dress(found)
        return found

    def _volumes_come(self, claimed: Json) -> None:
        """With pods that are to come; the claims perhaps after them."""
        late = self._chance.random() < 0.15
        self._late_claims += claimed["persistentVolumeClaims"] if late else []
        self._happens(
            **{**claimed, "persistentVolumeClaims": [] if late else claimed["persistentVolumeClaims"]}, seconds=0
        )

    def _claim(self, pods: list[Json]) -> None:
        """Each of these pods has a claim of its own, or most of them."""
        share, count, claims = self._chance.choice([1.0, 1.0, 0.6]), self._chance.choice([1, 1, 1, 2]), []
        for pod in pods:
            if self._chance.random() < share:
                name = pod["metadata"]["name"]
                claim = make_claim(f"default/{name}", asking(count=count))
                claim["metadata"]["uid"] = f"uid-claim-{name}"
                claims.append(claim)
                pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
        self._happens(resourceClaims=claims, seconds=0)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        chance = self._chance
        groups = []
        for number in range(chance.randint(0, 2)):
            name, priority = f"old{number}", chance.choice([0, 5, -3])
            groups.append(self._group(name, chance.choice([None, 2]), priority))
            for pod in range(chance.randint(1, 3)):
                self._there_already(f"{name}-{pod}", name, priority)
        for number in range(chance.randint(6, 12) if self._crowded else chance.randint(0, 6)):
            self._there_already(f"run-{number}", priority=chance.choice([0, 0, 5, 20, -3]))
        surroundings = self._surroundings()
        for name, found in (self._volumes.begin(self._there) if self._volumes is not None else {}).items():
            surroundings[name] = surroundings.get(name, []) + found
        self._happens(
            **self._devices(),
            **surroundings,
            nodes=self._nodes,
            podGroups=groups,
            pods=self._there + self._elsewhere(),
            podDisruptionBudgets=self._budgets(),
            seconds=0,
        )

    def _surroundings(self) -> dict[str, list[Json]]:
        """Namespaces, services, and claims with a volume each."""
        chance = self._chance
        spaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}
            for name, team in (("default", chance.choice("ab")), (ELSEWHERE, chance.choice("ab")))
        ]
        volumes, claims = [], []
        for name in VOLUMES:
            mode = ["ReadWriteOncePod" if chance.random() < 0.5 else "ReadWriteOnce"]
            claim = make_volume_claim(f"default/{name}", class_name="", volume=f"pv-{name}", modes=mode)
            terms = [make_term(f"{RACK} In {chance.choice(['r0', 'r1', 'r0 r1'])}")] if chance.random() < 0.5 else []
            volumes.append(make_volume(f"pv-{name}", class_name="", claim=claim, terms=terms))
            claims.append(claim)
        found = {"namespaces": spaces, "persistentVolumes": volumes, "persistentVolumeClaims": claims}
        if chance.random() < 0.5:
            found["services"] = [sequence_settings.service(name) for name in ("g0", "g1", "web")]
        return found

    def _elsewhere(self) -> list[Json]:
        """Pods of another namespace that run."""
        found = [self._there_already(f"away-{number}") for number in range(self._chance.choice([0, 0, 1, 2]))]
        for pod in found:
            self._there.remove(pod)
            pod["metadata"]["namespace"] = ELSEWHERE
        return found

    def _devices(self) -> dict[str, list[Json]]:
        """Some nodes have some."""
        if self._devices_of_kinds is not None:
            return self._devices_of_kinds.begin(self._there)
        if not self._claims:
            return {}
        names = [node["metadata"]["name"] for node in self._nodes]
        offers = {name: self._chance.choice([0, 1, 1, 2, 3]) for name in names}
        slices = [make_slice(name, [f"d{at}" for at in range(count)]) for name, count in offers.items() if count]
        return {"deviceClasses": [device_class()], "resourceSlices": slices}

    def _budgets(self) -> list[Json]:
        return [
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": app, "namespace": "default", "uid": f"uid-budget-{app}"},
                "spec": {"selector": {"matchLabels": {"app": app}}, **self._chance.choice(BUDGETS)},
                "status": {
                    "disruptionsAllowed": self._chance.choice([0, 0, 1, 1, 2]),
                    "currentHealthy": 1,
                    "desiredHealthy": 1,
                    "expectedPods": 1,
                },
            }
            for app in ("web", "db", "old0", "g0")
            if self._chance.random() < 0.25
        ]

    def _come(self, name: str) -> None:
        """A group and its pods come, together or one after the other, some of the pods late."""
        chance = self._chance
        size, priority = chance.choice([1, 2, 2, 3, 3, 4, 5, 7]), chance.choice([0, 0, 10, 30, -5])
        if self._large and not self._waiting:
            size = chance.randint(20, 30)
        if self._crowded:
            priority = chance.choice([10, 30])
        spec: Json = {}
        by_template = self._group_claims and chance.random() < 0.3
        if chance.random() < 0.5:
            spec["schedulingConstraints"] = {"topology": [{"key": chance.choice([RACK, RACK, ZONE, HOST, "nowhere"])}]}
        least = chance.choice([None, size, max(1, size - 1), max(1, size // 2), size + 1])
        group, pods = self._group(name, least, priority, **spec), self._pods(name, size, priority)
        if self._group_claims and chance.random() < 0.8:
            group["spec"]["resourceClaims"] = [Devices.of_all(name)]
            if by_template:
                self._comes_from_a_template(name, pods)
        self._waiting |= {pod["metadata"]["name"]: pod for pod in pods}
        if chance.random() < 0.15:
            self._refused()
        late = pods[-1:] if size > 2 and chance.random() < 0.3 else []
        now = pods[: len(pods) - len(late)]
        how = chance.randrange(4)
        if how == 0:
            self._happens(pods=now, seconds=0)
            self._happens(podGroups=[group])
        elif how == 1:
            self._happens(podGroups=[group], seconds=0)
            self._happens(pods=now)
        else:
            self._happens(podGroups=[group], pods=now)
        if late:
            self._happens(pods=late)
        if name in self._made_for_groups and chance.random() < 0.5:
            self._claim_is_named()

    def _comes_from_a_template(self, name: str, pods: list[Json]) -> None:
        """The claim that a group and its pods share."""
        assert self._devices_of_kinds is not None
        self._groups[name]["spec"]["resourceClaims"] = [BY_TEMPLATE]
        self._made_for_groups[name] = self._devices_of_kinds.made_from_template(name)
        self._named[name] = []
        for pod in pods:
            claims = pod["spec"].get("resourceClaims", [])
            pod["spec"]["resourceClaims"] = [BY_TEMPLATE if each == Devices.of_all(name) else each for each in claims]

    def _claim_is_named(self) -> None:
        """Somebody has made the claim of a group, and says so of the group and its pods."""
        name = self._chance.choice(sorted(self._made_for_groups))
        claim = self._made_for_groups.pop(name)
        metadata = self._groups[name]["metadata"]
        owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "controller": True}
        claim["metadata"]["ownerReferences"] = [owner | {each: metadata[each] for each in ("name", "uid")}]
        says = self._named[name] = self._named[metadata["uid"]] = [
            {"name": "shared", "resourceClaimName": claim["metadata"]["name"]}
        ]
        pods = []
        for pod in self._waiting.values():
            if _group_of(pod) == name and BY_TEMPLATE in pod["spec"].get("resourceClaims", ()):
                pods.append({**copy.deepcopy(pod), "status": {"resourceClaimStatuses": says}})
        self._waiting |= {pod["metadata"]["name"]: pod for pod in pods}
        self._happens(resourceClaims=[claim], pods=pods, names={f"default/{name}": says})

    @property
    def _changes(self) -> list[Callable[[], None]]:
        often = [self._pod_goes, self._room_comes]
        seldom = [self._pod_joins, self._single_comes, self._node_comes, self._node_changes, self._gate_opens]
        seldom += [self._pod_is_another, self._member_runs]
        if self._singles is not None:
            often += [self._node_is_dressed, self._somebody_promises]
        if self.grouped:
            often += [self._group_wants_another_count]
            seldom += [self._group_goes, self._group_is_another, self._group_stays_away]
        seldom += [
            self._pod_ends,
            self._refused,
            self._running_ends,
            self._labels_change,
            self._node_goes,
            self._node_moves,
            self._budgets_change,
            self._running_wants_another_size,
            self._kubelet_resizes,
            self._namespace_changes,
        ]
        if self._devices_of_kinds is not None:
            often += [self._devices_change, self._devices_change]
        if self._made_for_groups:
            often += [self._claim_is_named, self._claim_is_named]
        if self._volumes is not None:
            often += [self._volumes_change, self._volumes_change, self._volumes_change, self._single_comes]
        return [*often, *often, *often, *seldom, self._time_goes_by]

    def _devices_change(self) -> None:
        assert self._devices_of_kinds is not None
        if self._late_claims:
            claims, self._late_claims = self._late_claims, []
            self._happens(resourceClaims=claims)
        else:
            self._happens(**self._devices_of_kinds.happening())

    def _volumes_change(self) -> None:
        assert self._volumes is not None
        if self._late_claims:
            claims, self._late_claims = self._late_claims, []
            self._happens(persistentVolumeClaims=claims)
        else:
            self._happens(**self._volumes.happening())

    def _node_is_dressed(self) -> None:
        assert self._singles is not None
        self._happens(**self._singles.happening())

    def _somebody_promises(self) -> None:
        """A node, to pods that wait; or takes back what was promised."""
        assert self._singles is not None
        named = self._chance.sample(sorted(self._waiting), min(2, len(self._waiting)))
        self._happens(
            nominate={f"default/{name}": self._chance.choice([self._singles.promised(), ""]) for name in named}
        )

    def _node_moves(self) -> None:
        """To another rack."""
        place = self._chance.randrange(len(self._nodes))
        node = self._nodes[place] = copy.deepcopy(self._nodes[place])
        rack = self._chance.randrange(3)
        node["metadata"]["labels"] |= {RACK: f"r{rack}", ZONE: f"z{rack % 2}"}
        self._happens(nodes=[node])

    def _budgets_change(self) -> None:
        self._happens(podDisruptionBudgets=self._budgets())

    def _running_wants_another_size(self) -> None:
        if self._there:
            place = self._chance.randrange(len(self._there))
            pod = self._there[place] = copy.deepcopy(self._there[place])
            size = self._chance.randrange(50, 1800)
            pod["spec"]["containers"][0]["resources"]["requests"] |= {"cpu": f"{size}m", "memory": f"{size}Mi"}
            if "resources" in pod["spec"]:
                sequence_sizes.of_the_pod(self._chance, pod["spec"], size, size)
            self._happens(pods=[pod])

    def _kubelet_resizes(self) -> None:
        """It says that a pod that runs is of another size, or cannot be."""
        if self._there:
            place = self._chance.randrange(len(self._there))
            pod = self._there[place] = copy.deepcopy(self._there[place])
            pod["status"].pop("conditions", None)
            pod["status"] |= sequence_sizes.told_by_the_kubelet(self._chance)
            self._happens(pods=[pod])

    def _namespace_changes(self) -> None:
        name = self._chance.choice(["default", ELSEWHERE])
        labels = {"team": self._chance.choice("ab")}
        metadata = {"name": name, "labels": labels}
        self._happens(namespaces=[{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])

    def _pod_goes(self) -> None:
        if self._waiting and not self._slow:
            name = self._chance.choice(sorted(self._waiting))
            del self._waiting[name]
            self._happens(gone=[("pods", name)])

    def _room_comes(self) -> None:
        if self._there:
            self._happens(gone=[("pods", self._there.pop()["metadata"]["name"])])

    def _group_wants_another_count(self) -> None:
        name = self._chance.choice(sorted(self._groups))
        group = self._groups[name] = copy.deepcopy(self._groups[name])
        if (gang := group["spec"]["schedulingPolicy"].get("gang")) is not None:
            gang["minCount"] = self._chance.randint(1, 5)
            self._happens(podGroups=[group])

    def _pod_joins(self) -> None:
        self._number += 1
        name = self._of_mine()
        spec = {"priority": self._groups[name]["spec"].get("priority", 0)}
        if self._devices_of_kinds is not None and self._chance.random() < 0.5:
            spec["resourceClaims"] = [BY_TEMPLATE if name in self._named else Devices.of_all(name)]
        pod = self._pod(f"{name}-x{self._number}", self._chance.randrange(200, 2200), name, **spec)
        if self._singles is not None:
            self._singles.dress([pod])
        if says := self._named.get(name, []) if "resourceClaims" in spec else []:
            pod["status"] = {"resourceClaimStatuses": says}
        self._waits(pod)

    def _single_comes(self) -> None:
        self._number += 1
        spec: Json = {"priority": self._chance.choice([0, 15, 50])}
        if self._two and self._chance.random() < 0.5:
            spec["schedulerName"] = ANOTHER
        pod = self._pod(f"single-{self._number}", self._chance.randrange(200, 2200), **spec)
        if self._volumes is not None:
            self._volumes_come(self._volumes.claimed_by([pod], pod["metadata"]["name"], single=True))
        self._waits(pod)

    def _node_comes(self) -> None:
        self._nodes.append(self._node(f"n{len(self._nodes)}"))
        if self._singles is not None:
            self._singles.dress_node(self._nodes[-1])
        self._happens(nodes=self._nodes[-1:])

    def _node_changes(self) -> None:
        place = self._chance.randrange(len(self._nodes))
        node = self._nodes[place] = copy.deepcopy(self._nodes[place])
        if self._generated is not None and not self._slow and self._chance.random() < 0.5:
            self._amounts_differ(node)
        elif self._slow or self._chance.random() < 0.5:
            node["spec"] = {} if node.get("spec") else {"unschedulable": True}
        else:
            cpu = self._chance.randrange(800, 5000)
            node["status"]["allocatable"] |= {"cpu": f"{cpu}m", "memory": f"{cpu + 77}Mi"}
        self._happens(nodes=[node])

    def _gate_opens(self) -> None:
        gated = [name for name in sorted(self._waiting) if "schedulingGates" in self._waiting[name]["spec"]]
        for name in gated[:1]:
            pod = self._waiting[name] = copy.deepcopy(self._waiting[name])
            del pod["spec"]["schedulingGates"]
            self._happens(pods=[pod])

    def _group_goes(self) -> None:
        name = self._of_mine()
        self._happens(gone=[("podGroups", name)])
        self._happens(podGroups=[self._groups[name]])

    def _group_is_another(self) -> None:
        """At once there is another one of that name; perhaps it wants something else."""
        chance, name = self._chance, self._of_mine()
        self._number += 1
        old = self._groups[name]["spec"]
        priority = old.get("priority", 0) if chance.random() < 0.8 else 30
        kept = ("schedulingConstraints", "resourceClaims")
        more = {key: old[key] for key in kept if key in old and chance.random() < 0.6}
        group = self._group(name, chance.choice([None, 1, 2, 3]), priority, **more)
        group["metadata"]["uid"] += f"-{self._number}"
        self._happens(gone=[("podGroups", name)], podGroups=[group])

    def _group_stays_away(self) -> None:
        """A group goes, and something else happens before it comes again, if it does."""
        name = self._of_mine()
        self._happens(gone=[("podGroups", name)])
        self._chance.choice([self._pod_joins, self._room_comes, self._pod_goes, self._labels_change])()
        if self._chance.random() < 0.7:
            self._happens(podGroups=[self._groups[name]])

    def _pod_is_another(self) -> None:
        """At once there is another pod of that name."""
        if self._waiting and not self._slow:
            name = self._chance.choice(sorted(self._waiting))
            self._number += 1
            pod = self._waiting[name] = copy.deepcopy(self._waiting[name])
            pod["metadata"]["uid"] += f"-{self._number}"
            self._happens(gone=[("pods", name)], pods=[pod])

    def _pod_ends(self) -> None:
        """A pod is being deleted, but somebody holds it back."""
        if self._waiting and not self._slow:
            name = self._chance.choice(sorted(self._waiting))
            pod = copy.deepcopy(self._waiting.pop(name))
            pod["metadata"] |= {"deletionTimestamp": ENDING, "finalizers": ["example.com/held"]}
            self._happens(pods=[pod])
            if self._chance.random() < 0.5:
                self._happens(gone=[("pods", name)])

    def _running_ends(self) -> None:
        """A pod that runs is being deleted."""
        if self._there:
            pod = copy.deepcopy(self._there.pop())
            pod["metadata"] |= {"deletionTimestamp": ENDING}
            self._happens(pods=[pod])
            if self._chance.random() < 0.6:
                self._happens(gone=[("pods", pod["metadata"]["name"])])

    def _member_runs(self) -> None:
        """A pod of a group comes that somebody else has put on a node."""
        self._number += 1
        name = self._of_mine()
        pod = self._there_already(f"{name}-y{self._number}", name, self._groups[name]["spec"].get("priority", 0))
        self._happens(pods=[pod])

    def _labels_change(self) -> None:
        if self._waiting:
            name = self._chance.choice(sorted(self._waiting))
            pod = self._waiting[name] = copy.deepcopy(self._waiting[name])
            pod["metadata"]["labels"] = {"app": self._chance.choice(["web", "db", "g0", "g1"])}
            self._happens(pods=[pod])

    def _node_goes(self) -> None:
        """Its pods stay."""
        if len(self._nodes) > 1 and not self._slow:
            node = self._nodes.pop(self._chance.randrange(len(self._nodes)))
            self._happens(gone=[("nodes", node["metadata"]["name"])])

    def _refused(self) -> None:
        """The API server will not bind some pods."""
        for name in self._waiting if self._refusing else ():
            if self._chance.random() < 0.25:
                self._refuse[f"default/{name}"] = self._chance.choice([1, 1, 2])

    def _of_mine(self) -> str:
        return self._chance.choice(sorted(name for name in self._groups if name.startswith("g")))

    def _time_goes_by(self) -> None:
        self._happens(
            seconds=LONG_S if self._chance.random() < 0.15 and not self._slow else self._chance.choice([1, 4, 20])
        )

    def _waits(self, pod: Json) -> None:
        if self._generated is not None and "resourceClaims" not in pod["spec"]:
            self._own_claims += self._generated.claimed_by([pod], pod["metadata"]["name"])
        self._waiting[pod["metadata"]["name"]] = pod
        self._happens(pods=[pod])

    def _happens(
        self,
        *,
        gone: list[tuple[str, str]] | None = None,
        seconds: int | None = None,
        drivers: str = "",
        names: dict[str, list[Json]] | None = None,
        nominate: dict[str, str] | None = None,
        **objects: list[Json],
    ) -> None:
        if not self.grouped:
            objects.pop("podGroups", None)
        if self._singles is not None and "pods" in objects:
            objects["pods"] = self._singles.coming(objects["pods"])
        here = {each["metadata"]["uid"] for each in objects.get("pods", ())}
        own = [each for each in self._own_claims if _owner(each) in here]
        if own:
            self._own_claims = [each for each in self._own_claims if each not in own]
            objects["resourceClaims"] = [*objects.get("resourceClaims", ()), *own]
        comes = [
            {"kind": kind, "object": each}
            for kind, found in objects.items()
            for each in found
            if self._is_new(kind, each)
        ]
        for named in gone or ():
            self._written.pop(named, None)
        for group in objects.get("podGroups", ()):  # one that comes again is told again
            metadata = group["metadata"]
            if says := self._named.get(metadata["uid"]):
                names = {**(names or {}), f"default/{metadata['name']}": says}
        step: Json = {
            "set": sorted(comes, key=lambda each: _ORDER[each["kind"]]),
            "gone": [{"kind": kind, "key": LISTS[kind].key("default", name)} for kind, name in gone or ()],
            "refuse": self._refuse,
            "advance": self._chance.choice(SECONDS) if seconds is None else seconds,
            "drivers": drivers,
            "names": names or {},
            "nominate": nominate or {},
        }
        self.steps.append(step)
        self._refuse = {}

    def _is_new(self, kind: str, value: Json) -> bool:
        """An API server tells of no change that is none."""
        before, value = self._written.get((kind, value["metadata"]["name"])), copy.deepcopy(value)
        self._written[kind, value["metadata"]["name"]] = value
        return value != before


def _group_of(pod: Json) -> str:
    return str(pod["spec"].get("schedulingGroup", {}).get("podGroupName", ""))


def _owner(claim: Json) -> str:
    """The uid of who it was made for."""
    return next((str(each["uid"]) for each in claim["metadata"].get("ownerReferences", ())), "")
