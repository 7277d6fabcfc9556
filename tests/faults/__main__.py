"""``python -m tests.faults``: run scenarios many times, with a progress bar and a table at the end."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.faults import campaign, load, queued, report, soak
from tests.faults.driver import Outcome
from tests.faults.scenario import all_scenarios, with_gates

console = Console(stderr=True)


def main() -> int:
    """The command; exit code 1 when a run has failed."""
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the system that is up is stopped
    known = all_scenarios()
    runnable = {soak.MIXED.number: soak.MIXED, **known}
    if given.table:
        print("\n".join(report.lines(known.values())))
        return 0
    every = [number for number, each in known.items() if not given.queues or queued.divisible(each)]
    numbers = every if given.scenario == "all" else [int(text) for text in given.scenario.split(",")]
    chosen = [runnable[number] for number in numbers]
    if given.queues:
        chosen = [queued.divided(scenario) for scenario in chosen]
    if given.gates:
        chosen = [with_gates(scenario, given.gates) for scenario in chosen]
    options = (" --queues" if given.queues else "") + (f" --gates {','.join(given.gates)}" if given.gates else "")
    seeds = [given.seed] if given.seed is not None else list(range(given.first, given.first + given.seeds))
    runs = list(campaign.order(chosen, seeds))
    outcomes: list[Outcome] = []
    with load.beside(given.load), _progress() as progress:
        bar = progress.add_task("faults", total=len(runs) if given.soak is None else None)

        def told(outcome: Outcome) -> None:
            outcomes.append(outcome)
            progress.advance(bar)
            progress.update(bar, description=f"{sum(bool(each.breaches) for each in outcomes)} failed")
            _tell(outcome, options, verbose=given.verbose)
            if given.json is not None:
                given.json.write_text(json.dumps({**report.summary(outcomes), "busy_processes": given.load}, indent=1))

        until = None if given.soak is None else time.monotonic() + given.soak
        wanted = runs if until is None else soak.runs(chosen, given.first, until)
        campaign.run_all(wanted, told, given.folder, given.keep)
    console.print(report.table(outcomes, runnable))
    console.print(report.times(outcomes))
    return 1 if any(outcome.breaches for outcome in outcomes) else 0


def _tell(outcome: Outcome, options: str, *, verbose: bool) -> None:
    if not outcome.breaches and not verbose:
        return
    colour = "red" if outcome.breaches else "green"
    console.print(
        f"scenario {outcome.scenario} seed {outcome.seed} ({outcome.arena}): {outcome.took_s:.1f} s, {outcome.pods} "
        f"pods, {outcome.binds} binds, settled in {outcome.settled_s:.1f} s, {outcome.faults}, {outcome.gaps_ms}",
        style=colour,
        markup=False,
    )
    for line in outcome.breaches[:20]:
        console.print(f"  breach: {line}", markup=False)
    for line in outcome.notes:
        console.print(f"  {line}", markup=False)
    if outcome.breaches:
        console.print(
            f"  again: python -m tests.faults --scenario {outcome.scenario} --seed {outcome.seed}{options}",
            markup=False,
        )


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=main.__doc__)
    parser.add_argument("--scenario", default="all", help="numbers with commas between them, or all that run so")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds of each")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    replayed = int(os.environ["DSCHED_FAULTS_SEED"]) if os.environ.get("DSCHED_FAULTS_SEED") else None
    parser.add_argument("--seed", type=int, default=replayed, help="this seed alone, to do a run again")
    parser.add_argument("--queues", action="store_true", help="in a cluster that is divided between queues")
    parser.add_argument(
        "--gates", type=lambda text: text.split(","), help="feature gates to turn on, with commas between"
    )
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="mixed faults, drawn from the scenarios, so long")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="N processes that compute all the time beside")
    parser.add_argument(
        "--keep", type=float, metavar="SECONDS", help="keep the logs of runs with so long a time without decisions, too"
    )
    parser.add_argument("--json", type=Path, help="file for all figures, rewritten after each run")
    parser.add_argument("--folder", type=Path, help="for the systems' files; logs of failed runs are kept there")
    parser.add_argument("--table", action="store_true", help="print the table of docs/reliability.md and end")
    parser.add_argument("--verbose", "-v", action="store_true", help="tell of runs that went well, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
