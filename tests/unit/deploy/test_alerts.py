"""Each alert fires when things are as it says, and stays silent when they are well: asked of Prometheus itself."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = DEPLOY / "monitoring" / "rules.yml"
SCALED = DEPLOY / "kubernetes" / "components" / "autoscaling-by-tasks" / "scaled-objects.yaml"


class Case(NamedTuple):
    """Series a minute apart, in promtool's notation, for three hours: when the alert fires, and when it does not."""

    fires: dict[str, str]
    silent: dict[str, str]


def _queue(what: str, leader: int, resource: str = "cpu") -> str:
    return f'dsched_queue_resource{{queue="a",resource="{resource}",what="{what}",instance="leader-{leader}"}}'


SLI = "scheduler_pod_scheduling_sli_duration_seconds_bucket"
CASES: dict[str, Case] = {
    "DschedProcessDown": Case({'up{job="dsched"}': "0x180"}, {'up{job="dsched"}': "1x180"}),
    "DschedNobodyLeads": Case({"leader_election_master_status": "0x180"}, {"leader_election_master_status": "1x180"}),
    "DschedLoopStuck": Case(
        {"dsched_loop_last_turn_age_seconds": "0+60x180"}, {"dsched_loop_last_turn_age_seconds": "0.2x180"}
    ),
    "DschedPodsNotDecided": Case(
        {'scheduler_pending_pods{queue="active"}': "7x180", "scheduler_schedule_attempts_total": "9x180"},
        {'scheduler_pending_pods{queue="active"}': "7x180", "scheduler_schedule_attempts_total": "0+9x180"},
    ),
    "DschedConfigurationRefused": Case({"dsched_config_refused": "1x180"}, {"dsched_config_refused": "0x180"}),
    "DschedPausedLong": Case({'dsched_paused{profile="*"}': "1x180"}, {'dsched_paused{profile="*"}': "0 1x30 0x149"}),
    "DschedAnotherScheduler": Case(
        {"dsched_foreign_binds_total": "0+3x180"}, {"dsched_foreign_binds_total": "0x100 1x80"}
    ),
    "DschedSchedulingSlow": Case(
        {SLI + '{le="20"}': "0x180", SLI + '{le="+Inf"}': "0+60x180", SLI + '{le="80"}': "0+60x180"},
        {SLI + '{le="20"}': "0+60x180", SLI + '{le="+Inf"}': "0+60x180", SLI + '{le="80"}': "0+60x180"},
    ),
    "DschedAttemptsFail": Case(
        {'scheduler_schedule_attempts_total{result="error",profile="p"}': "0+60x180"},
        {'scheduler_schedule_attempts_total{result="unschedulable",profile="p"}': "0+60x180"},
    ),
    "DschedNoWorkers": Case(
        {'dsched_workers{kind="binder",state="live"}': "0x180"},
        {'dsched_workers{kind="binder",state="live"}': "1x180"},
    ),
    "DschedWorkerSilent": Case(
        {'dsched_workers{kind="binder",state="silent"}': "1x180"},
        {'dsched_workers{kind="binder",state="silent"}': "0x180"},
    ),
    "DschedBindsHandedOutAgain": Case(
        {"dsched_binds_handed_out_again_total": "0+5x180"}, {"dsched_binds_handed_out_again_total": "5x180"}
    ),
    "DschedTasksPileUp": Case(
        {'dsched_tasks_waiting{queue="binders"}': "300x180"}, {'dsched_tasks_waiting{queue="binders"}': "300 0x179"}
    ),
    "DschedShardsFallBack": Case(
        {"dsched_shard_fallbacks_total": "0+5x180"}, {"dsched_shard_fallbacks_total": "5x180"}
    ),
    "DschedLeadersChange": Case(
        {"dsched_fencing_rejections_total": "0+1x180"}, {"dsched_fencing_rejections_total": "0x100 1x80"}
    ),
    "DschedHintMissing": Case(
        {'dsched_missed_pods_total{plugin="P",event="NodeAdd"}': "0x150 1x30"},
        {'dsched_missed_pods_total{plugin="P",event="NodeAdd"}': "1x180"},
    ),
    "DschedBeliefWrong": Case(
        {'dsched_cache_mismatch_total{what="pod_missing"}': "0x150 1x30"},
        {'dsched_cache_mismatch_total{what="pod_missing"}': "1x180"},
    ),
    "DschedNodesRefuseBinds": Case({"dsched_nodes_aside": "1x180"}, {"dsched_nodes_aside": "0x180"}),
    "DschedMetricsIncomplete": Case(
        {"dsched_scrape_failures_total": "0+1x180"}, {"dsched_scrape_failures_total": "1x180"}
    ),
    "DschedQueueBelowGuarantee": Case(
        # The leader changes 10 minutes before the end, and the other one has no series before.
        {
            _queue("used", 1): "3x170 stale",
            _queue("guaranteed", 1): "4x170 stale",
            _queue("pending", 1): "1x170 stale",
            _queue("used", 2): "_x171 3x9",
            _queue("guaranteed", 2): "_x171 4x9",
            _queue("pending", 2): "_x171 1x9",
        },
        # It had what is guaranteed to it 10 minutes ago.
        {_queue("used", 1): "3x169 4 3x10", _queue("guaranteed", 1): "4x180", _queue("pending", 1): "1x180"},
    ),
}


