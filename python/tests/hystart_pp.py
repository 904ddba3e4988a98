"""HyStart++ (RFC 9406) in Python, as crates/slowstart/src/startup/hystart_pp.rs has it in Rust."""

from slowstart import Ack, SendOrder, Step, View


class HyStartPp:
    def __init__(self) -> None:
        self.end: SendOrder | None = None  # what ends the round
        self.last: int | None = None  # the minimum RTT of the last round
        self.least: int | None = None  # that of this round, and the number of its samples
        self.samples = 0
        self.css: int | None = None  # the RTT that began conservative slow start, and its rounds
        self.css_rounds = 0

    def on_ack(self, view: View, ack: Ack) -> Step | int:
        if self.end is None:
            self.end = view.next
        elif ack.upto > self.end:
            self.end, self.last, self.least, self.samples = view.next, self.least, None, 0
            if self.css is not None:
                self.css_rounds += 1
                if self.css_rounds >= 5:
                    return Step(exit="css-rounds")
        earned = view.slow_start_growth(ack)
        growth = earned if view.pacing_on else min(earned, 8 * view.mss)
        if ack.rtt_ns is not None:
            self.least = ack.rtt_ns if self.least is None else min(self.least, ack.rtt_ns)
            self.samples += 1
            if self.samples >= 8:
                self.judge(self.least)
        return growth if self.css is None else growth // 4

    def judge(self, current: int) -> None:
        if self.css is not None and current < self.css:
            self.css = None
        if self.css is None and self.last is not None:
            rise = max(min(self.last // 8, 16_000_000), 4_000_000)
            if current >= self.last + rise:
                self.css, self.css_rounds = current, 0
