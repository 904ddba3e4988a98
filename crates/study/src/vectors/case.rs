//! The cases: what happens on each connection.

use slowstart::units::{Rate, Span};

/// What happens on one connection.
#[derive(Copy, Clone, Debug)]
pub(super) struct Case<'a> {
    pub(super) name: &'a str,
    /// The avoidance that follows.
    pub(super) avoidance: &'static str,
    /// The rate of the bottleneck; `None` if packets take no time there.
    pub(super) rate: Option<Rate>,
    /// From these times on it has other rates.
    pub(super) rates: &'a [(Span, Rate)],
    /// The round-trip time without queue.
    pub(super) rtt: Span,
    /// Full-sized packets, in bytes, and the initial window in such packets.
    pub(super) mss: u64,
    pub(super) iw: u64,
    /// ACKs after which the case ends.
    pub(super) acks: u32,
    /// Packets that the queue of the bottleneck holds.
    pub(super) queue: u64,
    /// Packets of queue beyond which it marks.
    pub(super) marks: Option<u64>,
    /// The host does not count marks.
    pub(super) unmarked: bool,
    /// Packets dropped, by their place in the order of sending, from 1.
    pub(super) drops: &'a [u64],
    /// Time added to the round trip of packets sent at this time or later.
    pub(super) delays: &'a [(Span, Span)],
    /// Every so many packets one arrives late, by this time.
    pub(super) late: Option<(u64, Span)>,
    /// Packets that one ACK covers, at most; it waits 25 ms for them.
    pub(super) every: usize,
    /// ACKs arrive at multiples of this time only.
    pub(super) slot: Option<Span>,
    /// All packets of a slot have one ACK.
    pub(super) merged: bool,
    /// In every three packets one is of this many bytes.
    pub(super) short: Option<u64>,
    /// After this ACK full-sized packets have this many bytes.
    pub(super) grown: Option<(u32, u64)>,
    /// From one ACK to another the application has this many packets in flight at most.
    pub(super) little: &'a [(u32, u32, u64)],
    /// Packets that the application has at first, and again whenever all before them are acknowledged.
    pub(super) turns: &'a [u64],
    /// The host permits growth while the window is below twice the largest flight, or twice the initial window
    /// (draft-ietf-ccwg-ratelimited-increase): whoever sends little is not limited before that.
    pub(super) rate_limited: bool,
    /// The receive window of the peer, in packets.
    pub(super) peer: Option<u64>,
    /// What the application has in all, in packets, if the host knows it.
    pub(super) unsent: Option<u64>,
    /// After this ACK nothing is sent for this time. The host's rules require a restart window if the flag is
    /// set.
    pub(super) pause: Option<(u32, Span, bool)>,
    /// All in flight at this ACK is lost, and the timer expires.
    pub(super) timeout: Option<u32>,
    /// The host's own queue refuses a packet after this ACK.
    pub(super) stall: Option<u32>,
    /// Losses prove spurious, five ACKs later.
    pub(super) spurious: bool,
    /// A host as in TCP: cumulative acknowledgements, retransmissions, a least window of one segment. Otherwise
    /// as in QUIC, with a least window of two packets.
    pub(super) tcp: bool,
    /// The host paces at twice cwnd / SRTT by its own rule, in bursts of this many bytes.
    pub(super) paces: Option<u64>,
    /// The host can pace as a startup asks.
    pub(super) can_pace: bool,
    /// The rate of the host's interface, and the packets that its queue holds.
    pub(super) nic: Option<(Rate, u64)>,
    /// The window in packets, RTT and rate of an earlier connection.
    pub(super) remembered: Option<(u64, Span, Rate)>,
    /// The rate that the routers of the path granted.
    pub(super) granted: Option<Rate>,
    /// SYNs lost in the handshake, and whether that proved spurious.
    pub(super) syns: (u8, bool),
}

const fn ms(n: u64) -> Span {
    Span::millis(n)
}

const fn us(n: u64) -> Span {
    Span::micros(n)
}

const fn mbit(n: u64) -> Rate {
    Rate(n * 1_000_000)
}

const PLAIN: Case<'static> = Case {
    name: "deep-queue",
    avoidance: "reno",
    rate: Some(mbit(10)),
    rates: &[],
    rtt: ms(50),
    mss: 1000,
    iw: 10,
    acks: 400,
    queue: 1000,
    marks: None,
    unmarked: false,
    drops: &[],
    delays: &[],
    late: None,
    every: 1,
    slot: None,
    merged: false,
    short: None,
    grown: None,
    little: &[],
    turns: &[],
    rate_limited: false,
    peer: None,
    unsent: None,
    pause: None,
    timeout: None,
    stall: None,
    spurious: false,
    tcp: false,
    paces: None,
    can_pace: true,
    nic: None,
    remembered: None,
    granted: None,
    syns: (0, false),
};

