"""A process's metrics as Prometheus reads them: those that this kind of process exports, and no others."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import prometheus_client
from prometheus_client import exposition
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dsched import metrics
from dsched.log import logger
from dsched.metrics.instruments import DECLARED, Exporter
from dsched.state.client import UNAVAILABLE

_log = logger(__name__)

_library: Any = prometheus_client
_library.disable_created_metrics()
"""Kube-scheduler exports no ``_created`` series either; they would double what is scraped."""


class Exposition(Collector):
    """Reads sources when it is asked."""

    def __init__(self, exporter: Exporter, sources: Sequence[Collector], *, others: bool = False) -> None:
        """
        Args:
            sources: a registry, or what looks values up; one that finds Redis away is left out and counted.
            others: export also what is not declared here, such as ``process_…``.
        """
        ours = {name.removesuffix("_total") for name, metric in DECLARED.items() if exporter in metric.exporters}
        known = {name.removesuffix("_total") for name in DECLARED}
        self._sources = sources
        self._ours, self._known, self._others = ours, known, others
        self._missed: set[Collector] = set()

    def collect(self) -> Iterator[Metric]:
        """Every family that the process exports."""
        for source in self._sources:
            for family in self._read(source):
                if family.name in self._ours or (self._others and family.name not in self._known):
                    yield family

    def encode(self, accept: str) -> tuple[str, bytes]:
        """Content type and body for a client that accepts these types."""
        choose: Any = exposition.choose_encoder
        encoder, content_type = choose(accept)
        return content_type, encoder(self)

    def _read(self, source: Collector) -> Iterable[Metric]:
        try:
            found = list(source.collect())
        except UNAVAILABLE as error:
            metrics.SCRAPE_FAILURES.inc()
            if source not in self._missed:
                _log.warning("metrics left out, Redis does not answer", extra={"action": "scrape", "error": str(error)})
            self._missed.add(source)
            return []
        self._missed.discard(source)
        return found
