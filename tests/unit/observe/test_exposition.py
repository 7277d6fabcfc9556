"""A process exports what it has to say, and of what it cannot look up it says that it could not."""

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily
from redis.exceptions import ConnectionError as Away

from dsched import metrics
from dsched.metrics.instruments import DECLARED
from dsched.observe.exposition import Exposition
from tests.metrics import value


class Source:
    """Finds Redis away as long as it is told to."""

    def __init__(self):
        self.away = False

    def collect(self):
        yield GaugeMetricFamily("dsched_inflight_pods", "-", value=4)
        if self.away:
            raise Away("refused")


def names(exposition):
    return [family.name for family in exposition.collect()]


def test_metrics_of_other_processes_are_left_out():
    for exporter in ("leader", "evaluator", "binder"):
        for name in names(Exposition(exporter, [REGISTRY])):
            metric = DECLARED.get(name) or DECLARED[f"{name}_total"]
            assert exporter in metric.exporters, (exporter, name)


def test_what_is_declared_nowhere_is_for_leaders():
    assert "python_info" in names(Exposition("leader", [REGISTRY], others=True))
    assert "python_info" not in names(Exposition("binder", [REGISTRY]))


def test_while_redis_is_away_the_rest_is_told_and_the_failure_counted(caplog):
    source = Source()
    exposition = Exposition("leader", [source, REGISTRY])
    assert "dsched_inflight_pods" in names(exposition)
    source.away = True
    before = value(metrics.SCRAPE_FAILURES)
    for _ in range(3):
        found = names(exposition)
        assert "dsched_inflight_pods" not in found
        assert "dsched_reservations" in found
    assert value(metrics.SCRAPE_FAILURES) - before == 3
    assert len([each for each in caplog.records if "Redis does not answer" in each.message]) == 1


def test_no_series_say_when_they_were_created():
    _, text = Exposition("leader", [REGISTRY]).encode("")
    assert b"_created" not in text