/// An earlier connection of 60 packets on the same path.
const EARLIER: Option<(u64, Span, Rate)> = Some((60, ms(50), Rate(9_600_000)));

/// A path on which packets take no time: RTTs are exact.
const EXACT: Case<'static> = Case { name: "", rate: None, acks: 260, ..PLAIN };

pub(super) const CASES: &[Case<'static>] = &[
    PLAIN,
    Case { name: "shallow-queue", queue: 20, ..PLAIN },
    Case { name: "marks", marks: Some(15), ..PLAIN },
    Case { name: "marks-not-counted", marks: Some(15), unmarked: true, acks: 250, ..PLAIN },
    Case { name: "application-limited", little: &[(0, 60, 2)], queue: 60, ..PLAIN },
    Case { name: "application-limited-later", little: &[(25, 90, 12), (140, 200, 30)], acks: 500, ..PLAIN },
    // The two worked examples of draft-ietf-ccwg-ratelimited-increase: in segments, and in bytes.
    Case { name: "rate-limited-segments", turns: &[10, 4], rate_limited: true, ..EXACT },
    Case {
        name: "rate-limited-bytes",
        turns: &[4, 8, 4, 20],
        rate_limited: true,
        every: 2,
        tcp: true,
        ..EXACT
    },
    Case { name: "receive-window", peer: Some(25), acks: 300, ..PLAIN },
    Case { name: "idle", pause: Some((150, ms(3000), true)), ..PLAIN },
    Case { name: "idle-in-slow-start", pause: Some((30, ms(1500), true)), queue: 60, ..PLAIN },
    Case { name: "idle-without-restart", pause: Some((30, ms(400), false)), acks: 300, ..PLAIN },
    Case { name: "timeout", timeout: Some(120), ..PLAIN },
    Case { name: "early-timeout", timeout: Some(12), queue: 60, ..PLAIN },
    Case { name: "local-stall", stall: Some(50), acks: 200, ..PLAIN },
    Case { name: "first-window-lost", drops: &[2, 3, 4, 5], tcp: true, acks: 250, ..PLAIN },
    Case { name: "loss-in-round-2", drops: &[14, 17], acks: 200, ..PLAIN },
    Case { name: "loss-in-round-4", drops: &[81, 82, 90], tcp: true, acks: 300, ..PLAIN },
    Case { name: "two-episodes", drops: &[30, 75, 76, 140], tcp: true, acks: 400, ..PLAIN },
    Case { name: "spurious-loss", queue: 20, spurious: true, acks: 160, ..PLAIN },
    Case {
        name: "spurious-early-loss",
        drops: &[25],
        spurious: true,
        tcp: true,
        queue: 60,
        acks: 200,
        ..PLAIN
    },
    Case {
        name: "known-path",
        queue: 60,
        remembered: EARLIER,
        granted: Some(mbit(8)),
        unsent: Some(2000),
        nic: Some((mbit(100), 100)),
        ..PLAIN
    },
    Case {
        name: "known-path-longer",
        rtt: ms(80),
        remembered: EARLIER,
        granted: Some(mbit(8)),
        tcp: true,
        ..PLAIN
    },
    Case {
        name: "known-path-shorter",
        rtt: ms(20),
        remembered: EARLIER,
        granted: Some(mbit(8)),
        acks: 300,
        ..PLAIN
    },
    Case {
        name: "known-path-gone",
        rate: Some(mbit(2)),
        queue: 12,
        remembered: EARLIER,
        granted: Some(mbit(8)),
        tcp: true,
        acks: 400,
        ..PLAIN
    },
    Case {
        name: "known-path-no-pacer",
        queue: 60,
        remembered: EARLIER,
        granted: Some(mbit(8)),
        can_pace: false,
        acks: 300,
        ..PLAIN
    },
    Case {
        name: "known-path-application-limited",
        little: &[(0, 20, 6)],
        remembered: EARLIER,
        granted: Some(mbit(8)),
        acks: 300,
        ..PLAIN
    },
    Case { name: "short-flow", unsent: Some(40), tcp: true, ..PLAIN },
    Case { name: "short-flow-with-losses", unsent: Some(60), drops: &[20, 21, 55], tcp: true, ..PLAIN },
    Case { name: "host-queue", nic: Some((mbit(12), 60)), rate: Some(mbit(50)), tcp: true, ..PLAIN },
    Case { name: "host-queue-full", nic: Some((mbit(5), 40)), tcp: true, acks: 300, ..PLAIN },
    Case { name: "lost-syn", queue: 60, syns: (1, false), ..PLAIN },
    Case { name: "spurious-syn", queue: 60, syns: (1, true), acks: 300, ..PLAIN },
    Case { name: "lost-syn-twice", syns: (2, false), tcp: true, acks: 200, ..PLAIN },
    Case { name: "delayed-acks", every: 2, tcp: true, ..PLAIN },
    Case { name: "stretch-acks", every: 16, acks: 150, ..PLAIN },
    Case { name: "compressed-acks", slot: Some(ms(5)), ..PLAIN },
    Case { name: "merged-acks", slot: Some(ms(8)), merged: true, tcp: true, acks: 150, ..PLAIN },
    Case { name: "reordering", late: Some((7, us(1900))), tcp: true, acks: 400, ..PLAIN },
    Case { name: "packets-of-two-sizes", short: Some(300), ..PLAIN },
    Case { name: "larger-packets-later", mss: 1200, grown: Some((60, 1452)), ..PLAIN },
    Case { name: "jumbo-packets", mss: 8948, rate: Some(mbit(100)), acks: 250, ..PLAIN },
    Case { name: "small-initial-window", iw: 2, tcp: true, ..PLAIN },
    Case { name: "large-initial-window", iw: 40, acks: 400, ..PLAIN },
    Case { name: "rtt-5ms", rtt: ms(5), rate: Some(mbit(100)), queue: 200, ..PLAIN },
    Case { name: "rtt-200ms", rtt: ms(200), acks: 900, tcp: true, ..PLAIN },
    Case { name: "rtt-200ms-slow", rtt: ms(200), rate: Some(mbit(2)), queue: 100, acks: 400, ..PLAIN },
    Case { name: "paced", paces: Some(0), tcp: true, ..PLAIN },
    Case { name: "paced-in-bursts", paces: Some(8000), rtt: ms(20), rate: Some(mbit(50)), ..PLAIN },
    Case { name: "paced-stretch-acks", paces: Some(0), every: 12, acks: 200, ..PLAIN },
    Case {
        name: "paced-reordering",
        late: Some((7, us(1900))),
        tcp: true,
        paces: Some(0),
        every: 2,
        acks: 300,
        ..PLAIN
    },
    Case { name: "cubic", avoidance: "cubic", queue: 60, tcp: true, ..PLAIN },
    Case { name: "rtt-falls-again", delays: &[(ms(50), ms(9)), (ms(165), ms(0))], acks: 300, ..EXACT },
    Case { name: "rtt-falls-a-little", delays: &[(ms(50), ms(9)), (ms(165), us(8900))], acks: 400, ..EXACT },
    Case {
        name: "rtt-falls-below-the-threshold",
        delays: &[(ms(50), ms(9)), (ms(165), ms(6))],
        acks: 400,
        ..EXACT
    },
    Case {
        name: "rtt-falls-and-rises-again",
        iw: 8,
        delays: &[(ms(50), ms(9)), (ms(160), ms(0)), (ms(260), ms(12))],
        acks: 700,
        ..EXACT
    },
    Case { name: "rtt-rises-and-stays", delays: &[(ms(50), ms(7))], acks: 400, tcp: true, ..EXACT },
    Case { name: "rtt-rises-exactly", delays: &[(ms(50), us(6250))], ..EXACT },
    Case { name: "rtt-rises-a-little-less", delays: &[(ms(50), us(6249))], ..EXACT },
    Case { name: "rtt-rises-by-4ms", rtt: ms(20), delays: &[(ms(20), ms(4))], ..EXACT },
    Case { name: "rtt-rises-by-less-than-4ms", rtt: ms(20), delays: &[(ms(20), us(3999))], ..EXACT },
    Case { name: "rtt-rises-by-16ms", rtt: ms(200), delays: &[(ms(200), ms(16))], ..EXACT },
    Case { name: "rtt-rises-by-less-than-16ms", rtt: ms(200), delays: &[(ms(200), us(15_999))], ..EXACT },
    Case { name: "rtt-rises-after-seven-packets", iw: 7, delays: &[(ms(50), ms(20))], ..EXACT },
    Case { name: "rtt-rises-after-eight-packets", iw: 8, delays: &[(ms(50), ms(20))], ..EXACT },
    Case {
        name: "rtt-steps",
        delays: &[(ms(50), us(2001)), (ms(102), us(5000)), (ms(158), ms(20)), (ms(240), ms(51))],
        acks: 400,
        ..EXACT
    },
    Case {
        name: "rtt-lower-later",
        delays: &[(ms(0), ms(10)), (ms(60), ms(0)), (ms(112), ms(5)), (ms(168), ms(14))],
        acks: 400,
        ..EXACT
    },
    Case { name: "sizes-of-one-byte", every: 3, short: Some(1), acks: 200, ..PLAIN },
];
