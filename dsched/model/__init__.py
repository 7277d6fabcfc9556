"""Kubernetes objects as far as scheduling reads them, and pure functions over them. No I/O, no state."""
