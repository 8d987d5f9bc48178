"""What clusters of dask and of Ray have in common: workers elsewhere, with the same versions, that see the same files."""

from __future__ import annotations

import contextlib
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeVar

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.version import __version__

T = TypeVar("T")
ATTEMPTS = 4  # at a task, the first one included
CONNECT_S = 30


class Cluster(ABC):
    """The workers of a cluster, which do ``num_workers`` tasks at a time. Threads share it.

    A task is picklable, and gives the same whenever it is done: where a worker is lost, another does its task anew.
    """

    is_apart = True
    name: ClassVar[str]

    def __init__(self, scheduler: str | None, num_workers: int) -> None:
        """Connect to a scheduler, or start one here with so many workers.

        Raises UsageError where a package is not installed or workers have other versions, StorageError where nobody answers.
        """
        self._started = contextlib.ExitStack()
        try:
            self.num_workers = self._connect(scheduler, num_workers)
            self._check_versions()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _connect(self, scheduler: str | None, num_workers: int) -> int:
        """Connect, leave what is to be closed in ``_started``, and return how many tasks are done at a time."""

    @abstractmethod
    def run(self, task: Callable[[], T]) -> T:
        """Return what a task gives, and raise what it raises; waits for a worker.

        Raises StorageError where worker after worker is lost at it, or the scheduler is.
        """

    @abstractmethod
    def _run_on_each(self, task: Callable[[], T]) -> dict[str, T]:
        """Return what a task gives on each worker, or on each machine with workers, by address."""

    def check_folder(self, look: Callable[[], bool], folder: str) -> None:
        """Raise UsageError where a worker does not see what lies in a folder here; ``look``, picklable, says so."""
        for worker, sees in self._run_on_each(look).items():
            if not sees:
                raise UsageError(
                    f"worker {worker} does not see this folder",
                    place=folder,
                    fix="name a folder that all see with --tmp-dir, or write OUT to one or to a URL",
                )

    def cancel(self) -> None:  # noqa: B027 - not every cluster can
        """Give up the tasks that have begun, if their workers can be stopped at once: none writes any more."""

    def close(self) -> None:
        """Leave the cluster, and end one that was started here."""
        with contextlib.suppress(Exception):
            self._started.close()

    def _check_versions(self) -> None:
        own = versions()
        try:
            found = self._run_on_each(versions)
        except ImportError as error:
            raise UsageError(
                f"graphprep is not installed on workers of {self.name}", fix=f"install graphprep {__version__} there"
            ) from error
        for worker, theirs in found.items():
            for name, version in own.items():
                if theirs.get(name) != version:
                    raise UsageError(
                        f"worker {worker} of {self.name} has {name} {theirs.get(name)}, and {version} is here",
                        fix=f"run {name} {version} there",
                    )

    def _lost(self) -> StorageError:
        return StorageError(
            f"{ATTEMPTS} workers of {self.name} were lost at one task", fix="look into their logs: memory may have run out"
        )


def versions() -> dict[str, str]:
    """Return the versions of what makes tasks and their results."""
    import numpy as np

    return {"graphprep": __version__, "Python": ".".join(platform.python_version_tuple()[:2]), "NumPy": np.__version__}
