"""Checks and how they are told, as kube-scheduler's ``/livez?verbose`` does.

*Live* means that starting the process again would not help; *ready* that it does its work, or stands by for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsched.log import logger

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One question.

    Attributes:
        wrong: says what is wrong, nothing when all is well; may be called from any thread.
    """

    name: str
    wrong: Callable[[], str]


Checks = Sequence[Check]


def report(page: str, checks: Checks, *, verbose: bool) -> tuple[bool, str]:
    """Whether all is well, and the page that says so: ``ok``, or a line for each check."""
    found = [(check.name, _ask(check)) for check in checks]
    well = not any(wrong for _, wrong in found)
    if well and not verbose:
        return True, "ok"
    lines = [f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in found]
    return well, "\n".join([*lines, f"{page} check {'passed' if well else 'failed'}", ""])


def _ask(check: Check) -> str:
    try:
        return check.wrong()
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, not a reason to hang up
        _log.exception("health check broke", extra={"action": "health", "check": check.name})
        return f"the check itself broke: {error!r}"
