//! Fuzz test: whatever segments arrive and whenever, an endpoint in any state does not panic, sends nothing
//! beyond the peer's window, and does not call its timers endlessly.

#[path = "common/script.rs"]
mod script;

use proptest::prelude::*;
use script::{BEGIN, ISN, PEER_ISN, control};
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::Control;
use slowstart_sim::tcp::endpoint::{Endpoint, State};
use slowstart_sim::tcp::profile::Profile;
use slowstart_sim::tcp::segment::{ACK, FIN, RST, SYN, Segment};

/// One step of a sequence.
#[derive(Clone, Debug)]
enum Action {
    /// A segment arrives; its numbers are relative to those expected next.
    Arrive(Segment),
    /// Time passes, microseconds.
    Wait(u32),
    /// The application writes this many bytes.
    Write(u32),
    /// The application closes.
    Close,
}

fn any_flags() -> impl Strategy<Value = u8> {
    prop_oneof![
        16 => Just(ACK),
        2 => Just(SYN),
        2 => Just(SYN | ACK),
        2 => Just(FIN | ACK),
        1 => Just(RST),
        1 => any::<u8>().prop_map(|f| f & 0x1f),
    ]
}

/// Mostly numbers within a few segments of those expected, sometimes any number.
fn any_number() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (0_u32..60).prop_map(|n| n.wrapping_mul(1448)),
        4 => Just(0),
        2 => (0_u32..100_000).prop_map(|n| n.wrapping_sub(50_000)),
        1 => any::<u32>(),
    ]
}

prop_compose! {
    fn any_segment()(
        flags in any_flags(),
        seq in any_number(),
        ack in any_number(),
        len in prop_oneof![4 => Just(0), 2 => Just(1448), 1 => 0_u32..3000],
        window in prop_oneof![2 => 0_u16..20, 1 => any::<u16>()],
        blocks in prop::collection::vec((any_number(), any_number()), 0..=3),
        echo in prop::option::of(prop_oneof![4 => 900_u32..4000, 1 => any::<u32>()]),
        scale in prop::option::of(0_u8..=14),
        sack_ok in any::<bool>(),
    ) -> Segment {
        let mut sack = [(0, 0); 3];
        for (slot, b) in sack.iter_mut().zip(&blocks) {
            *slot = *b;
        }
        let sacks = blocks.len() as u8;
        Segment { seq, ack, len, window, flags, sacks, sack, timestamp: echo.map(|e| (e, e)), mss: 1460, scale, sack_ok, ..Segment::default() }
    }
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => any_segment().prop_map(Action::Arrive),
        2 => (0_u32..2000).prop_map(Action::Wait),
        2 => (0_u32..2_000_000).prop_map(Action::Wait),
        1 => (0_u32..100_000).prop_map(Action::Write),
        1 => Just(Action::Close),
    ]
}

/// The state in which the endpoint begins.
#[derive(Copy, Clone, Debug)]
enum Begin {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
}

struct Fuzz {
    end: Endpoint<Control>,
    now: Instant,
    out: Vec<Segment>,
    /// The window scale of the peer's SYN.
    scale: Option<u8>,
    /// The end of the furthest window that the peer has ever offered, as an offset.
    edge: u64,
    /// The end of the data sent so far.
    sent: u64,
    closed: bool,
}

impl Fuzz {
    fn new(profile: &Profile, begin: Begin) -> Self {
        let end = match begin {
            Begin::Closed | Begin::SynSent => Endpoint::connecting(profile, control(profile), ISN),
            _ => Endpoint::listening(profile, control(profile), ISN),
        };
        let mut f = Self { end, now: BEGIN, out: Vec::new(), scale: None, edge: 1, sent: 0, closed: false };
        match begin {
            Begin::Closed | Begin::Listen => {}
            Begin::SynSent => f.end.connect(f.now, &mut f.out),
            Begin::SynReceived | Begin::Established => {
                f.arrive(Segment { flags: SYN, scale: Some(3), window: 60, mss: 1460, ..Segment::default() });
            }
        }
        if matches!(begin, Begin::Established) {
            f.arrive(Segment { flags: ACK, window: 9000, ..Segment::default() });
            assert_eq!(f.end.state(), State::Established);
            f.end.tx.write(60_000);
            f.end.send(f.now, &mut f.out);
        }
        f.check();
        f
    }

