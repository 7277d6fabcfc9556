"""What selectors see of a device, and what they say of it."""

from typing import Any

import pytest

from dsched.cel import CompileError, DeviceSelector, EvaluationError

DRIVER = "gpu.example.com"
ATTRIBUTES: dict[str, Any] = {
    "model": {"string": "h100"},
    "index": {"int": 3},
    "ecc": {"bool": True},
    "driverVersion": {"version": "1.2.3"},
    "topology.example.org/numa": {"int": 0},
}
CAPACITY = {"memory": {"value": "80Gi"}}


def matches(expression: str, minor: int = 37, **device: Any) -> bool:
    given = {"attributes": ATTRIBUTES, "capacity": CAPACITY, "allow_multiple_allocations": None} | device
    return DeviceSelector(expression, minor).matches(DRIVER, **given)


def compile_error(expression: str, minor: int = 37) -> str:
    with pytest.raises(CompileError) as caught:
        DeviceSelector(expression, minor)
    return caught.value.kind


def runtime_error(expression: str, **device: Any) -> str:
    with pytest.raises(EvaluationError) as caught:
        matches(expression, **device)
    return caught.value.kind


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver == 'gpu.example.com'",
        "device.attributes['gpu.example.com'].model == 'h100'",
        "device.attributes['topology.example.org'].numa == 0",
        "device.attributes['gpu.example.com'].driverVersion.isLessThan(semver('1.10.0'))",
        "device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) == 0",
        "device.attributes['gpu.example.com'].ecc",
        "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.ecc && gpu.index > 2)",
        "!device.allowMultipleAllocations",
    ],
)
def test_a_device_is_seen_with_its_values(expression: str) -> None:
    assert matches(expression)


def test_an_unknown_domain_is_an_empty_map_that_in_does_not_see() -> None:
    assert matches("size(device.attributes['other.example.com']) == 0")
    assert matches("device.attributes[?'other.example.com'].hasValue()")
    assert not matches("'other.example.com' in device.attributes")
    assert not matches("has(device.attributes['other.example.com'].x)")
    assert matches("device.attributes.all(domain, domain != 'other.example.com')")


def test_an_unknown_attribute_is_an_error_unless_it_is_asked_for() -> None:
    assert runtime_error("device.attributes['gpu.example.com'].nothing == 1") == "runtime"
    assert not matches("device.attributes['gpu.example.com'].?nothing.hasValue()")
    assert matches("device.attributes['gpu.example.com'].nothing == 1 || true")


@pytest.mark.parametrize("expression", ["1", "'text'", "device.driver", "device", "device.attributes.?x", "[true]"])
def test_what_is_no_bool_is_refused_as_such(expression: str) -> None:
    assert compile_error(expression) == "type"


def test_a_result_that_is_no_bool_only_on_the_device_fails_there() -> None:
    assert runtime_error("device.attributes['gpu.example.com'].model") == "runtime"


@pytest.mark.parametrize(
    "expression", ["", "device.name == 'x'", "unknown", "device.driver ==", "device.driver == 1", "nosuch(1) == 2"]
)
def test_what_does_not_compile(expression: str) -> None:
    assert compile_error(expression) == "compile"


def test_attributes_may_be_lists_since_1_37() -> None:
    attributes = {"models": {"strings": ["a", "b"]}, "versions": {"versions": ["1.0.0", "2.0.0"]}}
    assert matches("device.attributes['gpu.example.com'].models.includes('b')", attributes=attributes)
    assert matches("device.attributes['gpu.example.com'].models.exists(m, m == 'a')", attributes=attributes)
    assert matches("device.attributes['gpu.example.com'].versions[1].major() == 2", attributes=attributes)
    assert matches("[1].includes(1)", minor=36)
    assert compile_error("[1].includes(1)", minor=35) == "compile"


@pytest.mark.parametrize("minor", [34, 36])
def test_attributes_are_nothing_to_loop_over_before_1_37(minor: int) -> None:
    assert compile_error("device.attributes['gpu.example.com'].model.exists(m, m == 'a')", minor=minor) == "compile"
    assert matches("lists.range(-1) == []", minor=minor)
    assert runtime_error("lists.range(-1) == []") == "runtime"


@pytest.mark.parametrize("minor", [34, 36])
def test_dyn_is_no_result_before_1_37(minor: int) -> None:
    assert matches("dyn(device.attributes['gpu.example.com'].ecc)")
    assert compile_error("dyn(device.attributes['gpu.example.com'].ecc)", minor=minor) == "type"


@pytest.mark.parametrize("minor", [34, 36])
def test_what_is_no_optional_is_its_own_value_before_1_37(minor: int) -> None:
    assert matches("device.attributes['gpu.example.com'].ecc.orValue(false)", minor=minor)
    assert runtime_error("device.attributes['gpu.example.com'].ecc.orValue(false)") == "runtime"


def test_a_number_is_no_duration() -> None:
    """Which is not seen before it is evaluated, until 1.36."""
    expression = "duration(device.attributes['gpu.example.com'].index - 1) == duration('1s')"
    assert compile_error(expression) == "compile"
    assert runtime_error(expression, minor=36) == "runtime"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("int('x')", "type"),
        ("int('x') == 1", "compile"),
        ("'a'.find('[')", "type"),
        ("timestamp('x')", "compile"),
        ("timestamp(string(1))", "type"),
        ("duration('x')", "compile"),
        ("'a'.matches('[') ? 1 : 2", "compile"),
        ("matches('a', '[') ? 1 : 2", "type"),
        ("matches('[', 'a')", "compile"),
    ],
)
def test_what_an_expression_evaluates_to_is_looked_at_before_its_constants(expression: str, kind: str) -> None:
    """But not before texts of times, durations and patterns."""
    assert compile_error(expression) == kind


def test_more_than_a_million_units_end_an_evaluation() -> None:
    loops = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    inner = f"{loops}.all(e, true)"
    for name in "abcd":
        inner = f"{loops}.all({name}, {inner})"
    assert runtime_error(inner + f" && {inner} && {inner}") == "cost"


def test_a_value_that_cannot_be_read_is_an_error() -> None:
    assert runtime_error("true", attributes={"v": {"version": "1"}}) == "runtime"
    assert runtime_error("true", attributes={"v": {}}) == "runtime"
    assert runtime_error("true", capacity={"memory": {"value": "much"}}) == "runtime"
