"""Processes of a running system are killed (``kill -9``) or stopped, and everything holds that held before."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import processes, trace
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.history import History
from tests.acceptance.settled import all_well
from tests.acceptance.system import System, listed
from tests.conftest import SHARED
from tests.faults.victims import Victims

pytestmark = pytest.mark.campaign

Json = dict[str, Any]
KILLS = 20
LEASE_S = 3.0
LEADERS = ("--leaders", "2", "--evaluators", "2", "--binders", "2")


@pytest.fixture
def seed() -> int:
    """Of everything that is chosen at random; DSCHED_FAULTS_SEED repeats a run as far as processes can be repeated."""
    found = int(os.environ.get("DSCHED_FAULTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"DSCHED_FAULTS_SEED={found}")
    return found


@pytest.fixture
def objects(system: System, tmp_path: Path) -> tuple[list[Json], list[Json]]:
    """Nodes and pods of the openb trace, or of one made up where that is not there."""
    chosen = trace.openb(SHARED) or trace.generate(tmp_path / "trace", seed=3)
    told = system.run("import", "openb", str(chosen.nodes), str(chosen.pods), "-o", "manifests")
    assert told.returncode == 0, told.stderr
    nodes, pods = (
        json.loads((system.folder / "manifests" / f"{kind}.json").read_text())["items"] for kind in ("nodes", "pods")
    )
    return nodes, pods


@pytest.fixture
def running(system: System) -> Iterator[History]:
    """The system, with a leader standing by, and what it writes down."""
    system.up("--mode", "distributed", *LEADERS)
    history = History(system.data_dir)
    yield history
    history.close()


def not_gone_back(before: dict[str, int], now: dict[str, int]) -> list[str]:
    """Pods whose attempts are fewer than they were."""
    return [f"{uid}: {before[uid]}, then {now[uid]}" for uid in before.keys() & now.keys() if now[uid] < before[uid]]


def test_killed_twenty_times_at_random_moments(
    system: System, running: History, objects: tuple[list[Json], list[Json]], seed: int
):
    nodes, pods = objects
    system.apply(*nodes)
    rng = random.Random(seed)
    victims = Victims(system, running, rng)
    portion = len(pods) // KILLS + 1
    attempts: dict[str, int] = {}
    killed: list[tuple[str, int]] = []
    for number in range(KILLS):
        path = system.folder / f"portion-{number}.json"
        path.write_text(json.dumps(listed(pods[number * portion : (number + 1) * portion])))
        applying = system.begin("apply", "-f", str(path))
        time.sleep(rng.uniform(0.1, 1.5))
        still_open = running.open()
        killed.append((victims.kill(), still_open))
        told = applying.communicate()[0]
        assert applying.returncode == 0, told
        seen = running.attempts()
        assert not_gone_back(attempts, seen) == []
        attempts |= seen
    print(killed)
    system.settle()
    assert not_gone_back(attempts, running.attempts()) == []
    all_well(system, running, pods)
    # Each leader that was killed while it led was followed by one with a higher epoch.
    assert running.epoch() >= 1 + sum(part == "leader" for part, _ in killed)
    assert sum(still_open > 0 for _, still_open in killed) >= KILLS / 4, "hardly anything was going on"


def test_a_standby_leads_when_the_leader_is_killed(make_system: MakeSystem):
    system = make_system()
    system.up("--leaders", "2", "--evaluators", "0", "--binders", "1")
    history = History(system.data_dir)
    victims = Victims(system, history, random.Random())
    (standby,) = victims.standing_by()
    (leading,) = victims.leading()
    before = history.leader()
    assert before is not None
    supervisor = system.status()["supervisor_pid"]
    # The supervisor would start the killed leader again, and that one might be the next to lead.
    os.kill(supervisor, signal.SIGSTOP)
    try:
        processes.kill(leading)
        killed_at = time.monotonic()
        after = processes.wait_until(
            "the standby leads", lambda: (held := history.leader()) != before and held, deadline_s=10 * LEASE_S
        )
        print(f"led by another after {time.monotonic() - killed_at:.2f} s")
    finally:
        os.kill(supervisor, signal.SIGCONT)
    history.close()
    assert f"-{standby}-" in after[0]
    assert after[1] == before[1] + 1


def test_stopped_in_the_middle_of_a_run_and_started_again(
    system: System, running: History, objects: tuple[list[Json], list[Json]]
):
    nodes, pods = objects
    system.apply(*nodes, *pods)
    bound = len(processes.wait_until("some pods are bound", running.binds))
    attempts, epoch = running.attempts(), running.epoch()
    system.down()
    system.up("--mode", "distributed", *LEADERS)
    again = History(system.data_dir)
    system.settle()
    all_well(system, again, pods)
    assert not_gone_back(attempts, again.attempts()) == []
    assert len(again.binds()) > bound, "all was done before it could be stopped"
    assert again.epoch() > epoch
    again.close()
