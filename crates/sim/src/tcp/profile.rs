//! The knobs of a TCP stack, and named sets of them. What changes results more than most algorithms do is
//! here, never hidden in code.

use super::ecn::EcnRule;
use crate::path::quantity;
use slowstart::param::Value as _;
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::Growth;

/// How the retransmission timeout is bounded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// `srtt + max(rto_min, 4 rttvar)`, with the variance's decay held for a round trip.
    Linux,
    /// `max(rto_min, srtt + 4 rttvar)` (RFC 6298; ns-3).
    Rfc6298,
}

/// How far the window of a sender grows that does not use it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Gating {
    /// As if it did.
    Off,
    /// Not at all; in slow start while it is less than twice what was in flight (`tcp_is_cwnd_limited`).
    Linux,
    /// Up to what slow start, or Reno's congestion avoidance, makes in a round trip of the most in flight since
    /// the last reduction (draft-ietf-ccwg-ratelimited-increase).
    Draft,
}

/// When a receiver acknowledges in-order data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// An acknowledgement for each packet.
    Each,
    /// Each packet at first (`quick` of them), then every second one or after the delay (Linux).
    QuickThenDelayed,
    /// Every second packet, or after the delay, from the start (FreeBSD, Windows, ns-3).
    Delayed,
}

/// How large a receive buffer becomes in which `space` bytes and then `copied` bytes are read in an RTT.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RightSize {
    /// Twice `copied` and 16 segments, and twice as much in proportion to the growth (`tcp_rcv_space_adjust` until 6.16).
    V612,
    /// Twice `copied`, twice as much in proportion to the growth, and what data beyond a hole spans (`tcp_rcvbuf_grow`).
    V618,
}

/// A setting of a stack that a user can give by name.
pub struct Knob {
    /// The name that `--set` takes.
    pub name: &'static str,
    /// The values that it takes, in words.
    pub expects: &'static str,
    /// What the knob does, in a sentence.
    pub about: &'static str,
    /// Sets it from what a person wrote; `None` for a value that it does not take.
    set: fn(&mut Profile, &str) -> Option<()>,
}

impl std::fmt::Debug for Knob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knob").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A whole number within limits.
fn number(text: &str, least: u32, most: u32) -> Option<u32> {
    u32::read(text).filter(|n| (least..=most).contains(n))
}

/// One of these words.
fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

