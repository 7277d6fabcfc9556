import os
import sys
from pathlib import Path

from dsched.emulation import asked
from dsched.supervisor import commands

SYSTEM = commands.System(Path("/data"), leaders=2, evaluators=3, binders=1)


def test_one_child_a_process():
    names = [spec.name for spec in commands.specs(SYSTEM)]
    assert names == ["leader-1", "leader-2", "evaluator-1", "evaluator-2", "evaluator-3", "binder-1"]


def test_leaders_stop_before_workers():
    order = {spec.name: spec.stop_order for spec in commands.specs(SYSTEM)}
    assert order["leader-2"] < order["evaluator-1"] == order["binder-1"] < commands.REDIS_LAST


def test_children_run_with_this_interpreter():
    assert {spec.command[0] for spec in commands.specs(SYSTEM)} == {sys.executable}


def test_leaders_are_told_mode_and_decisions():
    system = commands.System(Path("/data"), mode="local", decisions=Path("/tmp/decisions.jsonl"))
    words = commands.specs(system)[0].command
    assert words[1:] == (
        *("-m", "dsched", "leader", "--identity", "leader-1"),
        *("--mode", "local", "--decisions", "/tmp/decisions.jsonl"),
    )


def test_workers_are_named_and_not_chatty():
    words = commands.specs(SYSTEM)[2].command
    assert words[1:7] == ("-m", "workers", "evaluator", "--hostname", "evaluator-1@%h", "--pool")
    assert {"--without-gossip", "--without-mingle", "--without-heartbeat"} < set(words)


def test_children_find_the_system_in_their_environment(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    system = commands.System(Path("/data"), name="blue", config=Path("/etc/scheduler.yaml"))
    assert commands.environment(system, "redis://127.0.0.1:1/0") == {
        "DSCHED_REDIS_URL": "redis://127.0.0.1:1/0",
        "DSCHED_NAME": "blue",
        "DSCHED_CONFIG": "/etc/scheduler.yaml",
        "DSCHED_DATA_DIR": "/data",
        "TMPDIR": "/data/tmp",
        "DSCHED_CLUSTER": "standalone",
        "DSCHED_KUBECONFIG": "",
        "DSCHED_KUBE_CONTEXT": "",
        "DSCHED_EMULATED_VERSION": "",
        "DSCHED_FEATURE_GATES": "",
        "PYTHONUNBUFFERED": "1",
    }


def test_children_are_told_what_leaders_are_to_emulate(monkeypatch):
    monkeypatch.setenv("DSCHED_EMULATED_VERSION", "1.34")
    system = commands.System(Path("/data"), emulated=asked("1.36", ["StorageCapacityScoring=true,AllBeta=false"]))
    found = commands.environment(system, "redis://x")
    assert found["DSCHED_EMULATED_VERSION"] == "1.36"
    assert found["DSCHED_FEATURE_GATES"] == "AllBeta=false,StorageCapacityScoring=true"


def test_a_configuration_from_the_users_environment_is_not_handed_on(monkeypatch):
    monkeypatch.setenv("DSCHED_CONFIG", "other.yaml")
    assert commands.environment(SYSTEM, "redis://x")["DSCHED_CONFIG"] == ""


def test_module_folders_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["plugins", "/opt/lib"]))
    expected = os.pathsep.join([str(tmp_path / "plugins"), "/opt/lib"])
    assert commands.environment(SYSTEM, "redis://x")["PYTHONPATH"] == expected
