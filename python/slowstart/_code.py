"""What the code of a startup is: rows of a sweep are kept by what decided them."""

from __future__ import annotations

import hashlib
from types import CodeType, FunctionType, ModuleType
from typing import Any

_PLAIN = (int, float, complex, str, bytes, bool, type(None), range)


def code(startup: Any) -> str:
    """The hash of a class: of its methods and those of its bases, and of the constants and functions that they name.

    Names of modules count by name only. The code is that of this version of Python, so that another version computes
    anew. A callable that is no class has no code of its own.

    >>> class A:
    ...     def on_ack(self, view, ack): return 1
    >>> class B:
    ...     def on_ack(self, view, ack): return 2
    >>> code(A) == code(B), code(A) == code(A)
    (False, True)
    """
    if not isinstance(startup, type):
        raise TypeError(f"startups: found {startup!r}, expected a class, by whose code a sweep keeps its rows")
    digest = hashlib.sha256()
    seen: set[int] = set()

    def add(text: str) -> None:
        digest.update(text.encode() + b"\x1f")

    def add_code(of: CodeType) -> None:
        add(repr((of.co_name, of.co_varnames, of.co_names, of.co_freevars, of.co_argcount, of.co_flags)))
        digest.update(of.co_code)
        for constant in of.co_consts:
            add_code(constant) if isinstance(constant, CodeType) else add(repr(constant))

    def names(of: CodeType) -> set[str]:
        inner = [names(c) for c in of.co_consts if isinstance(c, CodeType)]
        return set(of.co_names).union(*inner)

    def add_value(value: Any) -> None:
        if isinstance(value, _PLAIN):
            add(repr(value))
        elif isinstance(value, (tuple, list)):
            add(type(value).__name__)
            for item in value:
                add_value(item)
        elif isinstance(value, (set, frozenset)):
            add(repr(sorted(map(repr, value))))
        elif isinstance(value, dict):
            for key, item in value.items():
                add(repr(key))
                add_value(item)
        elif isinstance(value, (staticmethod, classmethod)):
            add_value(value.__func__)
        elif isinstance(value, property):
            for part in (value.fget, value.fset, value.fdel):
                add_value(part)
        elif isinstance(value, ModuleType):
            add(value.__name__)
        elif id(value) in seen:
            add("again")
        elif isinstance(value, FunctionType):
            seen.add(id(value))
            add_code(value.__code__)
            add_value(value.__defaults__)
            add_value(value.__kwdefaults__)
            for cell in value.__closure__ or ():
                try:
                    add_value(cell.cell_contents)
                except ValueError:
                    add("empty")
            for name in sorted(names(value.__code__)):
                if name in value.__globals__:
                    add(name)
                    add_value(value.__globals__[name])
        elif isinstance(value, type):
            seen.add(id(value))
            add(value.__qualname__)
            for base in value.__mro__:
                if base.__module__ in ("builtins", "slowstart", "slowstart._slowstart"):
                    continue
                for name, item in sorted(vars(base).items()):
                    if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__firstlineno__", "__static_attributes__"):
                        add(name)
                        add_value(item)
        else:
            add(type(value).__qualname__)

    add_value(startup)
    return digest.hexdigest()[:16]