/// A TCP stack: its settings, fixed for a run.
#[derive(Copy, Clone, Debug)]
pub struct Profile {
    /// Its name in results.
    pub name: &'static str,
    /// Whose stack it is, in a line.
    pub about: &'static str,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Initial window, segments (RFC 6928: 10).
    pub iw: u32,
    /// What an ACK earns in slow start.
    pub growth: Growth,
    /// How far the window of a sender grows that does not use it.
    pub gating: Gating,
    /// Pacing of senders whose controller does not set a pace: at twice cwnd/srtt in slow start, 1.2 times
    /// after. Linux does so under the fq qdisc. A controller that sets a pace is paced either way, as by the
    /// internal pacing of Linux (`sk_pacing_status` is `SK_PACING_NEEDED`, which `tcp_bbr` sets).
    pub pacing: bool,
    /// The largest burst handed over at once, bytes; 0 sends packet by packet.
    pub tso: u32,
    /// A burst that could yet grow waits for it, a millisecond at most (`tcp_tso_should_defer`).
    pub tso_defer: bool,
    /// Selective acknowledgement (RFC 2018), with duplicates reported (RFC 2883).
    pub sack: bool,
    /// True if it offers timestamps (RFC 7323).
    pub timestamps: bool,
    /// Measure round trips by what timestamps echo, to their millisecond, and not by when each segment left.
    pub echo_rtt: bool,
    /// Loss detection by time (RFC 8985); without it by three duplicates (RFC 6675).
    pub rack: bool,
    /// Tail loss probes (RFC 8985 §7).
    pub tlp: bool,
    /// Proportional rate reduction (RFC 6937); without it the window is cut at once.
    pub prr: bool,
    /// Send new data on the first duplicates (RFC 3042).
    pub limited_transmit: bool,
    /// Take back the reduction for a spurious loss (RFC 3522, RFC 3708).
    pub undo: bool,
    /// Tell a spurious timeout from what is acknowledged after it (F-RTO, RFC 5682).
    pub frto: bool,
    /// How the retransmission timeout is bounded.
    pub rto_rule: RtoRule,
    /// The time by which `rto_rule` bounds the timeout.
    pub rto_min: Span,
    /// The timeout with which data begins after a handshake packet was sent again, if there is no RTT sample
    /// (RFC 6298 §5.7: 3 s).
    pub rto_lost_syn: Span,
    /// The first window is one segment after a second retransmission of the SYN or SYN-ACK (`tcp_init_transfer`).
    pub iw_lost_syn: bool,
    /// Restart from the initial window after an idle period (RFC 2861, `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// How the receiver acknowledges.
    pub ack: AckRule,
    /// Acknowledgements it sends at once at the start.
    pub quick: u32,
    /// The end of a burst or of a write (PSH) is acknowledged when the application has read it
    /// (`tcp_measure_rcv_mss`, `tcp_cleanup_rbuf`; since Linux 6.6 for full segments too).
    pub ack_pushed: bool,
    /// Acknowledgements of what lies beyond a hole go together, up to a millisecond apart
    /// (`tcp_comp_sack_delay_ns`).
    pub compress_acks: bool,
    /// Longest delay of an acknowledgement.
    pub delack: Span,
    /// The largest size to which receive offload merges segments, bytes; 0 for none.
    pub gro: u32,
    /// How long the first of them may wait: until the interrupt, or `gro_flush_timeout`.
    pub gro_wait: Span,
    /// Grow the receive window with what arrives (dynamic right-sizing).
    pub autotune: bool,
    /// By how much.
    pub right_size: RightSize,
    /// The receive buffer at first, bytes (`tcp_rmem[1]`): half of it is window.
    pub rmem_first: Bytes,
    /// The largest receive buffer (`tcp_rmem[2]`), bytes: with `autotune` five eighths of it are window at most, since
    /// packets take memory beside their payload; without, all of it.
    pub rmem: Bytes,
    /// The rate at which the application reads what has arrived; `None` for at once.
    pub read_rate: Option<Rate>,
    /// The send buffer, bytes: data sent and not acknowledged never exceeds it. Unlimited by default.
    pub send_buffer: Bytes,
    /// TCP small queues: what a connection may have in the queue of its own host is this binary fraction of a
    /// second at its pacing rate (`sk_pacing_shift`), and two bursts at least; `None` for no limit. Only on a
    /// path with `host_rate`.
    pub tsq: Option<u8>,
    /// The most it may have there in any case, bytes (`tcp_limit_output_bytes`, 4 MB since Linux 6.16).
    pub limit_output: Bytes,
    /// Retransmissions of a SYN that come a second apart before their timer doubles
    /// (`tcp_syn_linear_timeouts`).
    pub syn_linear: u32,
    /// How often a SYN is sent again before the connection is given up, beyond those a second apart.
    pub syn_retries: u32,
    /// How often a SYN-ACK is.
    pub synack_retries: u32,
    /// A full queue of its own interface is congestion: the window is reduced, once a round trip (Linux 2.4).
    pub stalls: bool,
    /// How it uses explicit congestion notification.
    pub ecn: EcnRule,
    /// Segments carry the `AccECN` option, where both ends have accurate feedback (`tcp_ecn_option`).
    pub ecn_option: bool,
    /// CPU time that an acknowledgement with SACK blocks takes at the sender for each packet of its write
    /// queue; 0 for none. Linux until 2.6.24 walked the queue (`tcp_sacktag_write_queue`); what a packet
    /// takes depends on the machine.
    pub sack_cost: Span,
    /// Close with a FIN, and wait for its acknowledgement.
    pub fin: bool,
}

impl Profile {
    /// Linux 6.18 as distributions ship it: under the default qdisc `fq_codel`, which does not pace. Buffers
    /// are large enough for the path, as an operator of it would set them.
    pub const LINUX_6_18: Self = Self {
        name: "linux-6.18",
        about: "Linux 6.18 under fq_codel, as distributions ship it: only controllers that ask for it are paced",
        mss: 1448,
        iw: 10,
        growth: Growth::Bytes,
        gating: Gating::Linux,
        pacing: false,
        tso: 65536,
        tso_defer: true,
        sack: true,
        timestamps: true,
        echo_rtt: false,
        rack: true,
        tlp: true,
        prr: true,
        limited_transmit: true,
        undo: true,
        frto: true,
        rto_rule: RtoRule::Linux,
        rto_min: Span::millis(200),
        rto_lost_syn: Span::secs(3),
        iw_lost_syn: true,
        idle_restart: true,
        ack: AckRule::QuickThenDelayed,
        quick: 16,
        ack_pushed: true,
        compress_acks: true,
        delack: Span::millis(40),
        gro: 0,
        gro_wait: Span::micros(50),
        autotune: true,
        right_size: RightSize::V618,
        rmem_first: Bytes(128 << 10),
        rmem: Bytes(256 << 20),
        read_rate: None,
        send_buffer: Bytes(u64::MAX),
        tsq: Some(10),
        limit_output: Bytes(4 << 20),
        syn_linear: 4,
        syn_retries: 6,
        synack_retries: 5,
        stalls: false,
        ecn: EcnRule::Off,
        ecn_option: false,
        sack_cost: Span::ZERO,
        fin: true,
    };

