"""Errors as answers: a page for people, JSON for programs, each with what to do next."""

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dsched.errors import ClusterUnavailable, DschedError, ManifestError, NotAllowed, NotFound, RedisUnavailable
from dsched.ui.evaluating import Busy
from dsched.ui.rendering import Rendering

_STATUS: tuple[tuple[type[DschedError], int], ...] = (
    (NotFound, 404),
    (ManifestError, 422),
    (Busy, 503),
    (RedisUnavailable, 503),
    (ClusterUnavailable, 503),
    (NotAllowed, 403),
)
_TITLES = {400: "Cannot be read", 403: "Not allowed", 404: "Not found", 409: "Not done", 413: "Too large"}


def json(value: Any, status: int = 200) -> Response:
    """An answer for programs; ``value`` is encoded unless it is bytes already."""
    return Response(
        value if isinstance(value, bytes) else msgspec.json.encode(value), status, media_type="application/json"
    )


def status_of(error: DschedError) -> int:
    """The HTTP status that tells an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 409)


def wanted_json(path: str) -> bool:
    """Whether a program asks for this path."""
    return path.startswith("/api/")


class Failures:
    """Answers for what went wrong."""

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    async def on_purpose(self, request: Request, error: Exception) -> Response:
        """One of dsched's own errors."""
        assert isinstance(error, DschedError)
        problems = error.problems if isinstance(error, ManifestError) else ()
        return self.answer(request, status_of(error), str(error), problems)

    async def of_http(self, request: Request, error: Exception) -> Response:
        """No such page, no such method, a request that cannot be read."""
        assert isinstance(error, HTTPException)
        return self.answer(request, error.status_code, error.detail)

    def answer(self, request: Request, status: int, message: str, problems: Sequence[str] = ()) -> Response:
        """The answer for an error."""
        if wanted_json(request.url.path):
            told = {"message": message, **({"problems": list(problems)} if problems else {})}
            return json({"error": told}, status)
        title = _TITLES.get(status, "Does not work at the moment" if status >= 500 else "Not done")
        return self._rendering.page("error.html", {"title": title, "message": message, "here": ""}, status)
