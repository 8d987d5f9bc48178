"""DeepGNN's own converter: ``deepgnn_ge.py converter|direct FORMAT INPUT OUT``, and ``deepgnn_ge.py versions``.

``converter`` is what its users run: MultiWorkersConverter with every default. ``direct`` leaves out its dispatcher, which hands
each line over singly: the decoder and the writer in one loop, the fastest way through its code. Sampler tables are written in
both, as by default; they are part of what its engine loads.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Convert, or print the versions."""
    if sys.argv[1:] == ["versions"]:
        import deepgnn.graph_engine.snark.convert  # noqa: F401 (is it whole?)

        print(json.dumps({name: version(name) for name in ("deepgnn-ge", "numpy")}))
        return
    how, name, source, out = sys.argv[1:]
    Path(out).mkdir(parents=True)
    {"converter": convert, "direct": convert_directly}[how](_decoder(name), source, out)


def convert(decoder: object, source: str, out: str) -> None:
    """Convert as its documentation says."""
    from deepgnn.graph_engine.snark.convert import MultiWorkersConverter

    MultiWorkersConverter(graph_path=source, output_dir=out, decoder=decoder).convert()


def convert_directly(decoder: object, source: str, out: str) -> None:
    """Decode line by line into its writer, and write the counts where the converter would."""
    from deepgnn.graph_engine.snark.converter.writers import BinaryWriter

    writer = BinaryWriter(out, 0)
    with Path(source).open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            writer.add(decoder.decode(line.rstrip("\n")))
    writer.close()
    counts = {"node_count": writer.node_count, "edge_count": writer.edge_count}
    (Path(out) / "meta.json").write_text(json.dumps(counts))


def _decoder(name: str) -> object:
    from deepgnn.graph_engine.snark import decoders

    return {"edgelist": decoders.EdgeListDecoder, "json": decoders.JsonDecoder, "tsv": decoders.TsvDecoder}[name]()


if __name__ == "__main__":
    main()
