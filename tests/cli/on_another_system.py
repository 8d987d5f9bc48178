"""Run command lines as on another system: without what Python has on Linux alone, graphprep is imported anew, each module.

``python tests/cli/on_another_system.py darwin|win32 [COMMAND]...``: commands are JSON arrays of words. Only what Python itself
lacks there is hidden; the file system, the processes and all other packages stay those of this machine.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import pkgutil
import select
import signal
import sys
from pathlib import Path

LINUX_ALONE = {
    os: "memfd_create posix_fadvise posix_fallocate process_cpu_count sched_getaffinity splice POSIX_FADV_WILLNEED",
    mmap: "MADV_HUGEPAGE MADV_POPULATE_READ MADV_POPULATE_WRITE MAP_POPULATE",
    select: "epoll",
}
POSIX_ALONE = {
    os: "chown fchmod fork geteuid getuid killpg mkfifo pread preadv pwrite setsid statvfs sysconf uname "
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK",
    signal: "SIGALRM SIGBUS SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 pthread_sigmask setitimer",
    mmap: "MADV_DONTNEED MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE",
    select: "poll POLLIN",
}
POSIX_MODULES = ("fcntl", "grp", "pwd", "resource", "syslog", "termios", "tty")
# Modules that need more than graphprep's own dependencies, and what.
OF_EXTRAS = {"graphprep.sample.flow.torch_dataset": "torch"}


def import_all() -> int:
    """Import every module of graphprep, less those of extras that are not installed; return how many."""
    import graphprep

    names = [one.name for one in pkgutil.walk_packages(graphprep.__path__, "graphprep.") if not one.name.endswith("__main__")]
    names = [name for name in names if name not in OF_EXTRAS or importlib.util.find_spec(OF_EXTRAS[name])]
    for name in names:
        importlib.import_module(name)
    return len(names)


def hide(platform: str) -> None:
    """Take away what a system lacks."""
    kinds = [LINUX_ALONE] if platform == "darwin" else [LINUX_ALONE, POSIX_ALONE]
    for module, names in [item for kind in kinds for item in kind.items()]:
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    if platform == "win32":
        sys.modules.update(dict.fromkeys(POSIX_MODULES))
    sys.platform = platform


def main() -> None:
    """See the module."""
    import_all()  # with all that it needs: that is as it is on this machine
    for name in [name for name in sys.modules if name.partition(".")[0] == "graphprep"]:
        del sys.modules[name]
    hide(sys.argv[1])
    print(import_all(), "modules")
    from graphprep.cli.main import run
    from graphprep.engine import budget

    budget._PROC = budget._CGROUP = Path("/nowhere")
    for words in map(json.loads, sys.argv[2:]):
        print(words[0], run(words))


if __name__ == "__main__":
    main()
