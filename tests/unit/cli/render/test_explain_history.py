"""Kept attempts for people."""

from dsched.cli.render.explain_history import History, lines
from dsched.state.attempt_history import Attempt, Group, Scored

FAILED = Attempt(
    attempt=2,
    at_ms=60_000,
    epoch=3,
    uid="u2",
    profile="default-scheduler",
    result="unschedulable",
    nodes=7,
    took_ms=4.25,
    message="0/7 nodes are available:\n5 no.",
    groups=(
        Group("Taints", "Unschedulable", ("no", "never"), 5, ("n1", "n2")),
        Group("", "Error", (), 2, ("n3", "n4")),
    ),
    more_groups=1,
    nominated="n9",
    victims=("shop/low",),
)
PLACED = Attempt(
    1, 0, 2, "u1", "default-scheduler", "scheduled", 7, node="n2", feasible=3, best=(Scored("n2", 9, {"Fit": 9}),)
)


def shown(*attempts):
    return [" ".join(line.split()) for line in lines(History(1, "shop/web", attempts), 72_000)]


def test_a_failed_attempt():
    assert shown(FAILED) == [
        "Pod: shop/web; attempts kept: 1, newest first",
        "",
        "Attempt 2, 12s ago: unschedulable, took 4.2 ms (epoch 3)",
        "0/7 nodes are available: 5 no.",
        "preemption of shop/low makes room on n9",
        "NODES PLUGIN WHY EXAMPLES",
        "5 Taints no, never n1,n2,…",
        "2 - Error n3,n4",
        "(1 more reasons, of fewer nodes each)",
    ]


def test_one_that_found_a_node_and_was_another_pods():
    assert shown(FAILED, PLACED)[-4:] == [
        "Attempt 1, 1m12s ago: scheduled (epoch 2, an earlier pod of this name)",
        "node n2, fits on 3 of 7 nodes",
        "NODE TOTAL SCORES",
        "n2 9 Fit 9",
    ]


def test_nothing_kept_says_what_would_be():
    assert "--explain all" in " ".join(shown())
