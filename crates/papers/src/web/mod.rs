//! A cloud of web clients behind one bottleneck, as the TSL paper has it: connections that come and go, one answer each,
//! and what becomes of those whose SYN-ACK was lost.

mod measure;
pub mod packmime;

pub use measure::Measure;

use packmime::{Connection, PackMime};
use serde::Deserialize;
use slowstart::avoidance;
use slowstart::units::{Instant, Span};
use slowstart_lab::app;
use slowstart_lab::engine::{Direction, Engine, FlowSpec};
use slowstart_lab::path::PathSpec;
use slowstart_lab::random::Stream;
use slowstart_lab::scenario::{self, StudyError};
use slowstart_lab::tcp::profile::Profile;

/// Connections at a time: what does not find a place is counted and not made.
const PLACES: usize = 8192;
/// Nothing counts before this.
const WARM_UP: Span = Span::secs(60);
/// The mean answer with its headers, by which a load becomes a rate of connections (PackMime's marginals).
const MEAN_BYTES: f64 = 8300.0;
/// The first timeout of a handshake (RFC 6298 §2).
const TIMEOUT_S: f64 = 1.0;
/// Width of the bins in which arrivals are kept, seconds.
const BIN_S: f64 = slowstart_lab::engine::BIN.0 as f64 / 1e9;

/// What is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// What the clients ask for, as a share of the bottleneck's rate.
    pub load: f64,
    /// The bottleneck, without the connections' own delays.
    pub path: String,
    /// It ends when so many connections have lost a SYN-ACK ...
    pub lost: u64,
    /// ... or so many have come.
    pub connections: u64,
    /// The same with `--full`: the paper's.
    pub full: u64,
    /// Of a hundred connections so many use the startup; the others standard TCP.
    #[serde(default = "all")]
    pub share: u64,
    /// While more than so many of a thousand handshakes of the last ten seconds lost a SYN-ACK, standard TCP is used: the
    /// feedback that section 3.4 of the paper advises.
    pub suspend_above: Option<u64>,
}

fn all() -> u64 {
    100
}

/// What standard TCP does after a lost SYN-ACK: TSL (1,2).
const STANDARD: &str = "tsl:iw=1,ssthresh=2";

/// A connection that lost its SYN-ACK.
#[derive(Copy, Clone, Debug)]
pub struct RetriedConnection {
    /// Its answer, bytes.
    pub bytes: u64,
    /// Its round trip, seconds.
    pub rtt_s: f64,
    /// From the SYN to the last byte, without the timeouts of the handshake, seconds.
    pub response_s: f64,
    /// Those timeouts, seconds: 0 if the first answer to its SYN was under way when the timer ran out, so that nothing
    /// was lost and nothing waited.
    pub waited_s: f64,
    /// It used the startup studied, not standard TCP.
    pub studied: bool,
}

impl RetriedConnection {
    /// The response time in round trips.
    pub fn rtts(&self) -> f64 {
        self.response_s / self.rtt_s
    }
}

/// What was result.
#[derive(Clone, Debug, Default)]
pub struct WebResult {
    /// Connections that lost a SYN-ACK, in the order in which they ended.
    pub retried: Vec<RetriedConnection>,
    /// Connections that came after the warm-up, and of all that came, those that found no place.
    pub connections: u64,
    /// See `connections`.
    pub refused: u64,
    /// Of each connection that came after the warm-up: bytes asked with, bytes of the answer, the round trip in seconds.
    pub drawn: Vec<(u32, u32, f32)>,
    /// Mean response time of those that lost none, in round trips.
    pub others_rtts: f64,
    /// Data packets sent and dropped in each second after the warm-up.
    pub seconds: Vec<(u64, u64)>,
    /// Bytes of answers that were complete, and of all that were asked for, after the warm-up.
    pub delivered: u64,
    /// The bottleneck's rate, bit/s.
    pub rate_bps: u64,
}

impl WebResult {
    /// Data packets dropped, of those sent.
    pub fn loss_rate(&self) -> f64 {
        let (sent, dropped) = self.seconds.iter().fold((0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
        dropped as f64 / sent as f64
    }

    /// The greatest loss rate of any second that sent a hundred packets or more.
    pub fn peak_loss_rate(&self) -> f64 {
        let rate = |(sent, dropped): &(u64, u64)| *dropped as f64 / *sent as f64;
        self.seconds.iter().filter(|s| s.0 >= 100).map(rate).fold(0.0, f64::max)
    }

    /// Bytes of complete answers a second, as a share of the bottleneck's rate.
    pub fn throughput(&self) -> f64 {
        self.delivered as f64 * 8.0 / (self.seconds.len() as f64 * self.rate_bps as f64)
    }
}

/// A connection under way.
#[derive(Clone, Copy)]
struct Open {
    place: usize,
    connection: Connection,
    studied: bool,
    /// It began after the warm-up.
    counts: bool,
}

struct Cloud<'a> {
    web: &'a Web,
    engine: Engine,
    open: Vec<Open>,
    result: WebResult,
    /// Handshakes that ended, and those of them that lost a SYN-ACK, in each of the last ten seconds.
    handshakes: [(u64, u64); 10],
    others: u64,
}

impl Cloud<'_> {
    /// Takes leave of connections that are over.
    fn sweep(&mut self) {
        let engine = &mut self.engine;
        let (result, handshakes, others) = (&mut self.result, &mut self.handshakes, &mut self.others);
        self.open.retain(|o| {
            if !engine.is_over(o.place) {
                return true;
            }
            engine.leave(o.place);
            let f = &engine.flows[o.place];
            let losses = f.ends[0].syn_losses();
            handshakes[0].0 += 1;
            handshakes[0].1 += u64::from(losses > 0);
            let Some(done) = f.truth.completed.filter(|_| o.counts) else { return false };
            result.delivered += o.connection.response;
            let rtt_s = o.connection.rtt.as_secs_f64();
            let took = done.since(f.spec.start).as_secs_f64();
            if losses == 0 {
                *others += 1;
                result.others_rtts += took / rtt_s;
                return false;
            }
            // A round trip beyond the timeout, with its queue, only seems to lose: the answer's first byte is there before
            // a handshake that did wait, two round trips with the request, can bring it.
            let waited = TIMEOUT_S * ((1_u64 << losses) - 1) as f64;
            let first = f.truth.bins().iter().position(|b| *b > 0).map_or(took, |i| i as f64 * BIN_S);
            let waited_s = if first + BIN_S < waited + 2.0 * rtt_s { 0.0 } else { waited };
            result.retried.push(RetriedConnection {
                bytes: o.connection.response,
                rtt_s,
                response_s: took - waited_s,
                waited_s,
                studied: o.studied,
            });
            false
        });
    }

