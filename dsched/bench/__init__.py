"""Upstream's scheduler_perf workloads, run unmodified against a whole system of real processes.

`workloads` reads the files, `templates` fills in their templates, `making` makes objects of them, `running` carries out
the operations of one workload, `following` counts what is bound, `metering` and `usage` turn it into figures,
`session` starts a system for each workload, `report` and `plot` show the results.
"""
