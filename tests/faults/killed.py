"""Conversions of one process's children, which are killed at a moment that a seed chooses, and go on: ``killed.py JOB``.

JOB is JSON: ``inputs``, ``folder`` (a path or URL), ``options``, ``seeds``, ``how`` and ``storage``. Each line of the answer tells
of one seed how its runs ended. Children are forked once everything is loaded, so that a run costs what its work does.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import graphprep
from graphprep.convert import resume
from graphprep.convert.build.write import StoreBuilder
from graphprep.edges import build
from graphprep.engine import ledger
from graphprep.model.errors import GraphprepError
from graphprep.model.run_options import RunOptions
from graphprep.storage.spill.journal import Journal

# Calls of the system at which files and folders are made, changed and go.
EVENTS = frozenset(("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "fcntl.flock"))
DONE = 0


class Moments:
    """Counts calls of the system, and does ``act`` at one of them."""

    def __init__(self, at: int, act: Callable[[], None] | None) -> None:
        self.count, self._at, self._act, self._lock = 0, at, act, threading.Lock()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: object) -> None:
        if event in EVENTS:
            self.tick()

    def tick(self) -> None:
        with self._lock:
            self.count += 1
            is_now = self.count == self._at
        if is_now:
            self._act()


def die() -> None:
    """Kill this process and all that it started."""
    os.killpg(0, signal.SIGKILL)


def kill_worker() -> None:
    """Kill one of the worker processes."""
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    for pid in children[:1]:
        os.kill(int(pid), signal.SIGKILL)


def cut(link: str, for_s: float) -> None:
    """Take a network link down, and up again after a while, also where this process has ended by then."""
    subprocess.run(["ip", "link", "set", link, "down"], check=True)
    subprocess.Popen(["sh", "-c", f"sleep {for_s}; ip link set {link} up"], start_new_session=True)


def in_child(work: Callable[[], int]) -> int:
    """Do work in a child; return its exit code, or that of its signal, below zero."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            code = work()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def follow_build(moments: Moments, log: Path) -> None:
    """Count only while the store is built, of small pieces of edges; log what is written and what is recorded of it."""
    count, add, keep, write = moments.tick, build._Layout.append, Journal.keep, StoreBuilder.write

    def say(word: str) -> None:
        with log.open("a") as file:
            file.write(f"{word}\n")

    def append(layout: object, piece: object) -> None:
        say(f"{layout.indptr._path} {layout.num_tasks}")
        add(layout, piece)

    def keeping(journal: Journal, name: str, *rest: object) -> None:
        keep(journal, name, *rest)
        say(f"kept {name}")

    def writing(*rest: object) -> None:
        say("run")
        moments.tick = count
        write(*rest)

    moments.tick = lambda: None
    build._Layout.append, Journal.keep, StoreBuilder.write = append, keeping, writing
    ledger._MOST_BUCKET, build._MOST_JOINED = 1 << 14, 500


class Job:
    """What all runs have in common."""

    def __init__(self, job: dict) -> None:
        self.job = job
        self.options = job["options"] | {"run": RunOptions("300MiB", 2, storage_options=job.get("storage", {}))}
        self.num_moments = import_module("multiprocessing").Value("q", 0)  # of the last run that came to its end

    def run(self) -> None:
        """Disturb the runs of every seed."""
        assert in_child(partial(self.convert, "whole")) == DONE
        most = self.num_moments.value
        for seed in self.job["seeds"]:
            rng, out = random.Random(seed), f"out-{seed}"
            works = [self.disturbed(rng, out, most) for _ in range(rng.choice([1, 1, 2, 3]))]
            codes = [in_child(work) for work in works]
            time.sleep(self.job.get("pause_s", 0))
            codes.append(in_child(partial(self.convert, out)))
            print(json.dumps({"seed": seed, "codes": codes}), flush=True)

    def disturbed(self, rng: random.Random, out: str, most: int) -> partial[int]:
        """Return a run that does not come to its end, or loses a worker."""
        if self.job["how"] == "limit":
            return partial(self.limited, out, int(2 ** rng.uniform(10, 20)))
        if self.job["how"] == "time":
            return partial(self.timed, out, rng.uniform(0, self.job["most_s"]))
        if self.job["how"] == "cut":
            return partial(self.convert, out, rng.randint(1, most), partial(cut, self.job["link"], rng.choice([0.5, 2.0, 5.0])))
        return partial(self.convert, out, rng.randint(1, most), kill_worker if self.job["how"] == "worker" else die)

    def convert(self, name: str, at: int = -1, act: Callable[[], None] | None = None) -> int:
        """Convert, and return the exit code of the command."""
        out = f"{self.job['folder']}/{name}"
        moments = Moments(at, act)
        if out.startswith("s3:"):
            count_requests(moments)
        if self.job["how"] == "build":
            follow_build(moments, Path(self.job["log"]) / name)
        try:
            self.make(out)
        except GraphprepError as error:
            print(json.dumps({"error": str(error)}), file=sys.stderr, flush=True)
            return error.exit_code
        self.num_moments.value = moments.count
        return DONE

    def make(self, out: str) -> None:
        """Convert, with ``workers`` by that many, one after another, and by who merges what they decoded."""
        count = self.job.get("workers", 0)
        for index in range(count):
            graphprep.convert(self.job["inputs"], out, worker_index=index, worker_count=count, **self.options)
        if count:
            graphprep.merge(out, self.options["run"], resume=True)
        else:
            graphprep.convert(self.job["inputs"], out, resume=True, **self.options)

    def limited(self, name: str, most: int) -> int:
        """Convert where no file grows beyond a size."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        return self.convert(name)

    def timed(self, name: str, after_s: float) -> int:
        """Convert for so long."""
        timer = threading.Timer(after_s, die)
        timer.daemon = True
        timer.start()
        return self.convert(name)


def count_requests(moments: Moments) -> None:
    """Count the requests to S3 as moments, too: before each, and behind it."""
    from s3fs import S3FileSystem

    real = S3FileSystem._call_s3

    async def call(self: object, *args: object, **more: object) -> object:
        moments.tick()
        result = await real(self, *args, **more)
        moments.tick()
        return result

    S3FileSystem._call_s3 = call


if __name__ == "__main__":
    resume._PORTION_BYTES = 30_000
    Job(json.loads(sys.argv[1])).run()
