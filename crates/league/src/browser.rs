//! Connections of a browser, as its congestion control sees them: what the browser sends, when, and over
//! which path. Downloads are in it as the requests for them, and as the time until the next.
//!
//! Each quantity with its law and its source:
//! - **Pages**, after the web model of 3GPP2 and IEEE 802.16m (printed in EURASIP JWCN 2012:287, table 1): a
//!   request; once its answer is parsed (exponential, mean 0.13 s), a truncated Pareto number of further
//!   requests (mean 5.64, at most 53); then reading (exponential, mean 30 s). Ours: all are of one server,
//!   the further requests are sent at once, and an answer comes half a round trip after its request arrived.
//! - **The end** of the connection is the first time of reading above 30 s, neqo's default idle timeout
//!   (`connection/params.rs`).
//! - **Headers** of a request: 200 to 2,000 bytes (SPDY whitepaper, Chromium), log-uniform (ours), the same
//!   for all requests of a connection; all but the first send 15 % of it (header compression saves 85 %).
//! - **Bodies** of requests: the tail of `PackMime`'s request sizes (Cao et al., INFOCOM 2004) beyond the
//!   largest headers: 0.5 % of the requests exceed 4,885 bytes, 0.05 % 23 kB, which is the largest here.
//! - **Files**: truncated lognormal, mean 2 MB, deviation 0.722 MB, at most 5 MB (the FTP model of the same
//!   table). One page in 400 uploads one: households send 5.5 % of their bytes (`OpenVault`, October 2018);
//!   of a page's share of a connection (6.64 requests of the HTTP Archive's median 29 kB) that is 11 kB, of
//!   which requests and acknowledgements leave 5 kB.
//! - **Rate** of the uplink: lognormal, median 33 Mbit/s, 95 % below 202: what Firefox reaches with uploads
//!   above 10 MB (its telemetry, `networking_http_3_upload_throughput`, release 152: 33, 71 and 202 at the
//!   50th, 75th and 95th percentile).
//! - **Round trip**: lognormal, median 39 ms (Schlinker et al., IMC 2019), 90 % below 173 ms (90th percentile
//!   of sites for desktops in the Chrome UX report, December 2024).
//! - **Queue**: lognormal in time, median 80 ms, deviation of the logarithm 1.27: those of the eleven access
//!   networks of quicly's simulator (`t/simulator-plot.rb`).
//! - **Random loss**: log-uniform (ours) from 0.001 to 0.4 %, where the FCC's reports on fixed broadband draw
//!   their first line.
//! - **Wi-Fi**: two connections in three (ours), with the jitter of C4's test draft both ways, target 1 to 7
//!   ms, log-uniform (ours).

use slowstart::units::Span;
use slowstart_sim::random::{self, Stream};

/// What the browser writes at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// How long it waits before, once the server has all that was written until then.
    pub wait: Span,
    /// Bytes.
    pub bytes: u64,
}

/// A connection of a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The seed of everything random in its run.
    pub seed: u64,
    /// The path from the browser to the server, as `slowstart compare` takes it.
    pub path: String,
    /// What it sends.
    pub writes: Vec<Burst>,
    /// How many files are among it.
    pub files: u32,
}

