"""Tasks on the workers of a dask cluster: of a scheduler that runs somewhere, or of one that is started here."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar, cast

from graphprep.engine.cluster import CONNECT_S, Cluster
from graphprep.model.errors import StorageError, UsageError

T = TypeVar("T")


class DaskCluster(Cluster):
    """Workers with as many tasks at a time as they have threads; dask's allowed-failures, 3, bounds attempts at a task."""

    name = "dask"

    def _connect(self, scheduler: str | None, num_workers: int) -> int:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise UsageError("--engine dask: dask is not installed", fix="pip install 'graphprep[dask]'") from error
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
            self._client: Any = self._started.enter_context(Client(place, timeout=CONNECT_S, set_as_default=False))
            self._client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, ValueError, TimeoutError) as error:
            raise StorageError(
                "no scheduler with workers answers", place=str(scheduler), fix="check the address, and that both run"
            ) from error
        return sum(self._client.nthreads().values())

    def run(self, task: Callable[[], T]) -> T:
        """See ``Cluster``."""
        from distributed import KilledWorker

        try:
            return cast(T, self._client.submit(task, pure=False).result())
        except KilledWorker as error:
            raise self._lost() from error
        except CancelledError as error:
            raise StorageError("the scheduler of dask is gone", fix="start it, then run again") from error

    def _run_on_each(self, task: Callable[[], T]) -> dict[str, T]:
        return cast("dict[str, T]", self._client.run(task))