    /// Linux 6.18 under the fq qdisc, as servers of large sites configure it: every sender is paced.
    pub const LINUX_6_18_FQ: Self = Self {
        name: "linux-6.18-fq",
        about: "Linux 6.18 under the fq qdisc: every sender is paced",
        pacing: true,
        ..Self::LINUX_6_18
    };

    /// Linux 6.18 with receive offload (GRO) behind an interface that interrupts 20,000 times a second, as
    /// Intel's gigabit drivers do under light load (`igb`, `e1000e`: 4,000 times a second under bulk load).
    pub const LINUX_6_18_GRO: Self = Self {
        name: "linux-6.18-gro",
        about: "Linux 6.18 with receive offload: what arrives within 50 us is acknowledged as one, up to 64 kB",
        gro: 65536,
        ..Self::LINUX_6_18
    };

    /// Linux 2.6.23, the stack of the `HyStart` paper: ACK counting, no pacing, initial window 3, no RACK.
    pub const LINUX_2_6: Self = Self {
        name: "linux-2.6",
        about: "Linux 2.6.23: counts ACKs, no pacing, no RACK",
        iw: 3,
        growth: Growth::PerAck,
        tso_defer: false,
        // A window that is large from the start: with one that grows, each packet would be acknowledged while
        // it does.
        autotune: false,
        rack: false,
        ack_pushed: false,
        tlp: false,
        prr: false,
        // tcp_frto is off by default before 2.6.24.
        frto: false,
        // Since 3.6.
        tsq: None,
        iw_lost_syn: false,
        compress_acks: false,
        syn_linear: 0,
        syn_retries: 5,
        ..Self::LINUX_6_18
    };

    /// Linux 2.4: as 2.6, and a full queue of the host's own interface is congestion.
    pub const LINUX_2_4: Self = Self {
        name: "linux-2.4",
        about: "Linux 2.4: as 2.6, and a full queue of its own interface is congestion",
        tso: 0,
        stalls: true,
        ..Self::LINUX_2_6
    };

    /// The world of the closed forms: unpaced, no bursts held together, no receive-window limit, each packet
    /// acknowledged, one segment for each ACK.
    pub const IDEAL: Self = Self {
        name: "ideal",
        about: "the world of the closed forms: unpaced, each packet acknowledged, no receive window",
        growth: Growth::PerAck,
        gating: Gating::Off,
        tso: 0,
        ack: AckRule::Each,
        iw_lost_syn: false,
        ack_pushed: false,
        compress_acks: false,
        autotune: false,
        rmem: Bytes(1 << 30),
        ..Self::LINUX_6_18
    };

    /// ns-3's `TcpSocketBase` as its examples run it: byte counting, delayed ACK 2, minimum timeout 1 s, no
    /// RACK.
    pub const NS3: Self = Self {
        name: "ns3",
        about: "ns-3's TcpSocketBase as its examples run it",
        tso: 0,
        echo_rtt: true,
        iw_lost_syn: false,
        gating: Gating::Off,
        rack: false,
        tlp: false,
        frto: false,
        tsq: None,
        rto_rule: RtoRule::Rfc6298,
        rto_min: Span::secs(1),
        idle_restart: false,
        // Its receiver acknowledges the first segment at once, then every second.
        ack: AckRule::QuickThenDelayed,
        quick: 1,
        ack_pushed: false,
        compress_acks: false,
        delack: Span::millis(200),
        autotune: false,
        rmem: Bytes(1 << 30),
        syn_linear: 0,
        ..Self::LINUX_6_18
    };

