"""Run by an environment that has DGL: runs the partition tools of DGL's repository on chunked graphs.

``dgl_tools_client.py TOOLS JOBS.json``: TOOLS is the folder ``tools`` of a checkout, a job says ``chunked``, ``out``, ``parts``,
``ranks``, ``seed``, ``port`` and whether ``OUT.assigned`` is there. Else nodes are assigned in that folder; then they are
dispatched to ``OUT``, without ssh.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np

_TIMEOUT_S = 120


def scatter_out(tools: Path, job: dict) -> None:
    """Assign nodes to partitions at random. The tool knows no seed."""
    np.random.seed(job["seed"])
    sys.argv = ["random_partition.py", "--in_dir", job["chunked"], "--out_dir", f"{job['out']}.assigned"]
    sys.argv += ["--num_partitions", str(job["parts"])]
    runpy.run_path(str(tools / "partition_algo/random_partition.py"), run_name="__main__")


def dispatch(tools: Path, job: dict) -> None:
    """Run all ranks of a job here, which DGL's ``dispatch_data.py`` starts over ssh."""
    command = [sys.executable, str(tools / "distpartitioning/data_proc_pipeline.py"), "--save-orig-nids", "--save-orig-eids"]
    options = {
        "input-dir": job["chunked"],
        "schema": "metadata.json",
        "graph-name": "graph",
        "partitions-dir": f"{job['out']}.assigned",
        "num-parts": job["parts"],
        "world-size": job["ranks"],
        "output": job["out"],
        "process-group-timeout": _TIMEOUT_S,
    }
    command += [f"--{name}={value}" for name, value in options.items()]
    group = {"WORLD_SIZE": str(job["ranks"]), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job["port"])}
    Path(job["out"]).mkdir()
    ranks = [subprocess.Popen(command, env={**os.environ, **group, "RANK": str(rank)}) for rank in range(job["ranks"])]
    try:
        assert not any(rank.wait(_TIMEOUT_S) for rank in ranks), job
    finally:
        for rank in ranks:
            rank.kill()


def main(tools: Path, jobs: list[dict]) -> None:
    """Do all jobs."""
    sys.path[:0] = [str(tools / "partition_algo"), str(tools)]
    for job in jobs:
        if not job["is_assigned"]:
            scatter_out(tools, job)
    for job in jobs:
        dispatch(tools, job)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
