"""Functions that expressions may call, a library a file."""
