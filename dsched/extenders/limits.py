"""What an extender may take of this process, whatever it answers: time, bytes, memory, and room in logs and conditions.

An answer is measured by its question: one that keeps every node of the question, and says a sentence about each, is
well within. Nothing is asked for or taken compressed, so what is read is what is unpacked.
"""

from dsched.log import cut

ANSWER_BYTES = 8 * 2**20
"""What an answer may have, with its header, besides twice the size of its question."""
BIND_ANSWER_BYTES = 256 * 2**10
"""What the answer to a bind may have in all: 64 of them may come at the same time."""
ANSWER_VALUES = 500_000
"""How many JSON values an answer may hold, besides twice as many as its question. A value of two bytes takes some 70
bytes of memory once it is read."""
REASONS = 100
"""Different reasons of one answer that are told apart; nodes with any further one have `OTHER_REASON`."""
OTHER_REASON = "rejected by an extender for one of many other reasons"


class TooMuch(ValueError):
    """An answer is beyond a limit."""


def bytes_for(question: bytes) -> int:
    """How many bytes may come in answer to a question."""
    return ANSWER_BYTES + 2 * len(question)


def check_values(answer: bytes, question: bytes) -> None:
    """See that an answer does not hold more values than can be read; by its commas and brackets, those in texts too.

    Raises:
        TooMuch: it does.
    """
    found = _values(answer)
    if found > ANSWER_VALUES and found > (most := ANSWER_VALUES + 2 * _values(question)):
        raise TooMuch(f"the answer holds some {found} values, {most} are taken at most")


def _values(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


class Reasons:
    """What one answer says of nodes, so that a pod's condition stays short whatever that is."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def told(self, reason: str) -> str:
        """The reason as it is passed on."""
        reason = cut(reason)
        if reason not in self._known:
            if len(self._known) >= REASONS:
                return OTHER_REASON
            self._known.add(reason)
        return reason
