"""From the text of a configuration file to the record: decode, complete, validate, build the profiles."""

import json
from collections.abc import Sequence
from typing import Any

from dsched.config import complete, decode, defaults, profiles, records, validation
from dsched.config import plugins as default_plugins
from dsched.config.decode import Wire
from dsched.config.feature_gates import UNSAID, Features
from dsched.config.profiles import Known
from dsched.config.schema import API_VERSION, KIND
from dsched.config.text import TextError, parse
from dsched.config.types import SchedulerConfiguration
from dsched.errors import ConfigError

_EMPTY = json.dumps({"apiVersion": API_VERSION, "kind": KIND})
_ADVICE = {
    "decode": "correct the text: it has to be one kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration",
    "validation": "correct the values",
    "profile": "correct the profile's plugins or their arguments",
}


def load(
    text: str | bytes,
    source: str = "<configuration>",
    *,
    plugins: Known | None = None,
    features: Features = UNSAID,
) -> SchedulerConfiguration:
    """Read a configuration.

    Args:
        text: YAML or JSON.
        source: what to call it in messages, a path as a rule.
        plugins: every plugin there is, in tree and out of tree, to the extension points it serves; those in tree of the
            emulated version by default.
        features: the version that is emulated, and what is on.
    Raises:
        ConfigError: kube-scheduler of that version would refuse it; ``stage`` tells at which step.
    Source: kubernetes v1.37 cmd/kube-scheduler/app/options/configfile.go, app/server.go ``Setup``.
    """
    config = _completed(text, source, features)
    known = default_plugins.intree(features.version) if plugins is None else plugins
    try:
        points = profiles.build_all(config["profiles"], known, features)
    except profiles.ProfileError as error:
        message = _message("profile", source, error.errors, headline=str(error))
        raise ConfigError(
            message, stage="profile", errors=error.errors, profile=error.profile, plugin=error.plugin
        ) from error
    return records.configuration(config, points, features)


def default(features: Features = UNSAID) -> SchedulerConfiguration:
    """The configuration without any file: one profile, the default plugins."""
    return load(_EMPTY, "<default>", features=features)


def completed(config: SchedulerConfiguration) -> dict[str, Any]:
    """The configuration as v1, defaults filled in and the default plugins merged; a fresh dict on each call."""
    result: dict[str, Any] = json.loads(config.document)
    return result


def shown(config: SchedulerConfiguration) -> dict[str, Any]:
    """The configuration as a document from which the same one is read; private keys are not in it."""
    document = completed(config)
    if config.percentage_of_nodes_to_score is None:
        document.pop("percentageOfNodesToScore", None)
    for extender in document.get("extenders") or ():
        (extender.get("tlsConfig") or {}).pop("keyData", None)
    return document


def completed_document(
    text: str | bytes, source: str = "<configuration>", *, features: Features = UNSAID
) -> dict[str, Any]:
    """As `completed`, of a text whose profiles need not be buildable.

    Raises:
        ConfigError: stage ``decode`` or ``validation``.
    """
    return complete.document(_completed(text, source, features), features.version)


def _completed(text: str | bytes, source: str, features: Features) -> Wire:
    try:
        config = decode.configuration(parse(text), features.version)
    except TextError as error:
        raise _refused("decode", source, [f"document: {error}"]) from error
    except decode.DecodeError as error:
        raise _refused("decode", source, error.errors) from error
    defaults.apply(config, features)
    if errors := validation.errors(config, features):
        raise _refused("validation", source, errors)
    return config


def _refused(stage: str, source: str, errors: Sequence[str]) -> ConfigError:
    return ConfigError(_message(stage, source, errors), stage=stage, errors=errors)


def _message(stage: str, source: str, errors: Sequence[str], headline: str = "") -> str:
    first = headline or f"configuration refused ({stage})"
    return "\n".join([f"{source}: {first}", *(f"  {error}" for error in errors), f"  {_ADVICE[stage]}"])
