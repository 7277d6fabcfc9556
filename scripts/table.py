"""Tables of text, for a terminal and for a page."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """For a terminal: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """For a page; the first row is the head."""
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return [head, "|---|" + "--:|" * (len(rows[0]) - 1), *body]
