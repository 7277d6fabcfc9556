"""Volumes and claims over columns of nodes: the same as the rules told node by node, in plain Python."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.arithmetic import claims as claim_arithmetic
from dsched.arithmetic.claims import (
    ELSEWHERE,
    MISSING,
    NO_SPACE,
    NO_VOLUME,
    Bound,
    PodClaims,
    Provisioning,
    Waiting,
)
from dsched.arithmetic.volumes import NONE, Offer, Shelf, Want, reachable_from
from dsched.framework.table import NodeTable
from dsched.model import meta, quantity
from dsched.model.volumes import CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.builders import make_node, make_table, make_term
from tests.storage import HOSTNAME, ZONE, make_capacity, make_claim, make_class, make_volume

Json = dict[str, Any]
NODES = [
    make_node(f"n{row}", labels={HOSTNAME: f"n{row}", **({ZONE: f"z{row % 2}"} if row < 5 else {})}) for row in range(7)
]


def offer(value: Json) -> Offer:
    return Offer(meta.from_builtins(value, PersistentVolume))


class TestShelf:
    TABLE = make_table(NODES)
    SHELF = Shelf(
        [
            offer(make_volume("0", at=["n1"])),
            offer(make_volume("1", terms=[make_term(f"{ZONE} In z0")])),
            offer(make_volume("2", terms=[make_term(f"{ZONE} In z0 z1"), make_term(f"{HOSTNAME} In n6")])),
            offer(make_volume("3", at=["n1", "n5"])),
            offer(make_volume("4")),
        ]
    )

    def first(self, floor: int, rows: Any = slice(0, 7)) -> list[int]:
        length = len(self.TABLE.names[rows]) if isinstance(rows, slice) else len(rows)
        return self.SHELF.first(self.TABLE, rows, np.full(length, floor, dtype=np.int64)).tolist()

    def test_the_first_within_reach(self) -> None:
        assert self.first(0) == [1, 0, 1, 2, 1, 3, 2]

    def test_the_first_from_some_rank_on(self) -> None:
        assert self.first(1) == [1, 2, 1, 2, 1, 3, 2]
        assert self.first(3) == [4, 3, 4, 4, 4, 3, 4]
        assert self.first(4) == [4] * 7
        assert self.first(5) == [5] * 7

    def test_every_row_may_have_its_own(self) -> None:
        floor = np.array([0, 1, 2, 3, 4, 5, 0])
        assert self.SHELF.first(self.TABLE, slice(0, 7), floor).tolist() == [1, 2, 2, 4, 4, 5, 2]

    def test_some_rows(self) -> None:
        assert self.first(0, np.array([5, 1])) == [3, 0]

    def test_an_empty_one(self) -> None:
        assert Shelf([]).first(self.TABLE, slice(0, 2), np.zeros(2, dtype=np.int64)).tolist() == [0, 0]


# -- the rules for one node, told plainly ---------------------------------------------------------------------------


def matching_volume(claim: Json, volumes: list[Json], node: dict[str, str], chosen: set[str]) -> str | None:
    """``FindMatchingVolume``: the name of the volume for a claim on a node with these labels."""
    metadata, spec = claim["metadata"], claim["spec"]
    wanted = quantity.nano(spec["resources"]["requests"].get("storage", 0))
    smallest: Json | None = None
    for volume in volumes:
        reference = volume["spec"].get("claimRef")
        mine = reference is not None and reference["name"] == metadata["name"] and reference["uid"] == metadata["uid"]
        if volume["metadata"]["name"] in chosen or (reference is not None and not mine):
            continue
        if quantity.nano(volume["spec"]["capacity"]["storage"]) < wanted:
            continue
        terms = volume["spec"].get("nodeAffinity", {}).get("required")
        near = terms is None or any(
            all(node.get(each["key"]) in each["values"] for each in term["matchExpressions"])
            for term in terms["nodeSelectorTerms"]
        )
        if mine:
            return volume["metadata"]["name"] if near else None
        if volume["status"]["phase"] != "Available" or not near:
            continue
        if smallest is None or quantity.nano(smallest["spec"]["capacity"]["storage"]) > quantity.nano(
            volume["spec"]["capacity"]["storage"]
        ):
            smallest = volume
    return None if smallest is None else smallest["metadata"]["name"]


def reasons(
    bound: list[Json | None],
    waiting: list[Json],
    volumes: list[Json],
    provision: "Rule",
    name: str,
    node: dict[str, str],
) -> int:
    """``FindPodVolumes``: why the node will not do, added up."""
    code = 0
    for volume in bound:
        if volume is None:
            code = MISSING
            break
        terms = offer(volume).terms
        if terms is not None and not reachable_from(terms, node):
            code = ELSEWHERE
            break
    provisioned: list[Json] = []
    matched: list[Json] = []
    for claim in waiting:
        selected = claim["metadata"]["annotations"].get("volume.kubernetes.io/selected-node")
        if selected is not None and selected != name:
            return code | NO_VOLUME
        (matched if selected is None else provisioned).append(claim)
    chosen: set[str] = set()
    for claim in sorted(matched, key=lambda each: quantity.nano(each["spec"]["resources"]["requests"]["storage"])):
        found = matching_volume(claim, volumes, node, chosen)
        if found is None:
            provisioned.append(claim)
        else:
            chosen.add(found)
    for claim in provisioned:
        problem = provision.problem(claim, node)
        if problem:
            return code | problem
    return code


class Rule:
    """How volumes are made: not at all, in some zones only, or where there is room."""

    def __init__(self, zones: list[str] | None, room: list[tuple[str, str]] | None) -> None:
        self.zones, self.room = zones, room

    def problem(self, claim: Json, node: dict[str, str]) -> int:
        if self.zones is None:
            return NO_VOLUME
        if self.zones and node.get(ZONE) not in self.zones:
            return NO_VOLUME
        if self.room is None:
            return 0
        size = quantity.value(claim["spec"]["resources"]["requests"]["storage"])
        near = (capacity for host, capacity in self.room if node.get(HOSTNAME) == host)
        return 0 if any(quantity.value(capacity) >= size for capacity in near) else NO_SPACE

    def provisioning(self, claim: PersistentVolumeClaim) -> Provisioning:
        topologies = [{ZONE: self.zones}] if self.zones else []
        made = make_class() if self.zones is None else make_class("local", "ssd", topologies=topologies)
        capacities = None
        if self.room is not None:
            known = [make_capacity("c", "local", capacity, {HOSTNAME: host}) for host, capacity in self.room]
            capacities = [meta.from_builtins(each, CsiStorageCapacity) for each in known]
        return Provisioning(claim, meta.from_builtins(made, StorageClass), capacities)


SIZES = st.sampled_from(["1Gi", "2Gi", "3Gi"])
HOSTS = st.sampled_from([f"n{row}" for row in range(7)])
ZONES = st.sampled_from(["z0", "z1"])
AFFINITY: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.builds(lambda hosts: {"at": hosts}, st.lists(HOSTS, min_size=1, max_size=3)),
    st.builds(lambda zone: {"terms": [make_term(f"{ZONE} In {zone}")]}, ZONES),
    st.builds(lambda zone, host: {"terms": [make_term(f"{ZONE} In {zone}", f"{HOSTNAME} In {host} n1")]}, ZONES, HOSTS),
    st.builds(
        lambda zone, host: {"terms": [make_term(f"{ZONE} In {zone}"), make_term(f"{HOSTNAME} In {host}")]}, ZONES, HOSTS
    ),
)
ROOM = st.none() | st.lists(st.tuples(HOSTS, SIZES), max_size=4)
CLAIMS = st.lists(st.tuples(SIZES, st.none() | st.none() | HOSTS), max_size=3)
VOLUMES = st.lists(st.tuples(SIZES, AFFINITY, st.integers(0, 5), st.booleans()), max_size=8)
BOUND = st.lists(st.none() | AFFINITY, max_size=2)


@settings(max_examples=300, deadline=None)
@given(
    bound=BOUND,
    claims=CLAIMS,
    drawn=VOLUMES,
    zones=st.none() | st.lists(ZONES, max_size=2, unique=True),
    room=ROOM,
    rows=st.lists(st.integers(0, 6), unique=True, min_size=1),
)
def test_columns_say_what_the_rules_say_of_each_node(
    bound: list[Json | None],
    claims: list[tuple[str, str | None]],
    drawn: list[tuple[str, Json, int, bool]],
    zones: list[str] | None,
    room: list[tuple[str, str]] | None,
    rows: list[int],
) -> None:
    waiting = [
        make_claim(
            f"shop/c{at}", size, annotations={} if node is None else {"volume.kubernetes.io/selected-node": node}
        )
        for at, (size, node) in enumerate(claims)
    ]
    # sizes differ, so that there is one smallest; every claim has at most one volume bound to it
    owners: set[int] = set()
    volumes: list[Json] = []
    for at, (size, affinity, owner, free) in enumerate(drawn):
        mine = waiting[owner] if owner < len(waiting) and owner not in owners else None
        owners.add(owner)
        exact = f"{quantity.value(size) + at}"
        phase = "Available" if free else "Released"
        volumes.append(make_volume(f"v{at}", exact, claim=mine, phase=phase, **affinity))
    settled = [None if affinity is None else make_volume("b", **affinity) for affinity in bound]
    rule = Rule(zones, room)
    offers = [offer(volume) for volume in volumes]
    records = [meta.from_builtins(claim, PersistentVolumeClaim) for claim in waiting]
    prepared = PodClaims(
        tuple(None if volume is None else Bound(offer(volume).terms) for volume in settled),
        tuple(Waiting("", Want(record), offers, rule.provisioning(record)) for record in records),
    )
    table: NodeTable = make_table(NODES)
    expected = [reasons(settled, waiting, volumes, rule, node.name, node.metadata.labels) for node in NODES]
    assert claim_arithmetic.answer(prepared, table, slice(0, 7)).codes.tolist() == expected
    some = claim_arithmetic.answer(prepared, table, np.array(rows, dtype=np.intp))
    assert some.codes.tolist() == [expected[row] for row in rows]
    for at, row in enumerate(rows):
        picked = [int(numbers[at]) for _, numbers in some.picks]
        taken = [number for number in picked if number != NONE]
        assert len(taken) == len(set(taken))
        alone = claim_arithmetic.answer(prepared, table, slice(row, row + 1))
        assert alone.codes.tolist() == [expected[row]]
        assert [int(numbers[0]) for _, numbers in alone.picks] == picked
