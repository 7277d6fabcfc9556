"""What a scenario is, and what it is given: see the package's docstring for how to add one."""

import importlib
import pkgutil
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tests.faults.arena import Arena
from tests.faults.churn import Churn

STANDALONE, KUBERNETES = "standalone", "kubernetes"


@dataclass
class Run:
    """One run of a scenario, as its `inject` sees it.

    Attributes:
        rng: of everything that is chosen at random.
        faults: how many there were, by kind; `note` counts them.
        since: moments after which the first decision is measured, with what happened then.
        breaches: what the scenario itself has found wrong.
        lossy: this Redis may lose what it was told last, so attempts and epoch as Redis shows them may go back.
        highest: the epoch before the fault, where a scenario looks at it afterwards.
        tolerates: as a scenario's, of this run alone.
        deaf_s: for how long the scheduler could not hear of any change.
    """

    arena: Arena
    churn: Churn
    rng: random.Random
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    since: list[tuple[str, float]] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lossy: bool = False
    highest: int = 0
    tolerates: tuple[str, ...] = ()
    deaf_s: float = 0.0

    def note(self, kind: str, times: int = 1) -> None:
        """A fault has been injected."""
        self.faults[kind] += times

    def measure(self, what: str) -> None:
        """How long from now until a pod that is created from now on is bound: told under ``what``."""
        self.since.append((what, time.monotonic()))

    def pause(self, least_s: float, most_s: float) -> None:
        """Let the churn go on for a while."""
        time.sleep(self.rng.uniform(least_s, most_s))

    def require(self, holds: object, breach: str) -> None:
        """Something that the scenario itself checks."""
        if not holds:
            self.breaches.append(breach)


@dataclass(frozen=True)
class Scenario:
    """One way in which things go wrong.

    Attributes:
        number: of ``docs/reliability.md``.
        title: what happens.
        sees: what the user sees then, in one sentence: the line of ``docs/reliability.md``.
        inject: makes it happen, while the cluster changes; when it returns, everything is mended and settles.
        arenas: the kinds of cluster it runs in; the seed chooses.
        goal_s: how long settling may take.
        fresh: needs a system of its own, which is stopped afterwards.
        options: further words for ``dsched up``; variables: for its environment. Systems are shared among scenarios
            that ask for the same.
        tolerates: beginnings of breaches that this scenario cannot but have; the reason belongs beside it.
        divided: whether queues divide the cluster that it runs in (`tests.faults.queued`).
        after: called when everything has settled; returns what it finds wrong.
    """

    number: int
    title: str
    sees: str
    inject: Callable[[Run], None]
    arenas: tuple[str, ...] = (STANDALONE,)
    goal_s: float = 60.0
    fresh: bool = False
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    tolerates: tuple[str, ...] = ()
    divided: bool = False
    after: Callable[[Run], list[str]] = lambda run: []

    def arena(self, seed: int) -> str:
        """The kind of cluster for a seed."""
        return self.arenas[seed % len(self.arenas)]


_GATES = "--feature-gates"


def with_gates(scenario: Scenario, gates: Sequence[str]) -> Scenario:
    """The same with these feature gates on, besides its own."""
    options, said = list(scenario.options), ",".join(f"{gate}=true" for gate in gates)
    if _GATES in options:
        options[options.index(_GATES) + 1] += f",{said}"
    else:
        options += [_GATES, said]
    return replace(scenario, options=tuple(options))


@cache
def all_scenarios() -> dict[int, Scenario]:
    """Every scenario by its number: the ``SCENARIO`` of each module of `tests.faults.scenarios`."""
    from tests.faults import scenarios

    found: dict[int, Scenario] = {}
    for module in pkgutil.iter_modules(scenarios.__path__):
        one: Any = importlib.import_module(f"{scenarios.__name__}.{module.name}").SCENARIO
        if one.number in found:
            raise ValueError(f"two scenarios have the number {one.number}")
        found[one.number] = one
    return dict(sorted(found.items()))
