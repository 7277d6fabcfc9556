"""Showing the token in a browser."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dsched.log import logger
from dsched.ui import access, forms
from dsched.ui.access import SESSION_S, Sessions
from dsched.ui.rendering import Rendering

_log = logger(__name__)

PAUSE_S = 0.5
"""After a wrong token: whoever guesses waits."""


class Login:
    """The routes.

    Args:
        secure: whether the page is served over TLS, so that the cookie is not to be sent without it.
    """

    def __init__(self, sessions: Sessions, rendering: Rendering, token: str, cookie: str, *, secure: bool) -> None:
        self._sessions = sessions
        self._rendering = rendering
        self._token = token
        self._cookie = cookie
        self._secure = secure

    def routes(self) -> Sequence[Route]:
        """Logging in and out."""
        return [
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._logout, methods=["POST"]),
        ]

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request.query_params.get("next", "/"))
        form = await forms.form(request)
        if not access.same(form.get("token").strip(), self._token):
            await asyncio.sleep(PAUSE_S)
            client = request.client.host if request.client else ""
            _log.warning("wrong token", extra={"action": "login", "client": client})
            return self._form(form.get("next"), wrong=True)
        answer = RedirectResponse(here(form.get("next")), 303)
        answer.set_cookie(
            self._cookie,
            self._sessions.begin(),
            max_age=int(SESSION_S),
            httponly=True,
            samesite="strict",
            secure=self._secure,
        )
        return answer

    async def _logout(self, request: Request) -> Response:
        self._sessions.end(forms.visitor(request).session)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(self._cookie, httponly=True, samesite="strict", secure=self._secure)
        return answer

    def _form(self, wanted: str, *, wrong: bool = False) -> Response:
        values = {"here": "", "next": here(wanted), "wrong": wrong}
        return self._rendering.page("login.html", values, 401 if wrong else 200)


def here(wanted: str) -> str:
    """An address of this page, ``/`` for any other: nobody is to be sent elsewhere after logging in."""
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    plain = wanted.startswith("/") and not wanted.startswith("//") and not parts.scheme and not parts.netloc
    safe = plain and "\\" not in wanted and wanted.isprintable() and not parts.path.startswith("/log")
    return wanted if safe else "/"
