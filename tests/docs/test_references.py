"""The pages that are written from the code say what the code says."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dsched.metrics.instruments import DECLARED
from scripts.docs import __main__ as command
from scripts.docs import bench_tables
from scripts.docs.declared import DOCS, ROOT


@pytest.mark.parametrize("writer", command.WRITERS, ids=lambda writer: writer.__name__.rpartition(".")[2])
def test_files_hold_what_the_code_says(writer: ModuleType) -> None:
    if writer is bench_tables and not bench_tables.FOLDER.is_dir():
        pytest.skip("../shared/scheduler_perf_v1.37 is not there")
    wanted = writer.files()
    assert wanted
    for path, text in wanted.items():
        assert path.read_text() == text, "run: python -m scripts.docs"


def test_no_schema_is_left_over() -> None:
    wanted = {path for writer in command.WRITERS for path in writer.files()}
    assert set((DOCS / "schemas").glob("*.json")) <= wanted


def test_the_command_names_what_is_outdated_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "page.md"

    class Writer:
        @staticmethod
        def files() -> dict[Path, str]:
            return {page: "as the code says"}

    monkeypatch.setattr(command, "WRITERS", (Writer,))
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert command.main(["--check"]) == 1
    assert capsys.readouterr() == ("docs/page.md is outdated\n", "run: python -m scripts.docs\n")
    assert not page.exists()
    assert command.main([]) == 0
    assert page.read_text() == "as the code says"
    assert command.main(["--check"]) == 0


def test_the_command_runs_as_it_is_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.docs", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_metric_is_in_a_table() -> None:
    text = (DOCS / "metrics.md").read_text()
    assert [name for name in DECLARED if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize(
    ("page", "line"),
    [
        (
            "config-reference.md",
            "| `hardPodAffinityWeight` | int32 | `1` | not in valid range [0, 100] |",
        ),
        ("config-reference.md", "| `score` | TaintToleration 3, NodeAffinity 2,"),
        ("config-reference.md", "| `httpTimeout` | duration | `5s` |"),
        (
            "helm-values.md",
            "| `redis.mode` | `embedded` | `embedded`: one Redis in the cluster, for a try.",
        ),
        ("versions.md", "| `ImageVolume` | beta off | beta on | stable on locked |"),
        ("versions.md", "| 1.36 | with `NodeDeclaredFeatures` |"),
        (
            "explain-json.md",
            "| `pre_filter` | [Status](#status) or null | The status of the PreFilter",
        ),
        ("plugin-api.md", "filter(state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None\n"),
        ("plugin-api.md", "| `NODE` | `0` | The node object alone. |\n"),
        ("cli.md", "`--all-unschedulable`"),
        ("plugin-api.md", "waiting_pods(group: str='') -> Iterator[WaitingPod]\n"),
    ],
)
def test_the_page_says_it(page: str, line: str) -> None:
    assert line in (DOCS / page).read_text()
