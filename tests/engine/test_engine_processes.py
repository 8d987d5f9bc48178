"""Tasks in worker processes: results, failures, and workers that die."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from graphprep.engine.local import map_ordered
from graphprep.engine.processes import Processes
from graphprep.model.errors import DataError, MemoryLimitError, StorageError


@pytest.fixture
def engine():
    processes = Processes(2)
    yield processes
    processes.close()


def add(array, number):
    return os.getpid(), array + number


def fail(error):
    raise error


def say():
    print("this is no result")
    return "done"


def die(marker, times, number):
    """End the process by a signal (below 0: exit with its opposite), so many times."""
    path = Path(marker)
    before = len(path.read_text()) if path.exists() else 0
    if before < times:
        path.write_text("x" * (before + 1))
        if number < 0:
            os._exit(-number)
        os.kill(os.getpid(), number)
    return os.getpid()


def sleep(_):
    time.sleep(0.05)
    return os.getpid()


def make_closure():
    return lambda: None


def test_what_lies_in_the_folder_of_a_run_is_not_ours(engine, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("import os; os._exit(9)")
    monkeypatch.chdir(tmp_path)
    assert engine.run(say) == "done"


def test_arrays_go_there_and_back(engine):
    for array in (np.arange(3_000_000), np.zeros((0, 3), np.float32), np.arange(12).reshape(3, 4)[:, ::2]):
        pid, got = engine.run(partial(add, array, 1))
        assert pid != os.getpid()
        assert np.array_equal(got, array + 1)
        got[...] = 0  # it can be written to


def test_threads_share_the_workers_and_results_come_in_order(engine):
    pids = list(map_ordered(lambda item: engine.run(partial(sleep, item)), range(8), threads=2))
    assert len(set(pids)) == 2
    numbers = map_ordered(lambda item: engine.run(partial(add, np.array(item), 10))[1], range(20), threads=2)
    assert [int(one) for one in numbers] == list(range(10, 30))


@pytest.mark.parametrize("error", [DataError("wrong", place="a:1:2", fix="mend it"), EOFError("of a task"), MemoryError()])
def test_what_a_task_raises_is_raised(engine, error):
    with pytest.raises(type(error)) as caught:
        engine.run(partial(fail, error))
    assert str(caught.value) == str(error)
    assert engine.run(say) == "done"


def test_what_cannot_be_sent_is_told(engine):
    with pytest.raises(RuntimeError, match=r"cannot be sent: <function make_closure"):
        engine.run(make_closure)
    assert engine.run(say) == "done"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, -3])
def test_a_task_whose_worker_dies_is_done_by_another(engine, tmp_path, number):
    first = engine.run(say) and engine.run(partial(sleep, 0))
    pid = engine.run(partial(die, str(tmp_path / "marker"), 3, number))
    assert pid not in (first, os.getpid())
    assert (tmp_path / "marker").read_text() == "xxx"


def test_workers_that_die_and_die_end_the_run(engine, tmp_path):
    with pytest.raises(MemoryLimitError) as killed:
        engine.run(partial(die, str(tmp_path / "a"), 9, signal.SIGKILL))
    assert killed.value.message == "4 worker processes were killed at one task"
    with pytest.raises(StorageError) as ended:
        engine.run(partial(die, str(tmp_path / "b"), 9, -3))
    assert ended.value.message == "4 worker processes ended at one task, the last one with exit code 3"
    assert engine.run(say) == "done"


def test_closing_leaves_no_process():
    engine = Processes(2)
    pids = set(map_ordered(lambda item: engine.run(partial(sleep, item)), range(4), threads=2))
    engine.close()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
