import pytest

from dsched.config import names


@pytest.mark.parametrize("name", ["cpu", "a", "A.b_c-9", "example.com/foo", "a" * 63, f"{'a' * 253}/b"])
def test_qualified_names(name: str):
    assert names.qualified_name_problems(name) == []


@pytest.mark.parametrize(
    ("name", "how_many"),
    [
        ("", 2),  # empty, and not of the form
        ("bad name", 1),
        ("-a", 1),
        ("a\n", 1),
        ("a" * 64, 1),
        ("/a", 1),
        ("example.com/", 2),
        ("Example.com/a", 1),
        (f"{'a' * 254}/b", 1),
        (f"{'A' * 254}/-", 3),  # too long, not lower case, bad name
        ("a/b/c", 1),
        ("é", 1),
    ],
)
def test_each_problem_of_a_name_is_told(name: str, how_many: int):
    assert len(names.qualified_name_problems(name)) == how_many


@pytest.mark.parametrize(
    ("value", "how_many"), [("", 0), ("a.b", 0), ("a" * 63, 0), ("a" * 64, 1), ("-", 1), ("a b", 1)]
)
def test_label_values(value: str, how_many: int):
    assert len(names.label_value_problems(value)) == how_many


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("example.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/gpu", False),
        ("x.kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
        (f"{'a' * 244}/gpu", True),  # with "requests." the domain has 253 bytes
        (f"{'a' * 245}/gpu", False),
    ],
)
def test_extended_resources(name: str, extended: bool):
    assert names.is_extended_resource(name) is extended
