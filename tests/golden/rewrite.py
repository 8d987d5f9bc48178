"""Rewrite the golden stores: ``python tests/golden/rewrite.py [CASE…]``. Review the diff before you commit it.

Without names, all of them, those that are reordered and partitioned, and the digests of what is rewritten.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden.golden_cases import DIGESTS, REWRITES, Case, digest, load_cases, load_rewritten

import graphprep
from graphprep.convert.pipeline import convert
from graphprep.model.options.convert import ConvertOptions


def rewrite(case: Case) -> None:
    """Convert the case's input into its store/ folder."""
    shutil.rmtree(case.store, ignore_errors=True)
    options = ConvertOptions(**case.resolved_options())
    convert([str(path) for path in case.input_paths], str(case.store), options)
    (case.store / "provenance.json").unlink(missing_ok=True)


def rewrite_rewritten() -> None:
    """Reorder and partition golden stores into those under reordered/ and partitioned/."""
    for folder, command in (("reordered", graphprep.reorder), ("partitioned", graphprep.partition)):
        for case, store, options in load_rewritten(folder):
            shutil.rmtree(store, ignore_errors=True)
            command(str(case.store), str(store), **options)
            (store / "provenance.json").unlink(missing_ok=True)


def write_digests() -> None:
    """Rewrite the digests of what transform, reorder, partition and split make."""
    digests = {}
    for case in REWRITES:
        with tempfile.TemporaryDirectory() as folder:
            case.run(Path(folder))
            digests[case.name] = digest(Path(folder))
    DIGESTS.write_text(json.dumps(digests, indent=2) + "\n")


def main(names: list[str]) -> None:
    """Rewrite the named cases, or all."""
    cases = [case for case in load_cases() if not names or case.name in names]
    for case in cases:
        rewrite(case)
    if not names:
        rewrite_rewritten()
        write_digests()
    print(f"{len(cases)} golden stores rewritten; review the diff of tests/golden")


if __name__ == "__main__":
    main(sys.argv[1:])
