//! Startups: one algorithm a file, the one list of them in the project, and a list of those that cannot be built.

use crate::param::{ParamError, ParamValue, Parameters};
use crate::step::{Resume, Step};
use crate::units::Rate;
use crate::view::{Ack, Congestion, Handshake, Recovery, Restart, Sent, View};

pub mod not_implemented;

/// A way of finding the capacity of a path that is not yet known.
///
/// It sees every event, application-limited ones too, and answers with what it wants; it never writes the window
/// itself. It is plain data: a clone is a second opinion, a fresh clone is a restart.
pub trait Startup {
    /// The rate to ask the routers of the path for, in the handshake.
    fn requested_rate(&self) -> Option<Rate> {
        None
    }
    /// Whether it uses what an earlier connection found: a host may spare itself the search otherwise.
    fn uses_path_memory(&self) -> bool {
        false
    }
    /// The connection is established and the application has written its first data; none of it has been sent.
    fn on_established(&mut self, _v: &View, _hs: &Handshake) -> Step {
        Step::HOLD
    }
    /// Whether it wants to see each packet leave: a host need not tell it otherwise.
    fn needs_on_sent(&self) -> bool {
        false
    }
    /// A packet left.
    fn on_sent(&mut self, _v: &View, _s: &Sent) {}
    /// New data was acknowledged.
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step;
    /// Loss, mark, timeout or stall: once an episode with `first`, then once for each newly marked loss. To answer
    /// without an exit is to stay in startup; an exit without a window leaves the cut to the avoidance.
    fn on_congestion(&mut self, _v: &View, c: &Congestion) -> Step {
        Step::exit(c.signal.into())
    }
    /// The loss episode is over.
    fn on_recovered(&mut self, _v: &View, _r: &Recovery) -> Step {
        Step::HOLD
    }
    /// The time asked for has come.
    fn on_timer(&mut self, _v: &View) -> Step {
        Step::HOLD
    }
    /// Whether it bounds sending in the episode of losses or marks that ends it: it then is asked until that is over,
    /// and its windows are those of the recovery.
    fn owns_recovery(&self) -> bool {
        false
    }
    /// Slow start again: how to go on.
    fn on_restart(&mut self, _v: &View, _why: Restart) -> Resume {
        Resume::Standard
    }
    /// The name of the phase it is in.
    fn phase(&self) -> &'static str {
        "slow-start"
    }
    /// What it thinks, for traces and tests.
    fn internal_values(&self, _put: &mut dyn FnMut(&'static str, f64)) {}
}

/// One line of the registry: an algorithm with the parameters of one source.
pub struct StartupEntry {
    /// Its name, wherever a person writes one.
    pub name: &'static str,
    /// The paper, RFC or draft it follows.
    pub source: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// With that source's parameters.
    pub make: fn() -> AnyStartup,
}

impl StartupEntry {
    /// The line of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        REGISTRY.iter().find(|e| e.name == name)
    }
}

