"""Where the command ``graphprep`` begins: an interrupt that comes while modules are loaded ends it without a traceback, too."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of the process and exit."""
    try:
        from graphprep.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    run()
