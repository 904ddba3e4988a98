//! What to send, and what an acknowledgement means: Linux `tcp_ack`, `tcp_fastretrans_alert` and `tcp_write_xmit`.

use super::pacer::Pacer;
use super::profile::Profile;
use super::rack::{DUPLICATES, Lost, Rack};
use super::rtt::Rtt;
use super::scoreboard::{Delivered, Record, Scoreboard};
use slowstart::control::{Change, Controller, Exited};
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent, Signal};

/// What is to leave: the endpoint puts a header on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its first byte.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// The sender is done.
    pub fin: bool,
    /// It has been sent before.
    pub again: bool,
}

/// An acknowledgement, with offsets in place of sequence numbers.
#[derive(Copy, Clone, Debug, Default)]
pub struct Incoming {
    /// Everything before has arrived.
    pub ack: u64,
    /// The peer takes data up to here.
    pub window_end: u64,
    /// What it holds beyond, the newest first.
    pub blocks: [(u64, u64); super::segment::SACK_BLOCKS],
    /// How many of these are set.
    pub sacks: usize,
    /// The timestamp it echoes, in milliseconds.
    pub echo: Option<u32>,
}

/// The state of loss recovery (`enum tcp_ca_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is amiss.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// Lost segments are being sent again.
    Recovery,
    /// The retransmission timer fired.
    Loss,
}

/// What a record of a connection wants to know.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The startup was left.
    Exited(Exited),
    /// That was taken back: the loss was none.
    Resumed,
    /// A loss episode began.
    Loss,
    /// It is over; `undone` if nothing had been lost.
    Recovered {
        /// Nothing had been lost.
        undone: bool,
    },
    /// The retransmission timer fired.
    Timeout,
    /// A tail loss probe left.
    Probe,
}

/// Which timer runs; as in Linux there is one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Timer {
    Retransmit,
    Probe,
    Reordering,
    ZeroWindow,
}

/// Proportional rate reduction (RFC 6937; `tcp_cwnd_reduction`), in segments.
#[derive(Clone, Debug)]
struct Prr {
    prior: u64,
    delivered: u64,
    sent: u64,
    cwnd: u64,
}

/// What is needed to see that a loss was none.
#[derive(Clone, Debug)]
struct Undo {
    /// What had been acknowledged when the episode began.
    since: u64,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    open: Option<u32>,
    /// When the first left, on the timestamp clock.
    first: Option<u32>,
    retransmitted: Bytes,
}

#[derive(Clone, Debug)]
struct Probe {
    /// What had been sent when it left.
    high: u64,
    /// It was a retransmission.
    again: bool,
}

/// Segments that leave before pacing begins.
const UNPACED: u64 = 10;

/// Counters of a connection.
#[derive(Copy, Clone, Debug, Default)]
pub struct Counters {
    /// Segments sent, retransmissions included.
    pub packets: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Loss episodes entered without a timeout.
    pub recoveries: u64,
    /// Loss episodes that proved to be none.
    pub undone: u64,
    /// The most bytes in flight.
    pub peak_inflight: u64,
    /// How often the peer's receive window stopped a burst.
    pub peer_limited: u64,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender<C> {
    profile: Profile,
    control: C,
    board: Scoreboard,
    rack: Rack,
    rtt: Rtt,
    pacer: Pacer,
    iw: Bytes,
    /// The next offset to send, and the end of what the application has written.
    next: u64,
    end: u64,
    /// Where the FIN stands, once the application has closed.
    fin: Option<u64>,
    window_end: u64,
    phase: Phase,
    /// What had been sent when the present episode began.
    high: u64,
    prr: Option<Prr>,
    undo: Option<Undo>,
    probe: Option<Probe>,
    timer: Option<(Timer, Instant)>,
    /// Duplicates counted in place of blocks, without selective acknowledgement.
    duplicates: u32,
    last_sent: Instant,
    /// When the pacer lets the next burst go, if that is what sending waits for.
    paced: Option<Instant>,
    /// The newest packet known to have arrived.
    newest: Sent,
    last_rtt: Option<Span>,
    // tcp_cwnd_validate: whether the window was used, within the last window of data.
    cwnd_limited: bool,
    max_out: u32,
    usage_mark: u64,
    /// What else held it back.
    held_by: Limit,
    /// Delivered bytes up to which samples are the application's doing.
    app_limited_until: u64,
    ready: bool,
    /// What happened since it was last asked.
    pub events: Vec<(Instant, Event)>,
    /// What has been counted.
    pub counters: Counters,
}

impl<C: Controller> Sender<C> {
    /// Before the handshake. `control` has its initial window already.
    pub fn new(profile: &Profile, control: C) -> Self {
        Self {
            profile: *profile,
            iw: control.state().cwnd,
            control,
            board: Scoreboard::new(1, profile.mss),
            rack: Rack::default(),
            rtt: Rtt::new(profile.rto_rule, profile.rto_min),
            pacer: Pacer::new(profile),
            next: 1,
            end: 1,
            fin: None,
            window_end: 1,
            phase: Phase::Open,
            high: 0,
            prr: None,
            undo: None,
            probe: None,
            timer: None,
            duplicates: 0,
            last_sent: Instant::ZERO,
            paced: None,
            newest: Sent::default(),
            last_rtt: None,
            cwnd_limited: false,
            max_out: 0,
            usage_mark: 0,
            held_by: Limit::Application,
            app_limited_until: 0,
            ready: false,
            events: Vec::new(),
            counters: Counters::default(),
        }
    }

