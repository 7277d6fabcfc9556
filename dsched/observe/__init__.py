"""What a process tells about itself over HTTP: ``/metrics`` for Prometheus; ``/livez``, ``/readyz``, ``/healthz`` for
whoever keeps it running; ``/configz``, ``/flagz``, ``/statusz`` for whoever wants to know what it was started with.

Off unless a port is given. Reads Redis through `dsched.state`; may be imported by leader, workers and the terminal.
"""