    /// What the TSL paper says of its hosts in ns-2: initial window 3, each packet acknowledged, a
    /// timeout of 1 s until the first RTT sample, after a lost handshake packet too (its Table 1; ns-2 has no
    /// rule of RFC 6298 §5.7). ns-2's `PackMime` runs `FullTcp`, whose SYN timer and back-off are its own; they are
    /// not modelled.
    pub const NS2: Self = Self {
        name: "ns2",
        about: "hosts of ns-2 by the parameters of the TSL paper, not a model of FullTcp",
        mss: 1460,
        iw: 3,
        growth: Growth::PerAck,
        tso: 0,
        timestamps: false,
        rack: false,
        tlp: false,
        prr: false,
        frto: false,
        tsq: None,
        ack: AckRule::Each,
        ack_pushed: false,
        compress_acks: false,
        rto_lost_syn: Span::secs(1),
        iw_lost_syn: false,
        autotune: false,
        rmem: Bytes(1000 * 1460),
        syn_linear: 0,
        ..Self::LINUX_6_18
    };

    /// Every stack that has a name.
    pub const ALL: [&'static Self; 8] = [
        &Self::LINUX_6_18,
        &Self::LINUX_6_18_FQ,
        &Self::LINUX_6_18_GRO,
        &Self::LINUX_2_6,
        &Self::LINUX_2_4,
        &Self::IDEAL,
        &Self::NS3,
        &Self::NS2,
    ];

