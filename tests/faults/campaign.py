"""Many runs: keeps one running system for as many of them as it stays healthy, and collects what they come to."""

import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.faults import driver
from tests.faults.arena import Arena
from tests.faults.driver import Outcome
from tests.faults.kubernetes import Kubernetes
from tests.faults.scenario import KUBERNETES, STANDALONE, Scenario
from tests.faults.standalone import Standalone

ARENAS: dict[str, type[Arena]] = {STANDALONE: Standalone, KUBERNETES: Kubernetes}
RUNS_A_SYSTEM = 25
"""After so many runs a system is exchanged for a new one: logs and memory of the judges grow."""

Key = tuple[object, ...]


class Campaign:
    """Runs scenarios one after the other; at most one system is up at a time.

    Args:
        folder: for the systems' files; those of failed runs are kept in it.
        keep_s: so are those of runs with so long a time without decisions.
    """

    def __init__(self, folder: Path, keep_s: float | None = None) -> None:
        self._folder = folder
        self._keep_s = float("inf") if keep_s is None else keep_s
        self._arena: Arena | None = None
        self._key: Key = ()
        self._made = 0
        self.outcomes: list[Outcome] = []

    def run(self, scenario: Scenario, seed: int) -> Outcome:
        """Run once; whatever goes wrong is among the breaches."""
        began = time.monotonic()
        try:
            arena = self._ready(scenario, seed)
            outcome = driver.run(scenario, seed, arena)
            outcome.breaches += driver.clear(arena) if not outcome.breaches else []
        except Exception as error:  # noqa: BLE001 - the other runs go on
            outcome = Outcome(scenario.number, seed, scenario.arena(seed), [f"the run broke off: {error!r}"])
            outcome.notes.append(traceback.format_exc())
            outcome.took_s = round(time.monotonic() - began, 2)
        longest_ms = max((each for found in outcome.gaps_ms.values() for each in found), default=0)
        if outcome.breaches or longest_ms > self._keep_s * 1000:
            self._keep(outcome)
        if outcome.breaches or scenario.fresh:
            self.close()
        self.outcomes.append(outcome)
        return outcome

    def close(self) -> None:
        """Stop the system that is up, if one is."""
        arena, self._arena = self._arena, None
        if arena is not None:
            with suppress(AssertionError, OSError):  # a system that has failed may not end well, either
                arena.stop()
            shutil.rmtree(arena.folder, ignore_errors=True)

    def _ready(self, scenario: Scenario, seed: int) -> Arena:
        """A healthy and empty system of the kind that the scenario wants."""
        key = (scenario.arena(seed), scenario.options, tuple(sorted(scenario.variables.items())), scenario.fresh)
        if self._arena is not None and (key != self._key or self._arena.runs >= RUNS_A_SYSTEM or scenario.fresh):
            self.close()
        if self._arena is None:
            self._made += 1
            folder = self._folder / f"system-{self._made}"
            variables = {"DSCHED_FAULTS_CLOCKS": str(folder / "clocks"), **scenario.variables}
            self._arena = ARENAS[scenario.arena(seed)](folder, *scenario.options, **variables)
            self._key = key
            self._arena.start()
        self._arena.wait_healthy()
        return self._arena

    def _keep(self, outcome: Outcome) -> None:
        """Keep the logs of a run that failed, or was slow."""
        if self._arena is not None:
            with suppress(OSError):
                kind = "failed" if outcome.breaches else "slow"
                where = self._folder / f"{kind}-{outcome.scenario}-{outcome.seed}"
                self._arena.keep_logs(where)
                outcome.notes.append(f"logs: {where}")


def order(scenarios: Iterable[Scenario], seeds: Iterable[int]) -> list[tuple[Scenario, int]]:
    """Runs in an order in which systems are exchanged seldom."""
    runs = [(scenario, seed) for scenario in scenarios for seed in seeds]
    return sorted(runs, key=lambda run: (run[0].fresh, run[0].options, sorted(run[0].variables), run[0].arena(run[1])))


def run_all(
    runs: Iterable[tuple[Scenario, int]],
    told: Callable[[Outcome], None],
    folder: Path | None = None,
    keep_s: float | None = None,
) -> list[Outcome]:
    """Run all of them; ``told`` is called after each. ``keep_s`` as of `Campaign`."""
    where = folder or Path(tempfile.mkdtemp(prefix="dsched-faults-"))
    campaign = Campaign(where, keep_s)
    try:
        for scenario, seed in runs:
            told(campaign.run(scenario, seed))
    finally:
        campaign.close()
        if folder is None and not any(where.glob("*-*-*")):
            shutil.rmtree(where, ignore_errors=True)
    return campaign.outcomes