def test_every_alert_has_a_case():
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert {rule["alert"] for rule in rules if "alert" in rule} == set(CASES)


@pytest.mark.parametrize("alert", CASES)
def test_it_fires_when_it_should_and_only_then(alert: str, tmp_path: Path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH (Debian package prometheus)")
    case = CASES[alert]
    tests = [_test(alert, case.fires, 1), _test(alert, case.silent, 0)]
    asked = tmp_path / "tests.yml"
    asked.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", str(asked)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


WORKED = 'dsched_task_duration_seconds_sum{namespace="dsched-system",task="%s",instance="%d"}'
WAITING = 'dsched_tasks_waiting{namespace="dsched-system",queue="%s"}'


@pytest.mark.parametrize(
    ("name", "task", "queue"),
    [("dsched-evaluator", "dsched.evaluate", "evaluators"), ("dsched-binder", "dsched.bind", "binders")],
)
def test_what_workers_are_scaled_by_is_what_they_have_to_do(name: str, task: str, queue: str, tmp_path: Path):
    """Two that work all the time, one half the time, and three messages that nobody has taken."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH (Debian package prometheus)")
    (scaled,) = [each for each in yaml.safe_load_all(SCALED.read_text()) if each["metadata"]["name"] == name]
    (query,) = [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]]
    busy = {WORKED % (task, 1): "0+60x10", WORKED % (task, 2): "0+60x10", WORKED % (task, 3): "0+30x10"}
    waiting, others = {WAITING % queue: "3x10"}, {WORKED % ("dsched.ping", 1): "0+60x10"}
    cases: list[tuple[dict[str, str], float]] = [
        (busy | waiting | others, 5.5),
        (busy, 2.5),
        (waiting, 3),
        (others, 0),
    ]
    asked = [
        {
            "interval": "1m",
            "input_series": [{"series": each, "values": values} for each, values in series.items()],
            "promql_expr_test": [
                {"expr": query, "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": value}]}
            ],
        }
        for series, value in cases
    ]
    path = tmp_path / "tests.yml"
    path.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": asked}))
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "series",
    [
        {"used": "4x180", "guaranteed": "4x180", "pending": "1x180"},
        {"used": "3x180", "guaranteed": "4x180", "pending": "0x180"},
        # Pods follow each other: each that ends leaves it below for a moment.
        {"used": "3 4 3 4x177", "guaranteed": "4x180", "pending": "1x180"},
        {"used": "3x180", "pending": "1x180"},
    ],
    ids=["reached", "nobody-waits", "pods-follow-each-other", "nothing-guaranteed"],
)
def test_a_queue_that_has_what_it_asks_for_raises_no_alarm(series: dict[str, str], tmp_path: Path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH (Debian package prometheus)")
    # What waits of another resource is no reason.
    other = {_queue("pending", 1, "memory"): "9x180", _queue("used", 1, "memory"): "1x180"}
    asked = tmp_path / "tests.yml"
    silent = [_test("DschedQueueBelowGuarantee", other | {_queue(what, 1): each for what, each in series.items()}, 0)]
    asked.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": silent}))
    done = subprocess.run([promtool, "test", "rules", str(asked)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _test(alert: str, series: dict[str, str], alerts: int) -> dict[str, object]:
    samples = [{"labels": "{}", "value": alerts}] if alerts else []
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": "3h",
                "exp_samples": samples,
            }
        ],
    }
