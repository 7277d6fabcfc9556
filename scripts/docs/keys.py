"""Writes the table of keys in redis.md from the lists in the code."""

from pathlib import Path

from dsched.cluster.standalone import keys as cluster_keys
from dsched.state import keys as state_keys
from scripts.docs.declared import DOCS

PAGE = DOCS / "redis.md"
BEGIN, END = "<!-- keys: begin -->\n", "<!-- keys: end -->\n"


def table() -> str:
    """The keys as a Markdown table."""
    rows = [f"| `{key.name}` | {key.type} | {key.members} |" for key in (*state_keys.ALL, *cluster_keys.ALL)]
    return "\n".join(["| key | type | what |", "|---|---|---|", *rows]) + "\n"


def page(text: str) -> str:
    """The page with its table brought up to date."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page(PAGE.read_text())}
