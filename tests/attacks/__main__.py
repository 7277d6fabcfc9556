"""``python -m tests.attacks``: run attacks many times, with a progress bar."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
import traceback
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.attacks.attack import ROUNDS, Stand, all_attacks, lines

console = Console(stderr=True)


def main() -> int:
    """The command; exit code 1 when a run has failed."""
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is up is stopped
    if given.table:
        print("\n".join(lines()))
        return 0
    chosen = [each for each in all_attacks().values() if each.name.startswith(tuple(given.names) or "")]
    if not chosen:
        console.print(f"no attack begins with {', '.join(given.names)}; known: {', '.join(all_attacks())}")
        return 2
    first = given.first if given.seed is None else given.seed
    seeds = count(first) if given.seconds else range(first, first + (given.seeds if given.seed is None else 1))
    until = time.monotonic() + (given.seconds or float("inf"))
    failed = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("attacks", total=None if given.seconds else len(seeds) * len(chosen))
        for seed in seeds:
            for each in chosen:
                if time.monotonic() > until:
                    return 1 if failed else 0
                progress.update(bar, description=f"{failed} failed, {each.name} seed {seed}")
                if wrong := _run(each.name, seed, given.rounds):
                    failed += 1
                    console.print(f"{each.name} seed {seed}\n{wrong}", style="red", markup=False)
                    console.print(f"  again: python -m tests.attacks {each.name} --seed {seed} --rounds {given.rounds}")
                progress.advance(bar)
    console.print(f"{failed} failed")
    return 1 if failed else 0


def _run(name: str, seed: int, rounds: int) -> str:
    """Run one; what went wrong, empty when nothing did."""
    folder = Path(tempfile.mkdtemp(prefix="dsched-attack-"))
    try:
        with Stand(seed, folder, rounds) as stand:
            all_attacks()[name].run(stand)
    except Exception:  # noqa: BLE001 - the other runs go on
        return traceback.format_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names, as MODULE or MODULE.FUNCTION; all without")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds of each")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this seed alone, to do a run again")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each generator is drawn from")
    parser.add_argument("--seconds", type=float, help="go on with further seeds for so long")
    parser.add_argument("--table", action="store_true", help="print the table of docs/reliability.md and end")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
