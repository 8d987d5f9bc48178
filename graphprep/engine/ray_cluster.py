"""Tasks on the workers of a Ray cluster: of one that runs somewhere, of one that is started here, or of this process's own."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from graphprep.engine.cluster import ATTEMPTS, CONNECT_S, Cluster
from graphprep.model.errors import StorageError, UsageError

T = TypeVar("T")
_STORE_BYTES = 80 << 20  # Ray wants 75 MiB at least; what tasks give goes past it, being small


class RayCluster(Cluster):
    """Workers with one task at a time for each CPU. Where this process is connected already, that connection serves."""

    name = "Ray"

    def _connect(self, scheduler: str | None, num_workers: int) -> int:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise UsageError("--engine ray: Ray is not installed", fix="pip install 'graphprep[ray]'") from error
        if scheduler is not None or not self._ray.is_initialized():
            try:
                self._join(scheduler) if scheduler is not None else self._start(num_workers)
            except (OSError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
                raise StorageError(
                    f"Ray says: {' '.join(str(error).split())}",
                    place=scheduler or "",
                    fix="check the address, and that head and workers run" if scheduler else "see to what it says",
                ) from error
        self._nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        if not self._nodes:
            raise StorageError("the Ray cluster has no CPU for tasks", place=scheduler or "", fix="start workers")
        self._at_work: set[Any] = set()
        self._do: Any = self._ray.remote(max_retries=ATTEMPTS - 1)(_do)
        return sum(int(node["Resources"]["CPU"]) for node in self._nodes)

    def _join(self, scheduler: str) -> None:
        host, _, port = scheduler.removeprefix("ray://").rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()  # Ray itself tries for minutes
        self._init(scheduler)

    def _start(self, num_workers: int) -> None:
        if " " in sys.executable:  # where Ray cuts its workers' command line; daemons end then, and this process
            raise UsageError(
                "Ray starts no workers with a Python whose path has a blank",
                place=sys.executable,
                fix="install into another folder, or join a cluster with --scheduler",
            )
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        folder = self._started.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
        self._init("local", num_cpus=num_workers, include_dashboard=False, object_store_memory=_STORE_BYTES, _temp_dir=folder)

    def _init(self, address: str, **options: Any) -> None:
        driver: Any = importlib.import_module("ray._private.worker")
        driver._worker_logs_enabled = False  # stdout is for results, and there it would tell of lost workers
        self._started.callback(self._ray.shutdown)
        with _sigterm_kept():
            self._ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)

    def run(self, task: Callable[[], T]) -> T:
        """See ``Cluster``."""
        errors = self._ray.exceptions
        at_work = self._do.remote(task)
        self._at_work.add(at_work)
        try:
            return cast(T, self._ray.get(at_work))
        except errors.RayTaskError as error:
            if not isinstance(error.cause, errors.RayError):
                raise error.cause from None
            says = str(error.cause).partition("\n")[0]  # a module that tasks need, mostly
            raise StorageError(f"a worker of Ray says: {says}", fix="install there what is installed here") from error
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            raise self._lost() from error
        except (errors.RayError, ConnectionError) as error:
            raise StorageError("the Ray cluster is gone", fix="start it, then run again") from error
        finally:
            self._at_work.discard(at_work)

    def cancel(self) -> None:
        """See ``Cluster``."""
        with contextlib.suppress(Exception):  # what asks for it has an error of its own
            for one in list(self._at_work):
                self._ray.cancel(one, force=True)

    def _run_on_each(self, task: Callable[[], T]) -> dict[str, T]:
        at = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        tasks = {
            f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}": self._do.options(
                num_cpus=0, scheduling_strategy=at(node["NodeID"], soft=False)
            ).remote(task)
            for node in self._nodes
        }
        try:
            return {address: self._ray.get(one) for address, one in tasks.items()}
        except self._ray.exceptions.RayTaskError as error:
            raise ImportError(str(error.cause)) from error


def _do(task: Callable[[], T]) -> T:
    return task()


@contextlib.contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Keep what SIGTERM does, which Ray takes over, also where it comes meanwhile."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        try:
            yield
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, before)
    except SystemExit:  # Ray's answer
        signal.raise_signal(signal.SIGTERM)
        raise
