"""Templates to HTML. Every value is escaped; no template marks anything as safe."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import jinja2
from starlette.responses import HTMLResponse

from dsched.clock import Clock
from dsched.observe import words

_PARTS = re.compile(r"[A-Z]?[^A-Z]+|[A-Z]+")
"""Of a name in CamelCase: a browser may break the line between them."""


class Rendering:
    """The templates of this room.

    Args:
        shared: what every template may use.
    """

    def __init__(self, clock: Clock, **shared: Any) -> None:
        self._clock = clock
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("dsched.ui"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(shared)
        self._templates.filters.update(
            ago=self._ago,
            left=self._left,
            clock=_clock,
            amount=lambda counted, resource: words.amount(resource, counted),
            share=lambda share: f"{share:.0%}",
            segment=lambda text: quote(str(text), safe=""),
            thousands=lambda number: f"{number:,}",
            paused=lambda paused: words.paused_lines(paused, clock.now_ms()),
            camel=lambda name: _PARTS.findall(name) or [name],
            queue_has=lambda each: words.queue_has(each.resource, each.used, each.guaranteed, each.limit),
            standing=lambda found: words.standing(found, clock.now_ms()),
        )

    def page(self, template: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        """An answer."""
        return HTMLResponse(self._templates.get_template(template).render(values), status)

    def _ago(self, then_ms: int | None) -> str:
        return "–" if then_ms is None else words.duration((self._clock.now_ms() - then_ms) / 1000)

    def _left(self, then_ms: int | None) -> str:
        if then_ms is None:
            return "–"
        left_ms = then_ms - self._clock.now_ms()
        return "now" if left_ms <= 0 else words.duration((left_ms + 999) / 1000)


def _clock(at_ms: int) -> str:
    """A moment, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
