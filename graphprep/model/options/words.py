"""What messages call an option: a flag on the command line, a parameter in Python.

Messages are written with flags. Where a function was called from Python, its words are put in their place on the way out.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import partial

from graphprep.model.errors import GraphprepError

# Options of decoders and of tables; in Python they are keys of decoder_options.
DECODER_OPTIONS = (
    *("src_col", "dst_col", "relation_col", "relation_as", "weight_col", "time_col", "time_unit", "id_type", "columns"),
    *("drop_columns", "delimiter", "header", "quote", "input_layout", "array_shape", "index_base"),
    *("relation", "strict", "length_delimiter", "binary_escape", "temporal", "default_node_type"),
    *("default_node_weight", "default_node_feature_types", "default_node_feature_lens", "default_edge_type"),
    *("default_edge_weight", "default_edge_feature_types", "default_edge_feature_lens", "default_created_at"),
    *("default_removed_at", "id_col", "type_col", "id_space", "null", "escape", "comment"),
)
_NAMES = {
    "as": "as_",
    "category": "categories",
    "column": "columns",
    "copy-column": "copy_columns",
    "drop-column": "drop_columns",
    "edge": "edges",
    "edge-type": "edge_types",
    "feature-dtype": "feature_dtypes",
    "from": "from_",
    "label": "labels",
    "split": "splits",
    "storage-option": "storage_options",
    "to": "target",
    "type": "type_",
}
_SWITCHES = (
    *(
        "overwrite",
        "resume",
        "allow-empty",
        "drop-unsupported",
        "strict",
        "temporal",
        "torus",
        "weights",
        "times",
        "link",
        "id2index",
    ),
    *("assignment-only", "symmetric", "overwrite-column"),
)
_OFF = {"no-edge-ids": "edge_ids", "no-permute": "permute", "no-quote": "quote"}
_CHOICES = {
    "engine": "threads|processes|dask|ray",
    "device": "auto|cpu|cuda(?::[0-9]+)?",
    "format": "edges|triples|arrays|mtx|metis|edgelist|json|tsv|chunked|graph|neo4j|graphstorm|graphbolt|ogb",
    "ids": "auto|dense|sparse|raw|typed",
    "on-error": "stop|skip",
    "on-missing-node": "error|create|drop",
    "id-type": "int|uint|string|auto",
    "id-space": "global|per-type",
    "layout": "csc|csr|both",
    "input-layout": "coo|csr|csc",
    "header": "auto|yes|no",
    "missing": "error|skip|mark",
    "other-types": "keep|drop",
    "missing-time": "refuse|drop|-?[0-9][0-9T:.-]*",
    "untimed": "include|exclude",
    "reverses": "together|apart",
    "index-dtype": "auto|int32|int64",
    "weight-dtype": "float32|float64",
    "array-shape": "2xe|ex2",
    "triangles": "auto|exact|sampled",
    "partition-by": "range|hash|modulo|random|round-robin|ldg|fennel|metis",
}
_COMMANDS = {
    "graphprep export --list": "graphprep.export_targets()",
    "--nodes and --edges": "nodes and edges",
}
_CLEAN = re.compile(r"graphprep clean (?:'([^']*)'|(\S+)) --all-dead")
_NODE_TABLE = re.compile(r"--nodes ([\w%.-]+)=([^\s;,]+)")
_FLAG = re.compile(r"(?<![\w'\"-])--([a-z]+(?:-[a-z]+)*)\b")
_says_flags: ContextVar[bool] = ContextVar("graphprep.says_flags", default=False)


@contextlib.contextmanager
def flags_in_messages() -> Iterator[None]:
    """Let messages name flags: the command line calls."""
    token = _says_flags.set(True)
    try:
        yield
    finally:
        _says_flags.reset(token)


@contextlib.contextmanager
def python_words(*, decoder: bool = False) -> Iterator[None]:
    """Let an error that passes name parameters, unless the command line called; ``decoder``: those of decoders, too."""
    try:
        yield
    except GraphprepError as error:
        error.message, error.place, error.fix = in_words((error.message, error.place, error.fix), decoder=decoder)
        error.items = in_words(error.items, decoder=decoder)
        error.args = (error.message,)
        raise


def in_words(texts: Iterable[str], *, decoder: bool = False) -> tuple[str, ...]:
    """Return messages in the caller's words."""
    return tuple(texts if _says_flags.get() else map(partial(parameter_words, decoder=decoder), texts))


def parameter_words(text: str, *, decoder: bool = False) -> str:
    """Write parameters for the flags in a text: ``--on-error skip`` becomes ``on_error="skip"``."""
    for command, name in _COMMANDS.items():
        text = text.replace(command, name)
    text = _CLEAN.sub(lambda found: f'graphprep.clean("{found[1] or found[2]}", all_dead=True)', text)
    text = _NODE_TABLE.sub(r'nodes={"\1": "\2"}', text)
    done, at = [], 0
    for match in _FLAG.finditer(text):
        if match.start() < at:
            continue
        word, end = _parameter(text, match, decoder)
        done += [text[at : match.start()], word]
        at = end
    return "".join([*done, text[at:]])


def _parameter(text: str, match: re.Match[str], decoder: bool) -> tuple[str, int]:
    """Return a flag's parameter, with a value that follows it, and where both end."""
    flag, end = match[1], match.end()
    if flag == "option" and text.startswith(" ", end):  # of a target: a parameter of export
        return "", end + 1
    name = _NAMES.get(flag, _OFF.get(flag, flag)).replace("-", "_")
    shown = f"decoder_options[{name!r}]".replace("'", '"') if decoder and name in DECODER_OPTIONS else name
    if flag in (*_SWITCHES, *_OFF) and not text.startswith(" must be", end):
        return f"{shown}={flag in _SWITCHES}", end
    one_of = _CHOICES.get(flag)
    value = re.compile(rf" ((?:{one_of})(?: or (?:{one_of}))*)\b(?![\w-])").match(text, end) if one_of else None
    if value is None:
        return shown, end
    quoted = value[1].replace(" or ", '" or "')
    return f'{shown}="{quoted}"', value.end()
