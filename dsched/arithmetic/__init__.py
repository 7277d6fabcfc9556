"""The sums behind decisions: what pods request, whether it fits, how nodes score.

Pure functions over records, integers and NumPy arrays; no plugin, no table, no I/O.
"""
