#!/usr/bin/env python3
"""HyStart++ (RFC 9406) in Python, and its check against `slowstart vectors hystart++`, read from standard input.

An example for ports: the class is the port, what follows plays the vectors. docs/reference/vectors.md describes the fields.
"""
import json
import sys

MIN_RTT_THRESH, MAX_RTT_THRESH = 4_000_000, 16_000_000
MIN_RTT_DIVISOR, N_RTT_SAMPLE = 8, 8
CSS_GROWTH_DIVISOR, CSS_ROUNDS = 4, 5
L = 8


class HyStartPP:
    def __init__(self, cwnd):
        self.cwnd = cwnd
        self.window_end = None
        self.last_min = self.current_min = None
        self.samples = 0
        self.baseline = None  # the RTT that conservative slow start began with
        self.css_rounds = 0

    def on_ack(self, facts, ack):
        """Returns the reason to leave slow start, or None."""
        if self.window_end is None:
            self.window_end = facts["next"]
        elif ack["upto"] > self.window_end:
            self.window_end = facts["next"]
            self.last_min, self.current_min, self.samples = self.current_min, None, 0
            if self.baseline is not None:
                self.css_rounds += 1
                if self.css_rounds >= CSS_ROUNDS:
                    return "css-rounds"
        if ack["rtt_ns"] is not None:
            self.current_min = min(self.current_min or ack["rtt_ns"], ack["rtt_ns"])
            self.samples += 1
            if self.samples >= N_RTT_SAMPLE:
                self.judge()
        grow = ack["bytes"] if facts["pacing_on"] else min(ack["bytes"], L * facts["mss"])
        if self.baseline is not None:
            grow //= CSS_GROWTH_DIVISOR
        # The window grows only if the sender used it, and not while a loss is repaired.
        if ack["limit"] in ("window", "pacer") and not facts["in_recovery"]:
            self.cwnd += grow
        return None

    def judge(self):
        if self.baseline is not None and self.current_min < self.baseline:
            self.baseline = None
        if self.baseline is None and self.last_min is not None:
            thresh = max(MIN_RTT_THRESH, min(self.last_min // MIN_RTT_DIVISOR, MAX_RTT_THRESH))
            if self.current_min >= self.last_min + thresh:
                self.baseline, self.css_rounds = self.current_min, 0


def check(lines):
    """Returns the number of lines compared, and the first difference or None."""
    compared, case, port, running, facts = 0, "", None, False, {}
    for number, line in enumerate(lines, 1):
        line = json.loads(line)
        if "case" in line:
            case, port, running, facts = line["case"], HyStartPP(line["iw"]), True, {}
            continue
        facts.update(line["facts"])
        if line.get("resumed"):
            # The loss proved spurious: slow start goes on with the window that it had.
            running, port.cwnd = True, line["cwnd"]
        if not running:
            continue
        exits = line.get("exit")
        if line["event"] == "ack":
            why = port.on_ack(facts, line["ack"])
            # On the ACK of the exit the avoidance already decides about the window.
            got = (why, port.cwnd)
            want = (exits["why"], exits["cwnd"]) if exits else (None, line["cwnd"])
            compared += 1
            if got != want:
                return compared, f"line {number}, case {case}: found {got}, expected {want}"
        elif not exits:
            port.cwnd = line["cwnd"]  # what the host does at the handshake and after an idle time
        running = not exits
    return compared, None


if __name__ == "__main__":
    count, difference = check(sys.stdin)
    print(difference or f"{count} ACKs, all the same")
    sys.exit(1 if difference or not count else 0)
