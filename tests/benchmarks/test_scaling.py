"""``make bench-scaling``: that it works on one and two threads, and what it says was reached."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.mark.heavy
def test_one_and_two_threads_of_a_small_graph(tmp_path):
    path = tmp_path / "scaling.json"
    given = ["--scale", "8", "--rounds", "1", "--threads", "1", "2", "9999", "--folder", str(tmp_path), "--json", str(path)]
    command = [sys.executable, str(FOLDER / "scaling.py"), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stderr
    written = json.loads(path.read_text())
    assert set(written["cases"]) == {
        *("text to CSR", "export to GraphBolt", "reorder by degree", "COO to CSR, edge IDs", "COO to CSR, rows sorted"),
        *("CSR to CSC", "degrees", "relabel by degree", "sort keys", "distinct edges", "sparse IDs to ranks"),
    }
    for found in written["cases"].values():
        assert found["1"]["speed_up"] == 1.0
        assert found["2"]["speed_up"] == pytest.approx(found["1"]["seconds"] / found["2"]["seconds"])
    assert list(written["left_out"]) == ["9999"]
    assert (written["target"]["threads"], written["target"]["wanted"], written["target"]["verdict"]) == (
        16,
        10.0,
        "not measured",
    )


def test_what_was_to_be_reached_and_what_differs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    from scaling import measure_case, run_command, verdict

    times = iter([9.0, 9.0, 8.0, 2.0, 8.0, 1.0, 6.0, 2.0])
    found = measure_case("text to CSR", lambda threads: next(times), [1, 16], 3)
    assert found == {1: {"seconds": 8.0, "speed_up": 1.0}, 16: {"seconds": 2.0, "speed_up": 4.0}}
    assert verdict({"text to CSR": found})["verdict"] == "missed"
    found[16]["speed_up"] = 10.0
    assert verdict({"text to CSR": found})["verdict"] == "reached"
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    run_command(("convert", tmp_path / "edges.txt"), tmp_path / "store", 1)
    (tmp_path / "edges.txt").write_text("0 1\n2 1\n")
    with pytest.raises(AssertionError, match=r"differ$"):
        run_command(("convert", tmp_path / "edges.txt"), tmp_path / "store", 2)