/// Mean time to parse a page.
const PARSING: Span = Span::millis(130);
/// Mean time to read a page.
const READING: Span = Span::secs(30);
/// A connection without traffic for so long is closed.
const IDLE: Span = Span::secs(30);
/// Further requests of a page: a Pareto number of this shape, at least and at most these, less the least.
const REQUESTS: (f64, f64, f64) = (1.1, 2.0, 55.0);
/// Bytes of a request's headers.
const HEADERS: (f64, f64) = (200.0, 2_000.0);
/// Percent of its headers that a later request sends.
const COMPRESSED: u64 = 15;
/// The tail of the sizes of requests: minus the decimal logarithm of the share above, and bytes. Between two
/// entries the logarithm of the size is linear.
const BODIES: [(f64, f64); 3] = [(1.301_03, 1_063.0), (2.301_03, 4_885.0), (3.301_03, 23_000.0)];
/// The share of pages that upload a file, in millionths.
const FILES: u32 = 2_500;
/// Bytes of a file: median, deviation of the logarithm, and the most.
const FILE: (f64, f64, f64) = (1_881_000.0, 0.35, 5e6);
/// Rate of the uplink, kbit/s: median, deviation of the logarithm.
const RATE: (f64, f64) = (33_000.0, 1.1);
/// Base round trip, microseconds.
const RTT: (f64, f64) = (39_000.0, 1.16);
/// Queue, microseconds.
const QUEUE: (f64, f64) = (80_000.0, 1.27);
/// Random loss, in millionths.
const LOSS: (f64, f64) = (10.0, 4_000.0);
/// The share of connections over Wi-Fi, in millionths, and the target of their jitter in microseconds.
const WIFI: u32 = 666_667;
const JITTER: (f64, f64) = (1_000.0, 7_000.0);

/// A lognormal number of this median and deviation of the logarithm.
fn lognormal(r: &mut Stream, (median, deviation): (f64, f64)) -> f64 {
    median * libm::exp(deviation * r.normal())
}

fn log_uniform(r: &mut Stream, (low, high): (f64, f64)) -> f64 {
    low * libm::pow(high / low, r.unit())
}

/// Draws a connection of a seed.
pub fn connection(drawn_from: u64, number: u32) -> Connection {
    let own = Stream::named(drawn_from, "browser").any();
    let seed = random::at(own, u64::from(number)) >> 11;
    let (path, rtt) = path(seed);
    let (writes, files) = writes(seed, rtt);
    Connection { seed, path, writes, files }
}

/// The path, and its base round trip.
fn path(seed: u64) -> (String, Span) {
    let draw = |name, law| lognormal(&mut Stream::named(seed, name), law);
    let rate = draw("rate", RATE).clamp(256.0, 1e6) as u64;
    let rtt = draw("rtt", RTT).clamp(2_000.0, 600_000.0) as u64;
    let queue = draw("queue", QUEUE).clamp(5_000.0, 2e6) as u64;
    let loss = log_uniform(&mut Stream::named(seed, "loss"), LOSS) as u64;
    let mut r = Stream::named(seed, "wifi");
    let wifi = r.chance(WIFI).then(|| log_uniform(&mut r, JITTER) as u64);
    let jitter = wifi.map_or(String::new(), |us| format!(" wifi_jitter={us}us ack_wifi_jitter={us}us"));
    // A share in per cent, to millionths.
    let loss = format!("{}.{:04}%", loss / 10_000, loss % 10_000);
    (format!("rate={rate}kbit rtt={rtt}us queue={queue}us loss={loss}{jitter}"), Span::micros(rtt))
}

/// What is written, and how many files are among it.
fn writes(seed: u64, rtt: Span) -> (Vec<Burst>, u32) {
    let r = &mut Stream::named(seed, "pages");
    let headers = log_uniform(r, HEADERS) as u64;
    let (mut writes, mut files, mut wait) = (Vec::new(), 0, Span::ZERO);
    while wait <= IDLE {
        let sent = if writes.is_empty() { headers } else { headers * COMPRESSED / 100 };
        let mut page = sent + body(r);
        if r.chance(FILES) {
            page += lognormal(r, (FILE.0, FILE.1)).min(FILE.2) as u64;
            files += 1;
        }
        writes.push(Burst { wait, bytes: page });
        let further: u64 = (0..requests(r)).map(|_| headers * COMPRESSED / 100 + body(r)).sum();
        if further > 0 {
            let wait = rtt / 2 + r.exponential_span(PARSING);
            writes.push(Burst { wait, bytes: further });
        }
        wait = r.exponential_span(READING);
    }
    (writes, files)
}

