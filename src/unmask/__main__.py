"""The command line as `python -m unmask`."""

from unmask.cli.main import main

if __name__ == "__main__":
    main()
