//! qlog of both ends, as the stack writes it (noq: drafts main-schema-13 and quic-events-12): packets, frames, losses and
//! metrics. The stack has no event for the end of slow start, so [`Logs::note_exit`] adds it to the server's log.

use super::{CLIENT, SERVER};
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};
use slowstart::control::Exited;
use slowstart::units::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as StdInstant;

/// What one end has logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

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

/// The logs of a client and a server.
#[derive(Clone)]
pub(super) struct Logs {
    ends: [Log; 2],
    origin: StdInstant,
}

impl Logs {
    pub(super) fn new(origin: StdInstant) -> Self {
        Self { ends: Default::default(), origin }
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
        [CLIENT, SERVER].map(|i| std::mem::take(&mut *self.ends[i].lock()))
    }
}

impl QlogFactory for Logs {
    fn for_connection(
        &self,
        side: Side,
        _: SocketAddr,
        _: ConnectionId,
        _: StdInstant,
    ) -> Option<QlogConfig> {
        let end = if side == Side::Server { SERVER } else { CLIENT };
        let mut config = QlogConfig::new(Box::new(self.ends[end].clone()));
        config.start_time(self.origin).title(Some(["client", "server"][end].to_string()));
        Some(config)
    }
}
