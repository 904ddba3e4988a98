//! Serves counters in the text format of Prometheus, over HTTP on a thread of its own.
//!
//! Any machine that reaches the address may be hostile. A connection lasts at most [`DEADLINE`] and holds at
//! most [`BUFFER`] bytes of its request; of more than [`CONNECTIONS`] the oldest is closed, so a new one is
//! always answered.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, http};
use hyper_util::rt::TokioIo;
use slowstart_linux::Flow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::future::ready;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// Time that a connection may take, from its beginning to the end of the answer.
const DEADLINE: Duration = Duration::from_secs(2);
/// Connections that are open at the same time.
const CONNECTIONS: usize = 64;
/// Bytes of a request that are held, hyper's least.
const BUFFER: usize = 8192;
/// Pause after the kernel refuses a connection, for lack of file descriptors for instance.
const PAUSE: Duration = Duration::from_millis(50);

/// Upper bounds of the histograms of cwnd at exit, in segments.
const WINDOWS: [f64; 8] = [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0];
/// Upper bounds of the histograms of the minimum RTT, in seconds.
const RTTS: [f64; 10] = [0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6];

/// A family of metrics: its lines begin with what it is. `samples` has the labels and the value of each, after the
/// suffix of its name.
pub(crate) fn family(
    out: &mut String,
    (name, kind, help): (&str, &str, &str),
    samples: impl IntoIterator<Item = (&'static str, String, f64)>,
) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (suffix, labels, value) in samples {
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let _ = writeln!(out, "{name}{suffix}{labels} {value}");
    }
}

/// The value of a label.
pub(crate) fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A histogram.
#[derive(Default)]
struct Histogram {
    /// Values in each class; the last is above all bounds.
    classes: Vec<u64>,
    /// Sum of the values.
    sum: f64,
}

impl Histogram {
    fn add(&mut self, bounds: &[f64], value: f64) {
        self.classes.resize(bounds.len() + 1, 0);
        self.classes[bounds.iter().position(|b| value <= *b).unwrap_or(bounds.len())] += 1;
        self.sum += value;
    }

    fn samples(&self, bounds: &[f64], of: &str) -> Vec<(&'static str, String, f64)> {
        let mut all = Vec::new();
        let mut count = 0;
        for (bound, n) in bounds.iter().zip(&self.classes) {
            count += n;
            all.push(("_bucket", format!("{of},le=\"{bound}\""), count as f64));
        }
        let total: u64 = self.classes.iter().sum();
        all.push(("_bucket", format!("{of},le=\"+Inf\""), total as f64));
        all.push(("_sum", of.to_string(), self.sum));
        all.push(("_count", of.to_string(), total as f64));
        all
    }
}

/// What the connections of a congestion control did.
#[derive(Default)]
struct OfControl {
    open: u64,
    closed: u64,
    sent_bytes: u64,
    retransmitted: u64,
    timeouts: u64,
    min_rtt: Histogram,
}

/// A figure of a control.
type Pick = fn(&OfControl) -> u64;

/// The counters that are served.
#[derive(Default)]
pub(crate) struct Metrics {
    controls: BTreeMap<String, OfControl>,
    /// cwnd at exit, by congestion control and exit reason.
    exits: BTreeMap<(String, &'static str), Histogram>,
}

impl Metrics {
    fn of(&mut self, control: &str) -> &mut OfControl {
        self.controls.entry(control.to_string()).or_default()
    }

    /// Counts the end of a startup, with cwnd in segments.
    pub(crate) fn count_exit(&mut self, control: &str, reason: &'static str, cwnd: u32) {
        let histogram = self.exits.entry((control.to_string(), reason)).or_default();
        histogram.add(&WINDOWS, f64::from(cwnd));
    }

    /// A connection is open with this control.
    pub(crate) fn opened(&mut self, control: &str) {
        self.of(control).open += 1;
    }

    /// A connection that was open with this control has closed, or has another.
    pub(crate) fn left(&mut self, control: &str) {
        let of = self.of(control);
        of.open = of.open.saturating_sub(1);
    }

