"""``dataclass`` as in the standard library, but methods are compiled when they are first used.

A command loads hundreds of these classes and makes instances of a quarter of them; to compile the methods of all takes 0.1 s.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_COMPILED = ("__init__", "__repr__", "__eq__")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, **flags: Any) -> Any:
        """Make a class a dataclass: fields, equality, hash and frozen instances are those of ``dataclasses.dataclass``.

        A class that inherits from a dataclass, has methods of these of its own, or wants more flags, is made there right away.
        """
        if cls is None:
            return lambda one: dataclass(one, frozen=frozen, **flags)
        own = {*_COMPILED, "__hash__", "__setattr__", "__delattr__"} & cls.__dict__.keys()
        if flags or own or any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
            return dataclasses.dataclass(cls, frozen=frozen, **flags)
        return _prepare(cls, frozen)


def _prepare(cls: type, frozen: bool) -> type:
    """Give a class its fields, and methods that are yet to be compiled."""
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    params: Any = cls.__dataclass_params__  # type: ignore[attr-defined]
    params.init = params.repr = params.eq = True
    params.frozen = frozen  # a class that inherits from this one asks
    for name in (*_COMPILED, "__hash__") if frozen else _COMPILED:
        setattr(cls, name, _Uncompiled(cls, name))
    if frozen:
        _freeze(cls)
    else:
        cls.__hash__ = None  # type: ignore[assignment]
    return cls


class _Uncompiled:
    """A method that takes the place of this one, with its sisters, when somebody asks for it."""

    __slots__ = ("_cls", "_name")

    def __init__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        _compile(self._cls)
        return self._cls.__dict__[self._name].__get__(instance, owner)


def _compile(cls: type) -> None:
    """Let the standard library compile the methods for a class of the same fields, and take them over."""
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    fields = [(one.name, one.type, one) for one in dataclasses.fields(cls)]
    namespace = {"__post_init__": None} if hasattr(cls, "__post_init__") else {}
    twin = dataclasses.make_dataclass(cls.__name__, fields, namespace=namespace, frozen=frozen)
    for name, method in twin.__dict__.items():
        if isinstance(cls.__dict__.get(name), _Uncompiled):
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)


def _freeze(cls: Any) -> None:
    """Refuse to set and delete fields, of instances of a derived class too, which may have other attributes."""

    def set_field(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_field(self: object, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_field, delete_field
