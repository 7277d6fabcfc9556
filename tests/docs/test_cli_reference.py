"""docs/cli.md lists every command and option there is."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_what_the_commands_have() -> None:
    spec = importlib.util.spec_from_file_location("cli_pages", DOCS / "cli_pages.py")
    assert spec is not None
    assert spec.loader is not None
    cli_pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cli_pages)
    text = (DOCS / "cli.md").read_text()
    assert cli_pages.page() == text, "run: python docs/cli_pages.py"
    assert "`--all-unschedulable`" in text, "options of commands inside a group are missing"
