"""Names of labels and resources."""

import pytest

from dsched.model import names


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("example.com/a_B.c-1", True, True),
        ("cpu", False, False),
        ("memory", False, False),
        ("pods", False, False),
        ("foo", False, False),  # no domain: taken to be Kubernetes' own, and unknown
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("kubernetes.io/batch", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("a/b/c", False, False),
        ("example.com/", False, False),
    ],
)
def test_kinds_of_resources(name: str, extended: bool, scalar: bool) -> None:
    assert names.is_extended_resource(name) is extended
    assert names.is_scalar_resource(name) is scalar


@pytest.mark.parametrize("text", ["a", "a.b/c", "A_b", "x" * 63, "app.kubernetes.io/name"])
def test_qualified(text: str) -> None:
    assert names.is_qualified_name(text)


@pytest.mark.parametrize("text", ["", "-a", "a/", "/a", "A.b/c", "x" * 64, "a\n"])
def test_not_qualified(text: str) -> None:
    assert not names.is_qualified_name(text)


@pytest.mark.parametrize(("text", "legal"), [("", True), ("5", True), ("-6", False), ("a b", False), ("x" * 64, False)])
def test_label_values(text: str, legal: bool) -> None:
    assert names.is_label_value(text) is legal
