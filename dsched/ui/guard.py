"""Stands before every request: refuses strangers, and tells browsers what this page's answers may do."""

from dataclasses import dataclass
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dsched.ui import access
from dsched.ui.access import Hosts, Sessions
from dsched.ui.failures import json, wanted_json

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # same-origin and not no-referrer: browsers would then send "Origin: null" with the page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = ("/login", "/static/")
"""Paths that need no token."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, as far as it is known.

    Attributes:
        session: what the browser was given; empty without a token.
        bearer: the request itself carries the token, which no other page can make a browser do.
    """

    session: str = ""
    bearer: bool = False


class Guard:
    """Wraps the application.

    Args:
        token: what visitors have to show; empty where anybody may ask.
        cookie: name of the session's cookie.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts, sessions: Sessions, token: str, cookie: str) -> None:
        self._app = app
        self._hosts = hosts
        self._sessions = sessions
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-cache" if scope["path"].startswith("/static/") else "no-store"
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        scope.setdefault("state", {})["visitor"] = self._visitor(headers)
        await self._app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path, host = scope["path"], headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._hosts.takes(host):
            return refused(path, 421, "this page is not served under that name; --allow-host NAME would take it")
        fetched_from = headers.get("sec-fetch-site")
        if scope["method"] not in SAFE and not access.same_origin(host, headers.get("origin"), fetched_from):
            return refused(path, 403, "the request comes from another site's page")
        if access.embedded(fetched_from, headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")):
            return refused(path, 403, "this page is not part of another site's page")
        if not self._token or path.startswith(OPEN):
            return None
        visitor = self._visitor(headers)
        if visitor.session or visitor.bearer:
            return None
        if wanted_json(path) or scope["method"] not in SAFE:
            answer = refused(path, 401, "show the token: Authorization: Bearer TOKEN")
            answer.headers["WWW-Authenticate"] = 'Bearer realm="dsched"'
            return answer
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = path + (f"?{query}" if query else "")
        return RedirectResponse(f"/login?next={quote(wanted, safe='')}", 303)

    def _visitor(self, headers: Headers) -> Visitor:
        if not self._token:
            return Visitor()
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and access.same(shown.strip(), self._token):
            return Visitor(bearer=True)
        # Not SimpleCookie.load: it gives up on the whole header at a cookie it dislikes, which may be anybody's here.
        session = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        return Visitor(session) if session and self._sessions.knows(session) else Visitor()


def refused(path: str, status: int, message: str) -> Response:
    """An answer without the page around it: JSON for programs, else a line of text."""
    if wanted_json(path):
        return json({"error": {"message": message}}, status)
    return Response(f"{message}\n", status, media_type="text/plain")