    /// Counts a connection that has closed.
    pub(crate) fn count_closed(&mut self, f: &Flow) {
        let of = self.of(&f.control);
        of.closed += 1;
        of.sent_bytes += f.sent_bytes;
        of.retransmitted += u64::from(f.retransmitted);
        of.timeouts += u64::from(f.timeouts);
        // The kernel's words for no sample.
        if f.min_rtt_us != 0 && f.min_rtt_us != u32::MAX {
            of.min_rtt.add(&RTTS, f64::from(f.min_rtt_us) / 1e6);
        }
    }

    /// Returns the number of connections that closed since the watch began.
    pub(crate) fn closed(&self) -> u64 {
        self.controls.values().map(|c| c.closed).sum()
    }

    /// Returns the number of startups that ended.
    pub(crate) fn exits(&self) -> u64 {
        self.exits.values().flat_map(|h| &h.classes).sum()
    }

    /// Returns the counters in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let of = |pick: Pick| {
            let one = |(name, c): (&String, &OfControl)| ("", control(name), pick(c) as f64);
            self.controls.iter().map(one).collect::<Vec<_>>()
        };
        let families: [(&str, &str, &str, Pick); 5] = [
            ("slowstart_connections", "gauge", "Open connections.", |c| c.open),
            ("slowstart_closed_total", "counter", "Connections that closed.", |c| c.closed),
            (
                "slowstart_sent_bytes_total",
                "counter",
                "Bytes that connections sent which closed, retransmissions included.",
                |c| c.sent_bytes,
            ),
            (
                "slowstart_retransmitted_packets_total",
                "counter",
                "Packets that connections retransmitted which closed.",
                |c| c.retransmitted,
            ),
            (
                "slowstart_timeouts_total",
                "counter",
                "Retransmission timeouts of connections that closed.",
                |c| c.timeouts,
            ),
        ];
        for (name, kind, help, pick) in families {
            family(&mut text, (name, kind, help), of(pick));
        }
        let measured = self.controls.iter().filter(|(_, c)| !c.min_rtt.classes.is_empty());
        let rtts = measured.flat_map(|(name, c)| c.min_rtt.samples(&RTTS, &control(name)));
        let what = "Minimum RTT of connections that closed, seconds.";
        family(&mut text, ("slowstart_min_rtt_seconds", "histogram", what), rtts);
        let exits = self.exits.iter().flat_map(|((name, reason), histogram)| {
            histogram.samples(&WINDOWS, &format!("{},reason=\"{reason}\"", control(name)))
        });
        let what = "cwnd at the end of startups, segments.";
        family(&mut text, ("slowstart_exit_window_segments", "histogram", what), exits);
        text
    }
}

/// The label of a congestion control.
fn control(name: &str) -> String {
    format!("control=\"{}\"", label(name))
}

/// Serves what `text` returns, in the text format of Prometheus, from a new thread until this process ends.
pub(crate) fn serve(
    listener: TcpListener,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    thread::Builder::new()
        .name("prometheus".into())
        .spawn(move || runtime.block_on(accept(listener, Arc::new(text))))?;
    Ok(())
}

async fn accept(listener: TcpListener, text: Arc<impl Fn() -> String + Send + Sync + 'static>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        open.retain(|c| !c.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(tokio::spawn(answer(stream, Arc::clone(&text))).abort_handle());
    }
}

/// Answers one request, whatever its path.
async fn answer(stream: TcpStream, text: Arc<impl Fn() -> String>) {
    let service = service_fn(|_| {
        let body = Full::new(Bytes::from(text()));
        ready(Response::builder().header(CONTENT_TYPE, "text/plain; version=0.0.4").body(body))
            as std::future::Ready<http::Result<_>>
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .header_read_timeout(None)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    // A client that fails or is too slow is no error of this program.
    let _ = tokio::time::timeout(DEADLINE, connection).await;
}
