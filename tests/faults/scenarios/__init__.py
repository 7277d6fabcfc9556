"""One scenario a module, each with its ``SCENARIO``."""
