"""What pods request. CPU in milli-units, memory in bytes; sums stand beside the cases."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.arithmetic import requests
from dsched.arithmetic.requests import ResizeRules
from dsched.model.pod import Pod
from tests.builders import make_container, make_pod

MIB = 1024 * 1024


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **spec: Any) -> Pod:
    return make_pod(containers=containers, init=init, spec=spec)


def test_containers_add_up_and_zero_is_left_out() -> None:
    both = pod(make_container("a", "500m", "1Gi"), make_container("b", "1", 0, requests={"nvidia.com/gpu": 2}))
    # 500 + 1000; 1024 Mi + 0
    assert requests.usage(both) == {"cpu": 1500, "memory": 1024 * MIB, "nvidia.com/gpu": 2}
    assert requests.usage(pod(make_container("a", 0, 0, requests={"nvidia.com/gpu": 0}))) == {}


def test_rounding_happens_once_per_pod() -> None:
    # 0.4 m + 0.4 m = 0.8 m, up to 1; 0.5 + 0.7 = 1.2 bytes, up to 2
    assert requests.usage(pod(make_container("a", "400u", "500m"), make_container("b", "400u", "700m"))) == {
        "cpu": 1,
        "memory": 2,
    }


def test_resources_that_scheduling_does_not_know_are_left_out() -> None:
    odd = {"pods": 1, "storage": "1Gi", "requests.nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1k"}
    assert requests.usage(pod(make_container(requests=odd))) == {"hugepages-2Mi": 4 * MIB, "ephemeral-storage": 1000}


def test_init_containers_run_one_after_the_other() -> None:
    init = (make_container("i1", "2", "1Gi"), make_container("i2", "1", "3Gi"))
    # cpu max(1, 2, 1), memory max(2, 1, 3) Gi
    assert requests.usage(pod(make_container("a", "1", "2Gi"), init=init)) == {"cpu": 2000, "memory": 3 * 1024 * MIB}


def test_sidecars_count_with_everything_that_starts_after_them() -> None:
    init = (
        make_container("i1", "3"),
        make_container("s1", "1", sidecar=True),
        make_container("i2", "4"),
        make_container("s2", "2", sidecar=True),
    )
    # running: 1 + s1 1 + s2 2 = 4; starting: i1 3, s1 1, i2 4 + s1 1 = 5, s1 + s2 = 3
    assert requests.usage(pod(make_container("a", "1"), init=init)) == {"cpu": 5000}


def test_overhead_comes_on_top() -> None:
    assert requests.usage(pod(make_container("a", "1"), overhead={"cpu": "250m", "memory": "1Mi"})) == {
        "cpu": 1250,
        "memory": MIB,
    }


def test_pod_level_requests_replace_the_sum() -> None:
    level = {"requests": {"cpu": "3", "hugepages-2Mi": "2Mi", "nvidia.com/gpu": 9}}
    both = pod(make_container("a", "1", "1Gi", requests={"nvidia.com/gpu": 1}), resources=level, overhead={"cpu": "1"})
    # cpu 3 + overhead 1; memory is not given for the pod, so the containers' counts; extended resources never are
    expected = {"cpu": 4000, "memory": 1024 * MIB, "hugepages-2Mi": 2 * MIB, "nvidia.com/gpu": 1}
    assert requests.usage(both) == expected
    assert requests.requested(both) == expected
    # the score of the pod to be scheduled does not look at them: 1 + overhead 1
    assert requests.scoring_requests(both)["cpu"] == 2000


@pytest.mark.parametrize(
    ("conditions", "cpu"),
    [
        ([], 3000),  # max of spec 2, has 1, promised 3
        ([{"type": "PodResizePending", "reason": "Deferred"}], 3000),
        ([{"type": "PodResizePending", "reason": "Infeasible"}], 3000),
        ([{"type": "PodScheduled", "reason": "Infeasible"}], 3000),
    ],
)
def test_a_resize_counts_the_most(conditions: list[dict[str, str]], cpu: int) -> None:
    status = {
        "conditions": conditions,
        "containerStatuses": [
            {"name": "app", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "3"}}
        ],
    }
    resized = make_pod(cpu="2", status=status)
    assert requests.usage(resized) == {"cpu": cpu}
    assert requests.requested(resized) == {"cpu": 2000}  # a pod to be scheduled has no status that counts


@pytest.mark.parametrize(("reason", "cpu"), [("Deferred", 4000), ("Infeasible", 1000)])
def test_an_infeasible_resize_leaves_the_spec_out(reason: str, cpu: int) -> None:
    status = {
        "conditions": [{"type": "PodResizePending", "reason": reason}],
        "containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}],
    }
    assert requests.usage(make_pod(cpu="4", status=status)) == {"cpu": cpu}


def test_a_status_without_resources_says_nothing() -> None:
    status = {"containerStatuses": [{"name": "app", "allocatedResources": {"cpu": "9"}}]}
    assert requests.usage(make_pod(cpu="1", status=status)) == {"cpu": 1000}


def test_only_sidecars_among_init_containers_are_resized() -> None:
    init = (make_container("i", "1"), make_container("s", "1", sidecar=True))
    held = [{"name": name, "resources": {"requests": {"cpu": "5"}}} for name in ("i", "s")]
    resized = make_pod(cpu="1", init=init, status={"initContainerStatuses": held})
    # running 1 + 5; starting i 1, s 5
    assert requests.usage(resized) == {"cpu": 6000}


def test_nonzero_usage_fills_in_what_is_missing_but_not_zero() -> None:
    # a: 100 m by default, 1 Mi; b: an explicit 0 stays, 200 Mi by default
    both = pod(make_container("a", None, "1Mi"), make_container("b", 0))
    assert requests.nonzero_usage(both) == (100, 201 * MIB)


def test_init_containers_get_the_defaults_too() -> None:
    init = (make_container("s", sidecar=True), make_container("i", "1"))
    # cpu: running 100 + 100; starting 1000 + 100. memory: running 200 + 200, starting 200 + 200
    assert requests.nonzero_usage(pod(make_container("a"), init=init)) == (1100, 400 * MIB)
    assert requests.scoring_requests(pod(make_container("a"), init=init)) == {"cpu": 1100, "memory": 400 * MIB}


def test_under_pod_level_requests_only_what_nobody_requests_gets_a_default() -> None:
    level = {"requests": {"cpu": "2"}}
    some = pod(make_container("a", None, "1Mi"), make_container("b"), resources=level)
    # cpu 2 for the pod; memory: somebody requests it, so b gets no default
    assert requests.nonzero_usage(some) == (2000, MIB)
    none = pod(make_container("a"), make_container("b"), resources=level)
    # memory: nobody requests it: 200 Mi each
    assert requests.nonzero_usage(none) == (2000, 400 * MIB)


def test_only_limits_for_the_pod_are_no_pod_level_requests() -> None:
    limited = pod(make_container("a"), make_container("b"), resources={"limits": {"cpu": "2"}})
    assert requests.nonzero_usage(limited) == (200, 400 * MIB)


def test_real_requests_keep_zeros_and_names() -> None:
    assert requests.real_requests(pod(make_container("a", 0, requests={"foo": 3}))) == {"cpu": 0, "foo": 3}


def test_what_takes_part_in_scores() -> None:
    assert requests.takes_part("memory", 0) and requests.takes_part("nvidia.com/gpu", 1)
    assert not requests.takes_part("nvidia.com/gpu", 0) and not requests.takes_part("foo", 3)


def test_amounts_end_at_int64() -> None:
    assert requests.usage(pod(make_container("a", "10E"))) == {"cpu": 2**63 - 1}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"cpu": "2"}, {"cpu": "1"}, True),
        ({"cpu": "1"}, {"cpu": "2"}, False),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1"}, True),
        ({"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}, False),
        ({"cpu": "1.0001"}, {"cpu": "1.00009"}, False),  # both 1001 milli
    ],
)
def test_scaled_down(before: dict[str, str], after: dict[str, str], expected: bool) -> None:
    assert requests.scaled_down(make_pod(requests=before), make_pod(requests=after)) is expected


# -- against exact fractions ------------------------------------------------------------------------------------------

UNITS = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000)}
UNITS |= {"Ki": Fraction(1024), "Mi": Fraction(MIB)}
QUANTITIES = st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
CONTAINERS = st.tuples(QUANTITIES, st.booleans())


def exactly(quantity: tuple[int, str]) -> Fraction:
    return quantity[0] * UNITS[quantity[1]]


@settings(deadline=None)
@given(
    apps=st.lists(QUANTITIES, min_size=1, max_size=4),
    init=st.lists(CONTAINERS, max_size=5),
    overhead=QUANTITIES,
)
def test_exact(
    apps: list[tuple[int, str]], init: list[tuple[tuple[int, str], bool]], overhead: tuple[int, str]
) -> None:
    def container(number: int, quantity: tuple[int, str], sidecar: bool = False) -> dict[str, Any]:
        text = f"{quantity[0]}{quantity[1]}"
        return make_container(f"c{number}", text, text, sidecar=sidecar)

    made = pod(
        *(container(number, quantity) for number, quantity in enumerate(apps)),
        init=tuple(container(10 + number, quantity, sidecar) for number, (quantity, sidecar) in enumerate(init)),
        overhead={"cpu": f"{overhead[0]}{overhead[1]}", "memory": f"{overhead[0]}{overhead[1]}"},
    )
    sidecars, most_at_start = Fraction(0), Fraction(0)
    for quantity, sidecar in init:
        most_at_start = max(most_at_start, sidecars + exactly(quantity))
        sidecars += exactly(quantity) if sidecar else 0
    total = max(sum(map(exactly, apps), sidecars), most_at_start) + exactly(overhead)
    expected = {"cpu": -(-total * 1000 // 1), "memory": -(-total // 1)}
    assert requests.usage(made) == {name: amount for name, amount in expected.items() if amount}


@pytest.fixture(autouse=True)
def follow() -> Iterator[Callable[[ResizeRules], bool]]:
    """Rules are followed until the test ends; at first those of v1.34, whatever was emulated before."""
    requests.follow(ResizeRules())
    yield requests.follow
    requests.follow(ResizeRules())


APART = ResizeRules(apart=True)
WHOLE = ResizeRules(apart=True, pod_level=True)


def resizing(*containers: tuple[str, dict[str, Any]], reason: str = "", **status: Any) -> Pod:
    """A pod whose containers ask for so many CPUs and have such statuses."""
    return make_pod(
        containers=[make_container(f"c{at}", cpu) for at, (cpu, _) in enumerate(containers)],
        status={
            "containerStatuses": [{"name": f"c{at}", **held} for at, (_, held) in enumerate(containers)],
            "conditions": [{"type": "PodResizePending", "reason": reason}] if reason else [],
            **status,
        },
    )


def test_since_1_37_the_three_sums_are_compared_not_each_container(follow: Callable[[ResizeRules], bool]) -> None:
    """One container shrinks, the other grows: 1 + 4 asked for, 3 + 1 promised and held."""
    pod = resizing(("1", {"allocatedResources": {"cpu": "3"}}), ("4", {"allocatedResources": {"cpu": "1"}}))
    both = resizing(
        ("1", {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "3"}}}),
        ("4", {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}),
    )
    assert requests.usage(both) == {"cpu": 7000}
    assert follow(APART)
    assert requests.usage(pod) == requests.usage(both) == {"cpu": 5000}
    assert not follow(APART), "they were followed already"


def test_since_1_37_what_is_not_said_is_taken_from_what_is(follow: Callable[[ResizeRules], bool]) -> None:
    """Of c0 nothing is held and 5 promised, of c1 1 is held and nothing promised."""
    pod = resizing(("1", {"allocatedResources": {"cpu": "5"}}), ("2", {"resources": {"requests": {"cpu": "1"}}}))
    follow(APART)
    assert requests.usage(pod) == {"cpu": 7000}  # promised: 5 + 2


def test_since_1_37_nothing_that_is_said_to_be_held_is_nothing(follow: Callable[[ResizeRules], bool]) -> None:
    said = resizing(("1", {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {}}}), reason="Infeasible")
    follow(APART)
    assert requests.usage(said) == {"cpu": 3000}
    assert requests.usage(resizing(("1", {"allocatedResources": {}, "resources": {}}), reason="Infeasible")) == {}


def test_since_1_37_an_infeasible_resize_without_statuses_leaves_nothing(follow: Callable[[ResizeRules], bool]) -> None:
    pod = resizing(("2", {}), reason="Infeasible")
    assert requests.usage(pod) == {"cpu": 2000}
    follow(APART)
    assert requests.usage(pod) == {}
    assert requests.nonzero_usage(pod) == (100, 200 * 2**20)


def test_what_the_status_says_of_the_pod_as_a_whole(follow: Callable[[ResizeRules], bool]) -> None:
    """It counts with its feature, instead of what it says of containers where both parts are there."""
    held: dict[str, Any] = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}
    pod = resizing(("1", {"allocatedResources": {"cpu": "9"}}), **held)
    partly = resizing(("1", {"allocatedResources": {"cpu": "9"}}), allocatedResources={"cpu": "2"})
    follow(APART)
    assert requests.usage(pod) == {"cpu": 9000}
    follow(WHOLE)
    assert requests.usage(pod) == {"cpu": 3000}
    assert requests.usage(partly) == {"cpu": 9000}


@pytest.mark.parametrize(
    ("rules", "reason", "cpu"),
    [
        (ResizeRules(), "", 4000),
        (ResizeRules(pod_level=True), "", 6000),
        (ResizeRules(pod_level=True), "Infeasible", 6000),
        (WHOLE, "", 6000),
        (WHOLE, "Infeasible", 6000),
        (APART, "", 4000),
    ],
)
def test_requests_of_the_pod_as_a_whole_are_resized_with_their_feature(
    follow: Callable[[ResizeRules], bool], rules: ResizeRules, reason: str, cpu: int
) -> None:
    pod = make_pod(
        cpu="1",
        spec={"resources": {"requests": {"cpu": "4"}}},
        status={
            "resources": {"requests": {"cpu": "6"}},
            "allocatedResources": {"cpu": "5"},
            "conditions": [{"type": "PodResizePending", "reason": reason}] if reason else [],
        },
    )
    follow(rules)
    assert requests.usage(pod) == {"cpu": cpu}
    assert requests.requested(pod) == {"cpu": 4000}


def test_until_1_36_only_resources_that_the_pod_names_are_resized(follow: Callable[[ResizeRules], bool]) -> None:
    pod = make_pod(
        spec={"resources": {"requests": {"cpu": "4"}}},
        status={"resources": {"requests": {"cpu": "1", "memory": "7"}}},
    )
    follow(ResizeRules(pod_level=True))
    assert requests.usage(pod) == {"cpu": 4000}
    follow(WHOLE)
    assert requests.usage(pod) == {"cpu": 4000, "memory": 7}