    // What others may see.

    /// The controller.
    pub fn control(&self) -> &C {
        &self.control
    }
    /// The round-trip estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }
    /// The segments in flight.
    pub fn board(&self) -> &Scoreboard {
        &self.board
    }
    /// The pacer.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
    /// The state of recovery.
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// The window in force, in segments: that of rate reduction while it lasts.
    pub fn window(&self) -> u64 {
        self.prr.as_ref().map_or_else(|| self.control.state().cwnd.units(self.mss()), |p| p.cwnd).max(1)
    }
    /// The next offset to send.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Everything written is acknowledged, the FIN included if there is one.
    pub fn done(&self) -> bool {
        self.board.una() == self.end + u64::from(self.fin.is_some())
    }
    /// When the timer fires, or the algorithm wants to be called.
    pub fn timer(&self) -> Option<Instant> {
        let timer = self.timer.map(|t| t.1);
        [timer, self.control.state().wake].into_iter().flatten().min()
    }
    /// When the pacer lets the next burst go, if that is what sending waits for.
    pub fn paced(&self) -> Option<Instant> {
        self.paced
    }
    /// The newest round-trip sample.
    pub fn last_rtt(&self) -> Option<Span> {
        self.last_rtt
    }

    fn mss(&self) -> Bytes {
        Bytes(u64::from(self.profile.mss))
    }

    fn facts(&self, now: Instant) -> Facts {
        Facts {
            now,
            mss: self.mss(),
            iw: self.iw,
            inflight: self.board.inflight(),
            delivered: Bytes(self.board.delivered),
            lost: Bytes(self.board.lost_total),
            next: Mark(self.next),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            rwnd: Bytes(self.window_end.saturating_sub(self.board.una())),
            pacing_rate: self.pacer.rate(),
            pacing_on: self.pacer.on(),
            gso_max: Bytes(u64::from(self.profile.tso)),
            unsent: Some(Bytes(self.end - self.next.min(self.end))),
            host_queue: None,
            nic_rate: None,
            paces: true,
            growth: self.profile.growth,
            in_recovery: self.phase == Phase::Recovery,
        }
    }

    fn note(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }

    fn took(&mut self, now: Instant, change: Change) {
        if let Some(e) = change.exited {
            self.note(now, Event::Exited(e));
        }
        if change.resumed {
            self.note(now, Event::Resumed);
        }
    }

    // What the application does.

    /// The application writes this many bytes more.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(self.fin.is_none(), "written after close");
        self.end = self.end.saturating_add(bytes);
    }

    /// The application has written all it will.
    pub fn close(&mut self) {
        if self.profile.fin {
            self.fin.get_or_insert(self.end);
        }
    }

    // What the handshake says.

    /// The connection is established.
    pub fn established(&mut self, now: Instant, hs: &Handshake, window_end: u64) {
        self.window_end = window_end;
        self.last_sent = now;
        if let Some(rtt) = hs.rtt {
            self.rtt.sample(rtt, Mark(self.board.una()), Mark(self.next));
        }
        if hs.syn_losses > 0 {
            self.rtt.after_syn_loss();
        }
        self.ready = true;
        let change = self.control.on_established(&self.facts(now), hs);
        self.took(now, change);
        self.update_pacer();
    }

