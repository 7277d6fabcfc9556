"""Queues as a tree, a row a resource."""

from typing import Any

from dsched.cli.render import columns, queues
from tests.manifests import Json, queue_manifest

NOW_MS = 1_700_003_600_000
CREATED = "2023-11-14T22:13:20Z"


def made(name: str, parent: str = "", status: Json | None = None, **spec: Any) -> Json:
    value = queue_manifest(name, parent, **spec)
    value["metadata"] |= {"creationTimestamp": CREATED, "uid": f"uid-{name}"}
    return {**value, **({"status": status} if status else {})}


BUSY = {
    "usage": {"cpu": "52500m", "memory": "137438953472", "pods": 12},
    "fairShare": {"cpu": "60"},
    "borrowed": {"cpu": "12500m"},
    "pending": {"memory": "1Gi"},
    "pendingPods": 7,
}
FORTY = {"guaranteed": "40", "limit": "80", "weight": 3}
RULES: Json = {"weight": 2, "minRuntime": "10m", "namespaces": ["a", "b"]}
TREE = [
    made("web"),
    made(
        "train", "ml", BUSY, resources={"cpu": {"guaranteed": "40", "limit": "80", "weight": 3}, "nvidia.com/gpu": {}}
    ),
    made(
        "ml", weight=2, reclaim="Never", minRuntime="10m", namespaces=["a", "b"], resources={"cpu": {"limit": "1500m"}}
    ),
    made("infer", "ml"),
]


def shown(values: list[Json], *, wide: bool = False) -> list[str]:
    table = [queues.titles(wide=wide), *queues.rows(values, NOW_MS, wide=wide)]
    widths = columns.widths(table)
    return [columns.line(row, widths) for row in table]


def test_children_stand_below_their_parents_with_a_row_a_resource() -> None:
    assert shown(TREE) == [
        "NAME      WAITING   RESOURCE         WEIGHT   GUARANTEED   LIMIT    USAGE    FAIR SHARE   PENDING   AGE",
        "ml        0         cpu              2        0            1.5      <none>   <none>       <none>    1h",
        "  infer   0         <none>           1        <none>       <none>   <none>   <none>       <none>    1h",
        "  train   7         cpu              3        40           80       52.5     60           <none>    1h",
        "                    memory           1        <none>       <none>   128Gi    <none>       1Gi",
        "                    nvidia.com/gpu   1        0            <none>   <none>   <none>       <none>",
        "                    pods             1        <none>       <none>   12       <none>       <none>",
        "web       0         <none>           1        <none>       <none>   <none>   <none>       <none>    1h",
    ]


def test_wide_rows_tell_rules_once_a_queue() -> None:
    rows = queues.rows(TREE[1:3], NOW_MS, wide=True)
    assert len(queues.titles(wide=True)) == len(rows[0])
    assert [row[-4:] for row in rows] == [
        ["<none>", "Never", "10m", "a,b"],
        ["12.5", "Any", "0s", "all"],
        ["<none>", "", "", ""],
        ["<none>", "", "", ""],
        ["<none>", "", "", ""],
    ]


def test_facts() -> None:
    assert dict(queues.facts(TREE[2], ["ml"], ["infer", "train"], NOW_MS)) == {
        "Name": ["ml"],
        "UID": ["uid-ml"],
        "Created": [f"{CREATED} (1h ago)"],
        "Labels": [],
        "Place": ["ml"],
        "Children": ["infer", "train"],
        "Weight": ["2"],
        "Reclaim": ["Never"],
        "Min Runtime": ["10m"],
        "Namespaces": ["a,b"],
        "Pending Pods": ["0"],
        "Reclaimed Pods": ["0"],
    }
    assert queues.resource_rows(TREE[2]) == [["cpu", "2", "0", "1.5", "<none>", "<none>", "<none>", "<none>"]]
