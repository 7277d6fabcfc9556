"""ImageLocality."""

from typing import Any

import numpy as np
import pytest

from dsched.framework.pod_info import PodInfo
from dsched.plugins.image_locality import ImageLocality, normalized_name
from tests.builders import make_container, make_node, make_pod, make_table
from tests.unit.plugins.asking import scored
from tests.versions import V34, V35, V36, V37

NO_HANDLE: Any = None
PLUGIN = ImageLocality(None, NO_HANDLE)
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("web", "web:latest"),
        ("web:v1", "web:v1"),
        ("example.com:5000/web", "example.com:5000/web:latest"),
        ("example.com:5000/web:v1", "example.com:5000/web:v1"),
        ("web@sha256:abc", "web@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_the_default_tag(image: str, expected: str) -> None:
    assert normalized_name(image) == expected


def test_what_few_nodes_hold_is_worth_less() -> None:
    table = make_table(
        [
            make_node("n1", images={"web:latest": 500 * MIB, "log:v1": 500 * MIB}),
            make_node("n2", images={"web:latest": 500 * MIB}),
        ]
    )
    # web is on 2 of 2 nodes: 100 * (500 - 23) / (1000 - 23) = 48.8
    assert scored(PLUGIN, make_pod(image="web"), table) == [48, 48]
    # log is on 1 of 2: 100 * (250 - 23) / 977 = 23.2
    assert scored(PLUGIN, make_pod(image="log:v1"), table) == [23, 0]
    # both: n1 750, n2 500, of 2 containers: 100 * 727 / 1977 = 36.8, 100 * 477 / 1977 = 24.1
    both = make_pod(containers=[make_container(image="web")], init=[make_container("i", image="log:v1")])
    assert scored(PLUGIN, both, table) == [36, 24]
    assert scored(PLUGIN, both, table, np.array([1])) == [24]


def test_the_same_image_twice_counts_twice() -> None:
    table = make_table([make_node("n1", images={"web:latest": 500 * MIB})])
    # 1000 of 2 containers: 100 * 977 / 1977
    twice = make_pod(containers=[make_container("a", image="web"), make_container("b", image="web:latest")])
    assert scored(PLUGIN, twice, table) == [49]


def test_sizes_as_large_as_they_get_count_as_very_large() -> None:
    largest = 2**63 - 1
    table = make_table(
        [make_node("n1", images={"web:latest": largest, "log:v1": largest}), make_node("n2", images={"web:latest": 1})]
    )
    both = make_pod(containers=[make_container("a", image="web"), make_container("b", image="log:v1")])
    assert scored(PLUGIN, both, table)[0] == 100


def test_unknown_images_score_nothing() -> None:
    assert scored(PLUGIN, make_pod(image="web"), make_table([make_node("n1"), make_node("n2")])) == [0, 0]


def test_image_volumes_count_since_1_36_and_divide_since_1_37() -> None:
    """App and volume are on the node, 600 MiB each: (600 - 23) / (1000 - 23), twice that, and of 1977."""
    table = make_table([make_node("n1", images={"app:latest": 600 * MIB, "model:latest": 600 * MIB})])
    pod = make_pod(image="app", spec={"volumes": [{"name": "m", "image": {"reference": "model"}}, {"name": "e"}]})
    found = [scored(ImageLocality(None, NO_HANDLE, features), pod, table) for features in (V34, V35, V36, V37)]
    assert found == [[59], [59], [100], [59]]


def test_pods_with_other_volumes_are_not_alike() -> None:
    plugin = ImageLocality(None, NO_HANDLE, V37)
    plain = PodInfo(make_pod(image="app"))
    volume = PodInfo(make_pod(image="app", spec={"volumes": [{"name": "m", "image": {"reference": "model"}}]}))
    assert plugin.alike(plain, PodInfo(make_pod("shop/other", image="app")))
    assert not plugin.alike(plain, volume)
