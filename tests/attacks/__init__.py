"""Attacks: what somebody sends, writes or configures on purpose, and what has to hold all the same.

``python -m tests.attacks`` runs all of them with one seed each, ``python -m tests.attacks extenders --seeds 20`` those
whose names begin so (see ``--help``); pytest runs one seed of each. A failing run prints its seed; ``--seed S`` (or
``DSCHED_ATTACKS_SEED=S`` for pytest) does the same again.

To add an attack, write a function in the module of its kind (or a new module of this package, found by itself)::

    @attack("an answer of an extender that never ends", sees="the pod says so and is tried again; nothing grows")
    def extender_without_an_end(stand: Stand) -> None: ...

``tries`` and ``sees`` are its line of the table in ``docs/reliability.md`` (``python -m tests.attacks --table`` prints
it). Everything that is chosen at random comes from ``stand.rng``; what is drawn from a generator is drawn
``stand.rounds`` times, so that CI takes seconds and a long run finds more. What the stand has started it also ends.
"""
