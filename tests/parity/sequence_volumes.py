"""What happens to volumes in a sequence, made by chance: volumes that there are and that are made for claims, near
some nodes only, of drivers that take so many on a node, and what changes about that while pods wait.

Of the controllers two are part of the sequence: whoever binds a claim to the volume that it was chosen, and whoever
makes a volume once a node is selected. What he makes of it stands in an annotation of the claim, `PROVISIONING`.
"""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.builders import make_term
from tests.parity.sequence_devices import Happening
from tests.storage import (
    HOSTNAME,
    csi,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    reference,
)

Json = dict[str, Any]

DRIVER = "disk.example.com"
PROVISIONING = "example.com/provisioning"
HERE, ANYWHERE, FAILS, NEVER = "host", "anywhere", "fails", "never"
LOCAL, MADE, ZONAL, NOW = "local", "made", "zonal", "now"
IN_TREE, TOOK_OVER, THEIR_ZONE = "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
"""A plugin that was once part of Kubernetes, the driver that took over its volumes, and what that calls a zone."""


class Volumes:
    """Volumes, claims, classes, and how many volumes nodes take.

    Args:
        nodes: as they are at the beginning.
        zone, rack: labels of nodes that share volumes.
    """

    def __init__(self, chance: Random, nodes: Sequence[Json], zone: str, rack: str) -> None:
        self._chance, self._zone, self._rack = chance, zone, rack
        self._nodes = [node["metadata"]["name"] for node in nodes]
        self._number = 0
        self._volumes: dict[str, Json] = {}
        self._claims: dict[str, Json] = {}
        self._gone: dict[str, Json] = {}
        self._limits: dict[str, Json] = {}
        self._attached: list[str] = []
        self._sizes = chance.sample(range(2, 60), 40)
        self._tells = chance.random() < 0.4
        self._migrates = chance.random() < 0.3
        """Some volumes are of the plugin, which the driver has taken over on some nodes."""
        self._classes = {
            LOCAL: make_class(LOCAL),
            MADE: make_class(MADE, DRIVER),
            ZONAL: make_class(ZONAL, DRIVER, topologies=[{zone: [chance.choice(["z0", "z1"])]}]),
            NOW: make_class(NOW, DRIVER, "Immediate"),
        }
        self._late = [ZONAL, MADE] if chance.random() < 0.1 else []
        for node in nodes if self._migrates else ():
            labels = node["metadata"]["labels"]
            if zone in labels and chance.random() < 0.7:
                labels[THEIR_ZONE] = labels[zone]

    # -- the beginning -------------------------------------------------------------------------------------------------

    def begin(self, running: Sequence[Json]) -> Happening:
        """What is there first; some of these pods have volumes already."""
        chance = self._chance
        for _ in range(chance.randint(0, 6)):
            self._local()
        for name in self._nodes:
            if chance.random() < 0.7:
                self._limit(name)
        claims = [each for pod in running if chance.random() < 0.3 for each in self._used_by(pod)]
        return {
            "storageClasses": [each for name, each in self._classes.items() if name not in self._late],
            "csiDrivers": [make_driver(DRIVER, storage_capacity=self._tells)],
            "csiNodes": list(self._limits.values()),
            "csiStorageCapacities": [self._room(place) for place in range(3) if chance.random() < 0.7],
            "persistentVolumes": list(self._volumes.values()),
            "persistentVolumeClaims": claims,
        }

    def _size(self) -> int:
        """No two volumes are equally large: the smallest that fits is taken."""
        return self._sizes[self._number % len(self._sizes)]

    def _terms(self) -> list[Json]:
        chance = self._chance
        places = [f"{HOSTNAME} In {chance.choice(self._nodes)}", f"{self._rack} In {chance.choice(['r0', 'r1', 'r2'])}"]
        return [make_term(chance.choice([*places, f"{self._zone} In {chance.choice(['z0', 'z1'])}"]))]

    def _local(self) -> Json:
        """A volume that nobody has."""
        self._number += 1
        name = f"local-{self._number}"
        return self._put(make_volume(name, f"{self._size()}Gi", class_name=LOCAL, terms=self._terms()))

    def _put(self, made: Json) -> Json:
        made["metadata"].setdefault("uid", f"uid-{made['metadata']['name']}")
        self._volumes[made["metadata"]["name"]] = made
        return made

    def _limit(self, node: str) -> Json:
        """How many volumes of the driver the node takes."""
        limits, migrated = {DRIVER: self._chance.choice([1, 1, 2, 3, None])}, ""
        if self._migrates:
            limits[TOOK_OVER] = self._chance.choice([1, 1, 2, 3, None])
            migrated = self._chance.choice(["", IN_TREE, IN_TREE])
        self._limits[node] = make_csi_node(node, limits, migrated=migrated)
        return self._limits[node]

    def _source(self, handle: str) -> Json:
        """Where the data of a volume are."""
        if self._migrates and self._chance.random() < 0.6:
            return {"awsElasticBlockStore": {"volumeID": handle}}
        return {"csi": csi(DRIVER, handle)}

    def _room(self, place: int) -> Json:
        """So much room for volumes that are to be made, in a zone or for one node."""
        chance = self._chance
        labels = {self._zone: f"z{place}"} if place < 2 else {HOSTNAME: chance.choice(self._nodes)}
        made = make_capacity(f"room-{place}", chance.choice([MADE, MADE, ZONAL]), f"{chance.randint(0, 60)}Gi", labels)
        made["metadata"]["namespace"] = "default"
        return made

    # -- claims --------------------------------------------------------------------------------------------------------

    def _claim(self, name: str, size: int, class_name: str, how: str = "", **more: Any) -> Json:
        notes = {PROVISIONING: how} if how else {}
        made = make_claim(f"default/{name}", f"{size}Gi", class_name=class_name, annotations=notes, **more)
        self._claims[name] = made
        return made

    def _bound(self, name: str, modes: Sequence[str] = ("ReadWriteOnce",)) -> Json:
        """A claim that has its volume, one of the driver."""
        self._number += 1
        claim = self._claim(name, 1, MADE, volume=f"disk-{name}", modes=modes)
        terms = self._terms() if self._chance.random() < 0.4 else []
        source = self._source(f"handle-{name}")
        made = make_volume(
            f"disk-{name}", class_name=MADE, claim=claim, terms=terms, modes=modes, labels=self._zones(), **source
        )
        self._put(made)
        return claim

    def _zones(self) -> Json:
        """The labels of a volume that says where it is, as drivers did before volumes had terms."""
        chance = self._chance
        return {self._zone: chance.choice(["z0", "z1", "z0__z1", "z2"])} if chance.random() < 0.7 else {}

    def _used_by(self, pod: Json) -> list[Json]:
        """Claims of a pod that runs."""
        name = pod["metadata"]["name"]
        claims = [self._bound(f"{name}-{at}") for at in range(self._chance.choice([1, 1, 2]))]
        _use(pod, claims)
        return claims

    def claimed_by(self, pods: Sequence[Json], group: str, *, single: bool = False) -> Happening:
        """The claims of pods of one group, each one's or one of all, with volumes that they have already.

        Args:
            single: it is a pod without a group. Only such pods want volumes that are there and that nobody has: what a
                pod of a group gets of these counts once it is written, so kube-scheduler may promise it twice
                (``AssumePodVolumes`` passes over what it has assumed before and taken back).
        """
        chance = self._chance
        how, share = chance.choice(["each", "each", "all", "both", "none"]), chance.choice([1.0, 1.0, 0.6])
        mine = [pod for pod in pods if chance.random() < share]
        before, found = set(self._volumes), list[Json]()
        if how in ("each", "both"):
            wish, size, count = self._wish(single), chance.randint(1, 40), chance.choice([1, 1, 1, 2])
            for pod in mine:
                name = pod["metadata"]["name"]
                claims = [self._wished(f"{name}-{at}", wish, size + at) for at in range(count)]
                _use(pod, claims)
                found += claims
        if how in ("all", "both") and mine:
            found.append(self._wished(f"{group}-all", self._wish(single), chance.randint(1, 40)))
            for pod in mine:
                _use(pod, found[-1:])
        volumes = [made for name, made in self._volumes.items() if name not in before]
        return {"persistentVolumes": volumes, "persistentVolumeClaims": found}

    def _wish(self, single: bool) -> tuple[str, str]:
        """Of which class a claim is, and what becomes of it."""
        if single and self._chance.random() < 0.5:
            return LOCAL, ""
        return self._chance.choice(
            [
                (MADE, HERE),
                (MADE, ANYWHERE),
                (MADE, HERE),
                (MADE, ANYWHERE),
                (MADE, FAILS),
                (MADE, NEVER),
                (ZONAL, HERE),
                (ZONAL, ANYWHERE),
                (NOW, ""),
                ("bound", "ReadWriteOnce"),
                ("bound", "ReadWriteOnce"),
                ("bound", "ReadWriteOncePod"),
            ]
        )

    def _wished(self, name: str, wish: tuple[str, str], size: int) -> Json:
        class_name, how = wish
        return self._bound(name, [how]) if class_name == "bound" else self._claim(name, size, class_name, how)

    # -- what happens --------------------------------------------------------------------------------------------------

    def happening(self) -> Happening:
        """Something changes; perhaps nothing."""
        changes = [
            self._volume_comes,
            self._volume_comes,
            self._volume_goes,
            self._claim_goes,
            self._claim_comes,
            self._claim_is_bound,
            self._claim_is_bound,
            self._limit_changes,
            self._limit_changes,
            self._limit_goes,
            self._room_changes,
            self._class_changes,
            self._attached_or_not,
            self._driver_changes,
        ]
        return self._chance.choice(changes)()

    def _volume_comes(self) -> Happening:
        return {"persistentVolumes": [self._local()]}

    def _volume_goes(self) -> Happening:
        if not self._volumes:
            return {}
        name = self._chance.choice(sorted(self._volumes))
        del self._volumes[name]
        return {"gone": [("persistentVolumes", name)]}

    def _claim_goes(self) -> Happening:
        if not self._claims:
            return {}
        name = self._chance.choice(sorted(self._claims))
        self._gone[name] = self._claims.pop(name)
        return {"gone": [("persistentVolumeClaims", name)]}

    def _claim_comes(self) -> Happening:
        """One of the name of one that went, which has no volume yet."""
        if not self._gone:
            return self._claim_goes()
        name = self._chance.choice(sorted(self._gone))
        self._number += 1
        size, (class_name, how) = self._chance.randint(1, 40), self._chance.choice([(MADE, HERE), (MADE, ANYWHERE)])
        made = self._claim(name, size, class_name, how)
        made["metadata"]["uid"] += f"-{self._number}"
        del self._gone[name]
        return {"persistentVolumeClaims": [made]}

    def _claim_is_bound(self) -> Happening:
        """Somebody binds a claim that nobody binds otherwise."""
        lacking = [
            name
            for name, each in sorted(self._claims.items())
            if each["spec"]["storageClassName"] == NOW or each["metadata"]["annotations"].get(PROVISIONING) == NEVER
            if "volumeName" not in each["spec"]
        ]
        if not lacking:
            return {}
        name = self._chance.choice(lacking)
        old = self._claims[name]
        made = make_claim(
            f"default/{name}",
            old["spec"]["resources"]["requests"]["storage"],
            class_name=old["spec"]["storageClassName"],
            annotations={PROVISIONING: NEVER},
            volume=f"disk-{name}",
        )
        made["metadata"]["uid"] = old["metadata"]["uid"]
        self._claims[name] = made
        terms = self._terms() if self._chance.random() < 0.4 else []
        source = self._source(f"handle-{name}")
        class_name = made["spec"]["storageClassName"]
        volume = make_volume(f"disk-{name}", class_name=class_name, terms=terms, labels=self._zones(), **source)
        volume["spec"]["claimRef"], volume["status"] = reference(made), {"phase": "Bound"}
        return {"persistentVolumes": [self._put(volume)], "persistentVolumeClaims": [made]}

    def _limit_changes(self) -> Happening:
        return {"csiNodes": [self._limit(self._chance.choice(self._nodes))]}

    def _limit_goes(self) -> Happening:
        if not self._limits:
            return {}
        name = self._chance.choice(sorted(self._limits))
        del self._limits[name]
        return {"gone": [("csiNodes", name)]}

    def _room_changes(self) -> Happening:
        return {"csiStorageCapacities": [self._room(self._chance.randrange(3))]}

    def _class_changes(self) -> Happening:
        """Classes come that were to come, or volumes may be made elsewhere."""
        if self._late:
            found, self._late = self._late, []
            return {"storageClasses": [self._classes[name] for name in found]}
        made = self._classes[ZONAL] = copy.deepcopy(self._classes[ZONAL])
        zones = self._chance.choice([["z0"], ["z1"], ["z0", "z1"]])
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": self._zone, "values": zones}]}]
        return {"storageClasses": [made]}

    def _attached_or_not(self) -> Happening:
        """A volume that no pod of the node uses is attached to it, or no longer."""
        if self._attached and self._chance.random() < 0.5:
            return {"gone": [("volumeAttachments", self._attached.pop())]}
        self._number += 1
        self._attached.append(f"attached-{self._number}")
        volume = f"other-{self._number}"
        made = make_attachment(self._attached[-1], self._chance.choice(self._nodes), volume, DRIVER)
        source = csi(DRIVER, volume)
        return {
            "persistentVolumes": [self._put(make_volume(volume, class_name=NOW, csi=source))],
            "volumeAttachments": [made],
        }

    def _driver_changes(self) -> Happening:
        """It says where it has room, or no longer."""
        self._tells = not self._tells
        return {"csiDrivers": [make_driver(DRIVER, storage_capacity=self._tells)]}


def _use(pod: Json, claims: Sequence[Json]) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    for each in claims:
        name = each["metadata"]["name"]
        volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": name}})


def made_for(claim: Json, node: str) -> Json | None:
    """The volume that is made for a claim once its node is selected; None where nobody makes one."""
    metadata = claim["metadata"]
    how, name = metadata["annotations"].get(PROVISIONING), f"made-{metadata['name']}"
    if how not in (HERE, ANYWHERE):
        return None
    spec = claim["spec"]
    return make_volume(
        name,
        spec["resources"]["requests"]["storage"],
        class_name=spec["storageClassName"],
        at=[node] if how == HERE else (),
        claim=claim,
        modes=spec["accessModes"],
        csi=csi(DRIVER, name),
    )
