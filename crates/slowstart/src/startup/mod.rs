//! Startups: one algorithm per file, and the registry that lists them all.

use crate::param::{ParamError, ParamValue, Parameters};
use crate::step::{Resume, Step};
use crate::units::{Bytes, Rate, Span};
use crate::view::{Ack, Congestion, Handshake, Recovery, Restart, Sent, View};

#[cfg(feature = "foreign")]
pub mod foreign;
pub mod not_implemented;
pub mod skip;

/// A startup: an algorithm that finds the capacity of a path at the beginning of a connection.
///
/// It receives every event, including those of application-limited senders, and answers each with a [`Step`].
/// It never writes the window; [`Composed`](crate::control::Composed) does. It is plain data: `clone` copies
/// its whole state.
pub trait Startup {
    /// Returns the rate to request from the routers of the path during the handshake (RFC 4782), or `None`.
    fn requested_rate(&self) -> Option<Rate> {
        None
    }
    /// Returns true if the algorithm uses [`Handshake::remembered`]. If false, the host need not look it up.
    fn uses_path_memory(&self) -> bool {
        false
    }
    /// Returns true if the algorithm can end by a rule of its own, and false if only congestion ends it.
    ///
    /// A static property of the algorithm; the tests over the registry check it against the exits that occur.
    fn has_exit_rule(&self) -> bool {
        true
    }
    /// Called once, when the connection is established and the application has queued its first data, of
    /// which nothing has been sent.
    fn on_established(&mut self, _v: &View, _hs: &Handshake) -> Step {
        Step::HOLD
    }
    /// Returns true if [`Startup::on_sent`] has an effect at present. If false, the host need not call it.
    fn needs_on_sent(&self) -> bool {
        false
    }
    /// Called for each packet sent, including retransmissions.
    fn on_sent(&mut self, _v: &View, _s: &Sent) {}
    /// Called for each ACK, whether or not it acknowledges new data.
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step;
    /// Called on loss, an ECN mark, a timeout or a local stall: once with `first` set at the start of an
    /// episode, then once for each further loss in it.
    ///
    /// A step without `exit` keeps the startup running. A step with `exit` and without a window leaves the
    /// reduction of the window to the avoidance. The default exits.
    fn on_congestion(&mut self, _v: &View, c: &Congestion) -> Step {
        Step::exit(c.signal.into())
    }
    /// Called at the end of a loss episode.
    fn on_recovered(&mut self, _v: &View, _r: &Recovery) -> Step {
        Step::HOLD
    }
    /// Called at the time requested with [`Step::wake`].
    fn on_timer(&mut self, _v: &View) -> Step {
        Step::HOLD
    }
    /// Returns true if the algorithm limits sending itself during the loss or ECN episode that ends it. It is
    /// then called until the end of that episode, and its windows replace those of the host's recovery.
    fn owns_recovery(&self) -> bool {
        false
    }
    /// Called when slow start begins again: after a timeout, after an idle period, or when the avoidance asks
    /// for it. Returns which growth to use then.
    fn on_restart(&mut self, _v: &View, _why: Restart) -> Resume {
        Resume::Standard
    }
    /// Called with the RTT sample of each ACK after slow start has ended, in avoidance or in a slow start that
    /// the startup does not determine: a later one may begin from the least of them.
    fn observe(&mut self, _rtt: Span) {}
    /// Called when the startup has ended, by its own rule or by an episode that it owned. Returns the window,
    /// in bytes, that the avoidance is to look for first (`W_max` of CUBIC); `None` leaves that to the
    /// avoidance.
    fn looks_for(&self, _v: &View) -> Option<Bytes> {
        None
    }
    /// Returns true if the algorithm reads the delivery state in [`Sent`], the fields after `retransmission`.
    /// If false, the host need not record it.
    fn needs_delivery_state(&self) -> bool {
        false
    }
    /// Returns the name of the current phase, for traces.
    fn phase(&self) -> &'static str {
        "slow-start"
    }
    /// Internal values, for traces. Calls `put` with name and value of each; the suffix of a name is its
    /// unit, and NaN means that the value does not exist yet.
    fn internal_values(&self, _put: &mut dyn FnMut(&'static str, f64)) {}
}

/// One name in the registry: an algorithm with the parameters of one source.
#[non_exhaustive]
pub struct StartupEntry {
    /// The name that users write and results contain. Unique in the registry.
    pub name: &'static str,
    /// The paper, RFC, draft or code that specifies it.
    pub source: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// True if its paper was not available: it is made from an abstract, or from what others write about it.
    pub is_reconstructed: bool,
    /// Returns a new instance with the parameters of `source`.
    pub make: fn() -> AnyStartup,
}

impl StartupEntry {
    /// Returns the entry of this name, or `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Self> {
        REGISTRY.iter().find(|e| e.name == name)
    }
}

