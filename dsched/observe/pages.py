"""Pages that a process serves besides its metrics and checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent for one request; ``headers`` are those besides type and length."""

    content_type: str
    body: bytes
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


Page = Callable[[str], Answer]
"""Answers a request with this ``Accept`` header, empty where it has none; called from any thread."""
