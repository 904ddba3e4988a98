//! What keeps a server from sending more, as far as it shows from outside its stack.

use super::{Observed, Stack, Transfer};
use slowstart::units::{Instant, Span};
use slowstart_sim::tcp::sender::LimitedBy;
use slowstart_study::record::Limits;

impl<S: Stack> Transfer<S> {
    /// Records what limits the server from now on, after it has sent what it may.
    pub(super) fn note_limit(&mut self) {
        let by = self.limit();
        self.observed.limits.set(self.now, by);
    }

    fn limit(&mut self) -> LimitedBy {
        let Some(handle) = &self.handle else { return LimitedBy::Handshake };
        let host = handle.lock();
        if !host.is_established() {
            return LimitedBy::Handshake;
        }
        let is_full = host.inflight() + host.mss() > host.window();
        let (srtt, exited) = (host.srtt(), host.exit.is_some());
        let has_sent_all = self.unwritten == 0 && host.is_app_limited();
        drop(host);
        let window = if exited { LimitedBy::Avoidance } else { LimitedBy::Startup };
        if is_full {
            self.observed.window_full = Some(self.now);
            return window;
        }
        if self.refused && self.is_peer_limited() {
            return LimitedBy::ReceiveWindow;
        }
        if has_sent_all {
            return if self.size.is_some() && self.script.is_empty() {
                LimitedBy::LastFlight
            } else {
                LimitedBy::Application
            };
        }
        // The pacer only spreads a window that is used up.
        let full_at = self.observed.window_full;
        if full_at.is_some_and(|at| self.now.since(at) <= srtt.unwrap_or(Span::MAX)) {
            window
        } else {
            LimitedBy::Pacing
        }
    }
}

/// The shares of time up to `ended`. A stack has no time of recovery, it does not tell its send buffer from the window of its
/// peer, and it does not see the queue of its host.
pub(super) fn shares(observed: &Observed, ended: Instant) -> Limits {
    let all = Limits::new(&observed.limits, Instant::ZERO, ended);
    Limits { recovery: None, sndbuf_limited: None, host_queue: None, busy: None, ..all }
}
