"""DGL's tools for large graphs: ``dgl_dispatch.py CHUNKED OUT PARTITIONS``; a Python that has DGL and GraphBolt runs this.

They are scripts of DGL's repository, ``random_partition.py`` and what ``dispatch_data.py`` starts on each host over ssh, here
without ssh as one process; GRAPHPREP_DGL_TOOLS names the folder ``tools`` of a checkout.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Partition, or print the versions."""
    if not (tools := os.environ.get("GRAPHPREP_DGL_TOOLS")):
        sys.exit("GRAPHPREP_DGL_TOOLS is not set")
    if sys.argv[1] == "versions":
        import dgl.graphbolt  # noqa: F401 (the tools need it)

        print(json.dumps({name: version(name) for name in ("dgl", "torch")}))
        return
    dispatch(Path(tools).resolve(), Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))


def dispatch(tools: Path, chunked: Path, out: Path, num_parts: int) -> None:
    """Scatter nodes to ``assigned`` beside ``out``, then dispatch the graph."""
    assigned, schema = out.with_name("assigned"), chunked / "metadata.json"
    out.mkdir(parents=True)
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    group = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    path = os.pathsep.join(filter(None, (str(tools), os.environ.get("PYTHONPATH"))))
    flags = {"in_dir": chunked, "out_dir": assigned, "num_partitions": num_parts}
    _run(tools / "partition_algo/random_partition.py", flags, {"PYTHONPATH": path})
    flags = {"input-dir": chunked, "schema": schema.resolve(), "graph-name": "shop", "partitions-dir": assigned}
    flags |= {"num-parts": num_parts, "world-size": 1, "output": out, "process-group-timeout": 600}
    _run(tools / "distpartitioning/data_proc_pipeline.py", flags, group, "--save-orig-nids", "--save-orig-eids")


def _run(script: Path, flags: dict[str, object], environment: dict[str, object], *switches: str) -> None:
    command = [sys.executable, str(script), *(f"--{name}={value}" for name, value in flags.items()), *switches]
    subprocess.run(command, env=os.environ | {name: str(value) for name, value in environment.items()}, check=True)


if __name__ == "__main__":
    main()
