//! qlog of both ends (drafts main-schema-13 and quic-events-12): packets, frames, losses and metrics, as noq
//! writes them.
//!
//! Three things are ours. noq has no event for the end of slow start, so [`Logs::note_exit`] adds it to the
//! server's log. The header of noq names no event schema, and leaves out that times count from the begin of
//! the run; and its ranges of acknowledged packets end with the number after the last, where the schema has
//! the last. [`Logs::take`] mends both.

use super::{CLIENT, SERVER};
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};
use slowstart::control::Exited;
use slowstart::units::Instant;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant as StdInstant;

/// What one end has logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

/// The first record of an end's log, for the connection whose first packet was sent to `group`: main schema,
/// `QlogFileSeq` and `TraceSeq` as JSON text sequences, with the schema of the events (QUIC events §2.1).
/// Times are milliseconds since the begin of the run.
fn header(end: usize, group: &str) -> String {
    let name = NAMES[end];
    format!(
        concat!(
            "\u{1e}",
            r#"{{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","#,
            r#""title":"{name}","trace":{{"vantage_point":{{"type":"{name}"}},"#,
            r#""event_schemas":["urn:ietf:params:qlog:events:quic-12"],"#,
            r#""common_fields":{{"group_id":"{group}","time_format":"relative_to_epoch","#,
            r#""reference_time":{{"clock_type":"monotonic","epoch":"unknown"}}}}}}}}"#,
            "\n"
        ),
        name = name,
        group = group
    )
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The events with ranges of acknowledged packets that end with the last packet (QUIC events, `AckFrame`),
/// where noq 1.4.0 writes the number after it.
fn with_inclusive_ranges(events: &str) -> String {
    const RANGES: &str = r#""acked_ranges":[["#;
    let mut parts = events.split(RANGES);
    let mut out = String::with_capacity(events.len());
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (ranges, rest) = part.split_once("]]").unwrap_or((part, ""));
        out.push_str(RANGES);
        for (i, range) in ranges.split("],[").enumerate() {
            let pair = range.split_once(',').and_then(|(first, end)| Some((first, end.parse::<u64>().ok()?)));
            let separator = if i == 0 { "" } else { "],[" };
            let _ = match pair {
                Some((first, end)) => write!(out, "{separator}{first},{}", end.saturating_sub(1)),
                None => write!(out, "{separator}{range}"),
            };
        }
        out.push_str("]]");
        out.push_str(rest);
    }
    out
}

/// The logs of a client and a server.
#[derive(Clone)]
pub(super) struct Logs {
    ends: [Log; 2],
    /// The destination of the client's first packet, in hexadecimal digits: what the two logs have in common.
    group: Arc<OnceLock<String>>,
    origin: StdInstant,
}

/// The types of vantage point of the two ends.
const NAMES: [&str; 2] = ["client", "server"];

impl Logs {
    pub(super) fn new(origin: StdInstant) -> Self {
        Self { ends: Default::default(), group: Arc::default(), origin }
    }

    /// Adds the end of slow start, with the window at that time, after what the server has logged.
    pub(super) fn note_exit(&self, exit: &Exited) {
        let ms = |at: Instant| at.since(Instant::ZERO).as_secs_f64() * 1e3;
        let (time, why, cwnd) = (ms(exit.at), exit.why.name(), exit.exit_cwnd.0);
        let mut log = self.ends[SERVER].lock();
        for (name, data) in [
            ("recovery_metrics_updated", format!(r#""congestion_window":{cwnd}"#)),
            (
                "congestion_state_updated",
                format!(r#""old":"slow_start","new":"congestion_avoidance","trigger":"{why}""#),
            ),
        ] {
            let event = format!("\u{1e}{{\"time\":{time},\"name\":\"quic:{name}\",\"data\":{{{data}}}}}\n");
            log.extend_from_slice(event.as_bytes());
        }
    }

    /// The client's and the server's log, as JSON text sequences (RFC 7464).
    pub(super) fn take(&self) -> [Vec<u8>; 2] {
        [CLIENT, SERVER].map(|i| {
            let log = std::mem::take(&mut *self.ends[i].lock());
            let log = String::from_utf8_lossy(&log);
            let events = log.split_once('\n').map_or("", |(_, events)| events);
            let group = self.group.get().map_or("", String::as_str);
            (header(i, group) + &with_inclusive_ranges(events)).into_bytes()
        })
    }
}

impl QlogFactory for Logs {
    fn for_connection(
        &self,
        side: Side,
        _: SocketAddr,
        first: ConnectionId,
        _: StdInstant,
    ) -> Option<QlogConfig> {
        let end = if side == Side::Server { SERVER } else { CLIENT };
        self.group.get_or_init(|| first.to_string());
        let mut config = QlogConfig::new(Box::new(self.ends[end].clone()));
        config.start_time(self.origin);
        Some(config)
    }
}
