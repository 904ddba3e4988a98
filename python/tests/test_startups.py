"""Startups in Python: the same windows as in Rust, exceptions, speed."""

import time

import pytest
from hystart_pp import HyStartPp

import slowstart

PATH = "rate=20Mbit rtt=40ms queue=1bdp"


class Standard:
    def on_ack(self, view, ack):
        return view.slow_start_growth(ack)


class Limited:
    """Limited slow start (RFC 3742), as crates/slowstart/src/startup/limited.rs."""

    def on_ack(self, view, ack):
        earned, most = view.slow_start_growth(ack), 100 * view.mss
        return earned if view.cwnd <= most else earned // (view.cwnd * 2 // most)


class Doubled:
    """The startup of CONTRIBUTING.md."""

    def on_ack(self, view, ack):
        if ack.rtt_ns is not None and view.min_rtt_ns is not None and ack.rtt_ns > 2 * view.min_rtt_ns:
            return slowstart.Step(exit="delay")
        return view.slow_start_growth(ack)


def windows(result, name):
    samples = result.samples.to_dict()
    keep = [i for i, s in enumerate(samples["startup"]) if s == name]
    columns = ["time_s", "cwnd_bytes", "ssthresh_bytes", "inflight_bytes", "delivered_bytes"]
    return [tuple(samples[c][i] for c in columns) for i in keep]


@pytest.mark.parametrize("path", [PATH, "geo-144", "rate=10Mbit rtt=50ms loss=1%"])
@pytest.mark.parametrize(("mine", "name"), [(Standard, "standard"), (Limited, "limited"), (HyStartPp, "hystart++")])
def test_a_startup_in_python_has_the_windows_of_the_same_in_rust(path, mine, name):
    result = slowstart.compare(path, startups=[name, mine], runs=2, size="3MB")
    assert len(windows(result, name)) > 100
    assert windows(result, mine.__name__) == windows(result, name)
    rows = result.rows
    for column in ["seed", "completion_s", "exit_reason", "exit_time_s", "exit_cwnd_bytes", "lost_packets", "class"]:
        assert rows[column][:2] == rows[column][2:], column


def test_a_method_that_no_event_calls_is_refused():
    class Misspelled(Standard):
        def on_congestoin(self, view, congestion):
            return slowstart.Step(exit="loss")

    with pytest.raises(RuntimeError, match=r'found a method "on_congestoin" \(did you mean "on_congestion"\?\)'):
        slowstart.compare(PATH, startups=[Misspelled], runs=1, size="100kB")


def test_a_startup_leaves_by_its_own_rule():
    result = slowstart.compare("rate=20Mbit rtt=40ms queue=4bdp", startups=[Doubled], runs=1, size="5MB")
    assert result.rows["exit_reason"] == ["delay"] and result.rows["startup"] == ["Doubled"]


def test_the_other_events_reach_a_startup():
    seen = set()

    class Watch(Standard):
        def on_established(self, view, handshake_rtt_ns):
            assert handshake_rtt_ns > 40_000_000
            seen.add("established")
            return slowstart.Step(wake_ns=view.now_ns + 1_000_000)

        def on_timer(self, view):
            seen.add("timer")

        def on_congestion(self, view, congestion):
            seen.add(congestion.signal)
            if congestion.first:
                return slowstart.Step(cwnd=view.cwnd // 2, ssthresh=view.cwnd // 2)

        def on_recovered(self, view, undone):
            seen.add("recovered")
            return slowstart.Step(exit="loss")

    slowstart.compare(PATH, startups=[Watch], runs=1, size="3MB", samples=False)
    assert seen == {"established", "timer", "loss", "recovered"}


def test_marks_are_compared_and_nothing_else():
    seen = []

    class Keep(Standard):
        def on_ack(self, view, ack):
            seen.append((ack.upto, view.next))
            return super().on_ack(view, ack)

    slowstart.compare(PATH, startups=[Keep], runs=1, size="300kB", samples=False)
    assert all(upto <= following for upto, following in seen)
    assert all(a[0] <= b[0] for a, b in zip(seen, seen[1:]))
    with pytest.raises(TypeError):
        seen[0][0] - 1


class Broken(Standard):
    def __init__(self):
        self.n = 0

    def on_ack(self, view, ack):
        self.n += 1
        if self.n == 20:
            raise KeyError("nothing there")
        return super().on_ack(view, ack)


class Wrong:
    def on_ack(self, view, ack):
        return "fast"


class Negative:
    def on_ack(self, view, ack):
        return -5


class Unknown:
    def on_ack(self, view, ack):
        return slowstart.Step(exit="bored")


@pytest.mark.parametrize(
    ("startup", "message"),
    [
        (Broken, r"startup Broken, run 0, on_ack at [0-9.]+ s: KeyError: 'nothing there'"),
        (Wrong, "startup Wrong, run 0, on_ack at .*found an answer of type str, expected a Step, bytes of growth or None"),
        (Negative, "found -5, expected bytes of growth from 0 on"),
        (Unknown, 'exit: found "bored", expected one of ssthresh, loss'),
    ],
)
def test_an_exception_names_the_run_and_the_event(startup, message):
    with pytest.raises(RuntimeError, match=message) as raised:
        slowstart.compare(PATH, startups=["standard", startup], runs=2, size="2MB")
    assert raised.value.__cause__ is not None
    # The next comparison is not affected.
    assert len(slowstart.compare(PATH, startups=[Standard], runs=1, size="300kB", samples=False)) == 1


def test_two_startups_with_one_name_are_refused():
    with pytest.raises(ValueError, match="found two with the name Standard"):
        slowstart.compare(PATH, startups=[Standard, Standard])


def test_a_comparison_inside_an_event_is_refused():
    class Inner(Standard):
        def on_ack(self, view, ack):
            slowstart.compare(PATH, startups=[Standard], runs=1)

    with pytest.raises(RuntimeError, match="found a comparison inside an event"):
        slowstart.compare(PATH, startups=[Inner], runs=1, size="300kB")


def test_acks_of_a_startup_in_python_per_second():
    acks = 0

    class Count(Standard):
        def on_ack(self, view, ack):
            nonlocal acks
            acks += 1
            return view.slow_start_growth(ack)

    begun = time.process_time()
    slowstart.compare("rate=100Mbit rtt=20ms queue=1000bdp", startups=[Count], runs=1, size="20MB", samples=False)
    rate = acks / (time.process_time() - begun)
    print(f"{rate:.0f} ACKs a CPU second")
    assert acks > 5_000
    # A debug build on a machine with other load; docs/guide/python.md has the figure of a release.
    assert rate > 10_000
