//! When a connection of the corpus left slow start, by the kernel's own account, and how an answer compares
//! with it.

/// The kernel's value for "no threshold" (`TCP_INFINITE_SSTHRESH`).
const INFINITE: u32 = 0x7fff_ffff;
/// Round trips after an exit by rule that must show the window for the exit to leave a trace.
const SHOWN: u64 = 3;

/// The sender when an ACK arrived, before the ACK was processed.
#[derive(Copy, Clone, Debug)]
struct Probe {
    us: i64,
    next: u32,
    inflight: u64,
    cwnd: u64,
    ssthresh: u32,
    window: u64,
    srtt: u64,
}

/// The end of slow start in the kernel.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct TrueExit {
    /// Seconds since 1970: when the window reached the value that it had when the threshold was set, or for a
    /// loss the ACK that showed it, and the ACK after the threshold was set: a timer may have done it in
    /// between. A startup that reduces its window before it sets the threshold (SEARCH drains) left when it
    /// began to.
    pub(crate) between: (f64, f64),
    /// cwnd then, bytes.
    pub(crate) cwnd: u64,
    /// True if the threshold is less than the window was: a loss or a timeout.
    pub(crate) by_loss: bool,
    /// The smoothed RTT then, seconds.
    pub(crate) rtt: f64,
    /// True if packets can show it: the window was in flight in the round trip before, and after an exit by
    /// rule the data, the receive window and the application let the window be seen for three round trips.
    pub(crate) traced: bool,
}

/// Reads the account of a connection (`N.probes.csv`) of this many bytes, of a startup that drains, or does
/// not; `None` if the kernel set no threshold before everything was sent. `Err` if it has no line.
pub(crate) fn read(csv: &str, mss: u64, bytes: u64, drains: bool) -> Result<Option<TrueExit>, String> {
    let mut all: Vec<Probe> = Vec::new();
    for line in csv.lines().skip(1) {
        let f: Vec<i64> = line.split(',').map_while(|w| w.parse().ok()).collect();
        let [us, una, next, cwnd, ssthresh, window, srtt] = f[..] else {
            return Err(format!("found {line}"));
        };
        let inflight = u64::from((next as u32).wrapping_sub(una as u32));
        let (cwnd, window, srtt) = (cwnd as u64 * mss, window as u64, srtt as u64);
        all.push(Probe { us, next: next as u32, inflight, cwnd, ssthresh: ssthresh as u32, window, srtt });
    }
    let una = |line: Option<&str>| line.and_then(|l| l.split(',').nth(1)?.parse::<u32>().ok()).unwrap_or(0);
    let acked = una(csv.lines().last()).wrapping_sub(una(csv.lines().nth(1)));
    if u64::from(acked) * 10 < bytes * 9 {
        return Err(format!("found {acked} bytes, expected {bytes}"));
    }
    let last = all.len().checked_sub(1).ok_or("found no line")?;
    // The last change to a threshold that was not undone.
    let Some(at) = all.iter().rposition(|p| p.ssthresh >= INFINITE) else {
        return Err("found a threshold in the first line".into());
    };
    if at == last {
        return Ok(None);
    }
    let (mut before, after) = (all[at], all[at + 1]);
    // The greatest window of the last round trips, if the startup reduced it, not an idle period.
    let since = before.us - before.srtt.cast_signed() * 8;
    let recent = || all[..=at].iter().filter(|p| p.us >= since);
    if let Some(most) = recent().max_by_key(|p| p.cwnd).filter(|_| drains) {
        before = *most;
    }
    let by_loss = u64::from(after.ssthresh) * mss < all[at].cwnd * 95 / 100;
    // An exit by rule after everything was sent changes nothing of what is sent, unless something of it was
    // lost.
    let ended = !by_loss && all[at].next == all[last].next;
    if ended && all[at..].iter().all(|p| p.ssthresh >= after.ssthresh) {
        return Ok(None);
    }
    // A startup may stop to grow before it sets the threshold: the window shows no more than that.
    let reached = recent().find(|p| p.cwnd * 100 >= before.cwnd * 98).filter(|_| !by_loss);
    let began = reached.map_or(before.us, |p| p.us.min(before.us));
    let rtt = before.srtt.cast_signed();
    let used = |p: &&Probe| p.inflight + mss >= p.cwnd * 9 / 10;
    let full = |p: &&Probe| p.inflight + mss >= before.cwnd * 9 / 10;
    let round = || all[..=at].iter().filter(|p| p.us >= began - rtt * 3 / 2);
    let full = round().any(|p| full(&p));
    let open = round().all(|p| p.window >= p.cwnd * 5 / 4);
    let until = before.us + rtt * SHOWN.cast_signed();
    let then: Vec<&Probe> = all[at + 1..].iter().take_while(|p| p.us <= until).collect();
    let shown = all[last].us > until
        && then.iter().filter(|p| used(p)).count() * 2 >= then.len()
        && then.iter().all(|p| p.window >= p.cwnd * 5 / 4 && p.ssthresh >= after.ssthresh);
    let second = |us: i64| us as f64 / 1e6;
    Ok(Some(TrueExit {
        between: (second(began), second(after.us)),
        cwnd: before.cwnd,
        by_loss,
        rtt: rtt as f64 / 1e6,
        traced: full && !ended && if by_loss { open } else { shown },
    }))
}

/// How an answer compares with the truth.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The exit within a round trip, or rightly none.
    Right,
    /// An exit at another time.
    OtherTime,
    /// An exit where the kernel was in slow start to the end.
    Invented,
    /// No exit where there was one.
    Missed,
    /// The answer is that it is not known.
    Unknown,
}

/// An answer: seconds since 1970 and window of the exit, or that there was none (`none`), or that it is not
/// known.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// An exit.
    Exit(f64, u64),
    /// In slow start to the end.
    None,
    /// Not known.
    Unknown,
}

/// Compares an answer with the truth. The time may differ by a round trip and a millisecond; `late` round
/// trips are added to the answer's time.
pub(crate) fn judge(truth: Option<&TrueExit>, answer: Answer, late: f64) -> Verdict {
    match (truth, answer) {
        (_, Answer::Unknown) => Verdict::Unknown,
        (None, Answer::None) => Verdict::Right,
        (None, Answer::Exit(..)) => Verdict::Invented,
        (Some(_), Answer::None) => Verdict::Missed,
        (Some(t), Answer::Exit(at, _)) => {
            let (at, slack) = (at + late * t.rtt, t.rtt + 1e-3);
            let near = at >= t.between.0 - slack && at <= t.between.1 + slack;
            if near { Verdict::Right } else { Verdict::OtherTime }
        }
    }
}

/// True if the window is within a tenth, or a segment, of the kernel's.
pub(crate) fn same_window(truth: &TrueExit, window: u64, mss: u64) -> bool {
    window.abs_diff(truth.cwnd) <= (truth.cwnd / 10).max(mss)
}
