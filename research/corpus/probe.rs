//! The kernel's own account: the tracepoint `tcp:tcp_probe` of an instance of tracefs that belongs to this
//! program.

use slowstart_linux::emulate::{CLIENT, SERVER};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Ports of the servers.
pub(crate) const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// The state of a sender when an ACK arrived, before the ACK was processed.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Probe {
    /// The kernel's monotonic clock, microseconds.
    pub(crate) us: u64,
    pub(crate) una: u32,
    pub(crate) next: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) window: u32,
    pub(crate) srtt: u32,
}

/// Lines of the tracepoint by the port of the server, and by whether the server is the end that received the
/// ACK.
pub(crate) type Probes = BTreeMap<(u16, bool), Vec<Probe>>;

/// The trace, removed on drop.
#[derive(Debug)]
pub(crate) struct Trace {
    dir: PathBuf,
    pub(crate) probes: Mutex<Probes>,
}

impl Trace {
    pub(crate) fn start() -> std::io::Result<Self> {
        let dir = PathBuf::from(format!("/sys/kernel/tracing/instances/corpus-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|e| {
            std::io::Error::new(e.kind(), format!("{}: {e}; is tracefs mounted?", dir.display()))
        })?;
        let trace = Self { dir, probes: Mutex::default() };
        let write = |file: &str, text: String| fs::write(trace.dir.join(file), text);
        write("trace_clock", "mono".to_string())?;
        write("buffer_size_kb", "8192".to_string())?;
        let (low, high) = (PORTS.start, PORTS.end);
        let ports = |which: &str| format!("({which} >= {low} && {which} < {high})");
        write("events/tcp/tcp_probe/filter", format!("{} || {}", ports("sport"), ports("dport")))?;
        write("events/tcp/tcp_probe/enable", "1".to_string())?;
        Ok(trace)
    }

    /// Reads lines until `over` is set.
    pub(crate) fn follow(&self, over: &AtomicBool) -> std::io::Result<()> {
        let mut pipe =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.dir.join("trace_pipe"))?;
        let (mut buffer, mut rest) = (vec![0; 1 << 16], String::new());
        loop {
            let n = match pipe.read(&mut buffer) {
                Ok(n) => n,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
                Err(e) => return Err(e),
            };
            if n == 0 {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            rest.push_str(&String::from_utf8_lossy(&buffer[..n]));
            let mut all = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
            let whole = rest.rfind('\n').map_or(0, |at| at + 1);
            for (key, probe) in rest[..whole].lines().filter_map(read) {
                all.entry(key).or_default().push(probe);
            }
            rest.drain(..whole);
        }
    }

    /// Takes the lines of the end that sent `bytes` over a connection to or from this port. Waits up to ten
    /// seconds until its last ACK was read, on a busy machine.
    pub(crate) fn take(&self, port: u16, bytes: u64) -> Vec<Probe> {
        for wait in (0..100).rev() {
            let mut all = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
            let most = |server: bool| {
                let of = all.get(&(port, server))?;
                let (first, last) = (of.first()?, of.last()?);
                Some((u64::from(last.una.wrapping_sub(first.una)), server))
            };
            let best = [most(true), most(false)].into_iter().flatten().max();
            if let Some((_, server)) = best.filter(|b| wait == 0 || b.0 * 20 >= bytes * 19) {
                all.remove(&(port, !server));
                return all.remove(&(port, server)).unwrap_or_default();
            }
            drop(all);
            thread::sleep(Duration::from_millis(100));
        }
        Vec::new()
    }

    /// Number of lines that the kernel dropped because they were not read in time.
    pub(crate) fn lost(&self) -> u64 {
        let mut lost = 0;
        for cpu in fs::read_dir(self.dir.join("per_cpu")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(cpu.path().join("stats")).unwrap_or_default();
            let of = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok());
            lost += of("overrun:").unwrap_or(0) + of("dropped events:").unwrap_or(0);
        }
        lost
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::write(self.dir.join("events/tcp/tcp_probe/enable"), "0");
        let _ = fs::remove_dir(&self.dir);
    }
}

fn read(line: &str) -> Option<((u16, bool), Probe)> {
    let at = line.find(": tcp_probe: ")?;
    let (s, us) = line[..at].rsplit_once(' ')?.1.split_once('.')?;
    let rest = &line[at..];
    let of = |key: &str| rest.split(' ').find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str| -> Option<u32> {
        let word = of(key)?;
        word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |h| u32::from_str_radix(h, 16).ok())
    };
    // Other connections of the machine may use these ports.
    let end = |key: &str| of(key)?.rsplit_once(':').filter(|(ip, _)| [CLIENT, SERVER].contains(ip));
    let port = |key: &str| end(key)?.1.parse::<u16>().ok();
    let (from, to) = (port("src")?, port("dest")?);
    let by_server = PORTS.contains(&from);
    let probe = Probe {
        us: s.parse::<u64>().ok()? * 1_000_000 + us.parse::<u64>().ok()?,
        una: number("snd_una")?,
        next: number("snd_nxt")?,
        cwnd: number("snd_cwnd")?,
        ssthresh: number("ssthresh")?,
        window: number("snd_wnd")?,
        srtt: number("srtt")?,
    };
    Some(((if by_server { from } else { to }, by_server), probe))
}
