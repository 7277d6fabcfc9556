"""Objects that cannot be read: somebody has written them past all checks. The leader leaves them out."""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant
from dsched.fsck.view import View


def check(view: View) -> Iterator[Finding]:
    """What there is of them; nothing that the scheduler is to blame for."""
    for (kind, name), why in view.broken.items():
        message = f"cannot be read and is left out, delete it or apply it anew: {why}"
        yield Finding(Invariant.ONE_PLACE, kind, name, "unreadable", message, breach=False)
