"""Versions and feature gates."""

import pytest

from dsched.config import feature_gates
from dsched.config.feature_gates import ACTED_ON_SINCE, DEPENDS_ON, GATES, NEWEST, OLDEST, OWN, VERSIONS, Stage, Version
from dsched.errors import ConfigError
from tests.versions import POD_GROUPS, TOPOLOGY, V34, V36, V37, WITH_TOPOLOGY, with_gates


def test_a_gate_is_by_default_what_its_version_says() -> None:
    assert [version.enabled("StorageCapacityScoring") for version in (V34, V36, V37)] == [False, False, True]
    assert [version.enabled("NodeDeclaredFeatures") for version in (V34, V36, V37)] == [False, True, True]


def test_gates_are_set_and_told() -> None:
    off = with_gates(V37, StorageCapacityScoring=False, TaintTolerationComparisonOperators=True)
    assert not off.enabled("StorageCapacityScoring")
    assert off.enabled("TaintTolerationComparisonOperators")
    assert str(off) == "1.37 StorageCapacityScoring=false,TaintTolerationComparisonOperators=true"
    assert str(V37) == "1.37"


@pytest.mark.parametrize(
    ("version", "gates", "problem"),
    [
        (V37, {"Nope": True}, "unrecognized feature gate: Nope"),
        (
            V37,
            {"NodeDeclaredFeatures": False},
            "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
        ),
        (
            V34,
            {"VolumeLimitScaling": True},
            "cannot set feature gate VolumeLimitScaling to true, feature is PreAlpha at emulated version 1.34",
        ),
        (
            V37,
            {"PodGroupPreemptionPolicy": True},
            "cannot set feature gate PodGroupPreemptionPolicy to true, dsched does not have this feature yet",
        ),
        (
            V37,
            {"PodLevelResources": False},
            "cannot set feature gate PodLevelResources to false, dsched always decides as if it were true",
        ),
    ],
)
def test_what_cannot_be_set_is_refused(version: feature_gates.Features, gates: dict[str, bool], problem: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        with_gates(version, **gates)
    assert refusal.value.errors == (problem,)
    assert "leave these gates out, or emulate another version" in str(refusal.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as refusal:
        with_gates(V37, Nope=True, Neither=False)
    assert refusal.value.errors == ("unrecognized feature gate: Nope", "unrecognized feature gate: Neither")


def test_pod_groups_are_those_of_1_37() -> None:
    assert with_gates(V37, **{POD_GROUPS: True, TOPOLOGY: True}).on == WITH_TOPOLOGY.on
    with pytest.raises(ConfigError) as refusal:
        with_gates(V36, **{POD_GROUPS: True})
    assert refusal.value.errors == (
        "cannot set feature gate GenericWorkload to true, dsched has this feature as it is since 1.37",
    )
    assert not with_gates(V36, **{POD_GROUPS: False, "AllAlpha": True}).enabled(POD_GROUPS)


def test_a_gate_needs_those_that_it_depends_on() -> None:
    alone = "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"
    for gates in ({TOPOLOGY: True}, {"AllAlpha": True}):
        with pytest.raises(ConfigError) as refusal:
            with_gates(V37, **gates)
        assert refusal.value.errors == (alone,)
    assert with_gates(V37, AllAlpha=True, AllBeta=True).enabled(TOPOLOGY)


def test_a_locked_gate_may_be_set_to_what_it_is() -> None:
    assert with_gates(V37, NodeDeclaredFeatures=True).enabled("NodeDeclaredFeatures")


def test_whole_stages_can_be_set() -> None:
    """What dsched cannot change stays; what is set by itself goes before."""
    alpha = with_gates(V37, **{POD_GROUPS: True, "AllAlpha": True})
    assert alpha.enabled("TaintTolerationComparisonOperators")
    assert not alpha.enabled("CompositePodGroup")
    beta = with_gates(V37, AllBeta=False, VolumeLimitScaling=True)
    assert (beta.enabled("StorageCapacityScoring"), beta.enabled("VolumeLimitScaling")) == (False, True)


def test_a_gate_that_does_not_exist_is_a_mistake_of_the_code() -> None:
    with pytest.raises(KeyError):
        V37.enabled("Nope")


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("", {}),
        ("A=true", {"A": True}),
        ("A=true, B=False ,C=0", {"A": True, "B": False, "C": False}),
        ("A=true,A=false", {"A": False}),
    ],
)
def test_gates_are_read_as_upstream_reads_them(text: str, gates: dict[str, bool]) -> None:
    assert feature_gates.parse_gates(text) == gates
    assert feature_gates.parse_gates(feature_gates.gates_text(gates)) == gates


def test_gates_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError) as refusal:
        feature_gates.parse_gates("A,B=yes")
    assert refusal.value.errors == (
        "missing bool value for A",
        'invalid value of B=yes, err: parsing "yes": invalid syntax',
    )


@pytest.mark.parametrize("text", ["1.36", "v1.36", "1.36.3", "v1.36.0-alpha.1", "1.36+"])
def test_versions_are_read_with_and_without_the_patch(text: str) -> None:
    assert feature_gates.parse_version(text) == Version(1, 36)


@pytest.mark.parametrize("text", ["", "1", "1.33", "1.38", "2.36", "newest"])
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected one of 1\.34, 1\.35, 1\.36, 1\.37"):
        feature_gates.parse_version(text)


def test_clusters_beyond_what_is_known_get_the_version_next_to_theirs() -> None:
    versions = [Version(1, 20), Version(1, 35), Version(1, 40), Version(2, 0)]
    assert [feature_gates.nearest(version) for version in versions] == [OLDEST, Version(1, 35), NEWEST, NEWEST]


def test_the_table_is_in_order_and_every_version_can_be_emulated() -> None:
    assert list(GATES) == sorted(GATES)
    for name, specs in GATES.items():
        assert list(specs) == sorted(specs, key=lambda spec: spec.since), name
        assert all(spec.on for spec in specs if spec.locked and spec.stage is Stage.GA), name
    for version in VERSIONS:
        told = feature_gates.features(version).gates
        assert [name for name, _, _ in told] == [name for name in GATES if GATES[name][0].since <= version]


def test_what_dsched_does_not_have_is_off_in_every_version() -> None:
    for version in VERSIONS:
        assert not feature_gates.features(version).on & feature_gates.NOT_YET
    named = feature_gates.ACTED_ON | feature_gates.NOT_YET | feature_gates.NO_DECISION
    assert named <= GATES.keys()


def test_gates_of_our_own_are_off_unless_they_are_named() -> None:
    for version in (V34, V36, V37):
        assert not with_gates(version, AllAlpha=True, AllBeta=True).on & OWN.keys()
        for name in OWN:
            needs = dict.fromkeys(DEPENDS_ON.get(name, ()), True)
            if version.version < max((ACTED_ON_SINCE.get(gate, OLDEST) for gate in needs), default=OLDEST):
                continue
            named = with_gates(version, **needs, **{name: True})
            assert named.enabled(name)
            assert (name, True) in named.own_gates
            assert name not in [gate for gate, _, _ in named.gates]
            assert not with_gates(version, **{name: False}).enabled(name)


def test_gates_of_our_own_are_told_apart_from_upstreams() -> None:
    assert list(OWN) == sorted(OWN)
    assert not OWN.keys() & GATES.keys()
    assert all(name.startswith("Dsched") for name in OWN)
    assert not any(name.startswith("Dsched") for name in GATES)
    with pytest.raises(ConfigError) as refusal:
        with_gates(V37, DschedNope=True)
    assert "dsched's own are DschedCoscheduling, " in refusal.value.errors[0]
