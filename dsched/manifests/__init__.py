"""Manifests: reading files, filling in what the API server fills in, refusing what it refuses; and label selectors.

Pure apart from `reader`, which reads files. Imports ``model`` and the base only; ``cluster`` and ``cli`` stand above.
"""
