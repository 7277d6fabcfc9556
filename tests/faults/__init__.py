"""Faults: a whole system is harmed while its cluster changes, and everything has to hold that held before.

``python -m tests.faults --scenario 1,2 --seeds 20`` runs scenarios by their numbers (see ``--help``); pytest runs one
seed of each. A run is: churn starts, the scenario's `inject` does harm, everything is mended, the system settles, the
judges look. A failing run prints its seed; ``--scenario N --seed S`` (or ``DSCHED_FAULTS_SEED=S`` for pytest) does the
same again, as far as processes can be repeated.

==============  ======================================================================================================
`arena`         a running system behind a proxy; `standalone` and `kubernetes` are its two kinds
`proxy`         in front of Redis: latency, black holes, resets; taps that act at a chosen command of `points`
`history`       what the cluster accepted, in order, recorded outside the scheduler
`churn`         nodes and pods that come, change, go and come again
`judge`         judges the history; shares no code with dsched
`harm`          the faults themselves
`driver`        one run; `campaign` many runs, `__main__` the command, `report` the figures
`load`          busy processes beside the runs
`scenario`      what a scenario is; `scenarios` has one a module
==============  ======================================================================================================

To add a scenario, write ``scenarios/sNN_name.py`` with an `inject(run)` and a ``SCENARIO = Scenario(number, title,
sees, inject, …)``; it is found by itself, run by pytest, and its ``sees`` is its line in ``docs/reliability.md``
(``python -m tests.faults --table`` prints the table). In `inject`:

* everything random comes from ``run.rng``; every fault is counted with ``run.note("kill -9 leader")``;
* the churn goes on by itself (``run.pause(0.5, 1.5)`` lets it); ``run.churn.pods(5, priority=10)`` adds pods that fit
  anywhere and returns their keys; ``run.arena.put("Pod", …)`` creates and changes pods; nodes are changed with
  ``run.churn.put_nodes`` and ``delete_node``, so that the churn goes on from them, and pods are deleted with
  ``run.churn.delete_pods``, so that the judge knows who asked for it;
* processes: ``run.arena.leading()``, ``standing_by()``, ``running("binder")``, ``forked("binder")`` give pids;
  ``run.arena.halt(pid)`` and ``go_on(pid)`` stop and continue; `harm` has kills with notes;
* Redis: ``run.arena.proxy`` (``tap``, ``hold``, ``refuse``, ``reset``, ``latency_s``), ``run.arena.redis`` past it;
* the API server of ``kubernetes`` arenas: ``run.arena.api`` (``fault``, ``compact``, ``end_watches``, ``before``);
* ``run.measure("what")`` marks a moment: how long until a pod that is created later is bound;
* ``run.require(holds, "I5 what is wrong")`` is the scenario's own check; `Scenario.after` checks when all has settled.

When `inject` returns, proxies are healed and stopped processes go on; whatever else was done has to be undone by the
scenario itself (``try``/``finally``). Then the system has `Scenario.goal_s` to settle, and these must hold: every bind
was right when it was made and the only one of its pod (I2, I3), pods are deleted by who asked for it or as victims of
preemption, every pending pod says rightly why it fits nowhere (I4, I9), the queues agree and nothing is reserved (I1,
I6), attempts and the epoch never went back (I4, I5), each bound pod was told once, ``dsched fsck`` is clean, and
nothing is left in Redis once all objects are deleted (I11). A breach that a scenario cannot but have is named in
`Scenario.tolerates`, with the reason beside it.
"""
