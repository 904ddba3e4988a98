"""The Gymnasium environment."""

import pytest

import slowstart

PATH = "rate=20Mbit rtt=40ms queue=1bdp"
gymnasium = pytest.importorskip("gymnasium")


def test_it_passes_the_checker_of_gymnasium():
    from gymnasium.utils.env_checker import check_env

    from slowstart import gym

    check_env(gym.SlowStart("rate=20Mbit rtt=40ms", size="500kB"), skip_render_check=True)


def episode(env, act, **reset):
    observation, _ = env.reset(**reset)
    seen, rewards, over = [observation.tolist()], [], False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        seen.append(observation.tolist())
        rewards.append(reward)
        over = terminated or truncated
    return seen, rewards


def test_the_baseline_is_standard():
    from slowstart import gym

    env = gymnasium.make("slowstart/SlowStart-v0", path=PATH, size="3MB")
    theirs = slowstart.compare(PATH, startups=["standard"], runs=3, size="3MB", samples=False).rows.to_dict()
    for run in range(3):
        episode(env, gym.standard, options={"seed": 1, "run": run})
        ours = env.unwrapped.row()
        for key in ["completion_s", "lost_packets", "peak_inflight_bytes", "retransmitted_packets", "seed", "goodput_bps"]:
            assert ours[key] == theirs[key][run], key
        assert ours["exit"]["cwnd_bytes"] == theirs["exit_cwnd_bytes"][run]


def test_the_baseline_has_the_windows_of_standard():
    samples = slowstart.compare(PATH, startups=["standard"], runs=1, size="3MB").samples.to_dict()
    times = samples["time_s"]
    transfer = slowstart._slowstart.Transfer(PATH, size="3MB", interval_s=times[2] - times[1])
    mss = 1448
    ours = {}
    over = False
    while not over:
        observation, _, complete, late = transfer.step(1.0, False)
        ours[round(observation[0], 6)] = round(observation[1] * mss)
        over = complete or late
    theirs = {round(t, 6): w for t, w in zip(times, samples["cwnd_bytes"])}
    both = [t for t in theirs if t in ours]
    assert len(both) > 1000
    different = [t for t in both if ours[t] != theirs[t]]
    # A sample is taken before the events of its time, a step ends after them.
    assert len(different) <= len(both) // 100, different[:5]


def test_a_seed_decides_an_episode_and_growth_changes_it():
    import numpy as np

    env = gymnasium.make("slowstart/SlowStart-v0", path="lte", size="1MB")
    fast = lambda _: np.array([2.0, 0.0])
    first = episode(env, fast, seed=7)
    assert first == episode(env, fast, seed=7)
    assert first != episode(env, fast, seed=8)
    assert first != episode(env, lambda _: np.array([1.0, 0.0]), seed=7)


def test_the_agent_can_end_slow_start():
    import numpy as np

    env = gymnasium.make("slowstart/SlowStart-v0", path=PATH, size="3MB")
    seen, _ = episode(env, lambda o: np.array([1.0, 1.0 if o[1] > 50 else 0.0]), options={"seed": 1})
    assert env.unwrapped.row()["exit"]["reason"] == "estimate"
    assert max(window for _, window, *_ in seen) < 200
