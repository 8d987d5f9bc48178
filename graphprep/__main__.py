"""``python -m graphprep`` is the command ``graphprep``."""

from graphprep.cli.main import main

if __name__ == "__main__":
    main()
