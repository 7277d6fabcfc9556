"""What a metric counts, read as whoever scrapes it does."""

from prometheus_client.metrics import MetricWrapperBase


def value(metric: MetricWrapperBase) -> float:
    """Of a counter or a gauge, with its labels given."""
    return _samples(metric)[""]


def total(metric: MetricWrapperBase) -> float:
    """The sum of what a histogram has seen."""
    return _samples(metric)["_sum"]


def count(metric: MetricWrapperBase) -> float:
    """How much a histogram has seen."""
    return _samples(metric)["_count"]


def _samples(metric: MetricWrapperBase) -> dict[str, float]:
    """By what is added to the metric's name, but for the total of a counter."""
    (family,) = metric.collect()
    return {each.name.removeprefix(family.name).removesuffix("_total"): each.value for each in family.samples}
