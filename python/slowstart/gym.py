"""A Gymnasium environment: an agent steers slow start of one transfer. Needs the extra ``gym``.

An episode is one transfer over a path; a step is one base round-trip time. The action is two numbers: growth, in that of
standard slow start (0 to 4), and exit (above 0.5 slow start ends, and congestion avoidance follows). Loss ends slow start in
any case. The observation is

0. time, seconds
1. congestion window, segments
2. data in flight, segments
3. smoothed round-trip time, seconds (0 before the first sample)
4. least round-trip time, seconds
5. delivered since the last step, segments
6. dropped by the network since the last step, segments
7. 1 while slow start lasts, else 0

The reward of a step is the data delivered less the data dropped, over what the path carries in that time.
"""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ._slowstart import Transfer

Array = NDArray[np.float64]


class SlowStart(gymnasium.Env[Array, Array]):
    """One transfer over a path, as :func:`slowstart.compare` takes it."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, path: str = "rate=50Mbit rtt=80ms", size: str | None = None, profile: str | None = None) -> None:
        self._keys = (path, size, profile)
        self.action_space = gymnasium.spaces.Box(np.array([0.0, 0.0]), np.array([4.0, 1.0]), dtype=np.float64)
        self.observation_space = gymnasium.spaces.Box(0.0, np.inf, (8,), dtype=np.float64)
        self._transfer: Transfer | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begins a transfer. ``options`` may hold ``seed`` and ``run``: those of ``slowstart.compare``."""
        super().reset(seed=seed)
        options = options or {}
        drawn = int(self.np_random.integers(1 << 31))
        path, size, profile = self._keys
        self._transfer = Transfer(
            path, size=size, profile=profile, seed=int(options.get("seed", drawn)), run=int(options.get("run", 0))
        )
        return np.array(self._transfer.observation()), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Lets a round trip pass under this action."""
        if self._transfer is None:
            raise RuntimeError("step: found no transfer, expected reset before it")
        observation, reward, complete, over = self._transfer.step(float(action[0]), bool(action[1] > 0.5))
        return np.array(observation), reward, complete, over, {}

    def row(self) -> dict[str, Any]:
        """The row of the transfer so far: see docs/reference/rows.md."""
        if self._transfer is None:
            raise RuntimeError("row: found no transfer, expected reset before it")
        row: dict[str, Any] = json.loads(self._transfer.row())
        return row


def standard(observation: Array) -> Array:
    """The baseline: the growth of standard slow start, until loss ends it."""
    return np.array([1.0, 0.0])


gymnasium.register(id="slowstart/SlowStart-v0", entry_point="slowstart.gym:SlowStart")
