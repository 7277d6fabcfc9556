"""A Kubernetes API server as the source of truth: list and watch, bind, status, events, evictions.

::

    cluster      the Cluster that leader and binders use
    access       where the API server is, credentials, TLS (by the official client, imported on first use)
    wire, calls  HTTP/1.1 over kept-alive connections: one request, or many at once
    resources    which kinds are watched, and how their objects are decoded
    reflector    one kind: list, watch, list again; feed: what all kinds have brought, for the leader's loop
    bindings     POST pods/NAME/binding and what its answers mean
    writer       conditions, nominated nodes and evictions, in the background
    recorder     events, in the background
    volumes      claims and volumes, written by PreBind

Needs the extra ``kubernetes``. Nothing here decides anything.
"""
