"""Work of a plugin that takes so long that the scheduling cycle does not wait for it.

A plugin that finds that its answer would hold up all other pods asks for a `LongSearch` and raises `NotYet`. The pod
stays in flight; it is decided anew once the search is over, as if its turn had come only then.
"""

from typing import Protocol

from dsched.framework.status import Code, Status
from dsched.framework.validation import PluginFailure
from dsched.model.meta import PodUid


class LongSearch(Protocol):
    """Work for another process, which begins with a copy of all that is in memory."""

    def begin(self) -> None:
        """Right before that process starts: note what the answer will be about."""
        ...

    def work(self) -> bytes:
        """In that process: search. What it changes nobody else sees."""
        ...

    def done(self, answer: bytes | None) -> None:
        """Take the answer; None where the process ended without one."""
        ...


class Searches(Protocol):
    """Where a plugin asks for one: ``handle.searches``, which is None where nobody else would be held up. Pods of a pod
    group cannot wait: they are decided together."""

    def ask(self, search: LongSearch, uid: PodUid) -> None:
        """Have a search done that a pod waits for; it may have been asked for before."""
        ...


class NotYet(PluginFailure):
    """The answer is being searched for elsewhere."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(plugin, message)
        self.status = Status(Code.WAIT, (message,), plugin)
