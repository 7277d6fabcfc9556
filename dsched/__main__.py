"""``python -m dsched``: the command line, whether or not its script is on the PATH."""

from dsched.cli.main import main

if __name__ == "__main__":
    main()