macro_rules! registry {
    (
        types { $($module:ident :: $ty:ident),* $(,)? }
        $($name:literal => $line:ident($params:expr), $source:literal, $about:literal;)*
    ) => {
        $(pub mod $module;)*

        /// Any startup of the registry, by value.
        #[allow(clippy::large_enum_variant, reason = "by value, so that nothing needs a heap")]
        #[derive(Clone, Debug)]
        pub enum AnyStartup { $(
            #[doc = concat!("See [`", stringify!($module), "`].")]
            $ty($module::$ty)
        ),* }

        /// Every startup there is. The command line, the documentation, the laws and the kernel's table iterate over it.
        pub const REGISTRY: &[StartupEntry] = &[$(StartupEntry {
            name: $name,
            source: $source,
            about: $about,
            make: || AnyStartup::$line(<registry!(@type $line)>::new($params)),
        }),*];

        impl AnyStartup {
            fn get(&mut self) -> &mut dyn Startup { match self { $(Self::$ty(s) => s),* } }
            fn see(&self) -> &dyn Startup { match self { $(Self::$ty(s) => s),* } }

            /// Bytes that one connection keeps of it.
            pub fn state_bytes(&self) -> usize { size_of_val(self.see()) }

            /// Sets one parameter from what a person wrote.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
                match self { $(Self::$ty(s) => s.params.set(key, value)),* }
            }
            /// Shows each parameter.
            pub fn each_param(&self, put: &mut dyn FnMut(&'static str, ParamValue)) {
                match self { $(Self::$ty(s) => s.params.each(put)),* }
            }
        }

        impl Startup for AnyStartup {
            fn requested_rate(&self) -> Option<Rate> { self.see().requested_rate() }
            fn uses_path_memory(&self) -> bool { self.see().uses_path_memory() }
            fn on_established(&mut self, v: &View, hs: &Handshake) -> Step { self.get().on_established(v, hs) }
            fn needs_on_sent(&self) -> bool { self.see().needs_on_sent() }
            fn on_sent(&mut self, v: &View, s: &Sent) { self.get().on_sent(v, s) }
            fn on_ack(&mut self, v: &View, a: &Ack) -> Step { match self { $(Self::$ty(s) => s.on_ack(v, a)),* } }
            fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step { self.get().on_congestion(v, c) }
            fn on_recovered(&mut self, v: &View, r: &Recovery) -> Step { self.get().on_recovered(v, r) }
            fn on_timer(&mut self, v: &View) -> Step { self.get().on_timer(v) }
            fn owns_recovery(&self) -> bool { self.see().owns_recovery() }
            fn on_restart(&mut self, v: &View, why: Restart) -> Resume { self.get().on_restart(v, why) }
            fn phase(&self) -> &'static str { self.see().phase() }
            fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) { self.see().internal_values(put) }
        }
    };
    (@type Standard) => { standard::Standard };
    (@type Limited) => { limited::Limited };
    (@type HyStart) => { hystart::HyStart };
    (@type HyStartPp) => { hystart_pp::HyStartPp };
    (@type Search) => { search::Search };
    (@type Ess) => { ess::Ess };
    (@type Restricted) => { restricted::Restricted };
    (@type Tsl) => { tsl::Tsl };
    (@type JumpStart) => { jump_start::JumpStart };
    (@type QuickStart) => { quick_start::QuickStart };
    (@type Halfback) => { halfback::Halfback };
    (@type Stateful) => { stateful::Stateful };
    (@type CarefulResume) => { careful_resume::CarefulResume };
    (@type Abc) => { abc::Abc };
    (@type Adaptive) => { adaptive::Adaptive };
    (@type CapStart) => { capstart::CapStart };
    (@type Delay) => { delay::Delay };
    (@type Hybla) => { hybla::Hybla };
    (@type PacketPair) => { packet_pair::PacketPair };
    (@type RapidStart) => { rapid_start::RapidStart };
    (@type Smooth) => { smooth::Smooth };
    (@type StopEg) => { stopeg::StopEg };
    (@type Suss) => { suss::Suss };
    (@type Vegas) => { vegas::Vegas };
}

