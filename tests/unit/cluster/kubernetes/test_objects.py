"""Listing everything once: pages, pages that were forgotten meanwhile, and refusals."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from dsched.cluster.kubernetes import objects, resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http.exchange import Answer, Request
from dsched.cluster.kubernetes.objects import Everything, Withheld
from dsched.errors import ClusterError, ClusterUnavailable


def page(*names: str, following: str = "") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return Answer(200, msgspec.json.encode({"metadata": {"continue": following}, "items": items}))


def refused(status: int, message: str) -> Answer:
    return Answer(status, msgspec.json.encode({"message": message, "code": status}))


def listing(answers: Sequence[Any]) -> tuple[Everything, list[str]]:
    """A cluster that gives these answers, and the paths that were asked for."""
    everything, asked, left = Everything(Access("nowhere")), [], list(answers)

    class Scripted:
        def make(self, request: Request, patience_s: float) -> Any:
            asked.append(request.path)
            return left.pop(0)

        def close(self) -> None:
            pass

    everything._calls = Scripted()  # type: ignore[assignment]
    return everything, asked


def names(found: list[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in found]


def test_all_pages_are_read() -> None:
    everything, asked = listing([page("a", "b", following="t k"), page("c")])
    assert names(everything.of(resources.POD)) == ["a", "b", "c"]
    ended = "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
    assert asked == [f"/api/v1/pods?limit=500{ended}", f"/api/v1/pods?limit=500{ended}&continue=t%20k"]
    everything.close()


def test_pages_that_were_forgotten_are_read_from_the_beginning() -> None:
    gone = refused(410, "too old")
    everything, _ = listing([page("a", following="x"), gone, page("a", "b", following="y"), page("c")])
    assert names(everything.of(resources.NODE)) == ["a", "b", "c"]
    everything, _ = listing([page("a", following="x"), gone] * objects.TRIES)
    with pytest.raises(ClusterError, match="nodes cannot be listed: they change faster"):
        everything.of(resources.NODE)


def test_what_the_cluster_does_not_know_is_empty_and_refusals_are_told() -> None:
    assert listing([refused(404, "no such")])[0].of(resources.NODE) == []
    with pytest.raises(Withheld, match=r"priorityclasses may not be listed: not you \(403\)"):
        listing([refused(403, "not you")])[0].of(objects.PRIORITY_CLASS)
    with pytest.raises(ClusterError, match=r"nodes cannot be listed: broken \(500\)"):
        listing([refused(500, "broken")])[0].of(resources.NODE)
    with pytest.raises(ClusterUnavailable, match="nodes cannot be listed: nobody there"):
        listing([ClusterUnavailable("nobody there")])[0].of(resources.NODE)
    with pytest.raises(ClusterError, match="the answer cannot be read"):
        listing([Answer(200, b"<html>")])[0].of(resources.NODE)
