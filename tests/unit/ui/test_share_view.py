"""Which queues are on a page, and how their shares are drawn."""

from typing import Any

import pytest

from dsched.ui import share_view, shares
from dsched.ui.shares import SharesLook
from dsched.ui.usage_history import UsageHistory
from tests.manifests import Json, guaranteed, queue_manifest

CPU = {"cpu": {"guaranteed": 4}}


def made(name: str, parent: str = "", status: Json | None = None, **spec: Any) -> Json:
    return {**queue_manifest(name, parent, **spec), "status": status or {}}


def tree(*shape: int) -> list[Json]:
    """Queues in so many levels, each with so many children."""
    found, above = [], [""]
    for children in shape:
        below = [f"{name}{each:02}" for name in above for each in range(children)]
        found += [made(name, name[:-2]) for name in below]
        above = below
    return found


def names(look: SharesLook, above: str = "", **wish: Any) -> list[str]:
    return [each.name for each in share_view.choose(look.shares.queues, above, **wish).rows]


def test_as_many_levels_as_leave_a_page() -> None:
    look = shares.seen(tree(2, 5, 20), 0)
    chosen = share_view.choose(look.shares.queues)
    assert (len(chosen.rows), chosen.levels, chosen.deepest, chosen.more) == (12, 2, 3, False)
    every = share_view.choose(look.shares.queues, levels=3)
    assert (len(every.rows), every.more) == (share_view.ROWS, True)
    pages = [names(look, levels=3, page=page) for page in (1, 2, 3, 4)]
    assert [name for page in pages for name in page] == [each.name for each in look.shares.queues]


def test_one_level_at_least() -> None:
    look = shares.seen(tree(150, 1), 0)
    chosen = share_view.choose(look.shares.queues)
    assert (len(chosen.rows), chosen.levels, chosen.more) == (100, 1, True)


def test_those_below_one() -> None:
    look = shares.seen(tree(2, 2, 2), 0)
    assert names(look, "00") == ["0000", "000000", "000001", "0001", "000100", "000101"]
    assert names(look, "01", levels=1) == ["0100", "0101"]
    assert names(look, "010101") == names(look, "gone") == []
    assert share_view.choose(look.shares.queues, "00").depth == 1


def test_those_with_a_text_in_their_name_of_all_levels() -> None:
    look = shares.seen([made("Web"), made("ml"), made("web-2", "ml")], 0)
    assert names(look, query=" wEb ") == ["Web", "web-2"]
    assert names(look, query="nobody") == []


def test_a_bar_is_to_the_scale_of_siblings() -> None:
    has = {"usage": {"cpu": 6}, "borrowed": {"cpu": 2}, "fairShare": {"cpu": 5}, "pending": {"cpu": "500m"}}
    look = shares.seen([made("a", "", has, resources=CPU), made("b", "", {"usage": {"cpu": 10}})], 0)
    found = share_view.bar(look, look.shares.queues[0], "cpu")
    # 4 of 10 are its own, 2 are borrowed; it is due 5.
    assert (found.own, found.borrowed, found.guaranteed, found.limit, found.fair) == (40, 20, 40, None, 50)
    assert found.words == "4 of 4 cpu guaranteed, 2 borrowed, fair share 5, 0.5 pending"


@pytest.mark.parametrize(("limit", "at"), [(12, 100.0), (10, 100.0), (5, 50.0), (1000, None)])
def test_a_limit_that_is_far_away_is_not_drawn(limit: int, at: float | None) -> None:
    resources = {"cpu": {"limit": limit}}
    look = shares.seen([made("a", "", {"usage": {"cpu": 10}}, resources=resources)], 0)
    assert share_view.bar(look, look.shares.queues[0], "cpu").limit == at


def test_nothing_has_no_length() -> None:
    look = shares.seen([made("a", resources={"cpu": {}})], 0)
    found = share_view.bar(look, look.shares.queues[0], "cpu")
    assert (found.own, found.borrowed, found.guaranteed, found.fair) == (0, 0, None, 0)


def test_a_queue_is_guaranteed_what_those_below_are() -> None:
    look = shares.seen([made("top"), *(made(name, "top", resources=CPU) for name in "ab")], 0)
    top = look.shares.queues[0].resources["cpu"]
    assert (top.guaranteed, top.named) == (8000, False)


@pytest.mark.parametrize(
    ("used", "pending", "short"), [("3", "1", True), ("3", "0", False), ("4", "1", False), ("5", "1", False)]
)
def test_below_its_guarantee_is_who_has_less_and_waits_for_more(used: str, pending: str, short: bool) -> None:
    status = {"usage": {"cpu": used}, "pending": {"cpu": pending}}
    look = shares.seen([made("a", "", status, resources=CPU)], 0)
    assert look.shares.queues[0].resources["cpu"].short is short


def test_columns_are_what_queues_speak_of() -> None:
    used = {"usage": {"cpu": 1, "memory": "1Gi"}}
    spoken = shares.seen([made("a", "", used, resources=guaranteed(memory="1Gi")), made("b")], 0)
    assert share_view.columns(spoken, every=False) == ["memory"]
    assert share_view.columns(spoken, every=True) == ["cpu", "memory"]
    assert share_view.columns(shares.seen([made("a", "", used)], 0), every=False) == ["cpu", "memory"]


def test_lines_over_time() -> None:
    look = shares.seen([made("a", "", {"usage": {"cpu": 4}}, resources={"cpu": {"guaranteed": 4, "limit": 99}})], 0)
    (queue,) = look.shares.queues
    history = UsageHistory()
    assert share_view.lines(history, queue, "cpu") is None
    for at, used, fair in ((1000, 0, 8000), (2000, 4000, 8000), (4000, 8000, 8000)):
        history.add(at, {("a", "used", "cpu"): used, ("a", "fair_share", "cpu"): fair})
    found = share_view.lines(history, queue, "cpu")
    assert found is not None
    # Of a box of 1000 by 1000; 0 is below.
    assert found.used == ["0,1000 333,500 1000,0"]
    assert found.fair == ["0,0 333,0 1000,0"]
    assert (found.most, found.from_ms, found.to_ms, found.levels) == (8000, 1000, 4000, {"guaranteed": 500})


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    look = shares.seen([made("a", "", {"usage": {"cpu": 4}})], 0)
    history = UsageHistory()
    history.add(0, {})
    for at in (1, 2):
        history.add(at, {("a", "used", "cpu"): 4000, ("a", "fair_share", "cpu"): 0})
    found = share_view.lines(history, look.shares.queues[0], "cpu")
    assert found is not None and found.used == ["500,0 1000,0"]


def test_pods_that_waited_and_that_had_to_go() -> None:
    look = shares.seen([made("a", "", {"pendingPods": 2})], 0)
    history = UsageHistory()
    for at, gone in ((0, 6), (1, 6), (2, 9)):
        history.add(at, {("a", "pending_pods"): 2, ("a", "reclaimed_pods"): gone})
    found = share_view.pod_lines(history, look.shares.queues[0])
    assert found is not None
    assert (found.most, found.fair) == (3, ["0,1000 500,1000 1000,0"])
    assert share_view.taken_back(history, "a") == 3
