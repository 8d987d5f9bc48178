"""Manifests and metadata.json of a store whose arrays were changed."""

import json
from pathlib import Path

import xxhash


def refinish(store: Path) -> None:
    """Write the manifests and metadata.json again, as if the arrays were meant to be as they are."""
    metadata = json.loads((store / "metadata.json").read_text())
    for part in metadata["parts"]:
        path = store / part["path"] / "manifest.json"
        manifest = json.loads(path.read_text())
        for entry in manifest["arrays"]:
            entry["xxh3"] = xxhash.xxh3_64_hexdigest((path.parent / entry["path"]).read_bytes())
        path.write_text(json.dumps(manifest, indent=2) + "\n")
        part["manifest_xxh3"] = xxhash.xxh3_64_hexdigest(path.read_bytes())
        part["manifest_bytes"] = path.stat().st_size
    (store / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
