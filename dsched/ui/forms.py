"""What requests carry: bodies of limited size, forms, and numbers in the address."""

from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dsched.ui.guard import Visitor

LARGEST_FORM = 1024 * 1024
"""Bytes; a text takes up to three times its size in a form."""
MOST_FIELDS = 20
LAST_PAGE = 100_000


async def body(request: Request, most: int) -> bytes:
    """The whole body.

    Raises:
        HTTPException: 413, it is larger than ``most`` bytes; the rest is not read.
    """
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            raise HTTPException(413, f"the request is larger than {most >> 10} KiB")
    return bytes(found)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form."""

    fields: dict[str, list[str]]

    def get(self, name: str) -> str:
        """A field, empty where there is none."""
        return self.fields.get(name, [""])[0]


async def form(request: Request) -> Form:
    """A form as browsers send it (``application/x-www-form-urlencoded``).

    Raises:
        HTTPException: it is none, or too large.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "expected a form")
    text = (await body(request, LARGEST_FORM)).decode("utf-8", "replace")
    try:
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from error


def page(request: Request) -> int:
    """The page that ``?page=`` asks for, from 1 on.

    Raises:
        HTTPException: it is no number.
    """
    return number(request, "page") or 1


def number(request: Request, name: str) -> int | None:
    """A number from 1 on; None where none is given.

    Raises:
        HTTPException: it is no number.
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= LAST_PAGE:
        raise HTTPException(400, f"{name}: expected a number from 1 on")
    return int(text)


def visitor(request: Request) -> Visitor:
    """Who asks."""
    found = request.state.visitor
    return found if isinstance(found, Visitor) else Visitor()