    /// Numbers are relative: `seq` to the peer's next, `ack` and blocks to the first unacknowledged byte.
    fn arrive(&mut self, mut s: Segment) {
        let una = self.end.tx.board().una();
        let peer_next = self.end.rx.next();
        let before = self.end.state();
        let syn = s.has(SYN);
        let next = if syn { PEER_ISN } else { PEER_ISN.wrapping_add(peer_next as u32) };
        let base = ISN.wrapping_add(una as u32);
        let ack = una.wrapping_add(u64::from(s.ack));
        s.seq = s.seq.wrapping_add(next);
        s.ack = s.ack.wrapping_add(base);
        for b in &mut s.sack {
            *b = (b.0.wrapping_add(base), b.1.wrapping_add(base));
        }
        if syn && matches!(before, State::Listen | State::SynSent) {
            self.scale = s.scale;
        }
        if s.has(ACK) && ack <= self.sent.max(1) {
            let scale = if syn { 0 } else { self.scale.unwrap_or(0) };
            self.edge = self.edge.max(ack + (u64::from(s.window) << scale));
        }
        // A window offered with an old acknowledgement counts from the current one.
        if s.has(ACK) && s.ack.wrapping_sub(base).cast_signed() < 0 {
            let scale = if syn { 0 } else { self.scale.unwrap_or(0) };
            self.edge = self.edge.max(una + (u64::from(s.window) << scale));
        }
        self.end.on_segment(self.now, &s, &mut self.out);
        self.check();
    }

    fn check(&mut self) {
        for s in self.out.drain(..) {
            if s.has(SYN) {
                continue;
            }
            let offset = u64::from(s.seq.wrapping_sub(ISN));
            let data_end = offset + u64::from(s.len);
            if s.len > 0 {
                assert!(data_end <= self.edge, "sent up to {data_end}, allowed {}", self.edge);
            }
            if s.len > 0 || s.has(FIN) {
                self.sent = self.sent.max(offset + s.span());
            }
        }
        #[cfg(debug_assertions)]
        self.end.tx.board().check();
    }

    fn deadline(&self) -> Option<Instant> {
        self.end.deadlines().into_iter().min().filter(|t| *t < Instant::NEVER)
    }

    fn wait(&mut self, span: Span) {
        let end = self.now + span;
        let (mut last, mut same) = (Instant::ZERO, 0);
        while let Some(at) = self.deadline().filter(|t| *t <= end) {
            self.now = self.now.max(at);
            same = if self.now == last { same + 1 } else { 0 };
            last = self.now;
            assert!(same < 10, "the same deadline is returned again and again");
            self.end.on_timer(self.now, &mut self.out);
            self.check();
        }
        self.now = end;
    }

    fn act(&mut self, a: &Action) {
        match a {
            Action::Arrive(s) => self.arrive(*s),
            Action::Wait(us) => self.wait(Span::micros(u64::from(*us))),
            Action::Write(bytes) if !self.closed => {
                self.end.tx.write(u64::from(*bytes));
                self.end.send(self.now, &mut self.out);
                self.check();
            }
            Action::Write(_) => {}
            Action::Close => {
                self.closed = true;
                self.end.tx.close();
                self.end.send(self.now, &mut self.out);
                self.check();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_segments(
        begin in prop::sample::select(
            &[Begin::Closed, Begin::Listen, Begin::SynSent, Begin::SynReceived, Begin::Established, Begin::Established][..]
        ),
        profile in prop::sample::select(&Profile::ALL[..]),
        actions in prop::collection::vec(any_action(), 1..200),
    ) {
        let mut f = Fuzz::new(profile, begin);
        for a in &actions {
            f.act(a);
        }
        // Left alone, it is silent but for timers that back off to two minutes.
        f.wait(Span::secs(1000));
    }
}
