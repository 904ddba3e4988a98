//! Web clients behind one bottleneck, as in the TSL paper: connections arrive, request one answer each or
//! several, and close. The connections of interest are those whose SYN-ACK was lost.

mod measure;
pub mod packmime;

pub use measure::Measure;

use crate::background::stated_jitter;
use packmime::{Connection, PackMime};
use serde::Deserialize;
use slowstart::avoidance;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_sim::app;
use slowstart_sim::engine::{Direction, End, Engine, FlowId, FlowSpec};
use slowstart_sim::path::PathSpec;
use slowstart_sim::random::Stream;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::scenario::{self, StudyError};
use std::sync::Arc;

/// Greatest number of concurrent connections; arrivals beyond it are counted as refused.
const SLOTS: usize = 8192;
/// Connections that begin before this time are not counted.
const WARM_UP: Span = Span::secs(60);
/// IP and TCP headers of a packet, bytes.
const HEADER: u64 = 40;
/// Answers of this size or more are large: their throughput is kept.
const LARGE: u64 = 100_000;
/// The first timeout of a handshake (RFC 6298 §2).
const TIMEOUT_S: f64 = 1.0;
/// Width of the engine's bins of delivered bytes, seconds.
const BIN_S: f64 = slowstart_sim::engine::BIN.0 as f64 / 1e9;

/// Configuration of the clients and the bottleneck.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Offered load, as a share of the bottleneck's rate: the mean answer, with the headers of its packets.
    pub load: f64,
    /// The bottleneck, without the connections' own round-trip times.
    pub path: String,
    /// The run ends when this many connections have arrived after the warm-up.
    pub connections: u64,
    /// Number of connections with `--full`: that of the paper.
    pub full: u64,
    /// Per cent of connections that use the startup; the others use standard TCP.
    #[serde(default = "all")]
    pub share: u64,
    /// Connections carry as many objects as `PackMime`'s HTTP/1.1 has them, each with a response time of its
    /// own. Without it each carries one (HTTP/1.0, the default of ns-2's `PackMime`).
    #[serde(default)]
    pub objects: bool,
    /// While more than this many of a thousand handshakes of the last ten seconds were retransmitted,
    /// standard TCP is used (the feedback that section 3.4 of the paper advises).
    pub suspend_above: Option<u64>,
}

fn all() -> u64 {
    100
}

impl Web {
    /// The paper's own run, in runs of ours.
    pub fn paper_runs(&self) -> f64 {
        self.full as f64 / self.connections as f64
    }

    fn bottleneck(&self) -> Result<PathSpec, StudyError> {
        Ok(PathSpec::load(&stated_jitter(self.path.clone()), None)?)
    }

    /// The mean number of connections a second that offers the load.
    pub fn connection_rate(&self, profile: &Profile) -> Result<f64, StudyError> {
        let offered = self.load * self.bottleneck()?.facts().rate.0 as f64 / 8.0;
        Ok(packmime::connection_rate(offered, f64::from(profile.mss), HEADER as f64, self.objects))
    }
}

/// Standard TCP after a lost SYN-ACK: TSL (1,2).
const STANDARD: &str = "tsl:iw=1,ssthresh=2";

/// An object of a connection whose SYN-ACK was sent again.
#[derive(Copy, Clone, Debug)]
pub struct RetriedConnection {
    /// Size of the object, bytes.
    pub bytes: u64,
    /// Round-trip time of its connection, seconds.
    pub rtt_s: f64,
    /// Time from the SYN, or from the request of an object after the first, to the last byte, seconds,
    /// without "the 1-second initial RTO delay before the SYN-ACK is retransmitted".
    pub response_s: f64,
    /// That second; 0 if the SYN-ACK was in transit when the timer expired, so that nothing was lost and the
    /// connection did not wait, and for objects after the first.
    pub waited_s: f64,
    /// What the connection waited beyond that second, because the SYN-ACK was lost more than once.
    pub waited_more_s: f64,
    /// True if it used the startup studied, false if it used standard TCP.
    pub studied: bool,
}

impl RetriedConnection {
    /// The response time in round-trip times.
    pub fn rtts(&self) -> f64 {
        self.response_s / self.rtt_s
    }
}