    fn is_suspended(&self) -> bool {
        let Some(most) = self.web.suspend_above else { return false };
        let (all, lost) = self.handshakes.iter().fold((0, 0), |a, s| (a.0 + s.0, a.1 + s.1));
        lost * 1000 > most * all
    }
}

/// One run of a startup among web clients.
pub fn run(
    web: &Web,
    label: &str,
    profile: &Profile,
    seed: u64,
    full: bool,
) -> Result<WebResult, StudyError> {
    let (_, studied) = scenario::algorithm("web", label)?;
    let (_, standard) = scenario::algorithm("web", STANDARD)?;
    let spec = PathSpec::load(&web.path, None)?;
    let rate_bps = spec.facts().rate.0;
    let rate = web.load * rate_bps as f64 / (8.0 * MEAN_BYTES);
    let reno = avoidance::REGISTRY.iter().find(|a| a.name == "reno").map(|a| (a.make)());
    let avoidance = reno.unwrap_or_else(|| (avoidance::REGISTRY[0].make)());
    let mut cloud = Cloud {
        web,
        engine: Engine::open(spec.build(seed), PLACES, seed),
        open: Vec::new(),
        result: WebResult { rate_bps, ..WebResult::default() },
        handshakes: [(0, 0); 10],
        others: 0,
    };
    let mut chance = Stream::named(seed, "web.share");
    let mut at = Instant::ZERO;
    let (mut second, mut before) = (1_u64, (0, 0));
    let most = if full { web.full } else { web.connections };
    for connection in PackMime::new(rate, seed) {
        at = at + connection.gap;
        while Instant::ZERO + Span::secs(second) <= at {
            cloud.engine.run(Instant::ZERO + Span::secs(second));
            cloud.sweep();
            cloud.handshakes.rotate_right(1);
            cloud.handshakes[0] = (0, 0);
            let now = (cloud.engine.cost.packets, cloud.engine.dropped);
            if Span::secs(second) > WARM_UP {
                cloud.result.seconds.push((now.0 - before.0, now.1 - before.1));
            }
            before = now;
            second += 1;
        }
        cloud.engine.run(at);
        let counts = at.since(Instant::ZERO) > WARM_UP;
        let lost = cloud.result.retried.len() as u64;
        if cloud.result.connections >= most || (!full && lost >= web.lost) {
            break;
        }
        cloud.result.connections += u64::from(counts);
        if counts {
            let (request, response) = (connection.request as u32, connection.response as u32);
            cloud.result.drawn.push((request, response, connection.rtt.as_secs_f64() as f32));
        }
        let uses = chance.below(100) < web.share && !cloud.is_suspended();
        let flow = FlowSpec {
            start: at,
            direction: Direction::Download,
            app: app::Kind::Request { request: connection.request, response: connection.response },
            startup: if uses { studied.clone() } else { standard.clone() },
            avoidance: avoidance.clone(),
            profile: *profile,
            extra_delay: connection.rtt / 2,
            remembered: None,
            recorded: false,
            witness_from: None,
        };
        match cloud.engine.enter(flow, seed) {
            Some(place) => cloud.open.push(Open { place, connection, studied: uses, counts }),
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

    /// Places are used again, all that comes is answered, and the same seed gives the same.
    #[test]
    fn a_cloud_comes_and_goes() {
        let web: Web = toml::from_str(
            "load = 0.9\npath = 'rate=10Mbit rtt=1us queue=100packets'\nlost = 1000000\nconnections = 20000\nfull = 20000",
        )
        .expect("as written");
        let one = run(&web, "tsl", &Profile::NS2, 1, false).expect("a run");
        let two = run(&web, "tsl", &Profile::NS2, 1, false).expect("a run");
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
        assert!((0.5..1.0).contains(&one.throughput()), "{}", one.throughput());
        assert!(one.others_rtts > 2.0);
        assert_eq!(one.seconds, two.seconds);
        assert_eq!(one.retried.len(), two.retried.len());
    }
}
