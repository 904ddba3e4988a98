"""Progress bars."""

from __future__ import annotations

from collections.abc import Callable


def bar(progress: bool, unit: str = "run") -> tuple[Callable[[int, int], None] | None, Callable[[], None]]:
    """A progress bar by tqdm, if that is installed: a function that is told of progress, and one that ends it."""
    if not progress:
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None, lambda: None
    bar = tqdm(unit=unit, leave=False)

    def told(done: int, of: int) -> None:
        bar.total = of
        bar.update(done - bar.n)

    return told, bar.close
