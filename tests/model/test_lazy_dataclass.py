"""Our dataclasses behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import threading
from dataclasses import field

import pytest

from graphprep.model import dataclass as ours


def both(**flags):
    """Return the same classes, made by us and by the standard library."""
    return [_define(make, flags) for make in (ours.dataclass, dataclasses.dataclass)]


def _define(make, flags):
    @make(**flags)
    class Point:
        """A class with every kind of field that has an effect."""

        x: int
        y: float = 2.0
        values: tuple[int, ...] = ()
        names: list[str] = field(default_factory=list)
        cache: int = field(default=0, compare=False, repr=False)
        total: float = field(init=False, default=0.0)

        def __post_init__(self):
            object.__setattr__(self, "total", self.x + self.y)

    return Point


MAKERS = [{}, {"frozen": True}, {"order": True}, {"frozen": True, "eq": False}, {"slots": True}, {"kw_only": True}]
AS_TEXT = {"x": 1, "y": 2.5}


@pytest.mark.parametrize("flags", MAKERS, ids=str)
def test_instances_look_and_compare_alike(flags):
    mine, theirs = both(**flags)
    one, other = mine(**AS_TEXT), theirs(**AS_TEXT)
    assert repr(one) == repr(other)
    assert (
        dataclasses.asdict(one) == dataclasses.asdict(other) == {**AS_TEXT, "values": (), "names": [], "cache": 0, "total": 3.5}
    )
    assert dataclasses.replace(one, x=4).total == dataclasses.replace(other, x=4).total == 6.5
    for change in ({}, {"cache": 7}, {"x": 2}, {"names": ["a"]}):
        assert (one == mine(**AS_TEXT | change)) == (other == theirs(**AS_TEXT | change)), change
    assert one != other
    assert copy.deepcopy(one) == one or flags.get("eq") is False


@pytest.mark.parametrize("flags", MAKERS, ids=str)
def test_classes_say_the_same_of_themselves(flags):
    mine, theirs = both(**flags)
    assert str(inspect.signature(mine)) == str(inspect.signature(theirs))
    assert mine.__match_args__ == theirs.__match_args__
    assert repr(mine.__dataclass_params__) == repr(theirs.__dataclass_params__)
    assert (mine.__hash__ is None) == (theirs.__hash__ is None)
    assert mine.__init__.__qualname__ == theirs.__init__.__qualname__


@pytest.mark.parametrize("flags", MAKERS, ids=str)
def test_the_wrong_arguments_are_refused_alike(flags):
    found = []
    for cls in both(**flags):
        with pytest.raises(TypeError) as caught:
            cls(y=1.0)
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_frozen_instances_are_hashed_by_fields_and_refuse_changes():
    @ours.dataclass(frozen=True)
    class Key:
        name: str
        number: int = 0

    assert {Key("a"): 1}[Key("a", 0)] == 1
    assert hash(Key("a", 1)) == hash(("a", 1))
    for change in (
        lambda key: setattr(key, "name", "b"),
        lambda key: setattr(key, "other", 1),
        lambda key: delattr(key, "name"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change(Key("a"))


@pytest.mark.parametrize("base, derived", [(0, 0), (0, 1), (1, 0)], ids=["ours", "theirs of ours", "ours of theirs"])
def test_derived_classes(base, derived):
    makers = (ours.dataclass, dataclasses.dataclass)

    @makers[base](frozen=True)
    class Base:
        a: int

        def double(self):
            return 2 * self.a

    @makers[derived](frozen=True)
    class Derived(Base):
        b: int = 1

    assert repr(Derived(3)).endswith("Derived(a=3, b=1)")
    assert Derived(3).double() == 6
    assert Derived(3) == Derived(3, 1) != Derived(3, 2)
    assert Base(3) != Derived(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived(3).a = 4


def test_a_plain_class_derived_of_a_frozen_one_has_attributes_of_its_own():
    @ours.dataclass(frozen=True)
    class Base:
        a: int

    class Derived(Base):
        pass

    one = Derived(1)
    one.other = 2
    assert (one.a, one.other) == (1, 2)
    del one.other
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 2


def test_methods_of_a_class_are_kept():
    @ours.dataclass(frozen=True)
    class Loud:
        a: int

        def __repr__(self):
            return "loud"

        def __eq__(self, other):
            return True

        __hash__ = None

    assert repr(Loud(1)) == "loud"
    assert Loud(1) == Loud(2)


def test_a_mutable_default_is_refused():
    with pytest.raises(ValueError, match="mutable default"):

        @ours.dataclass(frozen=True)
        class Faulty:
            a: list[int] = []  # noqa: RUF012


@ours.dataclass(frozen=True)
class Pickled:
    """Found by name, as pickle wants."""

    a: int


def test_pickle():
    assert pickle.loads(pickle.dumps(Pickled(3))) == Pickled(3)


def test_methods_are_compiled_when_they_are_used_and_by_any_thread():
    classes = [ours.dataclass(frozen=True)(type(f"C{i}", (), {"__annotations__": {"a": "int"}})) for i in range(50)]
    assert all(not inspect.isfunction(cls.__dict__["__init__"]) for cls in classes)
    start, made = threading.Barrier(4, timeout=60), []

    def work():
        start.wait()
        made.append([cls(1) for cls in classes])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert all(row == made[0] for row in made)
    assert all(inspect.isfunction(cls.__dict__["__init__"]) for cls in classes)
