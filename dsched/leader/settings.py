"""Settings of a leader process."""

import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from dsched.framework import plugin_timeout
from dsched.leader.evaluators.mode import Mode
from dsched.leader.observers.explanations import Explain


def default_identity(name: str | None = None) -> str:
    """A name, the host's if none is given, with process id and a few random digits: no two processes have the same."""
    return f"{name or socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True)
class Settings:
    """
    Attributes:
        identity: who this process is; shown as the leader.
        lease_s: how long the lease lasts without renewal; a standby takes over within this time. Kube-scheduler's
            default is 15 s over its API server; Redis is nearer, so 3 s.
        mode: where classes of pods are judged.
        seed: of the choice among equal nodes.
        decisions: file to append decisions to, None for none.
        plugin_timeout_s: how long a plugin may take, 0 for no limit.
        explain: of which attempts it is kept what was said.
    """

    identity: str = field(default_factory=default_identity)
    lease_s: float = 3.0
    mode: Mode = Mode.AUTO
    seed: int = 0
    decisions: Path | None = None
    explain: Explain = Explain.FAILURES
    plugin_timeout_s: float = plugin_timeout.DEFAULT_S
