"""A recording held against kube-scheduler's own framework: would it have decided the same?

The framework runs in a program of its own, see ``scripts/judge``.
"""