    /// The set of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name == name).copied()
    }

    /// Every knob: what [`Profile::set`] takes.
    pub const KNOBS: &[Knob] = &[
        Knob {
            name: "iw",
            expects: "a number of segments from 1 to 1000",
            about: "Initial window (RFC 6928).",
            set: |p, v| number(v, 1, 1000).map(|n| p.iw = n),
        },
        Knob {
            name: "mss",
            expects: "payload bytes of a segment, 64 to 8960",
            about: "Payload of a full segment.",
            set: |p, v| number(v, 64, 8960).map(|n| p.mss = n),
        },
        Knob {
            name: "growth",
            expects: "one of bytes, abc, rfc5681, ack",
            about: "What an ACK adds to the window in slow start: all acknowledged bytes; those of at most two segments (RFC 3465); at most one segment (RFC 5681); one segment for each ACK.",
            set: |p, v| {
                word(
                    v,
                    &[
                        ("bytes", Growth::Bytes),
                        ("abc", Growth::Abc { limit: 2 }),
                        ("rfc5681", Growth::Segment),
                        ("ack", Growth::PerAck),
                    ],
                )
                .map(|g| p.growth = g)
            },
        },
        Knob {
            name: "gating",
            expects: "one of on, off, draft",
            about: "The window grows only if the sender uses it: as in Linux, or to the bound of draft-ietf-ccwg-ratelimited-increase.",
            set: |p, v| {
                word(v, &[("on", Gating::Linux), ("off", Gating::Off), ("draft", Gating::Draft)])
                    .map(|g| p.gating = g)
            },
        },
        Knob {
            name: "pacing",
            expects: "on or off",
            about: "Packets are paced, at 2 cwnd/SRTT in slow start and 1.2 after.",
            set: |p, v| bool::read(v).map(|on| p.pacing = on),
        },
        Knob {
            name: "tso",
            expects: "bytes of a burst, 0 to 524280",
            about: "Largest burst that is handed over at once; 0 sends packet by packet.",
            set: |p, v| number(v, 0, 524_280).map(|n| p.tso = n),
        },
        Knob {
            name: "tso_defer",
            expects: "on or off",
            about: "A burst that could still grow waits up to 1 ms.",
            set: |p, v| bool::read(v).map(|on| p.tso_defer = on),
        },
        Knob {
            name: "sack",
            expects: "on or off",
            about: "Selective acknowledgements (RFC 2018).",
            set: |p, v| bool::read(v).map(|on| p.sack = on),
        },
        Knob {
            name: "timestamps",
            expects: "on or off",
            about: "Timestamps (RFC 7323).",
            set: |p, v| bool::read(v).map(|on| p.timestamps = on),
        },
        Knob {
            name: "echo_rtt",
            expects: "on or off",
            about: "RTT samples are taken from echoed timestamps, in milliseconds.",
            set: |p, v| bool::read(v).map(|on| p.echo_rtt = on),
        },
        Knob {
            name: "rack",
            expects: "on or off",
            about: "Loss detection by time (RFC 8985); without it by three duplicates.",
            set: |p, v| bool::read(v).map(|on| p.rack = on),
        },
        Knob {
            name: "tlp",
            expects: "on or off",
            about: "Tail loss probes (RFC 8985).",
            set: |p, v| bool::read(v).map(|on| p.tlp = on),
        },
        Knob {
            name: "prr",
            expects: "on or off",
            about: "Proportional rate reduction (RFC 6937); without it the window is cut at once.",
            set: |p, v| bool::read(v).map(|on| p.prr = on),
        },
        Knob {
            name: "limited_transmit",
            expects: "on or off",
            about: "New data is sent on the first duplicate ACKs (RFC 3042).",
            set: |p, v| bool::read(v).map(|on| p.limited_transmit = on),
        },
        Knob {
            name: "undo",
            expects: "on or off",
            about: "Undo the reduction of the window after a spurious loss (RFC 3522, RFC 3708).",
            set: |p, v| bool::read(v).map(|on| p.undo = on),
        },
        Knob {
            name: "frto",
            expects: "on or off",
            about: "Detect a spurious timeout by what is acknowledged after it (RFC 5682).",
            set: |p, v| bool::read(v).map(|on| p.frto = on),
        },
        Knob {
            name: "rto",
            expects: "one of linux, rfc6298",
            about: "Rule for the retransmission timeout.",
            set: |p, v| {
                word(v, &[("linux", RtoRule::Linux), ("rfc6298", RtoRule::Rfc6298)]).map(|r| p.rto_rule = r)
            },
        },
        Knob {
            name: "rto_min",
            expects: "a time such as 200ms",
            about: "Lower bound in that rule.",
            set: |p, v| Span::read(v).map(|t| p.rto_min = t),
        },
        Knob {
            name: "rto_lost_syn",
            expects: "a time such as 3s",
            about: "Timeout with which data begins after a handshake packet was sent again (RFC 6298 5.7).",
            set: |p, v| Span::read(v).filter(|t| *t > Span::ZERO).map(|t| p.rto_lost_syn = t),
        },
        Knob {
            name: "iw_lost_syn",
            expects: "on or off",
            about: "One segment is the first window after a second retransmission of the SYN or SYN-ACK.",
            set: |p, v| bool::read(v).map(|on| p.iw_lost_syn = on),
        },
        Knob {
            name: "idle_restart",
            expects: "on or off",
            about: "The window shrinks after an idle period (RFC 2861).",
            set: |p, v| bool::read(v).map(|on| p.idle_restart = on),
        },
        Knob {
            name: "stalls",
            expects: "on or off",
            about: "A full queue of the sender's own interface counts as congestion (Linux 2.4).",
            set: |p, v| bool::read(v).map(|on| p.stalls = on),
        },
        Knob {
            name: "ecn",
            expects: "one of off, passive, rfc3168, dctcp, accecn",
            about: "Explicit congestion notification: none; accepted; asked for with the feedback of RFC 3168, of DCTCP (RFC 8257) or of Accurate ECN (RFC 9768).",
            set: |p, v| {
                word(
                    v,
                    &[
                        ("off", EcnRule::Off),
                        ("passive", EcnRule::Passive),
                        ("rfc3168", EcnRule::Rfc3168),
                        ("dctcp", EcnRule::Dctcp),
                        ("accecn", EcnRule::AccEcn),
                    ],
                )
                .map(|e| p.ecn = e)
            },
        },
        Knob {
            name: "ecn_option",
            expects: "on or off",
            about: "With ecn=accecn each segment carries the AccECN option: bytes by codepoint.",
            set: |p, v| bool::read(v).map(|on| p.ecn_option = on),
        },
        Knob {
            name: "ack",
            expects: "one of each, quick-then-delayed, delayed",
            about: "How the receiver acknowledges.",
            set: |p, v| {
                word(
                    v,
                    &[
                        ("each", AckRule::Each),
                        ("quick-then-delayed", AckRule::QuickThenDelayed),
                        ("delayed", AckRule::Delayed),
                    ],
                )
                .map(|a| p.ack = a)
            },
        },
        Knob {
            name: "quick",
            expects: "a number of acknowledgements",
            about: "ACKs that the receiver sends at once at the start.",
            set: |p, v| number(v, 0, u32::MAX).map(|n| p.quick = n),
        },
        Knob {
            name: "ack_pushed",
            expects: "on or off",
            about: "The end of a burst or of a write is acknowledged at once.",
            set: |p, v| bool::read(v).map(|on| p.ack_pushed = on),
        },
        Knob {
            name: "compress_acks",
            expects: "on or off",
            about: "ACKs above a hole are sent together, up to 1 ms late.",
            set: |p, v| bool::read(v).map(|on| p.compress_acks = on),
        },
        Knob {
            name: "delack",
            expects: "a time such as 40ms",
            about: "Longest delay of an ACK.",
            set: |p, v| Span::read(v).map(|t| p.delack = t),
        },
        Knob {
            name: "gro",
            expects: "bytes of merged segments, 0 to 65536",
            about: "Largest size to which receive offload merges segments; 0 for none.",
            set: |p, v| number(v, 0, 65536).map(|n| p.gro = n),
        },
        Knob {
            name: "gro_wait",
            expects: "a time such as 50us",
            about: "How long receive offload holds the first segment.",
            set: |p, v| Span::read(v).map(|t| p.gro_wait = t),
        },
        Knob {
            name: "autotune",
            expects: "on or off",
            about: "The receive window grows with what arrives.",
            set: |p, v| bool::read(v).map(|on| p.autotune = on),
        },
        Knob {
            name: "right_size",
            expects: "one of 6.12, 6.18",
            about: "How far the receive window grows, by the version of Linux.",
            set: |p, v| {
                word(v, &[("6.12", RightSize::V612), ("6.18", RightSize::V618)]).map(|r| p.right_size = r)
            },
        },
        Knob {
            name: "rmem_first",
            expects: "bytes of the receive buffer at first, 5840 to 1073741824",
            about: "Half of it is the first receive window.",
            set: |p, v| number(v, 5840, 1 << 30).map(|n| p.rmem_first = Bytes(u64::from(n))),
        },
        Knob {
            name: "rmem",
            expects: "bytes of the largest receive buffer, 2920 to 1073741824",
            about: "Upper limit of the receive window: five eighths of it, as packets take memory beside their payload; all of it without autotune.",
            set: |p, v| number(v, 2920, 1 << 30).map(|n| p.rmem = Bytes(u64::from(n))),
        },
        Knob {
            name: "read_rate",
            expects: "a rate such as 20Mbit, or off",
            about: "Rate at which the receiving application reads; off: at once.",
            set: |p, v| {
                p.read_rate =
                    if v == "off" { None } else { Some(quantity::rate(v).filter(|r| *r > Rate(0))?) };
                Some(())
            },
        },
        Knob {
            name: "send_buffer",
            expects: "bytes that may be sent and not acknowledged, 2920 to 1073741824",
            about: "The sender's socket buffer; unlimited by default.",
            set: |p, v| number(v, 2920, 1 << 30).map(|n| p.send_buffer = Bytes(u64::from(n))),
        },
        Knob {
            name: "tsq",
            expects: "off, or a shift from 0 to 16 such as 10",
            about: "TCP small queues: what may wait in the sender's own queue, as 1/2^shift s at the pacing rate; on paths with host_rate.",
            set: |p, v| {
                p.tsq = if v == "off" { None } else { Some(number(v, 0, 16)? as u8) };
                Some(())
            },
        },
        Knob {
            name: "limit_output",
            expects: "bytes from 2920 to 1073741824",
            about: "The most that small queues let wait (tcp_limit_output_bytes).",
            set: |p, v| number(v, 2920, 1 << 30).map(|n| p.limit_output = Bytes(u64::from(n))),
        },
        Knob {
            name: "sack_cost",
            expects: "a time such as 0.05us",
            about: "CPU time for an ACK with SACK blocks, for each packet of the sender's queue (Linux until 2.6.24).",
            set: |p, v| Span::read(v).map(|t| p.sack_cost = t),
        },
        Knob {
            name: "syn_linear",
            expects: "a number of retransmissions from 0 to 10",
            about: "SYN retransmissions 1 s apart before the timer doubles.",
            set: |p, v| number(v, 0, 10).map(|n| p.syn_linear = n),
        },
    ];

    /// Sets one knob from what a person wrote; `Err` says what was expected, or that there is no such knob.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Option<&'static str>> {
        let knob = Self::KNOBS.iter().find(|k| k.name == key).ok_or(None)?;
        (knob.set)(self, value).ok_or(Some(knob.expects))
    }

    /// The largest window it can offer: what the header can tell (RFC 7323 §2.3).
    pub fn max_window(&self) -> u64 {
        self.rmem.0.min(0xffff << 14)
    }

    /// Bytes of a full segment as an IP packet.
    pub fn packet(&self) -> u32 {
        let options = if self.timestamps { super::segment::TIMESTAMP_OPTION } else { 0 };
        self.mss + options + super::segment::HEADERS
    }
}
