"""Options for which version of kube-scheduler is emulated, and its feature gates."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from dsched import emulation
from dsched.config.feature_gates import DEFAULT, VERSIONS
from dsched.emulation import Asked


def _version(otherwise: str) -> Any:
    return typer.Option(
        "--emulated-version",
        envvar=emulation.VERSION,
        metavar="|".join(map(str, VERSIONS)),
        help=f"Decide as kube-scheduler of this version ({otherwise}).",
        show_default=False,
    )


EmulatedVersion = Annotated[str | None, _version(f"default: {DEFAULT.version}")]
"""Of a command that is about no running system."""
LeadersVersion = Annotated[
    str | None, _version(f"default: the API server's own; {DEFAULT.version} where there is none")
]
SystemVersion = Annotated[str | None, _version("default: the one that the leader emulates")]
RecordedVersion = Annotated[str | None, _version("default: the recorded one")]
ComparedVersion = Annotated[
    str | None,
    typer.Option(
        "--compare-version",
        metavar="|".join(map(str, VERSIONS)),
        help="Tell what this version, with the feature gates given, would decide differently, decision by decision.",
        show_default=False,
    ),
]
FeatureGates = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        envvar=emulation.GATES,
        metavar="A=true,B=false",
        help="Its feature gates that are not to be as by default; may be repeated.",
        show_default=False,
    ),
]


def asked(version: str | None, gates: Sequence[str] | None) -> Asked:
    """What the options say; an empty one counts as not given.

    Raises:
        ConfigError: one of them cannot be read.
    """
    return emulation.asked(version, gates or ())
