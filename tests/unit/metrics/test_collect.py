"""Counting batches gives what counting pods one by one would give."""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from dsched.metrics import collect, scheduler
from dsched.metrics.instruments import BatchHistogram, Tally

BOUNDS = (0.001, 0.002, 0.004)
VALUES = st.sampled_from([0.0, 0.0005, 0.001, 0.0010001, 0.002, 0.003, 0.004, 0.0041, 7.0])


def exported(histogram):
    (family,) = histogram.collect()
    return {
        (each.name, *sorted(each.labels.items())): each.value for each in family.samples if "_created" not in each.name
    }


def value(metric, **labels):
    """A sample of a family; 0 where there is none yet."""
    (family,) = metric.collect()
    return sum(
        each.value
        for each in family.samples
        if each.name.endswith(("_total", "_count")) and labels.items() <= each.labels.items()
    )


def seconds(metric, **labels):
    (family,) = metric.collect()
    return sum(
        each.value for each in family.samples if each.name.endswith("_sum") and labels.items() <= each.labels.items()
    )


@given(st.lists(st.tuples(VALUES, st.integers(1, 5)), max_size=20))
def test_many_at_once_are_counted_as_one_by_one(batches):
    plain = Histogram("plain", "-", buckets=BOUNDS, registry=CollectorRegistry())
    many = BatchHistogram("plain", "-", buckets=BOUNDS, registry=CollectorRegistry())
    gathered = BatchHistogram("plain", "-", buckets=BOUNDS, registry=CollectorRegistry())
    tally = Tally(BOUNDS)
    for amount, count in batches:
        many.observe_many(amount, count)
        for _ in range(count):
            plain.observe(amount)
            tally.counts[bisect_left(BOUNDS, amount)] += 1
            tally.total += amount
    gathered.add(tally)
    assert exported(many) == pytest.approx(exported(plain))
    assert exported(gathered) == pytest.approx(exported(plain))


def test_labelled_histograms_can_count_many_too():
    histogram = BatchHistogram("plain", "-", ["why"], buckets=BOUNDS, registry=CollectorRegistry())
    histogram.labels("a").observe_many(0.001, 3)
    assert exported(histogram)["plain_count", ("why", "a")] == 3


def test_bound_pods_are_counted_by_attempt_with_the_time_since_their_first_one():
    def counts():
        once, often = ({"attempts": "2"}, {"attempts": "15+"})
        return [
            value(scheduler.SLI_DURATION, **once),
            seconds(scheduler.SLI_DURATION, **once),
            value(scheduler.SLI_DURATION, **often),
            value(scheduler.POD_ATTEMPTS),
            seconds(scheduler.POD_ATTEMPTS),
            value(scheduler.SCHEDULE_ATTEMPTS, profile="shop", result="scheduled"),
            value(scheduler.ATTEMPT_DURATION, profile="shop", result="scheduled"),
            seconds(scheduler.ATTEMPT_DURATION, profile="shop", result="scheduled"),
        ]

    before = counts()
    bound = collect.Bound()
    bound.add("shop", 100.0, 2, 5_000)
    bound.add("shop", 100.0, 2, 5_000)
    bound.add("shop", 0.0, 15, 0)  # adopted from an earlier leader: nobody knows when it was popped
    bound.flush(100.5, 9_000)
    # 2 pods after 9.0 - 5.0 = 4 s each; 2 + 2 + 15 attempts; 0.5 s since they were popped.
    assert [after - was for after, was in zip(counts(), before, strict=True)] == pytest.approx(
        [2, 8, 0, 3, 19, 3, 2, 1]
    )


def test_a_batch_is_shared_out_to_its_pods():
    count, spent = value(scheduler.ALGORITHM_DURATION), seconds(scheduler.ALGORITHM_DURATION)
    collect.decided(0.064, 64)
    collect.decided(0.1, 0)
    assert value(scheduler.ALGORITHM_DURATION) - count == 64
    assert seconds(scheduler.ALGORITHM_DURATION) - spent == pytest.approx(0.064)


def test_extension_points_show_after_a_flush():
    labels = {"extension_point": "Reserve", "status": "Success", "profile": "flushed"}
    collect.extension_point("Reserve", "Success", "flushed", 0.0002)
    assert value(scheduler.EXTENSION_POINT_DURATION, **labels) == 0
    collect.flush()
    collect.flush()
    assert value(scheduler.EXTENSION_POINT_DURATION, **labels) == 1


@pytest.fixture
def named_as():
    yield collect.emulate
    collect.emulate(37)


@pytest.mark.parametrize(("minor", "name"), [(37, "UnscheduledPod"), (36, "UnschedulablePod")])
def test_pods_come_into_queues_by_the_names_that_kube_scheduler_has(named_as, minor, name):
    named_as(minor)
    labels = {"queue": "active", "event": f"{name}Add"}
    before = value(scheduler.INCOMING_PODS, **labels)
    collect.came([("active", "PendingPodAdd"), ("active", "PendingPodAdd"), ("backoff", "NodeAdd")])
    assert value(scheduler.INCOMING_PODS, **labels) - before == 2


def test_events_that_are_handled_together_share_their_time():
    for event, took_s, count in (("HandledAdd", 0.3, 2), ("HandledUpdate", 0.1, 1), ("HandledAdd", 0.1, 1)):
        collect.handled(event, took_s, count)
    assert value(scheduler.EVENT_DURATION, event="HandledAdd") == 3
    assert seconds(scheduler.EVENT_DURATION, event="HandledAdd") == pytest.approx(0.4)
    assert seconds(scheduler.EVENT_DURATION, event="HandledUpdate") == pytest.approx(0.1)
