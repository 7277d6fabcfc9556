"""The pages that are written from the code say what the code says."""

import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("script", "page", "line"),
    [
        (
            "config_pages",
            "config-reference.md",
            "| `hardPodAffinityWeight` | int32 | `1` | not in valid range [0, 100] |",
        ),
        ("config_pages", "config-reference.md", "| `score` | TaintToleration 3, NodeAffinity 2,"),
        ("config_pages", "config-reference.md", "| `httpTimeout` | duration | `5s` |"),
        (
            "chart_pages",
            "helm-values.md",
            "| `redis.mode` | `embedded` | `embedded`: one Redis in the cluster, for a try.",
        ),
        ("version_pages", "versions.md", "| `ImageVolume` | beta off | beta on | stable on locked |"),
        ("version_pages", "versions.md", "| 1.36 | with `NodeDeclaredFeatures` |"),
        (
            "explain_pages",
            "explain-json.md",
            "| `pre_filter` | [Status](#status) or null | The status of the PreFilter",
        ),
        ("plugin_pages", "plugin-api.md", "filter(state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None\n"),
        ("plugin_pages", "plugin-api.md", "| `NODE` | `0` | The node object alone. |\n"),
        ("plugin_pages", "plugin-api.md", "waiting_pods() -> Iterator[WaitingPod]\n"),
    ],
)
def test_the_page_is_what_the_script_writes(script: str, page: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    text = (DOCS / page).read_text()
    assert importlib.import_module(script).page() == text, f"run: python docs/{script}.py"
    assert line in text


def test_the_schemas_are_what_the_script_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    written = importlib.import_module("explain_pages").schemas()
    there = {path.name: path.read_text() for path in (DOCS / "schemas").glob("*.json")}
    assert there == written, "run: python docs/explain_pages.py"
