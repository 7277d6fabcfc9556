"""Writes the table of keys in redis.md from the lists in the code: ``python docs/keys.py``."""

from pathlib import Path

from dsched.cluster.standalone import keys as cluster_keys
from dsched.state import keys as state_keys

PAGE = Path(__file__).parent / "redis.md"
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


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
