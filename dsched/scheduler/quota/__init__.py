"""Queues between teams: what each is due, what it has, and whose pod is next. See docs/queues.md.

Pure: no Redis, no clock. `tree` is the queues, and what they have and are due; `ledger` knows which pods are of which
queue, `picking` says whose turn it is, `limits` what Redis counts. Amounts are divided by
`dsched.arithmetic.fair_division`; who has to give back is for the plugin, `dsched.plugins.fair_share.reclaim`.
"""
