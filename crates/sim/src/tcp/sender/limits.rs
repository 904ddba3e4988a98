//! What keeps a sender from sending more, and for how long each thing did (Linux `tcp_chrono`).

use super::{Phase, Sender};
use slowstart::control::Controller;
use slowstart::units::{Instant, Span};

/// What keeps a sender from sending more at a moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The connection is not established.
    Handshake,
    /// The congestion window of the startup, or of slow start again, is full.
    Startup,
    /// The congestion window of the avoidance is full.
    Avoidance,
    /// Loss recovery, after a spurious loss too.
    Recovery,
    /// The pacer, while the window was not full in the last round trip.
    Pacing,
    /// The application: all that it has written is sent, and some of it is in flight.
    Application,
    /// The application: all that it has written is acknowledged.
    Idle,
    /// The end of the transfer: all data is sent, the application writes no more, and ACKs are awaited.
    LastFlight,
    /// The peer's receive window is full (`TCP_CHRONO_RWND_LIMITED`).
    ReceiveWindow,
    /// The send buffer is full (`TCP_CHRONO_SNDBUF_LIMITED`).
    SendBuffer,
    /// The queue of the host's own interface has no room for more.
    HostQueue,
}

impl LimitedBy {
    /// Number of values.
    const COUNT: usize = Self::HostQueue as usize + 1;

    /// The word in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Startup => "startup",
            Self::Avoidance => "avoidance",
            Self::Recovery => "recovery",
            Self::Pacing => "pacing",
            Self::Application | Self::Idle => "application",
            Self::LastFlight => "last_flight",
            Self::ReceiveWindow => "rwnd_limited",
            Self::SendBuffer => "sndbuf_limited",
            Self::HostQueue => "host_queue",
        }
    }
}

/// How long each thing limited a sender.
#[derive(Clone, Debug)]
pub struct Limits {
    now: LimitedBy,
    since: Instant,
    spent: [Span; LimitedBy::COUNT],
}

impl Default for Limits {
    /// Those before the handshake.
    fn default() -> Self {
        Self { now: LimitedBy::Handshake, since: Instant::ZERO, spent: [Span::ZERO; LimitedBy::COUNT] }
    }
}

impl Limits {
    /// What limits the sender now.
    pub fn now(&self) -> LimitedBy {
        self.now
    }

    /// How long `by` limited the sender between `start`, when its connection began, and `end`, which is not
    /// before the last event.
    pub fn spent(&self, by: LimitedBy, start: Instant, end: Instant) -> Span {
        let under_way = if self.now == by { end.since(self.since) } else { Span::ZERO };
        let before = if by == LimitedBy::Handshake { start.since(Instant::ZERO) } else { Span::ZERO };
        Span((self.spent[by as usize] + under_way).0.saturating_sub(before.0))
    }

    /// Sets the limit from `now` on.
    #[inline]
    pub fn set(&mut self, now: Instant, by: LimitedBy) {
        if by != self.now {
            let spent = &mut self.spent[self.now as usize];
            *spent += now.since(self.since);
            (self.now, self.since) = (by, now);
        }
    }
}

/// Why a call of [`Sender::transmit`] sends no more.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The window is full, or an ACK is waited for that makes a burst whole.
    Window,
    /// Nothing is left to send.
    Data,
    /// It is too early for the next burst.
    Pacer,
    /// The host's own queue.
    HostQueue,
    /// The next segment lies beyond the peer's window or the send buffer, or is held back since it is not full.
    Segment,
}

impl<C: Controller + Clone> Sender<C> {
    /// How long each thing limited the sender so far.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Records what limits the sender from `now` on, after a call that stopped for this reason.
    #[inline]
    pub(super) fn update_limit(&mut self, now: Instant, stop: Stop) {
        if stop == Stop::Window {
            self.window_full_at = self.next;
        }
        let repairs = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let by = match stop {
            Stop::Segment => self.segment_limit(),
            Stop::HostQueue => LimitedBy::HostQueue,
            _ if repairs => LimitedBy::Recovery,
            Stop::Data => self.data_limit(),
            // Only the FIN waits.
            Stop::Window if self.unsent() == 0 => self.data_limit(),
            // What was in flight when the window was full is not all acknowledged: the pacer only spreads a
            // window that is used up.
            Stop::Pacer if self.board.una() > self.window_full_at => LimitedBy::Pacing,
            Stop::Window | Stop::Pacer if self.in_slow_start() => LimitedBy::Startup,
            Stop::Window | Stop::Pacer => LimitedBy::Avoidance,
        };
        self.limits.set(now, by);
    }

    /// True in the startup, and in slow start after a timeout or a pause.
    fn in_slow_start(&self) -> bool {
        let s = self.control.state();
        self.in_startup || self.regrows && s.ssthresh.is_some_and(|t| s.cwnd < t)
    }

    fn data_limit(&self) -> LimitedBy {
        match (self.finished, self.board.is_empty()) {
            (true, _) => LimitedBy::LastFlight,
            (false, true) => LimitedBy::Idle,
            (false, false) => LimitedBy::Application,
        }
    }

    fn segment_limit(&self) -> LimitedBy {
        let end = self.next + u64::from(self.profile.mss).min(self.unsent());
        if end > self.window_end {
            LimitedBy::ReceiveWindow
        } else if end > self.send_limit() {
            LimitedBy::SendBuffer
        } else {
            LimitedBy::Application
        }
    }
}
