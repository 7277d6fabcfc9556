"""Reserved pods on their way to being bound: handed to the binders, taken back with what came of it."""