macro_rules! registry {
    ($(
        $module:ident::$ty:ident {
            $($name:literal: $params:ident, $source:literal, $about:literal $(, reconstructed: $reconstructed:literal)?;)+
        }
    )+) => {
        $(pub mod $module;)+

        /// Any startup of the registry, by value: dispatch is a `match`, and nothing is allocated.
        #[allow(clippy::large_enum_variant, reason = "by value, so that nothing needs a heap")]
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum AnyStartup { $(
            #[doc = concat!("See [`", stringify!($module), "`].")]
            $ty($module::$ty)
        ),+ }

        /// All startups. The command line, the tests and the kernel's table iterate over this list.
        pub const REGISTRY: &[StartupEntry] = &[$($(StartupEntry {
            name: $name,
            source: $source,
            about: $about,
            is_reconstructed: false $(|| $reconstructed)?,
            make: || AnyStartup::$ty($module::$ty::new($module::Params::$params())),
        }),+),+];

        /// Declares one module for each startup: the ACK scripts in `tests/scripts`, one file of the same
        /// name each.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! declare_startup_modules { () => { $(mod $module;)+ } }

        $(impl Default for $module::$ty {
            /// With the default parameters.
            fn default() -> Self { Self::new($module::Params::default()) }
        })+

        impl AnyStartup {
            fn as_dyn_mut(&mut self) -> &mut dyn Startup { match self { $(Self::$ty(s) => s),+ } }
            fn as_dyn(&self) -> &dyn Startup { match self { $(Self::$ty(s) => s),+ } }

            /// Returns the size of the state that one connection keeps, in bytes.
            pub fn state_bytes(&self) -> usize { size_of_val(self.as_dyn()) }

            /// Sets the parameter `key` from text. The instance begins anew.
            ///
            /// # Errors
            /// If there is no such parameter, or the text is not a valid value of it; `self` is then
            /// unchanged.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
                match self { $(Self::$ty(s) => {
                    let mut params = s.params;
                    params.set(key, value)?;
                    *s = $module::$ty::new(params);
                }),+ }
                Ok(())
            }
            /// Calls `put` with name and value of each parameter, in order of declaration.
            pub fn each_param(&self, put: &mut dyn FnMut(&'static str, ParamValue)) {
                match self { $(Self::$ty(s) => s.params.each(put)),+ }
            }
        }

        impl Startup for AnyStartup {
            fn requested_rate(&self) -> Option<Rate> { self.as_dyn().requested_rate() }
            fn uses_path_memory(&self) -> bool { self.as_dyn().uses_path_memory() }
            fn has_exit_rule(&self) -> bool { self.as_dyn().has_exit_rule() }
            fn on_established(&mut self, v: &View, hs: &Handshake) -> Step { self.as_dyn_mut().on_established(v, hs) }
            fn needs_on_sent(&self) -> bool { self.as_dyn().needs_on_sent() }
            fn on_sent(&mut self, v: &View, s: &Sent) { self.as_dyn_mut().on_sent(v, s) }
            fn on_ack(&mut self, v: &View, a: &Ack) -> Step { match self { $(Self::$ty(s) => s.on_ack(v, a)),+ } }
            fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step { self.as_dyn_mut().on_congestion(v, c) }
            fn on_recovered(&mut self, v: &View, r: &Recovery) -> Step { self.as_dyn_mut().on_recovered(v, r) }
            fn on_timer(&mut self, v: &View) -> Step { self.as_dyn_mut().on_timer(v) }
            fn owns_recovery(&self) -> bool { self.as_dyn().owns_recovery() }
            fn on_restart(&mut self, v: &View, why: Restart) -> Resume { self.as_dyn_mut().on_restart(v, why) }
            fn observe(&mut self, rtt: Span) {
                // The others observe nothing, and every ACK in avoidance comes here.
                match self {
                    Self::HyStart(s) => s.observe(rtt),
                    Self::Stateful(s) => s.observe(rtt),
                    _ => {}
                }
            }
            fn looks_for(&self, v: &View) -> Option<Bytes> { self.as_dyn().looks_for(v) }
            fn needs_delivery_state(&self) -> bool { self.as_dyn().needs_delivery_state() }
            fn phase(&self) -> &'static str { self.as_dyn().phase() }
            fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) { self.as_dyn().internal_values(put) }
        }
    };
}

