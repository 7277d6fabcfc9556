"""The in-tree plugins, one a file (a package where it needs more), and the registry that knows them by name.

A plugin decides from the pod, the snapshot and its arguments; it imports the framework, the engine, arithmetic and the
model, never another plugin (`volumes` is what the four plugins about volumes share), and does no I/O, except that what
runs in a binder (PreBind, Bind, PostBind) talks to the cluster through its handle.
"""
