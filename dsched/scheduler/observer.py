"""Who watches the scheduler: told of what happens, and without a say in it.

A recording, traces, explanations and the decision log watch in this way. They know the scheduler; it does not know
them. What an observer raises ends whatever it was told of: it raises nothing but what ends the term.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dsched.engine.evaluation import Evaluation
from dsched.engine.select import Choice
from dsched.engine.with_extenders import EvaluationWithExtenders
from dsched.scheduler.decision import Candidate, Decision, GroupDecision
from dsched.scheduler.ports import Popped

Found = Evaluation | EvaluationWithExtenders
"""What plugins, and extenders where they were asked, said of the nodes."""


class Observer:
    """Does nothing. An observer overrides what it wants to be told of."""

    def phase(self, phase: str) -> None:
        """The loop does something else from now on."""

    def popped(self, batch: str, popped: Sequence[Popped]) -> None:
        """A batch begins."""

    def before_decide(self, batch: Sequence[Candidate]) -> None:
        """The pods of a batch, or some of them once more, are about to be decided."""

    def looked(self, candidate: Candidate, findings: Found, choice: Choice | None) -> None:
        """What was found about a pod, and the host that was chosen, None where it fits nowhere; nothing was done about
        it yet."""

    def decided(self, decisions: Sequence[Decision | GroupDecision]) -> None:
        """They were decided; nothing of it is in Redis yet."""

    def committed(self, decisions: Sequence[Decision], version: int) -> None:
        """These decisions stand in Redis.

        Args:
            version: of the table of nodes after the last of them.
        """

    def finished(self) -> None:
        """The batch is over: each of its pods is reserved or back in the queue."""

    def settled(self) -> None:
        """The loop has acted on everything that has come in."""

    def turned(self) -> None:
        """A turn of the loop ends."""

    def close(self) -> None:
        """The term is over."""


class Observers(Observer):
    """Tells several, in order; of each thing those alone that override its method. Where there is but one, that method
    stands for the one here: most things happen in each turn of the loop."""

    def __init__(self, *observers: Observer) -> None:
        def overriding(method: Callable[..., None]) -> list[Any]:
            name = method.__name__
            found = [getattr(each, name) for each in observers if getattr(type(each), name) is not method]
            if len(found) == 1:
                vars(self)[name] = found[0]
            return found

        self._phase = overriding(Observer.phase)
        self._popped = overriding(Observer.popped)
        self._before_decide = overriding(Observer.before_decide)
        self._looked = overriding(Observer.looked)
        self._decided = overriding(Observer.decided)
        self._committed = overriding(Observer.committed)
        self._finished = overriding(Observer.finished)
        self._settled = overriding(Observer.settled)
        self._turned = overriding(Observer.turned)
        self._close = overriding(Observer.close)

    def phase(self, phase: str) -> None:
        for tell in self._phase:
            tell(phase)

    def popped(self, batch: str, popped: Sequence[Popped]) -> None:
        for tell in self._popped:
            tell(batch, popped)

    def before_decide(self, batch: Sequence[Candidate]) -> None:
        for tell in self._before_decide:
            tell(batch)

    def looked(self, candidate: Candidate, findings: Found, choice: Choice | None) -> None:
        for tell in self._looked:
            tell(candidate, findings, choice)

    def decided(self, decisions: Sequence[Decision | GroupDecision]) -> None:
        for tell in self._decided:
            tell(decisions)

    def committed(self, decisions: Sequence[Decision], version: int) -> None:
        for tell in self._committed:
            tell(decisions, version)

    def finished(self) -> None:
        for tell in self._finished:
            tell()

    def settled(self) -> None:
        for tell in self._settled:
            tell()

    def turned(self) -> None:
        for tell in self._turned:
            tell()

    def close(self) -> None:
        for tell in self._close:
            tell()
