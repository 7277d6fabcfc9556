"""Which nodes hold which images, and whose word about their size counts."""

from dsched.framework.images import Images
from dsched.model.node import Node
from tests.builders import make_node

WEB = "web:1"


def held(*sizes: int) -> tuple[Images, list[Node]]:
    nodes = [make_node(f"n{number}", images={WEB: size}) for number, size in enumerate(sizes)]
    images = Images()
    for serial, node in enumerate(nodes):
        images.put(serial, node)
    return images, nodes


def test_the_size_is_what_the_first_node_reports_whoever_comes_last() -> None:
    images, nodes = held(100, 200)
    found = images.get(WEB)
    assert found is not None
    assert (found.size, set(found.sizes)) == (100, {0, 1})
    images.drop(0, nodes[0])
    images.put(0, make_node("n0", images={WEB: 150}))
    assert (found.size, set(found.sizes)) == (150, {0, 1})


def test_when_the_first_node_has_it_no_more_the_next_one_counts() -> None:
    images, nodes = held(100, 200, 300)
    images.drop(0, nodes[0])
    found = images.get(WEB)
    assert found is not None
    assert (found.size, found.first, set(found.sizes)) == (200, 1, {1, 2})


def test_an_image_that_nobody_holds_is_not_known() -> None:
    images, nodes = held(100)
    images.drop(0, nodes[0])
    assert images.get(WEB) is None
