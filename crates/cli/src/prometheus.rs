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
const BOUNDS: [u32; 8] = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000];

/// A histogram of cwnd at exit.
#[derive(Default)]
struct Histogram {
    /// Exits in each class; the last is above all bounds.
    classes: [u64; BOUNDS.len() + 1],
    /// Sum of the windows, in segments.
    sum: u64,
}

/// The counters that are served.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Open connections.
    pub(crate) connections: usize,
    /// Connections closed since the watch began.
    pub(crate) closed: u64,
    /// By congestion control and exit reason.
    exits: BTreeMap<(String, &'static str), Histogram>,
}

impl Metrics {
    /// Counts the end of a startup, with cwnd in segments.
    pub(crate) fn count_exit(&mut self, control: &str, reason: &'static str, cwnd: u32) {
        let histogram = self.exits.entry((control.to_string(), reason)).or_default();
        let class = BOUNDS.iter().position(|b| cwnd <= *b).unwrap_or(BOUNDS.len());
        histogram.classes[class] += 1;
        histogram.sum += u64::from(cwnd);
    }

    /// Returns the number of startups that ended.
    pub(crate) fn exits(&self) -> u64 {
        self.exits.values().flat_map(|h| h.classes).sum()
    }

    /// Returns the counters in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("# TYPE slowstart_connections gauge\n");
        let _ = writeln!(text, "slowstart_connections {}", self.connections);
        text += "# TYPE slowstart_closed_total counter\n";
        let _ = writeln!(text, "slowstart_closed_total {}", self.closed);
        text += "# HELP slowstart_exit_window_segments cwnd at the end of startups.\n";
        text += "# TYPE slowstart_exit_window_segments histogram\n";
        for ((control, reason), histogram) in &self.exits {
            let control = control.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let of = format!("control=\"{control}\",reason=\"{reason}\"");
            let name = "slowstart_exit_window_segments";
            let mut count = 0;
            for (bound, n) in BOUNDS.iter().zip(histogram.classes) {
                count += n;
                let _ = writeln!(text, "{name}_bucket{{{of},le=\"{bound}\"}} {count}");
            }
            let all: u64 = histogram.classes.iter().sum();
            let _ = writeln!(text, "{name}_bucket{{{of},le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "{name}_sum{{{of}}} {}\n{name}_count{{{of}}} {all}", histogram.sum);
        }
        text
    }
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
