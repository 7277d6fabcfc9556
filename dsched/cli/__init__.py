"""The command line: parses, calls, prints. One module a group of commands; `main` puts them together."""
