//! The tracepoint `tcp:tcp_probe` as text: one line for each segment that a socket received, with its window.
//!
//! `perf record -e tcp:tcp_probe`, printed by `perf script`; `trace-cmd record -e tcp:tcp_probe`, printed by
//! `trace-cmd report`; the kernel's `trace_pipe`; or a line of bpftrace with the same fields, where ports may
//! stand for addresses. Fields: `include/trace/events/tcp.h`, which states windows in segments, the smoothed
//! RTT in microseconds and the local end first. It states no segment size. The module of kernels before 4.16
//! (`net/ipv4/tcp_probe.c`) wrote the same values to `/proc/net/tcpprobe`: time, local end, peer, length,
//! `snd_nxt`, `snd_una`, window, threshold, send window and smoothed RTT.

use crate::error::InputError;
use crate::limits::{Held, Lines};
use crate::samples::{MSS, SOCKET, Sample, segments, threshold, transfer};
use crate::transfer::{Source, Transfer};
use slowstart::units::{Bytes, Instant, Span};
use std::collections::BTreeMap;
use std::io::Read;

/// What comes before the fields of an event.
pub(crate) const NAME: &str = "tcp_probe:";

/// A socket: the first byte not acknowledged when it was first seen, the same now, and the samples.
struct Socket {
    delivered: u64,
    una: u32,
    samples: Vec<Sample>,
}

/// The sockets of a file while it is read.
#[derive(Default)]
struct Sockets {
    all: BTreeMap<(String, String), Socket>,
    held: Held,
    begin_ns: Option<u64>,
}

/// An event.
struct Event<'a> {
    now: u64,
    ends: (&'a str, &'a str),
    cwnd: u64,
    una: u32,
    ssthresh: Option<u64>,
    srtt: Option<u64>,
}

/// The fewest words of a line of the module.
const MODULE: usize = 10;

/// True for a line of `/proc/net/tcpprobe`.
pub(crate) fn is_module_line(line: &str) -> bool {
    module_event(line).is_some()
}

/// The event of a line of `/proc/net/tcpprobe`.
fn module_event(line: &str) -> Option<Event<'_>> {
    let words: Vec<&str> = line.split_whitespace().take(MODULE).collect();
    let &[time, from, to, length, next, una, cwnd, ssthresh, _, srtt] = &words[..] else { return None };
    let end = |w: &str| w.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    length.parse::<u32>().ok().filter(|_| end(from) && end(to) && next.starts_with("0x"))?;
    Some(Event {
        now: seconds_ns(time)?,
        ends: (from, to),
        cwnd: cwnd.parse().ok()?,
        una: hexadecimal(una)?,
        ssthresh: ssthresh.parse().ok(),
        srtt: srtt.parse().ok(),
    })
}