/// The result of a run of web clients.
#[derive(Clone, Debug, Default)]
pub struct WebResult {
    /// Connections whose SYN was retransmitted, in the order in which they ended.
    pub retried: Vec<RetriedConnection>,
    /// Number of connections that arrived after the warm-up.
    pub connections: u64,
    /// Number of arrivals that found no free slot.
    pub refused: u64,
    /// The connections after the warm-up.
    pub drawn: Drawn,
    /// Mean response time of connections whose SYN was not retransmitted, in round-trip times.
    pub others_rtts: f64,
    /// Throughput of large answers in bit/s, with their size in bytes and true if they used the startup
    /// studied.
    pub large: Vec<(u64, f64, bool)>,
    /// Number of data packets that servers sent, and of those dropped, in each second after the warm-up.
    pub seconds: Vec<(u64, u64)>,
    /// Bytes of completed answers after the warm-up.
    pub delivered: u64,
    /// Bytes of IP packets that left the bottleneck in those seconds; `None` if it does not count them.
    pub carried: Option<u64>,
    /// The bottleneck's rate, bit/s.
    pub rate_bps: u64,
}

impl WebResult {
    /// The share of packets that were dropped.
    pub fn loss_rate(&self) -> f64 {
        let (sent, dropped) = self.seconds.iter().fold((0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
        dropped as f64 / sent as f64
    }

    /// The greatest loss rate of a second with a hundred packets or more.
    pub fn peak_loss_rate(&self) -> f64 {
        let rate = |(sent, dropped): &(u64, u64)| *dropped as f64 / *sent as f64;
        self.seconds.iter().filter(|s| s.0 >= 100).map(rate).fold(0.0, f64::max)
    }

    /// Bytes of IP packets that left the bottleneck, as a share of what it can carry.
    pub fn utilisation(&self) -> Option<f64> {
        Some(self.carried? as f64 * 8.0 / (self.seconds.len() as f64 * self.rate_bps as f64))
    }

    /// Rate of completed answers, as a share of the bottleneck's rate.
    pub fn throughput(&self) -> f64 {
        self.delivered as f64 * 8.0 / (self.seconds.len() as f64 * self.rate_bps as f64)
    }
}

/// For each connection after the warm-up: size of the request and of the answer in bytes, round-trip time in seconds.
type Drawn = Arc<[(u32, u32, f32)]>;

/// The connections of a run, the same for each startup.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// When each arrives. The last one ends the run.
    all: Vec<(Instant, Connection)>,
    /// Those after the warm-up, without the last.
    drawn: Drawn,
}

impl Arrivals {
    /// Draws connections at a mean of `rate` a second, of which `counted` arrive after the warm-up.
    pub fn new(rate: f64, counted: u64, seed: u64) -> Self {
        let (mut all, mut drawn, mut at) = (Vec::new(), Vec::new(), Instant::ZERO);
        for connection in PackMime::new(rate, seed) {
            at = at + connection.gap;
            all.push((at, connection));
            if drawn.len() as u64 >= counted {
                break;
            }
            if is_counted(at) {
                let (request, response) = (connection.request as u32, connection.response as u32);
                drawn.push((request, response, connection.rtt.as_secs_f64() as f32));
            }
        }
        Self { all, drawn: drawn.into() }
    }
}

/// True if a connection that arrives at this time comes after the warm-up.
fn is_counted(at: Instant) -> bool {
    at.since(Instant::ZERO) > WARM_UP
}

/// An open connection.
#[derive(Clone, Copy)]
struct Open {
    slot: FlowId,
    connection: Connection,
    studied: bool,
    /// True if it began after the warm-up.
    counts: bool,
    /// Data packets that its server sent before this second.
    sent: u64,
}

struct Cloud<'a> {
    web: &'a Web,
    engine: Engine,
    open: Vec<Open>,
    result: WebResult,
    /// Completed handshakes, and those with a retransmission, in each of the last ten seconds.
    handshakes: [(u64, u64); 10],
    others: u64,
    /// Data packets that servers have sent.
    sent: u64,
}

