"""The web page of a running system: what ``dsched ui`` serves.

Reads Redis through `dsched.state` and the cluster through `dsched.cluster`; explains and tries out with
`dsched.simulation`. The one room that speaks Starlette, uvicorn and Jinja; imported only when ``dsched ui`` runs.
Writes nothing unless it is allowed to (`dsched.ui.writing`).
"""
