"""All of a system on one machine: an embedded Redis and the processes as children of one supervisor.

`supervise` is the supervisor, `children` what it decides by, `keeper` what cleans up when it is killed; `embedded`
starts Redis, `background` a supervisor without a terminal, `commands` says how each process is started.
Nothing here schedules; workers are started by name and never imported.
"""
