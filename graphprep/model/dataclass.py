"""``dataclass`` as in the standard library, but methods are compiled when they are first used.

A command loads hundreds of these classes and makes instances of a quarter of them; to compile the methods of all takes 0.1 s.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_METHODS = ("__init__", "__repr__", "__eq__")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, **flags: Any) -> Any:
        """Make a class a dataclass: fields, equality, hash and frozen instances are those of ``dataclasses.dataclass``.

        A class that inherits from a dataclass, has methods of these of its own, or wants more flags, is made there right away.
        """
        if cls is None:
            return lambda one: dataclass(one, frozen=frozen, **flags)
        own = {*_METHODS, "__hash__", "__setattr__", "__delattr__"} & cls.__dict__.keys()
        if flags or own or any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
            return dataclasses.dataclass(cls, frozen=frozen, **flags)
        return _prepare(cls, frozen)


def _prepare(cls: type, frozen: bool) -> type:
    """Give a class its fields, and methods that are yet to be compiled."""
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    params: Any = cls.__dataclass_params__  # type: ignore[attr-defined]
    params.init = params.repr = params.eq = True
    params.frozen = frozen  # a class that inherits from this one asks
    for name in (*_METHODS, "__hash__") if frozen else _METHODS:
        setattr(cls, name, _Uncompiled(cls, name))
    if frozen:
        _freeze(cls)
    else:
        cls.__hash__ = None  # type: ignore[assignment]
    return cls


class _Uncompiled:
    """A method that is compiled, and takes the place of this one, when somebody asks for it."""

    __slots__ = ("_cls", "_name")

    def __init__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        method = (_initializer if self._name == "__init__" else _comparing)(self._cls, self._name)
        method.__qualname__ = f"{self._cls.__qualname__}.{self._name}"
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


class _Factory:
    """What a signature shows for a default that is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _initializer(cls: type, name: str) -> Any:
    """Compile ``__init__``. Only this method is in the way of every command, so that it is not the standard library's."""
    fields = [one for one in dataclasses.fields(cls) if one.init or one.default_factory is not dataclasses.MISSING]
    names: dict[str, Any] = {"_FACTORY": _FACTORY}
    parameters, lines = ["self"], ["    _values = self.__dict__"]
    for one in fields:
        value = one.name
        if one.default_factory is not dataclasses.MISSING:
            names[f"_make_{one.name}"] = one.default_factory
            value = f"_make_{one.name}() if {one.name} is _FACTORY else {one.name}" if one.init else f"_make_{one.name}()"
            parameters += [f"{one.name}=_FACTORY"] if one.init else []
        elif one.default is not dataclasses.MISSING:
            names[f"_default_{one.name}"] = one.default
            parameters.append(f"{one.name}=_default_{one.name}")
        else:
            parameters.append(one.name)
        lines.append(f"    _values[{one.name!r}] = {value}")
    lines += ["    self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    exec(f"def {name}({', '.join(parameters)}):\n" + "\n".join(lines), names)
    method = names[name]
    method.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return method


def _comparing(cls: type, name: str) -> Any:
    """Let the standard library compile a method for a class of the same fields, and return it."""
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    fields = [(one.name, one.type, one) for one in dataclasses.fields(cls)]
    return dataclasses.make_dataclass(cls.__name__, fields, init=False, frozen=frozen).__dict__[name]


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
