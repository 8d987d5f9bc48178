"""``python -m graphprep`` is the command ``graphprep``."""

from graphprep.cli.start import main

if __name__ == "__main__":
    main()