/// Further requests of a page.
fn requests(r: &mut Stream) -> u64 {
    let (shape, least, most) = REQUESTS;
    let drawn = least * libm::pow(r.unit(), -1.0 / shape);
    libm::round(drawn.min(most) - least) as u64
}

/// Bytes of a request's body; 0 for most.
fn body(r: &mut Stream) -> u64 {
    let rarity = -libm::log10(r.unit());
    let last = BODIES.len() - 1;
    let i = BODIES.partition_point(|b| b.0 <= rarity);
    let size = match i {
        0 => 0.0,
        i if i > last => BODIES[last].1,
        i => {
            let ((x0, y0), (x1, y1)) = (BODIES[i - 1], BODIES[i]);
            y0 * libm::pow(y1 / y0, (rarity - x0) / (x1 - x0))
        }
    };
    // A shorter request is all headers.
    if size > HEADERS.1 { size as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_sim::path::PathSpec;

    const SEED: u64 = 7;

    fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
        let mut all: Vec<T> = values.collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_seed_is_a_set_of_connections() {
        assert_eq!(connection(SEED, 3), connection(SEED, 3));
        assert_ne!(connection(SEED, 3).path, connection(SEED, 4).path);
        assert_ne!(connection(SEED, 3).path, connection(SEED + 1, 3).path);
    }

    #[test]
    fn every_path_loads_and_has_the_medians_of_its_laws() {
        let facts = (0..2000).map(|n| {
            let path = connection(SEED, n).path;
            PathSpec::load(&path, None).unwrap_or_else(|e| panic!("{path}: {e}")).facts()
        });
        let facts: Vec<_> = facts.collect();
        // Three standard errors of the median of 2000: 8 to 10 % of deviations of 1.1 and 1.16.
        let rate = sorted(facts.iter().map(|f| f.rate.0))[1000];
        assert!(rate.abs_diff(33_000_000) < 3_300_000, "{rate}");
        let rtt = sorted(facts.iter().map(|f| f.base_rtt.0))[1000];
        assert!(rtt.abs_diff(39_000_000) < 3_900_000, "{rtt}");
    }

    #[test]
    fn pages_have_the_mean_of_the_published_model() {
        let r = &mut Stream::named(SEED, "test");
        let all: Vec<u64> = (0..100_000).map(|_| requests(r)).collect();
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!((mean - 5.64).abs() < 0.2, "{mean}");
        assert_eq!(all.iter().max(), Some(&53));
    }

    #[test]
    fn bodies_have_the_quantiles_of_their_table() {
        let r = &mut Stream::named(SEED, "test");
        let all = sorted((0..200_000).map(|_| body(r)));
        let at = |share: f64| all[(share * 200_000.0) as usize];
        assert_eq!((at(0.95), all[199_999]), (0, 23_000));
        // 1000 lie above, so the share at which it lies is uncertain by 3 %, the size by 6 %.
        assert!(at(0.995).abs_diff(4_885) < 300, "{}", at(0.995));
    }

    #[test]
    fn files_have_the_mean_of_the_published_model() {
        let r = &mut Stream::named(SEED, "test");
        let all: Vec<f64> = (0..20_000).map(|_| lognormal(r, (FILE.0, FILE.1)).min(FILE.2)).collect();
        let mean = all.iter().sum::<f64>() / 20_000.0;
        assert!((mean - 2e6).abs() < 20_000.0, "{mean}");
    }

    #[test]
    fn a_connection_ends_before_a_pause_of_thirty_seconds() {
        let all: Vec<Connection> = (0..2000).map(|n| connection(SEED, n)).collect();
        assert!(all.iter().all(|c| c.writes[0].wait == Span::ZERO));
        assert!(all.iter().flat_map(|c| &c.writes).all(|w| w.wait <= IDLE && w.bytes > 0));
        // A time of reading is above 30 s with probability 1/e.
        let alone = all.iter().filter(|c| c.writes.iter().skip(1).all(|w| w.wait < Span::secs(2))).count();
        assert!((650..900).contains(&alone), "{alone}");
    }
}
