"""A whole trace through the command line: imported, applied, settled, and judged by an independent checker."""

import json
from pathlib import Path

import pytest

from tests.acceptance import trace
from tests.acceptance.history import History
from tests.acceptance.settled import all_well
from tests.acceptance.system import System


@pytest.fixture(params=["openb", "generated"])
def chosen(request: pytest.FixtureRequest, tmp_path: Path) -> trace.Trace:
    """The openb trace, which is not part of the repository; and one whose pods want certain GPU models."""
    if request.param == "generated":
        return trace.generate(tmp_path / "trace", seed=1, nodes=200, pods=1500)
    shared: Path = request.getfixturevalue("shared")
    found = trace.openb(shared)
    if found is None:
        pytest.skip(f"{shared / trace.OPENB} is not there")
    return found


def test_every_pod_is_bound_or_says_why_not(system: System, chosen: trace.Trace):
    told = system.run("import", "openb", str(chosen.nodes), str(chosen.pods), "-o", "manifests")
    assert told.returncode == 0, told.stderr
    applied = json.loads((system.folder / "manifests" / "pods.json").read_text())["items"]
    system.up("--evaluators", "2", "--binders", "2")
    system.ask("apply", "-f", "manifests")
    system.settle()
    history = History(system.data_dir)
    all_well(system, history, applied)
    assert len(history.binds()) > len(applied) / 2
    assert system.status()["state"]["queues"]["unschedulable"] > 0
    history.close()
