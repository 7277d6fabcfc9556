"""The pages. All of them are complete without JavaScript, which only keeps them up to date and draws."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dsched.errors import DschedError, ManifestError
from dsched.model.meta import PodKey, from_builtins
from dsched.model.queues import Queue
from dsched.observe import queue_shares
from dsched.recording import rehearsal_json
from dsched.recording.rehearsal import WORDS, Kind
from dsched.scheduler.ports import QueueName
from dsched.state.places import ALL
from dsched.ui import evaluating, forms, queues, share_view
from dsched.ui.evaluating import LARGEST_MANIFEST, Tried
from dsched.ui.failures import status_of
from dsched.ui.matrix import Matrix, matrix
from dsched.ui.rendering import Rendering
from dsched.ui.shares import SharesLook
from dsched.ui.sources import Sources, key_of

DIFFERENCES = 200
"""Of a rehearsal; the file has all."""
NODE_ROWS = 50
"""Nodes in the table below the map."""


class Pages:
    """The routes."""

    def __init__(self, sources: Sources, rendering: Rendering, rehearsal: Path | None = None) -> None:
        """
        Args:
            rehearsal: what ``--compare-version … -o json`` has written; None for no such page.
        """
        self._sources = sources
        self._rehearsed = rehearsal
        self._rendering = rendering

    def routes(self) -> Sequence[Route]:
        """All pages."""
        pod = "/pods/{namespace}/{name}"
        return [
            Route("/", self._overview),
            Route("/queues", self._queues),
            Route("/shares", self._shares),
            Route("/shares/{name:path}", self._share),
            Route("/nodes", self._nodes),
            Route("/nodes/{name}", self._node),
            Route("/devices", self._devices),
            Route("/pods", self._find, name="find"),
            Route(pod, self._pod),
            Route(f"{pod}/explanation", self._explanation),
            Route("/what-if", self._what_if, methods=["GET", "POST"]),
            *([Route("/rehearsal", self._rehearsal)] if self._rehearsed is not None else ()),
        ]

    def _page(self, request: Request, template: str, here: str, status: int = 200, **values: Any) -> Response:
        key = self._sources.sessions.form_key(forms.visitor(request).session)
        return self._rendering.page(
            template, {"here": here, "key": key, "with_query": _with_query(request), **values}, status
        )

    def _overview(self, request: Request) -> Response:
        look = self._sources.live.latest
        if look.overview is None:
            raise HTTPException(503, look.error)
        return self._page(request, "overview.html", "overview", now=look.overview)

    def _queues(self, request: Request) -> Response:
        word = request.query_params.get("place", "")
        counts = queues.counts(self._sources.system.store)
        place = queues.place_of(word) if word else _busiest(counts)
        found = queues.read(self._sources.system.store, place, forms.page(request), request.query_params.get("q", ""))
        return self._page(request, "queues.html", "queues", counts=counts, found=found)

    def _shares(self, request: Request) -> Response:
        look = self._sources.shares()
        return self._page(request, "shares.html", "shares", look=look, **self._below(request, look))

    async def _share(self, request: Request) -> Response:
        name, look = request.path_params["name"], self._sources.shares()
        told = await self._sources.read_queue(look, name)
        queue = look.queue(name)
        rules = [] if queue is None else list(queue_shares.rules(from_builtins(told.queue, Queue)))
        values = {"look": look, "told": told, "queue": queue, "rules": rules, **self._below(request, look, name)}
        return self._page(request, "share.html", "shares", **values)

    def _below(self, request: Request, look: SharesLook, above: str = "") -> dict[str, Any]:
        """What is drawn of the queues below one, or of all."""
        query, page = request.query_params.get("q", ""), forms.page(request)
        every, levels = "all" in request.query_params, forms.number(request, "levels")
        history = self._sources.live.shares.history
        return {
            "chosen": share_view.choose(look.shares.queues, above, levels=levels, query=query, page=page),
            "columns": share_view.columns(look, every=every),
            "page": page,
            "query": query,
            "every": every,
            "bar": partial(share_view.bar, look),
            "lines": partial(share_view.lines, history),
            "pod_lines": partial(share_view.pod_lines, history),
            "taken_back": partial(share_view.taken_back, history),
            "sparks": share_view.SPARKS,
            "full": history.passed_over > 0,
        }

    def _nodes(self, request: Request) -> Response:
        nodes, query, page = self._sources.table.read(), request.query_params.get("q", ""), forms.page(request)
        wanted = query.strip().casefold()
        fullest = sorted(
            (
                (share, by, row)
                for row, (share, by) in enumerate(nodes.shares())
                if wanted in nodes.names[row].casefold()
            ),
            key=lambda each: (-each[0], each[2]),
        )
        start = (page - 1) * NODE_ROWS
        rows = fullest[start : start + NODE_ROWS]
        more = len(fullest) > start + NODE_ROWS
        return self._page(request, "nodes.html", "nodes", nodes=nodes, rows=rows, page=page, more=more, query=query)

    async def _node(self, request: Request) -> Response:
        return self._page(request, "node.html", "nodes", node=await self._sources.read_node(request))

    async def _devices(self, request: Request) -> Response:
        return self._page(request, "devices.html", "devices", found=await self._sources.read_classes())

    def _find(self, request: Request) -> Response:
        """A pod by its name: from the field in the head of every page."""
        text = request.query_params.get("name", "").strip()
        return self._about(request, PodKey(text if "/" in text else f"default/{text}"))

    def _pod(self, request: Request) -> Response:
        return self._about(request, key_of(request))

    def _about(self, request: Request, key: PodKey) -> Response:
        return self._page(request, "pod.html", "", answer=self._sources.read_pod(key), pod=key)

    async def _explanation(self, request: Request) -> Response:
        key, query, page = key_of(request), request.query_params.get("q", ""), forms.page(request)
        every = "all" in request.query_params

        def work() -> tuple[evaluating.Explained, Matrix]:
            found = evaluating.explain_pod(self._sources.system, key)
            return found, matrix(found.explanation, here=found.here, page=page, query=query, every_filter=every)

        found, table = await self._sources.desk.run(work)
        return self._page(
            request,
            "explanation.html",
            "",
            pod=key,
            told=found.explanation,
            standing=found.standing,
            table=table,
            config=found.config,
            note=found.note,
            every=every,
        )

    def _rehearsal(self, request: Request) -> Response:
        if self._rehearsed is None:
            raise HTTPException(404)
        found = rehearsal_json.read(self._rehearsed)
        ordered = sorted(found.differences, key=lambda each: each.kind == Kind.TOLD)
        shown, more = ordered[:DIFFERENCES], max(0, len(ordered) - DIFFERENCES)
        return self._page(
            request, "rehearsal.html", "rehearsal", found=found, kinds=WORDS.items(), shown=shown, more=more
        )

    async def _what_if(self, request: Request) -> Response:
        if request.method != "POST":
            return self._page(request, "what_if.html", "what-if", **_EMPTY)
        form = await forms.form(request)
        # Browsers send each line of a text field with CR and LF, which the text's author neither wrote nor counted.
        text, pending = form.get("manifest").replace("\r\n", "\n"), bool(form.get("pending"))
        wanted = PodKey(form.get("pod")) or None
        values: Mapping[str, Any] = {**_EMPTY, "text": text, "pending": pending}

        def work() -> tuple[Tried, Matrix | None]:
            tried = evaluating.try_out(
                self._sources.system, text.encode("utf-8", "replace"), wanted, with_pending=pending
            )
            explained = tried.proposed.explained
            return tried, None if explained is None else matrix(explained, here=tried.here or None)

        try:
            tried, table = await self._sources.desk.run(work)
        except DschedError as error:
            problems = error.problems if isinstance(error, ManifestError) else (str(error),)
            values = {**values, "problems": problems}
            return self._page(request, "what_if.html", "what-if", status_of(error), **values)
        values = {**values, "tried": tried, "told": tried.proposed.explained, "table": table}
        return self._page(request, "what_if.html", "what-if", **values)


_EMPTY: Mapping[str, Any] = {
    "text": "",
    "pending": False,
    "problems": (),
    "tried": None,
    "told": None,
    "table": None,
    "largest": LARGEST_MANIFEST,
}


def _busiest(counts: Mapping[str, int]) -> QueueName:
    """The place that is shown first: pods that fit nowhere are what most people come for."""
    if counts[QueueName.UNSCHEDULABLE.value]:
        return QueueName.UNSCHEDULABLE
    return next((place for place in ALL if counts[place.value]), QueueName.ACTIVE)


def _with_query(request: Request) -> Any:
    """Makes the page's own address with other query values; empty ones are left out."""

    def changed(**values: Any) -> str:
        kept = {**request.query_params, **{name: str(value) for name, value in values.items()}}
        return "?" + urlencode({name: value for name, value in kept.items() if value})

    return changed
