"""Tasks on the workers of a dask cluster: of a scheduler that runs somewhere, or of one that is started here."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar, cast

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.version import __version__

T = TypeVar("T")
_ATTEMPTS = 4  # at a task, the first one included: what dask.config calls allowed-failures is 3
_CONNECT_S = 30


class DaskCluster:
    """The workers of a dask cluster, each with as many tasks at a time as it has threads. Threads share it.

    A task is picklable, and gives the same whenever it is done: where a worker is lost, another does its task anew.
    """

    is_apart = True

    def __init__(self, scheduler: str | None, num_workers: int) -> None:
        """Connect to a scheduler, or start one here with so many workers.

        Raises UsageError where dask is not installed or workers have other versions, StorageError where nobody answers.
        """
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise UsageError("--engine dask: dask is not installed", fix="pip install 'graphprep[dask]'") from error
        self._started = contextlib.ExitStack()
        try:
            place: Any = scheduler
            if scheduler is None:
                local = LocalCluster(
                    n_workers=num_workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                )
                place = self._started.enter_context(local)
            try:
                self._client: Any = self._started.enter_context(Client(place, timeout=_CONNECT_S, set_as_default=False))
                self._client.wait_for_workers(1, timeout=_CONNECT_S)
            except (OSError, ValueError, TimeoutError) as error:
                raise StorageError(
                    "no scheduler with workers answers", place=str(scheduler), fix="check the address, and that both run"
                ) from error
            self._check_versions()
            self.num_workers: int = sum(self._client.nthreads().values())
        except BaseException:
            self.close()
            raise

    def run(self, task: Callable[[], T]) -> T:
        """Return what a task gives, and raise what it raises; waits for a worker.

        Raises StorageError where worker after worker is lost at it, or the scheduler is.
        """
        from distributed import KilledWorker

        try:
            return cast(T, self._client.submit(task, pure=False).result())
        except KilledWorker as error:
            raise StorageError(
                f"{_ATTEMPTS} workers of dask were lost at one task", fix="look into their logs: memory may have run out"
            ) from error
        except CancelledError as error:
            raise StorageError("the scheduler of dask is gone", fix="start it, then run again") from error

    def check_folder(self, look: Callable[[], bool], folder: str) -> None:
        """Raise UsageError where a worker does not see what lies in a folder here; ``look``, picklable, says so."""
        for worker, sees in self._client.run(look).items():
            if not sees:
                raise UsageError(
                    f"worker {worker} does not see this folder",
                    place=folder,
                    fix="name a folder that all see with --tmp-dir, or write OUT to one or to a URL",
                )

    def close(self) -> None:
        """Leave the cluster, and end one that was started here."""
        with contextlib.suppress(Exception):
            self._started.close()

    def _check_versions(self) -> None:
        own = versions()
        try:
            found = self._client.run(versions)
        except ImportError as error:
            raise UsageError(
                "graphprep is not installed on workers of dask", fix=f"install graphprep {__version__} there"
            ) from error
        for worker, theirs in found.items():
            for name, version in own.items():
                if theirs.get(name) != version:
                    raise UsageError(
                        f"worker {worker} of dask has {name} {theirs.get(name)}, and {version} is here",
                        fix=f"run {name} {version} there",
                    )


def versions() -> dict[str, str]:
    """Return the versions of what makes tasks and their results."""
    import numpy as np

    return {"graphprep": __version__, "Python": ".".join(platform.python_version_tuple()[:2]), "NumPy": np.__version__}
