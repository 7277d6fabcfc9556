"""What was asked to be emulated, what it comes to, and how it is written down."""

import pytest

from dsched import emulation
from dsched.config import feature_gates
from dsched.config.feature_gates import DEFAULT, NEWEST, OLDEST, VERSIONS, Version
from dsched.emulation import NOTHING, UNSAID, Asked, asked
from dsched.errors import ConfigError

GATE = "TaintTolerationComparisonOperators"
"""There since 1.35, off by default."""


def test_texts_are_read_as_upstreams_flags() -> None:
    assert asked(None) == asked("", [""]) == NOTHING
    assert asked("v1.36.3").version == Version(1, 36)
    both = asked(None, [f"{GATE}=true,StorageCapacityScoring=false", "StorageCapacityScoring=true"])
    assert dict(both.gates) == {GATE: True, "StorageCapacityScoring": True}, "the last one counts"


@pytest.mark.parametrize(
    ("version", "gates", "why"),
    [
        ("1.33", [], "'1.33': expected one of 1.34, 1.35, 1.36, 1.37"),
        ("newest", [], "'newest': expected one of"),
        (None, [GATE], f"missing bool value for {GATE}"),
        (None, [f"{GATE}=yes"], f'invalid value of {GATE}=yes, err: parsing "yes"'),
    ],
)
def test_what_cannot_be_read_is_refused(version: str | None, gates: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        asked(version, gates)


def test_without_a_version_it_is_that_of_the_cluster_or_the_nearest() -> None:
    assert NOTHING.on() == DEFAULT
    assert NOTHING.on(Version(1, 36)).version == (1, 36)
    assert NOTHING.on(Version(1, 38)).version == NEWEST
    assert NOTHING.on(Version(1, 29)).version == OLDEST
    assert asked("1.35").on(Version(1, 37)).version == (1, 35)


def test_a_gate_is_refused_where_the_version_does_not_have_it() -> None:
    gates = asked(None, [f"{GATE}=true"])
    assert gates.on(Version(1, 35)).enabled(GATE)
    with pytest.raises(ConfigError, match=r"PreAlpha at emulated version 1\.34"):
        gates.on(OLDEST)
    assert {each.version for each in gates.possible(on_kubernetes=True)} == {*VERSIONS} - {OLDEST}
    with pytest.raises(ConfigError, match="unrecognized feature gate: Wings"):
        asked(None, ["Wings=true"]).possible(on_kubernetes=True)


def test_what_is_asked_for_goes_before_what_was_told() -> None:
    told = feature_gates.features(Version(1, 36), {GATE: True})
    assert NOTHING.instead_of(told) is told
    assert asked("1.37").instead_of(told) == feature_gates.features(NEWEST), "its gates belong to its version"
    less = asked(None, ["VolumeLimitScaling=true"]).instead_of(told)
    assert (less.version, dict(less.given)) == (told.version, {"VolumeLimitScaling": True})


@pytest.mark.parametrize("what", [NOTHING, asked("1.36", [f"{GATE}=true,VolumeLimitScaling=false"])])
def test_the_environment_asks_for_the_same(what: Asked) -> None:
    found = emulation.environment(what)
    assert asked(found[emulation.VERSION], [found[emulation.GATES]]) == what


def test_what_is_written_is_read() -> None:
    for features in (DEFAULT, feature_gates.features(NEWEST, {GATE: True, "StorageCapacityScoring": False})):
        assert emulation.read(*emulation.written(features)) == features


def test_an_older_release_wrote_nothing_and_decided_as_the_oldest_version() -> None:
    assert emulation.read("", "") == UNSAID
    assert UNSAID.version == OLDEST


def test_a_newer_release_may_have_written_what_is_not_known_here() -> None:
    with pytest.raises(ConfigError, match=r"cannot emulate kube-scheduler 1\.99 Wings=true"):
        emulation.read("1.99", "Wings=true")
