"""The benchmarks of latency and of fan-out measure whole systems, here tiny ones. Nothing is said about speed."""

import json
import os
import sys
from collections.abc import Callable

import pytest

from benchmarks import fanout, latency
from dsched.errors import RedisUnavailable, UnfitRedis
from dsched.supervisor import embedded


@pytest.fixture(autouse=True)
def redis_program() -> None:
    """The systems start a Redis of their own."""
    try:
        embedded.find_program()
    except (RedisUnavailable, UnfitRedis) as error:
        pytest.skip(str(error))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a benchmark with the words of a command line; what it printed."""

    def run(main: Callable[[], None], *words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["benchmark", *words])
        main()
        return capsys.readouterr().out

    return run


def test_latency_is_told_for_every_pod(told: Callable[..., str]) -> None:
    found = json.loads(told(latency.main, "--nodes", "3", "--pods", "4", "--pause-ms", "1", "--json"))

    assert (found["nodes"], found["pods"], found["mode"], found["equal"]) == (3, 4, "auto", False)
    for figures in (found["bound"], found["applied"]):
        assert 0 < figures["median"] <= figures["p90"] <= figures["p99"] == figures["max"]
    assert found["applied"]["max"] <= found["bound"]["max"]


def test_latency_is_told_with_queues(told: Callable[..., str]) -> None:
    found = json.loads(told(latency.main, "--nodes", "3", "--pods", "2", "--pause-ms", "1", "--queues", "--json"))

    assert (found["pods"], found["queues"]) == (2, 1011)
    assert found["bound"]["median"] > 0


def test_percentiles_are_measurements_by_nearest_rank() -> None:
    found = latency.Figures.of([number / 1000 for number in range(200, 0, -1)])

    assert (found.median, found.p90, found.p99, found.max) == (100, 180, 198, 200)


def test_the_plugin_takes_part_where_the_mode_says(told: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "SYSTEMS", (("distributed", 1), ("auto", 1)))
    monkeypatch.setattr(fanout, "ratios", lambda runs: {})

    found = json.loads(told(fanout.main, "--nodes", "4", "--pods", "3", "--cost-us", "5", "--json"))

    runs = {(run["mode"], run["pods"]): run for run in found["runs"]}
    costly = ("costly", "scoped")
    assert runs.keys() == {(mode, pods) for mode in ("distributed", "auto") for pods in costly} | {("auto", "basic")}
    for pods in costly:
        assert runs["distributed", pods]["distributed"] >= 3
        assert runs["distributed", pods]["cpu_ms"] > 0
        assert runs["distributed", pods]["local"] == 0
    for pods in (*costly, "basic"):  # to ask a single evaluator never pays
        assert runs["auto", pods]["local"] >= 3
        assert runs["auto", pods]["distributed"] == 0


def test_ratios_are_of_pods_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})

    def runs(pods: str, *rates: float) -> list[fanout.Run]:
        systems = zip(fanout.SYSTEMS, rates, strict=False)
        return [fanout.Run(mode, evaluators, pods, 1.0, rate, 50.0, 0, 0, 0) for (mode, evaluators), rate in systems]

    basic = fanout.Run("auto", 2, "basic", 1.0, 500, 0.4, 0, 0, 0)
    found = fanout.ratios([*runs("costly", 20, 16, 32, 30), *runs("scoped", 20, 20, 38, 36), basic])

    assert found == {
        "costly": {
            "two evaluators / one": 2.0,
            "what the cores allow of it": 2.5,
            "two evaluators / local": 1.6,
            "auto / local": 1.5,
        },
        "scoped": {
            "two evaluators / one": 1.9,
            "what the cores allow of it": 2.0,
            "two evaluators / local": 1.9,
            "auto / local": 1.8,
        },
    }


def test_more_pods_than_there_is_room_for_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--nodes", "1", "--pods", "101"])

    with pytest.raises(SystemExit):
        latency.main()

    assert "101 pods and 10 to begin with do not fit on nodes with room for 110" in capsys.readouterr().err
