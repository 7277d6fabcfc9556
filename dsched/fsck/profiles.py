"""What is known of the profiles: whose pods are ours, and what their filters look at.

Without a configuration the default plugins are taken for granted, and the names of the schedulers are those that the
leader, the records and ``default-scheduler`` give.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dsched.config import Features, NodeResourcesFitArgs, Profile, SchedulerConfiguration
from dsched.framework import deferred_resizes
from dsched.fsck.view import PODS
from dsched.model import names

DEFAULT_SCHEDULER = "default-scheduler"
PORTS = "ports"
"""What `Profiles.checks` is asked for about host ports."""

_FIT, _PORTS = "NodeResourcesFit", "NodePorts"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a profile's filters look at."""

    fit: bool = True
    ports: bool = True
    ignored: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a configuration by scheduler name; empty without one.

    Attributes:
        resizes: whether resizes preempt.
    """

    by_scheduler: Mapping[str, Checked] = field(default_factory=dict)
    resizes: bool = False

    def schedulers(self, said: frozenset[str] | None, seen: Iterable[str]) -> frozenset[str]:
        """The schedulers that are ours: the configuration's, else those that the leader has said, else those seen in
        records and the default one."""
        if self.by_scheduler:
            return frozenset(self.by_scheduler)
        return frozenset({DEFAULT_SCHEDULER, *seen}) if said is None else said

    def checks(self, scheduler: str, resource: str) -> bool:
        """Whether the pods of a scheduler are kept off nodes that are short of a resource (or `PORTS`)."""
        known = self.by_scheduler.get(scheduler, Checked())
        if resource == PORTS:
            return known.ports
        if not known.fit or resource == PODS or not names.is_extended_resource(resource):
            return known.fit
        return resource not in known.ignored and resource.partition("/")[0] not in known.ignored_groups


def of(config: SchedulerConfiguration | None, features: Features) -> Profiles:
    """What a configuration says, if there is one, and the features that are on."""
    known = {} if config is None else {profile.scheduler_name: _checked(profile) for profile in config.profiles}
    return Profiles(known, features.enabled(deferred_resizes.GATE))


def _checked(profile: Profile) -> Checked:
    filters = {ref.name for ref in profile.plugins.get("filter", ())}
    args = profile.args.get(_FIT)
    ignored, groups = (
        (args.ignored_resources, args.ignored_resource_groups) if isinstance(args, NodeResourcesFitArgs) else ((), ())
    )
    return Checked(_FIT in filters, _PORTS in filters, frozenset(ignored), frozenset(groups))
