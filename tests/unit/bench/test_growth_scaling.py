"""The benchmarks that docs/scaling.md rests on: they run, and the model keeps what it says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import growth, inmemory, scaling
from dsched.bench import plot

TINY = growth.Sizes((4, 8), (0, 4), (1, 2), (0, 1), measured=6, at=16)
CONSTANTS = scaling.Constants()
TABLE, SCOPED, UNSCOPED = scaling.WORKS[1:]
BY_HAND = scaling.Constants(
    message=10,
    message_redis=1,
    round_trip=100,
    change=0,
    skip=0,
    change_bytes=0,
    there_row=3,
    take_row=2,
    reply_bytes=0,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "QUICK", TINY)
    monkeypatch.setattr(growth, "BATCH", 4)


@pytest.mark.usefixtures("tiny")
def test_growth_measures_every_panel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    growth.main(["--quick", "--json", str(tmp_path / "growth.json")])

    points = json.loads((tmp_path / "growth.json").read_text())["points"]
    assert [point["unplaced"] for point in points] == [0] * len(points)
    seen = {panel: [point["x"] for point in points if point["panel"] == panel] for panel in growth.PANELS}
    assert {panel: sorted(set(xs)) for panel, xs in seen.items()} == {
        "nodes": [4, 8],
        "pods placed": [0, 4],
        "classes": [1, 2],
        "terms of a pod": [0, 1],
    }
    printed = capsys.readouterr().out
    assert all(point["line"] in printed for point in points)


@pytest.mark.usefixtures("tiny")
def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra bench is not installed")

    growth.main(["--quick", "--plot", str(tmp_path / "growth.png")])
    scaling.main(["--plot", str(tmp_path / "scaling.png")])

    for name in ("growth.png", "scaling.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("main", [growth.main, scaling.main])
def test_without_matplotlib_it_says_what_to_install(main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)

    with pytest.raises(SystemExit, match=r"pip install 'dsched\[bench\]'"):
        main(["--plot", str(tmp_path / "picture.png")])


def test_the_pods_measured_do_not_stay() -> None:
    memory = inmemory.cluster(3)
    inmemory.place(memory, growth.equal("placed", 4))

    found = inmemory.cost(memory, growth.equal("web", 5), known=growth.equal("first", 2))

    assert (found.pods, found.placed) == (5, 5)
    assert sorted(pod.uid for _, pod in memory.snapshot.table.placed()) == [f"placed-{number}" for number in range(4)]


def test_classes_and_terms_are_as_many_as_asked_for() -> None:
    assert len({pod.class_key for pod in growth.of_classes("web", 20, 7)}) == 7
    (apart,) = growth.equal("web", 1, {}, **growth.apart_spec(3))
    (spread,) = growth.equal("web", 1, {}, **growth.spread_spec(3))
    assert len(apart.pod.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution) == 3
    assert len({each.topology_key for each in spread.pod.spec.topology_spread_constraints}) == 3


def test_a_request_by_hand() -> None:
    """Two shards of two rows each: both messages leave at 20, the first answer is there 1 + 100 + 2 * (3 + 5) later."""
    work = replace(TABLE, classes=1, plugin=5)

    parts, slowest = scaling.request(BY_HAND, work, nodes=4, evaluators=2, changes=9)

    assert slowest == 16
    # First answer at 137, taken in until 141; the second one is there at 138.
    assert parts == {"messages": 20, "evaluators": 137 - 20, "replies": 8}


def test_changes_by_hand() -> None:
    """Of eight changes each of two evaluators applies four and skips four, unless it has to hold the whole table."""
    constants = replace(BY_HAND, change=10, skip=1)
    for work, took in ((TABLE, 4 * 10 + 4 * 1), (UNSCOPED, 8 * 10)):
        alone = replace(work, classes=0, plugin=0)
        _, slowest = scaling.request(constants, alone, nodes=4, evaluators=2, changes=8)
        assert slowest == took


def test_who_holds_a_shard_needs_a_part_of_the_memory() -> None:
    whole = scaling.play(CONSTANTS, SCOPED, 100_000, 1).replica_bytes
    assert scaling.play(CONSTANTS, SCOPED, 100_000, 8).replica_bytes == whole / 8
    assert scaling.play(CONSTANTS, UNSCOPED, 100_000, 8).replica_bytes == whole


def test_redis_is_waited_for_only_where_it_is_the_slower_one() -> None:
    for redis, waited in ((50.0, 0.0), (400.0, 90.0)):
        constants = replace(CONSTANTS, commit=200.0, decide=110.0, decide_row=0.0, redis=redis)
        parts = scaling.play(constants, scaling.WORKS[0], 5_000, 1).parts
        assert parts["Redis"] == pytest.approx(scaling.BATCH * waited / 1e6)


def test_auto_is_as_fast_as_the_better_of_the_two_or_a_fifth_less() -> None:
    for work in scaling.WORKS[1:]:
        for nodes in scaling.NODES:
            for count in scaling.POWERS:
                auto = scaling.play(CONSTANTS, work, nodes, count)
                ways = [scaling.play(CONSTANTS, work, nodes, count, fan_out=way) for way in (False, True)]
                rates = [way.pods_a_second for way in ways]
                assert auto.pods_a_second == rates[auto.fanned_out]
                assert auto.pods_a_second >= 0.79 * max(rates)


def test_more_evaluators_than_enough_cost_messages() -> None:
    few, many = (scaling.play(CONSTANTS, UNSCOPED, 5_000, count, fan_out=True) for count in (8, 512))
    assert many.pods_a_second < few.pods_a_second
    assert many.limit == "messages"
    assert scaling.best(CONSTANTS, UNSCOPED, 5_000) < 64


def test_evaluators_never_judge_for_known_classes() -> None:
    outcomes = [scaling.play(CONSTANTS, scaling.WORKS[0], 100_000, count) for count in scaling.EVALUATORS]
    assert not any(outcome.fanned_out for outcome in outcomes)
    assert len({outcome.pods_a_second for outcome in outcomes}) == 1


def test_a_slow_plugin_with_a_scope_gains() -> None:
    rates = [scaling.play(CONSTANTS, SCOPED, 1_000_000, count).pods_a_second for count in (1, 2, 8, 64)]
    assert rates == sorted(rates)
    assert rates[-1] > 10 * rates[0]


def test_scaling_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scaling.main(["--json", str(tmp_path / "scaling.json")])

    document = json.loads((tmp_path / "scaling.json").read_text())
    assert len(document["outcomes"]) == len(scaling.WORKS) * len(scaling.NODES) * len(scaling.EVALUATORS)
    assert capsys.readouterr().out.count("|\n") == len(scaling.WORKS) * len(scaling.NODES) + len(scaling.NODES) + 4


def test_the_page_shows_the_tables() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text()
    assert scaling.table(CONSTANTS) in page, "run: python -m benchmarks.scaling"
    assert scaling.memory(CONSTANTS) in page, "run: python -m benchmarks.scaling"
