"""What goes over a wire: requests, answers, and what happens instead of an answer."""

from typing import NamedTuple

from dsched.errors import ClusterUnavailable

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class Request(NamedTuple):
    """A request to the API server; ``path`` with its query."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON


class Answer(NamedTuple):
    """An answer of the API server; ``retry_after_s`` as it asks, None when it does not."""

    status: int
    body: bytes
    retry_after_s: float | None = None


class Broken(ClusterUnavailable):
    """The connection broke, or no answer came in time: the request may or may not have been carried out."""


class TimedOut(Broken):
    """No answer came in time."""


class Refused(Exception):
    """A stream was answered with an error; ``args[0]`` is the answer."""

    @property
    def answer(self) -> Answer:
        found: Answer = self.args[0]
        return found