fn hexadecimal(word: &str) -> Option<u32> {
    u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Nanoseconds of a time as the tools print it: seconds, a point, and up to nine digits.
fn seconds_ns(word: &str) -> Option<u64> {
    let (seconds, rest) = word.split_once('.')?;
    let digits = rest.len();
    if digits == 0 || digits > 9 || !rest.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = rest.parse::<u64>().ok()? * 10_u64.pow(9 - digits as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// The event of a line of the tracepoint.
fn traced<'a>(number: u64, before: &str, fields: &'a str) -> Result<Event<'a>, InputError> {
    let expected = |what: &str| InputError::line(number, format!("found a tcp_probe without {what}"));
    // perf writes `tcp:tcp_probe:`; the time comes before it.
    let mut words = before.split_whitespace().rev().filter(|w| *w != "tcp:");
    let time = words.next().and_then(|w| seconds_ns(w.strip_suffix(':')?));
    let value = |key: &str| {
        fields
            .split_whitespace()
            .find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
            .filter(|v| v.len() < 80)
    };
    let count = |key: &str| value(key).and_then(|v| v.parse::<u64>().ok());
    Ok(Event {
        now: time.ok_or_else(|| expected("a time in seconds before it"))?,
        ends: (
            value("src").or(value("sport")).ok_or_else(|| expected("src or sport"))?,
            value("dest").or(value("dport")).ok_or_else(|| expected("dest or dport"))?,
        ),
        cwnd: count("snd_cwnd").ok_or_else(|| expected("snd_cwnd"))?,
        una: value("snd_una").and_then(hexadecimal).ok_or_else(|| expected("snd_una"))?,
        ssthresh: count("ssthresh"),
        srtt: count("srtt"),
    })
}

impl Sockets {
    fn on_line(&mut self, number: u64, line: &str) -> Result<(), InputError> {
        match line.split_once(NAME) {
            Some((before, fields)) => self.on_event(number, &traced(number, before, fields)?),
            None => module_event(line).map_or(Ok(()), |event| self.on_event(number, &event)),
        }
    }

    fn on_event(&mut self, number: u64, event: &Event<'_>) -> Result<(), InputError> {
        let (now, una) = (event.now, event.una);
        let begin = *self.begin_ns.get_or_insert(now);
        let ends = (event.ends.0.to_string(), event.ends.1.to_string());
        let new = if self.all.contains_key(&ends) { 0 } else { SOCKET + ends.0.len() + ends.1.len() };
        self.held.add(new + size_of::<Sample>(), "samples").map_err(|e| InputError::line(number, e))?;
        let new = || Socket { delivered: 0, una, samples: Vec::new() };
        let socket = self.all.entry(ends).or_insert_with(new);
        // An old ACK has a smaller number.
        let step = una.wrapping_sub(socket.una);
        if step < 1 << 31 {
            socket.delivered += u64::from(step);
            socket.una = una;
        }
        socket.samples.push(Sample {
            at: Instant(now.saturating_sub(begin)),
            cwnd: segments(event.cwnd, MSS),
            ssthresh: event.ssthresh.and_then(|n| threshold(n, MSS)),
            rtt: event.srtt.filter(|us| (1..1 << 32).contains(us)).map(Span::micros),
            delivered: Some(Bytes(socket.delivered)),
            ..Sample::default()
        });
        Ok(())
    }
}

/// Reads a trace. `each` gets a row for each socket that sent data. The rows are those of the lines before
/// the first invalid one.
pub fn replay(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    let mut sockets = Sockets::default();
    let done = Lines::new(input).try_for_each(|line| {
        let (number, line) = line?;
        sockets.on_line(number, &line)
    });
    let mut rows = 0;
    for ((from, to), socket) in sockets.all.iter().filter(|(_, s)| s.delivered > 0) {
        rows += 1;
        let mut t = transfer(Source::TcpProbe, rows, Bytes(MSS), &socket.samples);
        (t.from, t.to) = (from.clone(), to.clone());
        t.caveats.push(format!("the trace states no segment size: {MSS} bytes are assumed"));
        t.caveats.push("the trace has no retransmissions".to_string());
        each(t);
    }
    done?;
    if rows == 0 {
        return Err(InputError::whole("found no socket that sent data, expected events of tcp:tcp_probe"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::ExitClass;
    use std::fmt::Write;

    /// A sender that doubles from 10 to 80 segments, and then has a threshold; in the form of one of the
    /// tools.
    fn trace(of: impl Fn(f64) -> String) -> String {
        let mut text = String::from("# tracer: nop\n#\n");
        for (i, cwnd) in [10, 20, 40, 80, 80, 81, 82].into_iter().enumerate() {
            let una = 0xffff_f000_u32.wrapping_add(i as u32 * 14_480);
            let ssthresh = if i < 4 { 2_147_483_647 } else { 80_u32 };
            writeln!(
                text,
                "{}family=AF_INET src=192.0.2.1:443 dest=198.51.100.7:50000 mark=0 data_len=0 snd_nxt=0x1 snd_una={una:#x} \
                 snd_cwnd={cwnd} ssthresh={ssthresh} snd_wnd=65535 srtt=50000 rcv_wnd=64240 sock_cookie=1",
                of(100.0 + i as f64 * 0.05)
            )
            .expect("a String");
            // The receiver's socket on the same host sends nothing.
            writeln!(
                text,
                "{}family=AF_INET src=198.51.100.7:50000 dest=192.0.2.1:443 snd_una=0x9 snd_cwnd=10 ssthresh=2147483647",
                of(100.0 + i as f64 * 0.05)
            )
            .expect("a String");
        }
        text
    }

    fn rows(text: &str) -> (Vec<Transfer>, Result<(), InputError>) {
        let mut all = Vec::new();
        let done = replay(text.as_bytes(), |t| all.push(t));
        (all, done)
    }

    #[test]
    fn the_forms_of_all_tools_give_the_same_row() {
        let perf = trace(|t| format!("curl  4211 [001] {t:.6}: tcp:tcp_probe: "));
        let ftrace = trace(|t| format!("          <idle>-0       [000] ..s1. {t:.6}: tcp_probe: "));
        let (first, done) = rows(&perf);
        done.expect("valid");
        assert_eq!(rows(&ftrace).0, first);
        // bpftrace with ports only, and the module of old kernels.
        let ports = perf.replace("src=192.0.2.1:443 dest=198.51.100.7:50000", "sport=443 dport=50000");
        let ports = ports.replace("src=198.51.100.7:50000 dest=192.0.2.1:443", "sport=50000 dport=443");
        let ports = rows(&ports.replace("curl  4211 [001] ", "").replace("tcp:tcp_probe", "tcp_probe")).0;
        assert_eq!((ports[0].from.as_str(), &ports[0].exit), ("443", &first[0].exit));
        let mut module = String::new();
        for line in perf.lines().filter(|l| l.contains("snd_wnd")) {
            let of = |key: &str| {
                line.split_whitespace()
                    .find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
                    .expect("in each line")
            };
            let time = line.split_whitespace().nth(3).expect("a time").trim_end_matches(':');
            let [from, to, next, una] = ["src", "dest", "snd_nxt", "snd_una"].map(of);
            let [cwnd, ssthresh, wnd, srtt] = ["snd_cwnd", "ssthresh", "snd_wnd", "srtt"].map(of);
            writeln!(module, "{time} {from} {to} 32 {next} {una} {cwnd} {ssthresh} {wnd} {srtt} 64240")
                .expect("a String");
        }
        assert_eq!(rows(&module).0, first);
        let kind = crate::open::detect(Box::new(std::io::Cursor::new(module.into_bytes()))).expect("known").0;
        assert_eq!(kind, crate::open::Kind::TcpProbe);
        let [t] = &first[..] else { panic!("{first:?}") };
        assert_eq!((t.from.as_str(), t.bytes), ("192.0.2.1:443", Some(6 * 14_480)));
        let exit = t.exit.as_ref().expect("an exit");
        assert_eq!((exit.time_s, exit.cwnd_bytes), (0.2, 80 * MSS));
        assert_ne!(t.class, ExitClass::None);
        let kind = crate::open::detect(Box::new(std::io::Cursor::new(perf.into_bytes()))).expect("known").0;
        assert_eq!(kind, crate::open::Kind::TcpProbe);
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        for (line, what) in [
            ("x [0] tcp_probe: src=1:1 dest=2:2 snd_cwnd=1 snd_una=0x1", "a time in seconds"),
            ("x 1.5: tcp_probe: dest=2:2 snd_cwnd=1 snd_una=0x1", "src"),
            ("x 1.5: tcp_probe: src=1:1 dest=2:2 snd_cwnd=-1 snd_una=0x1", "snd_cwnd"),
            ("x 1.5: tcp_probe: src=1:1 dest=2:2 snd_cwnd=1 snd_una=1", "snd_una"),
        ] {
            let e = rows(&format!("\n{line}\n")).1.expect_err(line).to_string();
            assert!(e.contains("line 2") && e.contains(what), "{e}");
        }
        assert!(rows("nothing\n").1.is_err());
    }
}
