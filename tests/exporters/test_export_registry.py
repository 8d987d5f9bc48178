"""Targets by name: ours are registered the way a stranger's are."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, ClassVar

import pytest

from graphprep.exporters import registry
from graphprep.exporters.registry import describe_targets, find_exporter, known_targets, make_exporter
from graphprep.model.errors import UsageError
from graphprep.model.export import TargetOption
from graphprep.model.plugins import Plugins


@pytest.fixture
def points(monkeypatch):
    found = list(registry._registered())
    monkeypatch.setattr(registry, "_registered", lambda: found)
    return found


def test_ours_are_installed_as_they_are_built_in():
    installed = {point.name: point.value for point in entry_points(group=registry.GROUP)}
    assert installed == registry._BUILT_IN


def test_an_installed_package_adds_a_target(points):
    points.append(EntryPoint("mine", "graphprep.exporters.plain.npy_files:NpyExporter", registry.GROUP))
    assert known_targets()[-1] == "mine"
    assert find_exporter("mine").name == "npy"


def test_a_name_that_two_packages_register_is_refused(points):
    points.append(EntryPoint("npy", "somebody.else:Exporter", registry.GROUP))
    with pytest.raises(UsageError, match="several targets are named 'npy'"):
        find_exporter("npy")


def test_a_package_that_is_broken_is_named(points):
    points.append(EntryPoint("mine", "not_there_at_all:Exporter", registry.GROUP))
    with pytest.raises(UsageError, match="target 'mine' cannot be loaded: No module named 'not_there_at_all'"):
        find_exporter("mine")


def test_options_become_what_the_fields_say():
    made = make_exporter("glt", {"cache-ratio": "0.5", "features": "a,b", "edge_ids": "no", "layout": None})
    assert (made.cache_ratio, made.features, made.edge_ids, made.layout) == (0.5, ("a", "b"), False, "COO")
    with pytest.raises(UsageError, match="glt: option cache_ratio must be a number, found 'much'"):
        make_exporter("glt", {"cache_ratio": "much"})
    with pytest.raises(UsageError, match="glt: option layout must be one of COO, CSR, CSC, found 'ELL'"):
        make_exporter("glt", {"layout": "ELL"})


def test_every_target_describes_itself():
    found = {target.name: target for target in describe_targets()}
    assert tuple(found) == known_targets()
    assert all(target.needs and all(one.values and one.meaning for one in target.options) for target in found.values())
    options = {one.name: (one.values, one.default) for one in (*found["glt"].options, *found["deepgnn"].options)}
    assert options["cache_ratio"] == ("X", "0.0")
    assert options["layout"] == ("COO|CSR|CSC", "COO")
    assert options["features"] == ("A,B,...", "")
    assert options["bfloat16"] == ("true|false", "false")
    assert options["watermark"] == ("N", "")


@dataclass(frozen=True)
class Plain:
    """An exporter that says little of itself."""

    name: ClassVar[str] = "plain"
    loads_in: ClassVar[str] = "anything"
    carries: ClassVar[str] = "nothing"

    level: int = 3
    shape: object = None
    labels: Annotated[tuple[str, ...], Plugins, "columns to write"] = ("a", "b")


def test_what_a_target_does_not_say_is_not_shown(points):
    points.append(EntryPoint("plain", f"{__name__}:Plain", registry.GROUP))
    (found,) = describe_targets(["plain"])
    assert found.needs == ""
    assert found.options == (
        TargetOption("level", "N", "3"),
        TargetOption("shape", "", ""),
        TargetOption("labels", "A,B,...", "a,b", "columns to write"),
    )


def test_options_are_of_one_target():
    with pytest.raises(UsageError, match="options are of one target"):
        describe_targets(options={"layout": "CSC"})
    with pytest.raises(UsageError, match="has no option 'colour'"):
        describe_targets(["glt"], options={"colour": "red"})
