"""A report as an HTML page that needs no other file: tables, and pictures inside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from graphprep.model.options.stats import Bin, ColumnStats, Distribution, StatsReport
from graphprep.model.shown.texts import display_url, printable
from graphprep.model.version import __version__
from graphprep.stats.pictures import panels
from graphprep.stats.pictures.draw import draw
from graphprep.stats.pictures.types import draw_types

_STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1a202c; background: #f7fafc; margin: 0; }
main { max-width: 1000px; margin: 0 auto; padding: 24px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 10px; }
p { margin: 6px 0; color: #4a5568; }
section { padding: 16px 20px; margin: 18px 0; overflow-x: auto; }
section, dl div { background: white; border: 1px solid #e2e8f0; border-radius: 8px; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 18px 0; }
dl div { padding: 10px 14px; }
dt { color: #4a5568; font-size: 12px; }
dd { margin: 0; font-size: 20px; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin-bottom: 8px; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid #edf2f7; white-space: nowrap; }
th { font-size: 12px; color: #4a5568; font-weight: 600; }
th:first-child, td:first-child { text-align: left; max-width: 320px; overflow: hidden; text-overflow: ellipsis; }
table.texts th, table.texts td { text-align: left; vertical-align: top; }
table.texts td:not(:first-child) { white-space: normal; overflow-wrap: anywhere; width: 100%; }
svg { width: 100%; height: auto; }
footer { color: #718096; font-size: 12px; }
"""
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}<footer>graphprep {version}: stats --plot</footer>
</main>
</body>
</html>
"""
_MOST_PARTS = 64
_LAW = (
    "50 %, 90 % and 99 % of the nodes have at most so many edges. alpha, from, KS: by the power law that fits best, the share "
    "of nodes of degree d is like d^-alpha, from the degree «from» on; KS, 0 to 1, is how far it lies off at most: below "
    f"about 0.05 it fits well. A dash: fewer than {panels.LEAST_TAIL} nodes to fit one to."
)
_PROLOGUE = re.compile(r"<\?xml.*?(?=<svg)", re.S)


def page(report: StatsReport) -> str:
    """Write the page: the same bytes for the same report, whose times are left out."""
    sections = (_head, _types, _nodes, _degrees, _pictures, _partitions, _columns)
    return _PAGE.format(
        title=_text(display_url(report.path)), style=_STYLE, body="".join(one(report) for one in sections), version=__version__
    )


def _head(report: StatsReport) -> str:
    """Write the name, and the numbers that say most."""
    found = report.components
    facts = [
        ("nodes", f"{sum(report.num_nodes.values()):,}"),
        ("edges", f"{sum(report.num_edges.values()):,}"),
        ("components", f"{found.count:,}"),
        ("largest component", f"{found.largest_share:.1%}"),
    ]
    if report.triangles is not None:
        about = "" if report.triangles.exact else "≈ "
        facts += [("triangles", f"{about}{report.triangles.num_triangles:,}")]
        facts += [("clustering", f"{about}{report.triangles.global_clustering:.4f}")]
        facts += [("average clustering", f"{about}{report.triangles.average_clustering:.4f}")]
    if report.parts is not None:
        facts += [("partitions", f"{report.num_parts:,}"), ("edges cut", f"{report.parts.total.cut_share:.1%}")]
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f"<h1>{_text(display_url(report.path))}</h1>\n<p>{_text(report.graph_name)}</p>\n<dl>{cells}</dl>\n"


def _types(report: StatsReport) -> str:
    picture, left_out = draw_types(report)
    words = "Node types with their numbers of nodes; arrows with their edge types and numbers of edges."
    return _section("Types and relations", picture + f"<p>{words}</p>" + (f"<p>{escape(left_out)}</p>" if left_out else ""))


def _nodes(report: StatsReport) -> str:
    nodes = _table(
        ("node type", "nodes", "isolated"),
        [(one.name, f"{one.num_nodes:,}", f"{one.num_isolated:,}") for one in report.nodes],
    )
    hubs = [(one.name, ", ".join(f"{hub.raw_id} ({hub.degree:,})" for hub in one.hubs)) for one in report.nodes if one.hubs]
    nodes += _table(("node type", "nodes of the most edges: raw ID (degree)"), hubs, wrapped=True)
    edges = _table(
        ("edge type", "edges", "self-loops", "repeated", "returned", "log2 gap"),
        [
            (
                one.name,
                f"{one.num_edges:,}",
                f"{one.num_self_loops:,}",
                f"{one.num_repeated:,}",
                "–" if one.reciprocity is None else f"{one.reciprocity:.1%}",
                f"{one.locality.mean_log2:.2f}",
            )
            for one in report.edges
        ],
    )
    sizes = _table(
        ("nodes of a component", "components"),
        [(_span(one), f"{one.count:,}") for one in report.components.sizes.histogram if one.count],
    )
    return _section("Nodes and edges", nodes + edges + sizes)


def _degrees(report: StatsReport) -> str:
    head = ("degrees of", "min", "mean", "50%", "90%", "99%", "max", "alpha", "from", "KS")
    rows = [(name, *_cells(found)) for name, found in report.all_degrees()]
    return _section("Degrees", _table(head, rows) + f"<p>{escape(_LAW)}</p>")


def _cells(found: Distribution) -> tuple[str, ...]:
    law = panels.law_of(found)
    fitted = ("–", "–", "–") if law is None else (f"{law.alpha:.2f} ± {law.alpha_error:.2f}", f"{law.xmin:,}", f"{law.ks:.3f}")
    middle = (f"{found.percentiles[one]:,}" for one in ("50", "90", "99"))
    return (f"{found.min:,}", f"{found.mean:.2f}", *middle, f"{found.max:,}", *fitted)


def _pictures(report: StatsReport) -> str:
    found = []
    for number, one in enumerate(panels.sections(report)):
        image = _PROLOGUE.sub("", draw(one.panels, "svg", name=f"graphprep-{number}", texts=True).decode(), count=1)
        note = f"<p>{escape(one.left_out)}</p>" if one.left_out else ""
        found.append(
            _section(f"{one.title} in pictures", f'<div role="img" aria-label="{escape(one.title)}">{image}</div>{note}')
        )
    return "".join(found)


def _partitions(report: StatsReport) -> str:
    parts = report.parts
    if parts is None:
        return ""
    rows = [
        (str(part), *(f"{number:,}" for number in numbers))
        for part, numbers in enumerate(zip(*parts.sums().values(), strict=True))
    ]
    total = parts.total
    words = (
        f"By {parts.partition_by}: {total.cut_edges:,} edges cut ({total.cut_share:.1%}), halos of {total.halo_nodes:,} nodes; "
        f"largest over mean: nodes {total.node_imbalance:.3f}, edges {total.edge_imbalance:.3f}."
    )
    return _section(
        "Partitions", f"<p>{_text(words)}</p>" + _table(("partition", "nodes", "edges", "halo"), rows[:_MOST_PARTS])
    )


def _columns(report: StatsReport) -> str:
    every = report.all_columns()
    if not every:
        return ""
    rows = [
        (
            f"{column.name} of {name}",
            f"{column.kind} {column.dtype}{list(column.item_shape) if column.item_shape else ''}",
            f"{column.num_missing:,}",
            f"{column.num_nan:,}",
            *(_value(column, value) for value in (column.min, column.mean, column.max)),
            f"{'' if column.is_exact else '≈ '}{column.num_distinct:,}",
        )
        for name, column in every
    ]
    return _section("Columns", _table(("column", "kind", "missing", "NaN", "min", "mean", "max", "distinct"), rows))


def _value(column: ColumnStats, value: float | None) -> str:
    """Write a value; of times the day, unless all are of one or two days."""
    words = column.words(value) or "–"
    days = {str(column.words(one)).partition(" ")[0] for one in (column.min, column.max)}
    return words.partition(" ")[0] if column.unit is not None and len(days) > 1 else words


def _span(one: Bin) -> str:
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,}–{one.high:,}"


def _section(title: str, inside: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{inside}\n</section>\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: bool = False) -> str:
    """Write a table; ``wrapped``: of texts, which take as many lines as they need."""
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    cells = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    kind = ' class="texts"' if wrapped else ""
    return f"<table{kind}>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{cells}</tbody>\n</table>\n"


def _text(text: str) -> str:
    return escape(printable(text))
