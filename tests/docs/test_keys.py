"""docs/redis.md lists every key there is."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_keys_is_what_the_code_has() -> None:
    spec = importlib.util.spec_from_file_location("keys", DOCS / "keys.py")
    assert spec is not None
    assert spec.loader is not None
    keys = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(keys)
    text = (DOCS / "redis.md").read_text()
    assert keys.page(text) == text, "run: python docs/keys.py"
