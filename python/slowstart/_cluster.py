"""Work on a Dask cluster: the workers compute, this process writes the store."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

#: Seconds that a task is meant to take.
_TASK = 1.0
#: Tasks in flight for each thread of the workers, so that none waits for the next.
_AHEAD = 3
#: The most items of a task.
_MOST = 10_000
#: Seconds after which chunks that another process has are tried again.
_LOOK_AGAIN = 0.2

#: A function for a worker and its arguments. It returns a text for each item, and the seconds that all took.
Task = tuple[Callable[..., tuple[list[str], float]], tuple[Any, ...]]


class Collector(Protocol):
    """A store that takes the texts of items, in chunks that no other process has."""

    def take(self) -> tuple[int, list[int]] | None: ...
    def retry(self) -> int: ...
    def add(self, chunk: int, rows: Sequence[tuple[int, str]], /) -> None: ...
    def close(self) -> None: ...


def collect(
    collector: Collector,
    task: Callable[[list[int]], Task],
    client: Any,
    told: Callable[[int, int], None] | None,
    of: int,
) -> int:
    """Has the workers compute what the collector lacks of `of` items; returns their number, and tells `told` of progress."""
    import distributed

    # It has no types.
    as_completed: Any = distributed.as_completed
    # Items of chunks that this process has taken, each with the number of its chunk.
    taken: deque[tuple[int, int]] = deque()
    running: dict[Any, list[tuple[int, int]]] = {}
    computed, size = 0, 1

    def submit() -> Any:
        """Sends a task; None if there are no more items to take."""
        while len(taken) < size and (chunk := collector.take()) is not None:
            number, items = chunk
            taken.extend((number, item) for item in items)
        piece = [taken.popleft() for _ in range(min(size, len(taken)))]
        if not piece:
            return None
        function, arguments = task([item for _, item in piece])
        # A task that was lost with its worker is computed by another; its texts do not depend on who computes it.
        future = client.submit(function, *arguments, pure=False)
        running[future] = piece
        return future

    try:
        while True:
            slots = max(1, sum(client.nthreads().values())) * _AHEAD
            done = as_completed([f for f in (submit() for _ in range(slots)) if f is not None])
            for future in done:
                texts, seconds = future.result()
                piece = running.pop(future)
                of_chunk: dict[int, list[tuple[int, str]]] = {}
                for (chunk, item), text in zip(piece, texts):
                    of_chunk.setdefault(chunk, []).append((item, text))
                for chunk, added in of_chunk.items():
                    collector.add(chunk, added)
                computed += len(piece)
                size = max(1, min(_MOST, round(len(piece) * _TASK / max(seconds, 1e-4))))
                if told is not None:
                    told(computed, of)
                while len(running) < slots and (more := submit()) is not None:
                    done.add(more)
            # Chunks that another process has: it may have ended without finishing them.
            if collector.retry() == 0:
                return computed
            time.sleep(_LOOK_AGAIN)
    finally:
        client.cancel(list(running))
        collector.close()
