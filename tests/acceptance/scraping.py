"""Metrics as Prometheus would read them."""

import urllib.error
import urllib.request
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

ASKED_S = 60.0


@dataclass(frozen=True, slots=True)
class Scrape:
    """The samples of one moment."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        """The sum of a name's samples that have these labels; 0 where there are none."""
        return sum(
            value
            for (found, has), value in self.samples.items()
            if found == name and labels.items() <= dict(has).items()
        )

    @property
    def names(self) -> set[str]:
        """The names that have samples."""
        return {name for name, _ in self.samples}


def scrape(address: str) -> Scrape:
    """Read a process's metrics; raises OSError while it does not listen."""
    families = text_string_to_metric_families(page(address, "metrics")[1])
    return Scrape(
        {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}
    )


def page(address: str, name: str) -> tuple[int, str]:
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}/{name}", timeout=ASKED_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