registry! {
    types {
        standard::Standard, limited::Limited, hystart::HyStart, hystart_pp::HyStartPp, search::Search, ess::Ess,
        restricted::Restricted, tsl::Tsl, jump_start::JumpStart, quick_start::QuickStart, halfback::Halfback,
        stateful::Stateful, careful_resume::CarefulResume,
        abc::Abc, adaptive::Adaptive, capstart::CapStart, delay::Delay, hybla::Hybla, packet_pair::PacketPair,
        rapid_start::RapidStart, smooth::Smooth, stopeg::StopEg, suss::Suss, vegas::Vegas,
    }

    "standard" => Standard(standard::Params::default()),
        "RFC 5681, RFC 9002", "doubles each round trip until packets are lost";
    "limited" => Limited(limited::Params::default()),
        "RFC 3742", "doubles to 100 segments, then grows by at most 50 a round trip";
    "hystart" => HyStart(hystart::Params::default()),
        "Ha & Rhee 2011; Linux 6.13 and later tcp_cubic.c", "leaves on a long ACK train or a rise in delay";
    "hystart-paper" => HyStart(hystart::Params::paper()),
        "Ha & Rhee 2011, Algorithm 1", "the same as published: a rise over the round before, by a sixteenth";
    "hystart-ns3" => HyStart(hystart::Params::ns3()),
        "ns-3 tcp-cubic.cc, 2019 and later", "the same with ns-3's thresholds: a train, or a rise, of a whole round trip";
    "hystart++" => HyStartPp(hystart_pp::Params::default()),
        "RFC 9406", "a rise in delay slows growth to a quarter; five such rounds end it";
    "search-1.0" => Search(search::Params::thesis_1_0()),
        "SEARCH thesis, section 4.3", "leaves when delivery falls short of what was sent a round trip ago";
    "search-2.0" => Search(search::Params::thesis_2_0()),
        "SEARCH thesis, Algorithm 1", "leaves when delivery falls short of twice what it was a round trip ago";
    "search-3.0" => Search(search::Params::linux_3_0()),
        "SEARCH's Linux module, late 2024", "2.0 with totals in scaled bins; a short silence starts it over";
    "search-3.1" => Search(search::Params::linux_3_1()),
        "SEARCH's Linux patch of January 2025", "3.0; a longer silence, or a limited application, starts it over";
    "search" => Search(search::Params::default()),
        "draft-chung-ccwg-search-09", "leaves when delivery falls short of what was sent a round trip ago, then drains";
    "ess" => Ess(ess::Params::default()),
        "Enhanced Slow-Start", "jumps to the rate of an ACK train times the round trip, and leaves there";
    // What needs something of its host: its queue, the handshake, a pacer, routers, memory.
    "restricted" => Restricted(restricted::Params::default()),
        "Allcock, Hegde & Kettimuthu 2005", "a PID on the host's own queue holds growth back before it overflows";
    "tsl" => Tsl(tsl::Params::default()),
        "TCP SYN Loss paper", "begins with 3 segments and a threshold of 16 where the handshake lost a packet";
    "jump-start" => JumpStart(jump_start::Params::default()),
        "Liu et al., PFLDnet 2007", "paces all that is queued over the first round trip";
    "quick-start" => QuickStart(quick_start::Params::default()),
        "RFC 4782", "begins at the rate that every router of the path has granted";
    "halfback" => Halfback(halfback::Params::default()),
        "Li, Dong & Godfrey, CoNEXT 2015", "paces a short flow over a round trip, then sends it again from behind";
    "stateful" => Stateful(stateful::Params::default()),
        "Guo & Lee, IEEE Access 2020", "begins with the rate an earlier connection ended with, then avoidance";
    "careful-resume" => CarefulResume(careful_resume::Params::default()),
        "draft-ietf-tsvwg-careful-resume-24", "jumps to half of an earlier connection's window, and retreats on loss";

    "abc" => Abc(abc::Params::default()),
        "RFC 3465", "counts bytes, at most two segments an ACK, one after a timeout";
    "adaptive" => Adaptive(adaptive::Params::default()),
        "Wang et al., INFOCOM 2004 (Astart, TCP Westwood)", "raises a low threshold as the estimated rate allows";
    "capstart" => CapStart(capstart::Params::default()),
        "Cavendish et al. 2009", "limited slow start if the path is narrower than the sender's interface";
    "delay" => Delay(delay::Params::default()),
        "Ha & Rhee 2011, reference 9", "doubles until the round-trip time rises, then grows as limited slow start";
    "hybla" => Hybla(hybla::Params::default()),
        "Caini & Firrincieli 2004; Linux tcp_hybla.c", "grows in time as a connection of 25 ms would";
    "packet-pair" => PacketPair(packet_pair::Params::default()),
        "Hoe 1996", "doubles up to the capacity that the spacing of the first ACKs shows";
    "rapid-start" => RapidStart(rapid_start::Params::default()),
        "draft-kazuho-ccwg-rapid-start-00", "triples while there is no queue, and lets losses say how far to come down";
    "smooth" => Smooth(smooth::Params::default()),
        "Wang et al. 2000, after Ha & Rhee 2011", "halves its growth in steps on the last half of the way to a threshold";
    "stopeg" => StopEg(stopeg::Params::default()),
        "Arghavani et al., LCN 2020", "leaves when too much of what is in flight is on the way there";
    "suss" => Suss(suss::Params::default()),
        "Arghavani et al., SIGCOMM 2024; SUSSprg for Linux 6.8", "quadruples in rounds it judges safe, the added half paced";
    "vegas" => Vegas(vegas::Params::default()),
        "Brakmo & Peterson 1995", "doubles every other round trip until a segment waits in a queue";
    "vegas-linux" => Vegas(vegas::Params::linux()),
        "Linux tcp_vegas.c", "doubles each round trip until a segment waits in a queue";
}
