"""What takes each fast path away."""

from collections.abc import Callable
from typing import Any

from dsched.engine.evaluation import Evaluation
from dsched.engine.lookahead import Lookahead
from dsched.framework import runtime
from dsched.framework.runtime import Framework
from dsched.plugins.default_preemption.candidate_cache import CandidateCache


def _few_rows() -> None:
    """Filter and Score of a few rows go through arrays."""
    runtime._few_form = lambda *_: None


def _similar_pods() -> None:
    """Each class of pods costs a pass over the table."""
    Evaluation.resemble = lambda *_: None  # type: ignore[method-assign]


def _lookahead() -> None:
    """Each placement costs a pass over the row that it changed."""
    Lookahead.of = staticmethod(lambda *_: None)  # type: ignore[method-assign, assignment]


def _after_building(change: Callable[[Any], None]) -> None:
    build = Framework.__init__

    def built(self: Any, *arguments: Any, **options: Any) -> None:
        build(self, *arguments, **options)
        change(self)

    Framework.__init__ = built  # type: ignore[method-assign]


def _skip_version() -> None:
    """A plugin that skipped a pod is asked again for each pod of the class."""
    _after_building(lambda framework: framework._skip_versioned.clear())


def _claims_by_meaning() -> None:
    """Pods with claims are told apart by the names of these."""
    _after_building(lambda framework: framework._claim_readers.update({"": None}))


class _Silent:
    """A plugin as far as `Framework.answers` looks at it: one that never says that its answers still hold."""


def _answer_version() -> None:
    """Answers of plugins that look at the whole cluster are not kept from one pod to the next."""
    _after_building(lambda framework: framework._wide.update(dict.fromkeys(framework._wide, _Silent())))


def _candidate_cache() -> None:
    """Each preemptor tries all its candidates."""
    CandidateCache.of = lambda *_: {}  # type: ignore[method-assign]


TAKE_AWAY: dict[str, Callable[[], None]] = {
    "few_rows": _few_rows,
    "similar_pods": _similar_pods,
    "lookahead": _lookahead,
    "skip_version": _skip_version,
    "answer_version": _answer_version,
    "candidate_cache": _candidate_cache,
    "claims_by_meaning": _claims_by_meaning,
}