    fn update_pacer(&mut self) {
        let out = Bytes(self.board.out.bytes);
        self.pacer.update(&self.profile, self.control.state(), out, &self.rtt);
    }

    // What an acknowledgement means.

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, now: Instant, a: &Incoming, out: &mut Vec<Chunk>) {
        if a.ack > self.next {
            return;
        }
        let prior_inflight = self.board.inflight();
        let prior_una = self.board.una();
        let lost_before = self.board.lost_total;
        let limit = self.limit();
        let opens = a.window_end > self.window_end;
        // tcp_may_update_window: with new data acknowledged, larger, or closed.
        let moved = a.ack > prior_una || (a.ack == prior_una && (opens || a.window_end == a.ack));
        let window_moved = moved && a.window_end != self.window_end;
        if opens && moved && self.board.is_empty() {
            // tcp_ack_probe: it opens again.
            self.rtt.progress();
        }
        if moved {
            self.window_end = a.window_end;
        }
        let (d, duplicate) = self.deliver(now, a);
        let advanced = d.acked > 0;
        if advanced {
            self.rtt.progress();
        }
        let sample = self.sample(now, &d, a.echo);
        if let Some(newest) = &d.newest {
            self.newest = newest.sent();
        }
        if let Some(range) = duplicate {
            self.on_duplicate(now, range, prior_una);
        }
        let progress = advanced || d.bytes > 0;
        let lost = if progress || duplicate.is_some() || self.is_duplicate(a, prior_una, window_moved) {
            self.alert(now, a, &d, advanced)
        } else {
            Lost::default()
        };
        if progress {
            let ack = Ack {
                upto: Mark(self.board.una()),
                // What the peer already held has been counted (tcp_cong_avoid's acked_sacked): the acknowledgement that
                // fills the last hole of a recovery does not earn a window at once.
                bytes: Bytes(if advanced { d.bytes } else { 0 }),
                delivered: Bytes(d.bytes),
                newly_lost: Bytes(self.board.lost_total - lost_before),
                prior_inflight,
                rtt: sample,
                newest: self.newest,
                limit,
            };
            let change = self.control.on_ack(&self.facts(now), &ack);
            self.took(now, change);
            self.update_pacer();
        }
        let newly = if self.profile.sack { u64::from(d.packets) } else { 1 };
        self.reduce(newly, lost, advanced);
        // What was selectively acknowledged moves the timer only if it was sent before the head: a head that is lost
        // again must time out (tcp_clean_rtx_queue).
        let moves = advanced || sample.is_some_and(|s| self.head_sent() > now - s);
        if progress && moves && self.timer.is_none_or(|t| t.0 != Timer::Reordering) {
            self.rearm(now);
        }
        self.transmit(now, out);
        if self.timer.is_none() {
            self.rearm(now);
        }
        #[cfg(debug_assertions)]
        if self.counters.packets.is_multiple_of(4099) {
            self.board.check();
        }
    }

    /// Tells the scoreboard; answers what was new, and which duplicate was reported.
    fn deliver(&mut self, now: Instant, a: &Incoming) -> (Delivered, Option<(u64, u64)>) {
        // An acknowledgement that was lost left its news to this one: only what was held before is older evidence.
        let mut d = Delivered { held_to: self.board.held_to(), ..Delivered::default() };
        let mut duplicate = None;
        let min = self.rtt.min();
        let rack = &mut self.rack;
        if self.profile.sack {
            for (i, &(from, to)) in a.blocks[..a.sacks].iter().enumerate() {
                // RFC 2883 §4: below the acknowledgement, or inside the next block.
                let inside = i == 0 && a.sacks > 1 && a.blocks[1].0 <= from && to <= a.blocks[1].1;
                if to <= a.ack || (i == 0 && inside) {
                    if i == 0 {
                        duplicate = Some((from, to));
                    }
                    continue;
                }
                self.board.sack(now, from.max(a.ack), to, &mut d, |r| rack.delivered(now, r, min));
            }
        }
        self.board.acknowledge(now, a.ack, &mut d, |r| rack.delivered(now, r, min));
        if d.reordered {
            rack.reordering();
        }
        (d, duplicate)
    }

    /// A bare duplicate, for stacks without selective acknowledgement.
    fn is_duplicate(&self, a: &Incoming, prior_una: u64, window_moved: bool) -> bool {
        !self.profile.sack && a.ack == prior_una && !window_moved && !self.board.is_empty()
    }

    /// Round-trip samples (`tcp_ack_update_rtt`): the timeout takes the oldest, the algorithms the newest.
    fn sample(&mut self, now: Instant, d: &Delivered, echo: Option<u32>) -> Option<Span> {
        let (oldest, newest) = match d.once {
            Some((first, last)) if !d.resent => (now.since(first), now.since(last)),
            // Only the timestamp tells which copy was answered (RFC 7323 §4).
            _ => {
                let echo = echo.filter(|_| d.acked > 0)?;
                let ago = milliseconds(now).wrapping_sub(echo);
                let rtt = Span::millis(u64::from(ago.max(1)));
                (rtt, rtt)
            }
        };
        let (una, next) = (Mark(self.board.una()), Mark(self.next));
        self.rtt.sample(oldest, una, next);
        self.rtt.least(newest);
        self.last_rtt = Some(newest);
        Some(newest)
    }

    /// The peer had this range twice; `prior_una` is what was acknowledged before it said so.
    fn on_duplicate(&mut self, now: Instant, (_, to): (u64, u64), prior_una: u64) {
        self.rack.duplicate(self.board.una(), self.next);
        // A probe that was a duplicate lost nothing.
        if self.probe.as_ref().is_some_and(|p| p.again && p.high == to) {
            self.probe = None;
        }
        // Only what was sent again in this episode counts (tcp_check_dsack).
        if let Some(Undo { open: Some(n), since, .. }) = &mut self.undo
            && *since < to
            && to <= prior_una
        {
            *n = n.saturating_sub(1);
        }
        // The episode may have ended before its duplicates were reported (tcp_try_undo_dsack). What else is held for
        // lost stays so: nothing speaks for it.
        if self.phase != Phase::Loss && self.may_undo(None) {
            self.end_episode(now, true);
        }
    }

    /// Whether every retransmission of the episode proved unnecessary (`tcp_may_undo`).
    fn may_undo(&self, echo: Option<u32>) -> bool {
        let Some(u) = self.undo.as_ref().filter(|_| self.profile.undo) else { return false };
        let original = echo.zip(u.first).is_some_and(|(e, f)| e.wrapping_sub(f).cast_signed() < 0);
        u.open == Some(0) || original
    }

    /// The state machine of `tcp_fastretrans_alert`.
    fn alert(&mut self, now: Instant, a: &Incoming, d: &Delivered, advanced: bool) -> Lost {
        let una = self.board.una();
        self.check_probe(now, a, d);
        // Out of an episode.
        match self.phase {
            Phase::Loss | Phase::Recovery if advanced && self.may_undo(a.echo) => self.recovered(now, true),
            Phase::Loss | Phase::Recovery if una >= self.high => self.recovered(now, false),
            _ => {}
        }
        let lost = self.detect(now, d, advanced);
        match self.phase {
            Phase::Open | Phase::Disorder if lost.bytes > 0 => self.enter_recovery(now, lost),
            Phase::Recovery | Phase::Loss if lost.bytes > 0 => self.congested(now, Signal::Loss, false, lost),
            Phase::Open | Phase::Disorder => {
                let held = self.board.sacked.packets > 0 || self.duplicates > 0;
                self.phase = if held { Phase::Disorder } else { Phase::Open };
            }
            _ => {}
        }
        lost
    }

    /// What is lost, by time or by duplicates.
    fn detect(&mut self, now: Instant, d: &Delivered, advanced: bool) -> Lost {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if self.profile.sack && self.profile.rack {
            let (min, srtt) = (self.rtt.min(), self.rtt.srtt());
            let (lost, again) = self.rack.detect(&mut self.board, now, recovering, min, srtt);
            if let Some(at) = again {
                // A late look finds more (TCP_TIMEOUT_MIN).
                self.timer = Some((Timer::Reordering, at + Span::millis(2)));
            } else if self.timer.is_some_and(|t| t.0 == Timer::Reordering) {
                self.timer = None;
            }
            return lost;
        }
        let mut lost = Lost::default();
        if self.profile.sack {
            let mut found = Vec::new();
            if d.sacked || advanced {
                self.board.behind(DUPLICATES, |n| found.push(n));
            }
            for n in found {
                lost.add(n, self.board.mark_lost(n));
            }
            return lost;
        }
        // RFC 6582: the third duplicate, and each partial acknowledgement of a recovery, tells of one lost segment.
        if advanced {
            self.duplicates = 0;
        } else {
            self.duplicates += 1;
        }
        let third = self.duplicates == DUPLICATES && self.phase != Phase::Recovery;
        let partial = advanced && self.phase == Phase::Recovery;
        if let Some(first) = self.board.first().filter(|_| third || partial) {
            lost.add(first, self.board.mark_lost(first));
        }
        lost
    }

    /// Whether a tail loss probe repaired a loss that nothing else told of (RFC 8985 §7.4).
    fn check_probe(&mut self, now: Instant, a: &Incoming, d: &Delivered) {
        let Some(p) = self.probe.as_ref().filter(|p| a.ack >= p.high) else { return };
        let beyond = a.ack > p.high;
        // The very acknowledgement of what was probed may be the original's or the probe's; what follows tells.
        if p.again && !beyond && (d.acked > 0 || d.sacked) {
            return;
        }
        let again = p.again;
        self.probe = None;
        if again && beyond && matches!(self.phase, Phase::Open | Phase::Disorder) {
            // The reduction is over as soon as it has begun: nothing is left to repair (tcp_process_tlp_ack).
            self.note(now, Event::Loss);
            self.congested(now, Signal::Loss, true, Lost::default());
            let repaired = Recovery { retransmitted: Bytes::ZERO, undone: false };
            let change = self.control.on_recovered(&self.facts(now), &repaired);
            self.took(now, change);
        }
    }

    fn congested(&mut self, now: Instant, signal: Signal, first: bool, lost: Lost) {
        let c = Congestion {
            signal,
            first,
            lost: Bytes(lost.bytes),
            lost_ranges: lost.ranges,
            newest: self.newest,
        };
        let change = self.control.on_congestion(&self.facts(now), &c);
        self.took(now, change);
    }

    fn begin_reduction(&mut self) {
        let prior = self.control.state().cwnd.units(self.mss()).max(1);
        if self.profile.prr && !self.control.owns_recovery() {
            self.prr = Some(Prr { prior, delivered: 0, sent: 0, cwnd: prior });
        }
    }

    /// Retransmissions still on their way, a probe among them, stay the ones that originals are told from
    /// (`tcp_init_undo`): what they bring back is older than those that follow.
    fn begin_undo(&mut self) {
        let probe = self.probe.as_ref().is_some_and(|p| p.again);
        let outstanding = self.board.resent.packets.max(u32::from(probe));
        let since = self.board.una();
        self.undo = Some(match self.undo.take().filter(|_| outstanding > 0) {
            Some(u) => Undo { since, open: Some(outstanding), ..u },
            None => Undo { since, open: probe.then_some(1), first: None, retransmitted: Bytes::ZERO },
        });
    }

    fn enter_recovery(&mut self, now: Instant, lost: Lost) {
        self.begin_reduction();
        self.phase = Phase::Recovery;
        self.high = self.next;
        self.begin_undo();
        self.counters.recoveries += 1;
        self.note(now, Event::Loss);
        self.congested(now, Signal::Loss, true, lost);
    }

    /// An episode is over; `undone` if nothing had been lost, and so nothing is.
    fn recovered(&mut self, now: Instant, undone: bool) {
        if undone {
            self.board.unmark_all();
        }
        self.end_episode(now, undone);
    }

    fn end_episode(&mut self, now: Instant, undone: bool) {
        let retransmitted = self.undo.as_ref().map_or(Bytes::ZERO, |u| u.retransmitted);
        if undone {
            self.undo = None;
            self.counters.undone += 1;
        }
        self.prr = None;
        self.duplicates = 0;
        self.phase = if self.board.sacked.packets > 0 { Phase::Disorder } else { Phase::Open };
        self.rack.recovered();
        let change = self.control.on_recovered(&self.facts(now), &Recovery { retransmitted, undone });
        self.took(now, change);
        self.note(now, Event::Recovered { undone });
    }

    /// Proportional rate reduction, one acknowledgement on.
    fn reduce(&mut self, newly: u64, lost: Lost, advanced: bool) {
        let ssthresh = self.control.state().cwnd.units(self.mss());
        let inflight = u64::from(self.board.packets_inflight());
        let Some(p) = self.prr.as_mut().filter(|_| newly > 0) else { return };
        p.delivered += newly;
        let send = if inflight > ssthresh {
            (ssthresh * p.delivered).div_ceil(p.prior).saturating_sub(p.sent)
        } else {
            // RFC 6937 §3.1, slow-start reduction bound; one more while the acknowledgement shows progress and no
            // further loss.
            let more = u64::from(advanced && lost.bytes == 0);
            (p.delivered.saturating_sub(p.sent).max(newly) + more).min(ssthresh - inflight)
        };
        // The first retransmission leaves at once.
        p.cwnd = inflight + send.max(u64::from(p.sent == 0));
    }

    // When time passes.

    /// A time asked for in [`Sender::timer`] or [`Sender::paced`] has come.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<Chunk>) {
        if self.control.state().wake.is_some_and(|w| w <= now) {
            let change = self.control.on_timer(&self.facts(now));
            self.took(now, change);
            self.update_pacer();
        }
        if let Some((which, _)) = self.timer.filter(|t| t.1 <= now) {
            self.timer = None;
            match which {
                Timer::Retransmit => self.on_timeout(now, out),
                Timer::Probe => self.send_probe(now, out),
                Timer::Reordering => {
                    let lost = self.detect(now, &Delivered::default(), false);
                    if lost.bytes > 0 {
                        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
                            self.congested(now, Signal::Loss, false, lost);
                        } else {
                            self.enter_recovery(now, lost);
                            self.reduce(1, lost, false);
                        }
                    }
                    if self.timer.is_none() {
                        self.rearm(now);
                    }
                }
                Timer::ZeroWindow => {
                    self.rtt.back_off();
                    self.probe_window(now, out);
                }
            }
        }
        self.transmit(now, out);
        if self.timer.is_none() {
            self.rearm(now);
        }
    }

    /// A probe of a window that is closed, or too small for a segment (`tcp_write_wakeup`).
    fn probe_window(&mut self, now: Instant, out: &mut Vec<Chunk>) {
        let room = self.window_end.saturating_sub(self.next);
        let len = room.min(self.end.saturating_sub(self.next)).min(u64::from(self.profile.mss)) as u32;
        if len == 0 {
            out.push(Chunk { start: self.board.una() - 1, len: 0, fin: false, again: true });
            return;
        }
        let cwnd = self.control.state().cwnd;
        let n = self.board.send(now, self.next, len, cwnd, false);
        self.rack.sent(n, now);
        out.push(Chunk { start: self.next, len, fin: false, again: false });
        self.next += u64::from(len);
        let mut facts = self.control.watches_sending().then(|| self.facts(now));
        self.left(facts.as_mut(), n);
        self.timer = Some((Timer::Retransmit, now + self.rtt.rto()));
    }

    /// `tcp_enter_loss`: all that is not known to have arrived is taken for lost.
    fn on_timeout(&mut self, now: Instant, out: &mut Vec<Chunk>) {
        let Some(head) = self.board.first() else { return };
        self.counters.timeouts += 1;
        self.note(now, Event::Timeout);
        let first = matches!(self.phase, Phase::Open | Phase::Disorder) || self.board.una() >= self.high;
        let rack = self.profile.rack && self.profile.sack;
        if self.board.get(head).is_some_and(Record::sacked) {
            self.board.renege();
        }
        let all: Vec<u64> = self
            .board
            .unsacked()
            .filter(|&n| n == head || !rack || !self.board.get(n).is_some_and(|r| self.rack.is_young(r, now)))
            .collect();
        let mut lost = Lost::default();
        for n in all {
            lost.add(n, self.board.mark_lost(n));
        }
        self.prr = None;
        self.probe = None;
        self.duplicates = 0;
        self.congested(now, Signal::Timeout, first, lost);
        if first {
            self.begin_undo();
        }
        self.phase = Phase::Loss;
        self.high = self.next;
        self.rtt.back_off();
        self.update_pacer();
        self.resend(now, head, out);
        self.timer = Some((Timer::Retransmit, now + self.rtt.rto()));
    }

    /// A tail loss probe (RFC 8985 §7.3): new data if there is any, else the last segment again.
    fn send_probe(&mut self, now: Instant, out: &mut Vec<Chunk>) {
        let Some(last) = self.board.last() else { return };
        if self.probe.is_none() {
            let high = self.next;
            let again = self.send_new(now, 1, out) == 0;
            if again {
                // No part of any episode.
                let undo = self.undo.take();
                self.resend(now, last, out);
                self.undo = undo;
            }
            self.probe = Some(Probe { high: if again { high } else { self.next }, again });
            self.note(now, Event::Probe);
            // Counted from the probe.
            self.timer = Some((Timer::Retransmit, now + self.rtt.rto()));
            return;
        }
        self.timer = Some((Timer::Retransmit, self.retransmit_at(now)));
    }

    /// When the retransmission timer of the first segment fires: counted from when it was sent.
    fn retransmit_at(&self, now: Instant) -> Instant {
        (self.head_sent() + self.rtt.rto()).max(now + Span::millis(1))
    }

    fn head_sent(&self) -> Instant {
        self.board.first().and_then(|n| self.board.get(n)).map_or(Instant::ZERO, |r| r.at)
    }

    /// Sets the timer afresh: a probe where one may help, else the retransmission timer (`tcp_schedule_loss_probe`).
    fn rearm(&mut self, now: Instant) {
        if self.board.is_empty() {
            let blocked = self.next < self.end && self.ready;
            self.timer = blocked.then(|| (Timer::ZeroWindow, now + self.rtt.rto()));
            return;
        }
        let probes = self.profile.tlp
            && self.profile.sack
            && self.probe.is_none()
            && self.board.sacked.packets == 0
            && self.phase == Phase::Open;
        let rto = now + self.rtt.rto();
        self.timer = Some(match self.rtt.srtt().filter(|_| probes) {
            Some(srtt) => {
                let slack = if self.board.out.packets == 1 { self.rtt.rto_min() } else { Span::millis(2) };
                (Timer::Probe, (now + srtt * 2 + slack).min(rto))
            }
            None => (Timer::Retransmit, rto),
        });
    }

    // What to send.

    /// Nothing is in flight, and nothing waits to be sent.
    pub fn idle(&self) -> bool {
        self.board.is_empty() && !self.has_work()
    }

    /// Something could be sent if nothing held it back.
    fn has_work(&self) -> bool {
        self.ready
            && (self.next < self.end + u64::from(self.fin.is_some())
                || self.board.lost.packets > self.board.resent.packets)
    }

    /// What has held growth back, when an acknowledgement comes (`tcp_is_cwnd_limited`).
    fn limit(&self) -> Limit {
        if !self.profile.gating || self.cwnd_limited {
            return Limit::Window;
        }
        let s = self.control.state();
        let slow_start = s.ssthresh.is_none_or(|t| s.cwnd < t);
        // In slow start a window half used is used: it will be needed in a round trip.
        if slow_start && s.cwnd.units(self.mss()) < 2 * u64::from(self.max_out) {
            return Limit::Window;
        }
        self.held_by
    }

    /// Sends what may be sent now.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<Chunk>) {
        self.paced = None;
        if !self.has_work() {
            self.held_by = Limit::Application;
            self.mark_app_limited();
            return;
        }
        if self.board.is_empty() {
            self.after_idle(now);
        }
        let sent_before = self.counters.packets;
        let mut by_window = false;
        // Sending changes neither.
        let window = self.window();
        let largest = u64::from(self.pacer.burst());
        loop {
            let mut inflight = u64::from(self.board.packets_inflight());
            if self.phase == Phase::Disorder && !self.profile.limited_transmit {
                inflight += u64::from(self.board.sacked.packets);
            } else if !self.profile.sack {
                inflight = inflight.saturating_sub(u64::from(self.duplicates));
            }
            if inflight >= window {
                by_window = true;
                break;
            }
            let again = self.board.next_to_resend();
            if again.is_none() && self.next >= self.end + u64::from(self.fin.is_some()) {
                self.held_by = Limit::Application;
                self.mark_app_limited();
                break;
            }
            self.paced = self.pacer.wait(now);
            if self.paced.is_some() {
                // No reason of its own: a window that is used shows in `max_out`, and one that is not has not earned
                // growth, as in Linux.
                break;
            }
            let burst = largest.min(window - inflight) as u32;
            let sent = match again {
                Some(first) => self.resend_burst(now, first, burst, out),
                None => self.send_new(now, burst, out),
            };
            if sent == 0 {
                self.held_by = Limit::Peer;
                self.counters.peer_limited += 1;
                break;
            }
            // The first ten segments are not paced (tcp_update_skb_after_send).
            if self.counters.packets >= UNPACED {
                self.pacer.sent(now, Bytes(sent));
            }
        }
        self.counters.peak_inflight = self.counters.peak_inflight.max(self.board.inflight().0);
        if self.counters.packets > sent_before {
            self.last_sent = now;
            match self.timer.map(|t| t.0) {
                None | Some(Timer::ZeroWindow) => self.rearm(now),
                Some(Timer::Probe) => {
                    // New data puts the probe off, but never beyond the timeout of what was sent before it.
                    let latest = self.retransmit_at(now);
                    self.rearm(now);
                    self.timer = self.timer.map(|(which, at)| (which, at.min(latest)));
                }
                Some(_) => {}
            }
        }
        // tcp_cwnd_validate
        if (self.counters.packets > sent_before || by_window)
            && (self.board.una() >= self.usage_mark
                || by_window
                || (!self.cwnd_limited && self.board.out.packets > self.max_out))
        {
            self.cwnd_limited = by_window;
            self.max_out = self.board.out.packets;
            self.usage_mark = self.next;
        }
        if self.board.is_empty() && self.timer.is_none() {
            self.rearm(now);
        }
    }

    fn mark_app_limited(&mut self) {
        if u64::from(self.board.packets_inflight()) < self.window() {
            self.app_limited_until = (self.board.delivered + self.board.inflight().0).max(1);
        }
    }

    fn after_idle(&mut self, now: Instant) {
        let idle = now.since(self.last_sent);
        if self.counters.packets == 0 || idle == Span::ZERO {
            return;
        }
        let rto = self.rtt.rto();
        let restart = (self.profile.idle_restart && idle > rto).then_some(rto);
        let change = self.control.on_idle(&self.facts(now), idle, restart);
        self.took(now, change);
        self.update_pacer();
    }

    /// Up to `burst` segments of new data; answers their bytes, zero if the peer's window is in the way.
    fn send_new(&mut self, now: Instant, burst: u32, out: &mut Vec<Chunk>) -> u64 {
        let mss = u64::from(self.profile.mss);
        let cwnd = self.control.state().cwnd;
        // Built once a burst, and only for those who look.
        let mut facts = self.control.watches_sending().then(|| self.facts(now));
        let mut sent = 0;
        for _ in 0..burst {
            let left = self.end - self.next.min(self.end);
            let room = self.window_end.saturating_sub(self.next);
            let len = mss.min(left);
            let fin = left == 0 && self.fin == Some(self.next);
            // A segment that the window would cut waits for the window (the sender's side of RFC 1122 §4.2.3.4).
            if (len == 0 && !fin) || len > room {
                break;
            }
            let app_limited = self.app_limited_until > self.board.delivered;
            let span = if fin { 1 } else { len };
            let n = self.board.send(now, self.next, span as u32, cwnd, app_limited);
            self.rack.sent(n, now);
            out.push(Chunk { start: self.next, len: len as u32, fin, again: false });
            self.next += span;
            sent += span;
            self.left(facts.as_mut(), n);
        }
        sent
    }

    fn left(&mut self, facts: Option<&mut Facts>, n: u64) {
        self.counters.packets += 1;
        if let Some(p) = &mut self.prr {
            p.sent += 1;
        }
        if let (Some(facts), Some(r)) = (facts, self.board.get(n)) {
            facts.inflight = self.board.inflight();
            facts.next = Mark(self.next);
            self.control.on_sent(facts, &r.sent());
        }
    }

    fn resend_burst(&mut self, now: Instant, first: u64, burst: u32, out: &mut Vec<Chunk>) -> u64 {
        let mut sent = self.resend(now, first, out);
        for n in (first + 1..).take(burst.saturating_sub(1) as usize) {
            if self.board.next_to_resend() != Some(n) {
                break;
            }
            sent += self.resend(now, n, out);
        }
        sent
    }

    fn resend(&mut self, now: Instant, n: u64, out: &mut Vec<Chunk>) -> u64 {
        let r = self.board.resend(now, n, self.control.state().cwnd);
        self.rack.sent(n, now);
        let fin = self.fin == Some(r.start);
        out.push(Chunk { start: r.start, len: if fin { 0 } else { r.len }, fin, again: true });
        self.counters.retransmitted += 1;
        if let Some(u) = &mut self.undo {
            u.first.get_or_insert(milliseconds(now));
            u.open = Some(u.open.unwrap_or(0) + 1);
            u.retransmitted += Bytes(u64::from(r.len));
        }
        let mut facts = self.control.watches_sending().then(|| self.facts(now));
        self.left(facts.as_mut(), n);
        u64::from(r.len)
    }
}

/// The timestamp clock (RFC 7323 §5.4): a millisecond, from zero.
pub fn milliseconds(now: Instant) -> u32 {
    (now.0 / 1_000_000) as u32
}
