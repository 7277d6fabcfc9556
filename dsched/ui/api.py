"""The JSON that the page uses, for programs as well. ``docs/ui.md`` describes it."""

import gzip
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dsched.model.meta import PodKey
from dsched.ui import evaluating, forms, queues, shares
from dsched.ui.evaluating import LARGEST_MANIFEST
from dsched.ui.failures import json
from dsched.ui.sources import Sources, key_of

ENDPOINTS = {
    "GET /api/overview": "who leads, what is paused, queues, workers, configurations",
    "GET /api/events": "the overview again and again, as server-sent events",
    "GET /api/throughput": "attempts per second over the last 15 minutes",
    "GET /api/queues/PLACE?page=&q=": "the pods in a place of the queue",
    "GET /api/shares": "queues between teams: what each is to have and has of each resource",
    "GET /api/shares/NAME": "as dsched describe queue -o json, and what it had over the last 15 minutes",
    "GET /api/nodes": "all nodes in columns: what is used, what there is",
    "GET /api/nodes/NAME": "a node, its pods and its devices",
    "GET /api/devices": "device classes: how many devices match, free and held",
    "GET /api/pods/NAMESPACE/NAME": "a pod: its place, its last attempts, its claims",
    "GET /api/pods/NAMESPACE/NAME/explanation": "as dsched explain pod -o json",
    "POST /api/what-if?pod=&pending=": "where the pods of the manifests in the body would go",
    "GET /api/session": "whether changes are allowed, and the key that they need",
}
WRITING = {
    "POST /api/requeue": '{"pod": "NAMESPACE/NAME"}: try a pod now',
    "POST /api/pause": '{"profile": "", "reason": ""}: stop trying pods',
    "POST /api/resume": '{"profile": ""}: go on',
}
_COMPRESSED_FROM = 4096


class Api:
    """The routes."""

    def __init__(self, sources: Sources, *, writes: bool) -> None:
        self._sources = sources
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """All that only tell."""
        pod = "/api/pods/{namespace}/{name}"
        return [
            Route("/api/", self._index),
            Route("/api/overview", self._overview),
            Route("/api/events", self._events),
            Route("/api/throughput", self._throughput),
            Route("/api/queues/{place}", self._queue),
            Route("/api/shares", self._shares),
            Route("/api/shares/{name:path}", self._share),
            Route("/api/nodes", self._nodes),
            Route("/api/nodes/{name}", self._node),
            Route("/api/devices", self._devices),
            Route(pod, self._pod),
            Route(f"{pod}/explanation", self._explanation),
            Route("/api/what-if", self._what_if, methods=["POST"]),
            Route("/api/session", self._session),
        ]

    def _index(self, request: Request) -> Response:
        return json(ENDPOINTS | (WRITING if self._writes else {}))

    def _overview(self, request: Request) -> Response:
        look = self._sources.live.latest
        if look.overview is None:
            raise HTTPException(503, look.error)
        return json(look.overview)

    async def _events(self, request: Request) -> Response:
        if self._sources.live.full:
            raise HTTPException(503, "too many pages are open; close one")
        return StreamingResponse(self._sources.live.events(), media_type="text/event-stream")

    def _throughput(self, request: Request) -> Response:
        return json(self._sources.live.throughput.points())

    def _queue(self, request: Request) -> Response:
        place = queues.place_of(request.path_params["place"])
        return json(
            queues.read(self._sources.system.store, place, forms.page(request), request.query_params.get("q", ""))
        )

    def _shares(self, request: Request) -> Response:
        return _compressed(request, json(self._sources.shares().shares))

    async def _share(self, request: Request) -> Response:
        name, look = request.path_params["name"], self._sources.shares()
        told = await self._sources.read_queue(look, name)
        return json(shares.answer(told, look, self._sources.live.shares.history))

    def _nodes(self, request: Request) -> Response:
        return _compressed(request, json(self._sources.table.read()))

    async def _node(self, request: Request) -> Response:
        return json(await self._sources.read_node(request))

    async def _devices(self, request: Request) -> Response:
        return json(await self._sources.read_classes())

    def _pod(self, request: Request) -> Response:
        return json(self._sources.read_pod(key_of(request)))

    async def _explanation(self, request: Request) -> Response:
        found = await self._sources.desk.run(lambda: evaluating.explain_pod(self._sources.system, key_of(request)))
        return json(found.json())

    async def _what_if(self, request: Request) -> Response:
        text = await forms.body(request, LARGEST_MANIFEST)
        wanted = PodKey(request.query_params.get("pod", "")) or None
        pending = request.query_params.get("pending", "") in ("1", "true")
        tried = await self._sources.desk.run(
            lambda: evaluating.try_out(self._sources.system, text, wanted, with_pending=pending).json()
        )
        return json(tried)

    def _session(self, request: Request) -> Response:
        key = self._sources.sessions.form_key(forms.visitor(request).session) if self._writes else None
        return json({"allow_write": self._writes, "key": key})


def _compressed(request: Request, answer: Response) -> Response:
    """What is large, where that is wanted. Nothing in it may be secret and chosen by the visitor at once, so that its
    length gives nothing away."""
    if len(answer.body) >= _COMPRESSED_FROM and "gzip" in request.headers.get("accept-encoding", ""):
        answer = json(gzip.compress(bytes(answer.body), 5, mtime=0))
        answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Vary"] = "Accept-Encoding"
    return answer
