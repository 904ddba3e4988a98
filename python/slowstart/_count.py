"""Whole numbers that callers give."""

from __future__ import annotations

MOST_32 = 2**32 - 1
MOST_64 = 2**64 - 1


def count(name: str, value: int | None, most: int = MOST_64) -> None:
    """Raises if a number is outside of its range: the native part would raise an OverflowError without the name."""
    if value is not None and not 0 <= value <= most:
        raise ValueError(f"{name}: found {value}, expected a whole number from 0 to {most}")
