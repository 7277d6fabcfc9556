"""Which version of kube-scheduler is emulated here: what was asked for, what it comes to, how it is told elsewhere.

Only a leader decides this; others take it from what it publishes, or from a recording. Asked for are a version and
feature gates, by options or by the environment; what there is of either is in `dsched.config.feature_gates`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from dsched.config import feature_gates
from dsched.config.feature_gates import DEFAULT, UNSAID, VERSIONS, Features, Version
from dsched.errors import ConfigError

VERSION, GATES = "DSCHED_EMULATED_VERSION", "DSCHED_FEATURE_GATES"
"""Environment variables of the two options; an empty one counts as not set."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for.

    Attributes:
        version: None where nobody has named one.
        gates: those that were set, by name.
    """

    version: Version | None = None
    gates: tuple[tuple[str, bool], ...] = ()

    @property
    def anything(self) -> bool:
        """Whether a version or a gate was named."""
        return self.version is not None or bool(self.gates)

    def on(self, present: Version | None = None) -> Features:
        """What it comes to.

        Args:
            present: the version of the Kubernetes cluster that is scheduled, None where there is none.

        Raises:
            ConfigError: these gates cannot be set so in that version.
        """
        version = self.version or (DEFAULT.version if present is None else feature_gates.nearest(present))
        return feature_gates.features(version, dict(self.gates))

    def instead_of(self, told: Features) -> Features:
        """What it comes to where something else would be taken otherwise: what was told, where nothing was asked for;
        its version with the gates that were asked for, where only these were.

        Raises:
            ConfigError: these gates cannot be set so in that version.
        """
        return self.on(told.version) if self.anything else told

    def possible(self, *, on_kubernetes: bool) -> list[Features]:
        """What it may come to while a Kubernetes cluster's version is not known, the likeliest first; at least one.

        Raises:
            ConfigError: these gates cannot be set so in any version.
        """
        if self.version is not None or not on_kubernetes:
            return [self.on()]
        found = []
        for version in dict.fromkeys((DEFAULT.version, *reversed(VERSIONS))):
            try:
                found.append(self.on(version))
            except ConfigError:
                continue
        return found or [self.on()]


NOTHING = Asked()
"""Nothing was asked for."""


def asked(version: str | None, gates: Iterable[str] = ()) -> Asked:
    """What texts ask for: ``1.36``, and ``A=true,B=false`` any number of times; an empty text asks for nothing.

    Raises:
        ConfigError: one of them cannot be read.
    """
    named = feature_gates.parse_version(version) if version else None
    return Asked(named, tuple(sorted(feature_gates.parse_gates(",".join(gates)).items())))


def from_environment() -> Asked:
    """What the environment asks for.

    Raises:
        ConfigError: a variable cannot be read.
    """
    return asked(os.environ.get(VERSION), [os.environ.get(GATES, "")])


def environment(asked: Asked) -> dict[str, str]:
    """The environment that asks for it."""
    return {VERSION: str(asked.version or ""), GATES: feature_gates.gates_text(dict(asked.gates))}


def written(features: Features) -> tuple[str, str]:
    """The version and the gates that were set, as texts to be kept; `read` reads them."""
    return str(features.version), feature_gates.gates_text(dict(features.given))


def read(version: str, gates: str) -> Features:
    """What `written` wrote; without a version it was an older release, which did not.

    Raises:
        ConfigError: a newer release wrote it, and it is not known here.
    """
    if not version:
        return UNSAID
    try:
        return asked(version, [gates]).on()
    except ConfigError as error:
        what = " ".join(filter(None, (version, gates)))
        why = "; ".join(error.errors)
        raise ConfigError(f"this release of dsched cannot emulate kube-scheduler {what}: {why}") from error