// One group for each type, `module::Type`; one line in it for each name, with the constructor of
// `module::Params` that it uses, its source and what it does. This order is that of listings and results.
registry! {
    standard::Standard {
        "standard": default, "RFC 5681, RFC 9002", "doubles each round trip until packets are lost";
    }
    limited::Limited {
        "limited": default, "RFC 3742", "doubles to 100 segments, then grows by at most 50 a round trip";
    }
    hystart::HyStart {
        "hystart": default, "Ha & Rhee 2008; Linux 6.13 and later tcp_cubic.c",
            "exits on a long ACK train or a rise of the RTT";
        "hystart-paper": paper, "Ha & Rhee 2008, Algorithm 1",
            "HyStart as published: compares the RTT with the previous round, threshold 1/16";
        "hystart-ns3": ns3, "ns-3 tcp-cubic.cc, 2019 and later",
            "HyStart with ns-3's thresholds: an ACK train, or a rise, of a whole minimum RTT";
    }
    hystart_picoquic::HyStartPicoquic {
        "hystart-picoquic": default, "picoquic cubic.c, cc_common.c, 2026",
            "exits when seven RTT samples in a row exceed their floor by a quarter, with half the window";
    }
    hystart_pp::HyStartPp {
        "hystart++": default, "RFC 9406", "a rise of the RTT reduces growth to a quarter; exits after five such rounds";
    }
    search::Search {
        "search-1.0": thesis_1_0, "SEARCH thesis, section 4.3",
            "exits when less is delivered than was sent one round trip ago";
        "search-2.0": thesis_2_0, "SEARCH thesis, Algorithm 1",
            "exits when less is delivered than twice as much as one round trip ago";
        "search-3.0": linux_3_0, "SEARCH 3.0 with 16-bit bins; netdev patch of January 2025",
            "2.0 with totals in scaled bins; resets after two bins without an ACK";
        "search-3.1": linux_3_1, "SEARCH's Linux module 3.1 with its documented search_alpha = 2",
            "3.0; resets after four bins without an ACK, or when application-limited";
        "search-3.1-shipped": linux_3_1_shipped, "SEARCH's Linux module 3.1 with its default search_alpha = 65535",
            "3.0; resets only when application-limited";
        "search-3.2": linux_3_2, "SEARCH's Linux module 3.2",
            "2.0 without interpolation, with a look-back of up to 15 bins";
        "search-4.0": linux_4_0, "SEARCH's tcp_cubic_search4.0.c, 2026",
            "search with a threshold of 0.35, 40 extra bins, scaled bins and no resets";
        "search-neqo": neqo, "Mozilla neqo cc/search.rs, 2026", "search without the drain";
        "search": default, "draft-chung-ccwg-search-09",
            "exits when less is delivered than was sent one round trip ago, then drains";
    }
    ess::Ess {
        "ess": default, "Enhanced Slow-Start",
            "jumps to the rate of an ACK train times the RTT, and exits there";
    }
    // The next seven need something of their host: its interface queue, the handshake, a pacer, routers, path
    // memory.
    restricted::Restricted {
        "restricted": default, "Allcock, Hegde & Kettimuthu 2005",
            "a PID controller on the host's interface queue limits growth before it overflows";
    }
    tsl::Tsl {
        "tsl": default, "TCP SYN Loss paper",
            "begins with 3 segments and a threshold of 16 if the handshake lost a packet";
    }
    jump_start::JumpStart {
        "jump-start": default, "Liu et al., PFLDnet 2007", "paces all queued data over the first round trip",
            reconstructed: true;
    }
    quick_start::QuickStart {
        "quick-start": default, "RFC 4782", "begins at the rate that all routers of the path granted";
    }
    halfback::Halfback {
        "halfback": default, "Li, Dong & Godfrey, CoNEXT 2015",
            "paces a short flow over one round trip, then retransmits it in reverse order",
            reconstructed: true;
    }
    stateful::Stateful {
        "stateful": default, "Guo & Lee, IEEE Access 2020; their scubic_release.c",
            "begins at the rate of an earlier connection, paced for a round trip, then hystart";
    }
    careful_resume::CarefulResume {
        "careful-resume": default, "RFC 9959",
            "jumps to half the window of an earlier connection, and retreats on loss";
    }
    abc::Abc {
        "abc": default, "RFC 3465", "grows by bytes acknowledged, at most two segments per ACK, one after a timeout";
    }
    adaptive::Adaptive {
        "adaptive": default, "Wang et al., INFOCOM 2004 (Astart, TCP Westwood)",
            "raises a low threshold to the estimated rate times the minimum RTT",
            reconstructed: true;
    }
    c4::C4 {
        "c4": default, "draft-huitema-ccwg-c4-spec; picoquic c4.c, 2026",
            "keeps twice the nominal rate; exits after three rounds of growth below a quarter, with half the window";
    }
    capstart::CapStart {
        "capstart": default, "Cavendish et al. 2009",
            "limited slow start if the path is slower than the sender's interface",
            reconstructed: true;
    }
    delay::Delay {
        "delay": default, "Ha & Rhee 2008, reference 9",
            "doubles until the RTT rises, then grows as limited slow start";
    }
    hybla::Hybla {
        "hybla": default, "Caini & Firrincieli 2004; Linux tcp_hybla.c",
            "grows as fast as a connection with an RTT of 25 ms";
    }
    packet_pair::PacketPair {
        "packet-pair": default, "Hoe 1996", "doubles up to the capacity estimated from the spacing of the first ACKs",
            reconstructed: true;
    }
    rapid_start::RapidStart {
        "rapid-start": default, "draft-kazuho-ccwg-rapid-start, editor's copy of 2026",
            "paced; triples while there is no queue; reduces the window by what is acknowledged and lost";
        "rapid-start-00": draft_00, "draft-kazuho-ccwg-rapid-start-00; quicly",
            "rapid-start with K = 11/18, without pacing and W_max";
    }
    rate_bound::RateBound {
        "rate-bound": default, "docs/explain/rate-bound.md",
            "the rate of ACKs bounds the window; exits when a larger flight brings no higher rate";
    }
    smooth::Smooth {
        "smooth": default, "Wang et al. 2000, as described by Ha & Rhee 2008",
            "halves its growth in steps on the second half of the way to a threshold",
            reconstructed: true;
    }
    stopeg::StopEg {
        "stopeg": default, "Arghavani et al., LCN 2020", "exits when more than 56.8 % of the data in flight is on the forward path",
            reconstructed: true;
    }
    suss::Suss {
        "suss": default, "Arghavani et al., SIGCOMM 2024; SUSSprg for Linux 6.8",
            "quadruples in rounds it considers safe, the added packets paced";
    }
    vegas::Vegas {
        "vegas": default, "Brakmo & Peterson 1995", "doubles every other round trip until one segment is queued";
        "vegas-linux": linux, "Linux tcp_vegas.c", "doubles each round trip until one segment is queued";
    }
}
