"""What changes something: trying a pod now, pausing, resuming. Served only with ``--allow-write``.

Each change is one that a command makes, too, and is made the same way: by a request to the leader, or by the key that
the script which pops pods looks at. Who is killed in between leaves what the command would leave.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dsched.errors import NotFound
from dsched.log import logger
from dsched.model.meta import PodKey
from dsched.model.reading import decoded
from dsched.observe.words import titled
from dsched.state import pauses, requests
from dsched.state.pauses import EVERYTHING
from dsched.ui import access, forms
from dsched.ui.access import Sessions
from dsched.ui.failures import json
from dsched.ui.rendering import Rendering
from dsched.ui.system import System

_log = logger(__name__)

TIMEOUT_S = 10.0
"""How long the leader has to answer."""
LARGEST_JSON = 64 * 1024
KEY_HEADER = "X-Dsched-Key"
"""Carries, with JSON, what a form has in its field ``key``."""


class Change(msgspec.Struct, frozen=True):
    """The body of a request.

    Attributes:
        pod: to be tried now.
        profile: to be paused or resumed; empty for all.
        reason: of the pause, shown beside it.
    """

    pod: str = ""
    profile: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it: a line for people, and whether anything changed."""

    changed: bool
    message: str


class Writing:
    """The routes."""

    def __init__(self, system: System, sessions: Sessions, rendering: Rendering) -> None:
        self._system = system
        self._sessions = sessions
        self._rendering = rendering

    def routes(self) -> Sequence[Route]:
        """Forms of the page, and the same for programs."""
        return [
            *(Route(f"/{name}", self._form, methods=["POST"], name=name) for name in _CHANGES),
            *(Route(f"/api/{name}", self._json, methods=["POST"], name=f"api-{name}") for name in _CHANGES),
        ]

    async def _form(self, request: Request) -> Response:
        form = await forms.form(request)
        self._check(request, form.get("key"))
        change = Change(form.get("pod"), form.get("profile"), form.get("reason"))
        done = await run_in_threadpool(self._make, request.url.path.rpartition("/")[2], change)
        return self._rendering.page("done.html", {"done": done, "pod": change.pod, "here": ""})

    async def _json(self, request: Request) -> Response:
        self._check(request, request.headers.get(KEY_HEADER, ""))
        try:
            body = await forms.body(request, LARGEST_JSON) or b"{}"
            change = decoded(lambda each: msgspec.json.decode(each, type=Change), body)
        except msgspec.DecodeError as error:
            raise HTTPException(400, f"the request cannot be read: {error}") from error
        return json(await run_in_threadpool(self._make, request.url.path.rpartition("/")[2], change))

    def _check(self, request: Request, key: str) -> None:
        """
        Raises:
            HTTPException: the request does not come from this page.
        """
        visitor = forms.visitor(request)
        if not visitor.bearer and not access.same(key, self._sessions.form_key(visitor.session)):
            raise HTTPException(403, "the form is not this page's, or is older than this server; load the page again")

    def _make(self, name: str, change: Change) -> Done:
        done = _CHANGES[name](self._system, change)
        _log.info(
            "asked for by the page",
            extra={"action": name, "pod": change.pod or None, "profile": change.profile, "changed": done.changed},
        )
        return done


def requeue(system: System, change: Change) -> Done:
    """Try a pod now, whatever it waits for.

    Raises:
        NotFound: no pod is named.
        StateError: nobody leads, or the leader did not answer.
    """
    if "/" not in change.pod:
        raise NotFound("name a pod: NAMESPACE/NAME")
    answer = requests.ask(system.store, requests.REQUEUE, TIMEOUT_S, [PodKey(change.pod)])
    return Done(answer.done > 0, "; ".join(f"{each.pod}: {each.message}" for each in answer.pods))


def pause(system: System, change: Change) -> Done:
    """Stop trying pods, of all profiles or of one.

    Raises:
        NotFound: there is no such profile.
    """
    wanted = pauses.known(system.store, change.profile) if change.profile else EVERYTHING
    reason = " ".join(change.reason.split())[:200]
    changed = pauses.pause(system.store, wanted, system.clock.now_ms(), reason)
    return Done(changed, f"{'paused' if changed else 'paused already'}: {titled(wanted)}")


def resume(system: System, change: Change) -> Done:
    """Go on: with everything, or with one profile."""
    wanted = change.profile or EVERYTHING
    was = pauses.resume(system.store, wanted)
    if not was and wanted != EVERYTHING:  # a profile that is paused may be gone from the configuration since
        pauses.known(system.store, wanted)
    return Done(bool(was), f"resumed: {', '.join(map(titled, was))}" if was else "nothing to resume")


_CHANGES = {"requeue": requeue, "pause": pause, "resume": resume}