impl Cloud<'_> {
    /// Removes finished connections and records their results.
    fn sweep(&mut self) {
        let engine = &mut self.engine;
        let (result, handshakes, others) = (&mut self.result, &mut self.handshakes, &mut self.others);
        self.open.retain_mut(|o| {
            let f = engine.flow(o.slot);
            let packets = f.ends[f.sender()].tx.counters.packets;
            self.sent += packets - o.sent;
            o.sent = packets;
            if !engine.is_finished(o.slot) {
                return true;
            }
            engine.free_slot(o.slot);
            let f = engine.flow(o.slot);
            let losses = f.ends[End::Server].syn_losses();
            let waited = f.ends[End::Server].syn_wait().as_secs_f64();
            handshakes[0].0 += 1;
            handshakes[0].1 += u64::from(losses > 0);
            let Some(done) = f.truth.completed.filter(|_| o.counts) else { return false };
            let (start, rtt_s) = (f.spec.start, o.connection.rtt.as_secs_f64());
            let took = done.since(start).as_secs_f64();
            // The first object takes from the SYN, each other from its request.
            let first = |i: usize, requested| if i == 0 { start } else { requested };
            let more = f.objects().iter().enumerate();
            let more =
                more.filter_map(|(i, o)| Some((o.bytes, o.came?.since(first(i, o.asked)).as_secs_f64())));
            let (more, one): (Vec<(u64, f64)>, _) = (more.collect(), [(o.connection.response, took)]);
            let objects = if more.is_empty() { &one[..] } else { &more };
            for &(bytes, took) in objects {
                result.delivered += bytes;
                if bytes >= LARGE {
                    result.large.push((bytes, bytes as f64 * 8.0 / took, o.studied));
                }
            }
            if losses == 0 {
                *others += 1;
                result.others_rtts += took / rtt_s;
                return false;
            }
            // If the RTT with its queue exceeds the timeout, the timer expires although nothing was lost: the
            // first byte of the answer arrives earlier than a retransmitted handshake and the request (two
            // round trips) allow.
            let first = f.truth.bins().iter().position(|b| *b > 0).map_or(took, |i| i as f64 * BIN_S);
            let waited = if first + BIN_S < waited + 2.0 * rtt_s { 0.0 } else { waited };
            let waited_s = waited.min(TIMEOUT_S);
            let object = |(i, &(bytes, took)): (usize, &(u64, f64))| {
                let (waited, waited_s) = if i == 0 { (waited, waited_s) } else { (0.0, 0.0) };
                RetriedConnection {
                    bytes,
                    rtt_s,
                    response_s: took - waited_s,
                    waited_s,
                    waited_more_s: waited - waited_s,
                    studied: o.studied,
                }
            };
            result.retried.extend(objects.iter().enumerate().map(object));
            false
        });
    }

    fn is_suspended(&self) -> bool {
        let Some(most) = self.web.suspend_above else { return false };
        let (all, lost) = self.handshakes.iter().fold((0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
        lost * 1000 > most * all
    }
}

/// Runs one startup among web clients, with these connections.
pub fn run(
    web: &Web,
    label: &str,
    profile: &Profile,
    arrivals: &Arrivals,
    seed: u64,
) -> Result<WebResult, StudyError> {
    let (_, studied) = scenario::algorithm("web", label)?;
    let (_, standard) = scenario::algorithm("web", STANDARD)?;
    let spec = web.bottleneck()?;
    let rate_bps = spec.facts().rate.0;
    let reno = avoidance::REGISTRY.iter().find(|a| a.name == "reno").map(|a| (a.make)());
    let avoidance = reno.unwrap_or_else(|| (avoidance::REGISTRY[0].make)());
    let mut cloud = Cloud {
        web,
        engine: Engine::with_slots(spec.build(seed), SLOTS, seed),
        open: Vec::new(),
        result: WebResult { rate_bps, drawn: arrivals.drawn.clone(), ..WebResult::default() },
        handshakes: [(0, 0); 10],
        others: 0,
        sent: 0,
    };
    let mut chance = Stream::named(seed, "web.share");
    let (mut second, mut before) = (1_u64, (0, 0));
    let mut carried_before = None;
    for &(at, connection) in &arrivals.all {
        while Instant::ZERO + Span::secs(second) <= at {
            cloud.engine.run(Instant::ZERO + Span::secs(second));
            cloud.sweep();
            cloud.handshakes.rotate_right(1);
            cloud.handshakes[0] = (0, 0);
            let now = (cloud.sent, cloud.engine.dropped);
            let carried = cloud.engine.path().forward.carried(Instant::ZERO + Span::secs(second));
            if Span::secs(second) > WARM_UP {
                cloud.result.seconds.push((now.0 - before.0, now.1 - before.1));
                let since = carried.zip(carried_before).map(|(now, then): (Bytes, Bytes)| (now - then).0);
                cloud.result.carried = since;
            } else {
                carried_before = carried;
            }
            before = now;
            second += 1;
        }
        cloud.engine.run(at);
        if cloud.result.connections >= arrivals.drawn.len() as u64 {
            break;
        }
        let counts = is_counted(at);
        cloud.result.connections += u64::from(counts);
        let uses = chance.below(100) < web.share && !cloud.is_suspended();
        let (request, response) = (connection.request, connection.response);
        let app = match connection.objects - 1 {
            more @ 1.. if web.objects => app::Kind::Objects { request, response, more },
            _ => app::Kind::Request { request, response },
        };
        let flow = FlowSpec {
            start: at,
            direction: Direction::Download,
            app,
            startup: if uses { studied.clone() } else { standard.clone() },
            avoidance: avoidance.clone(),
            profile: *profile,
            extra_delay: connection.rtt / 2,
            links: slowstart_sim::path::Links::ALL,
            remembered: None,
            recorded: false,
            impact_from: None,
        };
        match cloud.engine.add_flow(flow, seed) {
            Some(slot) => cloud.open.push(Open { slot, connection, studied: uses, counts, sent: 0 }),
            None => cloud.result.refused += 1,
        }
    }
    cloud.sweep();
    cloud.result.others_rtts /= cloud.others as f64;
    Ok(cloud.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of TSL with seed 1.
    fn one(web: &Web) -> WebResult {
        let rate = web.connection_rate(&Profile::NS2).expect("a rate");
        run(web, "tsl", &Profile::NS2, &Arrivals::new(rate, web.connections, 1), 1).expect("a run")
    }

    /// Slots are used again, every connection is answered, and the same seed gives the same result.
    #[test]
    fn connections_arrive_and_end() {
        let web: Web = toml::from_str(
            "load = 0.9\npath = 'rate=10Mbit rtt=1us queue=100packets'\nconnections = 20000\nfull = 20000",
        )
        .expect("as written");
        let (one, two) = (one(&web), one(&web));
        println!(
            "loss {:.4}, peak {:.3}, retried {}, throughput {:.3}, others {:.2}, {} s, refused {}",
            one.loss_rate(),
            one.peak_loss_rate(),
            one.retried.len(),
            one.throughput(),
            one.others_rtts,
            one.seconds.len(),
            one.refused
        );
        assert_eq!((one.refused, one.connections), (0, 20_000));
        let utilisation = one.utilisation().expect("a link without a discipline");
        assert!((one.throughput()..=1.0).contains(&utilisation), "{utilisation}");
        assert!((0.5..1.0).contains(&one.throughput()), "{}", one.throughput());
        assert!(one.others_rtts > 2.0);
        assert_eq!(one.seconds, two.seconds);
        assert_eq!(one.retried.len(), two.retried.len());
    }

    /// Where more is offered than the link carries, it is full and no fuller, and the answers are what is left
    /// of it without headers.
    #[test]
    fn a_link_is_never_more_than_full() {
        for objects in [false, true] {
            let web: Web = toml::from_str(&format!(
                "load = 1.3\npath = 'rate=10Mbit rtt=1us queue=100packets'\nconnections = 12000\nfull = 12000\nobjects = {objects}",
            ))
            .expect("as written");
            let result = one(&web);
            let (carried, answers) = (result.utilisation().expect("counted"), result.throughput());
            println!("objects {objects}: utilisation {carried:.4}, throughput {answers:.4}");
            assert!((0.98..=1.0).contains(&carried), "{carried}");
            // 1460 of 1500 bytes are payload.
            assert!(answers < 0.9734 * carried, "{answers}");
        }
    }

    /// With several objects a connection the load is what is asked.
    #[test]
    fn the_load_of_objects_is_what_is_asked() {
        let web: Web = toml::from_str(
            "load = 0.4\npath = 'rate=10Mbit rtt=1us queue=1000packets'\nconnections = 60000\nfull = 60000\nobjects = true",
        )
        .expect("as written");
        let result = one(&web);
        let utilisation = result.utilisation().expect("counted");
        println!("utilisation {utilisation:.4}");
        assert!((0.38..0.43).contains(&utilisation), "{utilisation}");
    }
}
