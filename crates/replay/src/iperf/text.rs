//! The text that iperf3 (any version since 3.0) and nuttcp print: a line for each interval, with what was
//! sent in it, the retransmissions, and at the side that sends on Linux the window at its end. Amounts are
//! rounded to three digits.

use super::Streams;
use crate::error::InputError;
use crate::limits::Lines;
use crate::samples::{MOST, MSS, Series};
use crate::transfer::{Source, Transfer};
use slowstart::units::Span;
use std::io::Read;

/// An interval of a stream.
#[derive(Clone, Debug, PartialEq)]
struct Interval {
    socket: u64,
    /// Its end, or with nuttcp its length, seconds.
    end: f64,
    bytes: u64,
    retransmits: u64,
    /// Without it the side that receives printed the line, or another system than Linux.
    cwnd: Option<u64>,
    omitted: bool,
}

/// A number of bytes with a unit of iperf3: 1024 bytes are a kilobyte.
fn amount(number: &str, unit: &str) -> Option<u64> {
    let scale: u64 = match unit {
        "Bytes" => 1,
        "KBytes" => 1 << 10,
        "MBytes" => 1 << 20,
        "GBytes" => 1 << 30,
        "TBytes" => 1 << 40,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * scale as f64;
    (0.0..MOST as f64).contains(&bytes).then_some(bytes as u64)
}

/// The number between brackets at the begin of a line, and what follows the brackets; a time may stand before
/// them.
fn stream(line: &str) -> Option<(u64, &str)> {
    let (_, rest) = line.split_once('[')?;
    let (socket, rest) = rest.split_once(']')?;
    // The direction, with --bidir.
    let rest = match rest.trim_start().strip_prefix('[') {
        Some(tag) => tag.split_once(']')?.1,
        None => rest,
    };
    Some((socket.trim().parse::<u32>().ok()?.into(), rest))
}

fn interval(line: &str) -> Option<Interval> {
    let (socket, rest) = stream(line)?;
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let omitted = words.last() == Some(&"(omitted)");
    if omitted {
        words.pop();
    }
    let [range, "sec", sent, unit, _rate, _per, rest @ ..] = words.as_slice() else { return None };
    let end: f64 = range.split_once('-')?.1.parse().ok()?;
    let whole = |text: &str| text.parse::<u64>().ok().filter(|n| *n < MOST);
    let (retransmits, cwnd) = match rest {
        [retransmits, cwnd, unit] => (whole(retransmits)?, Some(amount(cwnd, unit)?)),
        // The sums at the end name the side.
        [.., "sender" | "receiver"] => return None,
        [retransmits] => (whole(retransmits)?, None),
        [] => (0, None),
        _ => return None,
    };
    let good = end.is_finite() && (0.0..1e9).contains(&end);
    good.then_some(Interval { socket, end, bytes: amount(sent, unit)?, retransmits, cwnd, omitted })
}

/// A line without the time in brackets that a program wrote before it.
fn without_time(line: &str) -> &str {
    match line.strip_prefix('[').and_then(|l| l.split_once(']')) {
        Some((time, rest)) if time.contains(':') => rest,
        _ => line,
    }
}

/// A value such as `mss=1384` or `RTT=36.843 ms` of the lines with which nuttcp begins.
fn stated(line: &str, key: &str) -> Option<f64> {
    let text = line.split_once(key)?.1;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// `11.25 MB / 0.10 sec = 943.6 Mbps 0 retrans 123 KB-cwnd`. The sum at the end has shares of the processors
/// instead.
fn nuttcp(line: &str) -> Option<Interval> {
    let words: Vec<&str> = without_time(line).split_whitespace().collect();
    let [sent, "MB", "/", length, "sec", "=", _rate, _unit, rest @ ..] = words.as_slice() else {
        return None;
    };
    // -1: not known yet.
    let count = |n: &str| n.parse::<i64>().ok().map(|n| n.max(0).unsigned_abs());
    let (retransmits, cwnd) = match rest {
        [] => (0, None),
        [n, "retrans"] => (count(n)?, None),
        [n, "retrans", cwnd, "KB-cwnd"] => (count(n)?, Some(amount(cwnd, "KBytes")?)),
        _ => return None,
    };
    let end: f64 = length.parse().ok().filter(|l| (0.0..1e9).contains(l))?;
    Some(Interval { socket: 0, end, bytes: amount(sent, "MBytes")?, retransmits, cwnd, omitted: false })
}

/// `[  5] local 192.0.2.1 port 40000 connected to 198.51.100.7 port 5201`
fn ends(line: &str) -> Option<(u64, (String, String))> {
    let (socket, rest) = stream(line)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ["local", here, "port", port, "connected", "to", there, "port", other, ..] = words.as_slice() else {
        return None;
    };
    let end = |host: &str, port: &str| Some(format!("{host}:{}", port.parse::<u16>().ok()?));
    Some((socket, (end(here, port)?, end(there, other)?)))
}

/// True if a line is printed by iperf3 or nuttcp.
pub(crate) fn is_line(line: &str) -> bool {
    line.contains("[ ID] Interval") || nuttcp(line).is_some()
}

/// Reads the text. `each` gets a row and the samples of each stream.
pub fn replay(input: impl Read, each: impl FnMut(Transfer, Series)) -> Result<(), InputError> {
    let mut all = Streams { mss: MSS, ..Streams::default() };
    let (mut done, mut tool) = (Ok(()), Source::Iperf3);
    let mut now = 0.0;
    for line in Lines::new(input) {
        let line = match line {
            Ok((_, line)) => line,
            Err(e) => {
                done = Err(e);
                break;
            }
        };
        if let Some(mss) = line.split_once("TCP MSS: ").and_then(|(_, l)| l.split_whitespace().next()) {
            all.mss = mss.parse::<u16>().ok().filter(|m| *m > 0).map_or(all.mss, u64::from);
        }
        let plain = without_time(&line);
        if plain.trim_start().starts_with("nuttcp-t:") || plain.trim_start().starts_with("nuttcp-r:") {
            if let Some(mss) = stated(plain, "mss=").filter(|m| (1.0..65536.0).contains(m)) {
                all.mss = mss as u64;
            }
            all.handshake = stated(plain, "RTT=")
                .filter(|ms| (0.0..1e6).contains(ms))
                .map(|ms| Span((ms * 1e6) as u64))
                .or(all.handshake);
            all.reported |= plain.contains("nuttcp-t:") && plain.contains(" -> ");
        }
        all.not_tcp |= line.contains("Total Datagrams");
        if let Some(version) = line.trim().strip_prefix("iperf ").filter(|v| v.starts_with('3')) {
            all.version = format!("iperf {}", version.chars().take(20).collect::<String>());
        }
        if let Some((socket, of)) = ends(&line).filter(|_| all.ends.len() < super::MOST_STREAMS) {
            if let Err(why) = all.held.add(size_of_val(&of) + of.0.len() + of.1.len(), "names of streams") {
                done = Err(InputError::whole(why));
                break;
            }
            all.ends.insert(socket, of);
        }
        let found = interval(&line).or_else(|| {
            let i = nuttcp(&line)?;
            (tool, now) = (Source::Nuttcp, now + i.end);
            Some(Interval { end: now, ..i })
        });
        let Some(Interval { socket, end, bytes, retransmits, cwnd, omitted }) = found else { continue };
        if let Err(why) = all.sample(socket, end, bytes, retransmits, cwnd, None, omitted) {
            done = Err(InputError::whole(why));
            break;
        }
    }
    all.finish(tool, done, each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::units::Bytes;
    use std::fmt::Write as _;

    fn rows(text: &str) -> Result<Vec<Transfer>, InputError> {
        let mut all = Vec::new();
        replay(text.as_bytes(), |t, _| all.push(t)).map(|()| all)
    }

    /// The windows of slow start until a loss, as a version prints them: its words, the tag after the number,
    /// and more streams.
    fn text(heading: &str, tag: &str, sockets: &[u32]) -> String {
        let mut out =
            format!("iperf 3.7\n[ ID] Interval           Transfer     {heading}         Retr  Cwnd\n");
        for (i, (cwnd, lost)) in
            [("14.1", 0), ("56.6", 0), ("226", 0), ("113", 7), ("115", 0)].iter().enumerate()
        {
            for socket in sockets {
                let (from, to) = (i as f64 / 10.0, (i + 1) as f64 / 10.0);
                writeln!(
                    out,
                    "[{socket:3}]{tag}   {from:.2}-{to:.2}   sec  97.7 KBytes  8.00 Mbits/sec  {lost:3}   {cwnd} KBytes       "
                )
                .expect("a String");
            }
            out += "[SUM]   0.00-0.10   sec  195 KBytes  16.0 Mbits/sec    0             \n";
        }
        out += "- - - - - - - - - - - - -\n[  5]   0.00-0.50   sec   488 KBytes  8.00 Mbits/sec    7             sender\n";
        out + "[  5]   0.00-0.50   sec   480 KBytes  7.90 Mbits/sec                  receiver\n\niperf Done.\n"
    }

    #[test]
    fn versions_directions_and_streams_give_their_rows() {
        for (heading, tag, sockets) in
            [("Bandwidth", "", &[5][..]), ("Bitrate  ", "", &[5, 7]), ("Bitrate  ", "[TX-C]", &[5])]
        {
            let all = rows(&text(heading, tag, sockets)).expect("valid");
            assert_eq!(all.len(), sockets.len());
            for t in &all {
                let exit = t.exit.as_ref().expect("an exit");
                assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (231_424, "loss"));
                assert!((exit.time_s - 0.4).abs() < 1e-6 && !t.certain, "{exit:?}");
                assert_eq!(t.retransmitted_packets, 7);
            }
        }
        let found =
            crate::open::detect(Box::new(std::io::Cursor::new(text("Bitrate", "", &[5]).into_bytes())));
        assert_eq!(found.expect("known").0, crate::open::Kind::IperfText);
    }

    #[test]
    fn nuttcp_is_read_too() {
        let line = |cwnd: u32, lost: u32| {
            format!("    0.0954 MB /   0.10 sec =    8.0 Mbps   {lost:3} retrans  {cwnd:5} KB-cwnd\n")
        };
        let mut all: String =
            [(14, 0), (56, 0), (226, 0), (113, 7), (115, 0)].map(|(w, l)| line(w, l)).concat();
        all += "    0.4770 MB /   0.50 sec =    8.0 Mbps 1 %TX 2 %RX 7 retrans 40.00 msRTT\n";
        let t = rows(&all).expect("valid").remove(0);
        let exit = t.exit.as_ref().expect("an exit");
        assert_eq!((t.source, exit.cwnd_bytes, exit.evidence.as_str()), (Source::Nuttcp, 231_424, "loss"));
        let found = crate::open::detect(Box::new(std::io::Cursor::new(all.into_bytes())));
        assert_eq!(found.expect("known").0, crate::open::Kind::IperfText);
    }

    /// An upload as the side that sends prints it: a time before each line, what is known of the connection,
    /// and -1 where the retransmissions are not known. The other side counts, and so does it for a download.
    #[test]
    fn nuttcp_says_which_side_counts() {
        let upload = "[2026-01-02T03:04:05.678901-0400] nuttcp-t: buflen=65536, nstream=1, port=5110 tcp -> 192.0.2.9\n\
             [2026-01-02T03:04:05.679901-0400] nuttcp-t: connect to 192.0.2.9 with mss=1384, RTT=36.500 ms af=inet\n\
             [2026-01-02T03:04:05.779901-0400]     0.2500 MB /   0.10 sec =   20.9715 Mbps    -1 retrans    821 KB-cwnd\n\
             [2026-01-02T03:04:06.779901-0400]     0.5000 MB /   0.10 sec =   41.9430 Mbps     0 retrans    821 KB-cwnd\n";
        let read = |text: &str| {
            let mut all = Vec::new();
            replay(text.as_bytes(), |t, s| all.push((t, s))).map(|()| all.remove(0))
        };
        let (t, s) = read(upload).expect("valid");
        assert_eq!((t.bytes, t.exit.clone(), t.retransmitted_packets), (786_432, None, 0));
        assert!(t.caveats.iter().any(|c| c.contains("slow start may have ended earlier")), "{:?}", t.caveats);
        assert_eq!((s.mss, s.handshake), (Bytes(1384), Some(Span::micros(36_500))));
        assert!(!s.written && !s.windows);
        assert_eq!(s.delivered(), [(262_144, 262_144), (786_432, 786_432)]);
        let download = upload
            .replace(" -> 192.0.2.9", "")
            .replace("nuttcp-t", "nuttcp-r")
            .replace("    821 KB-cwnd", "");
        let (t, s) = read(&download).expect("valid");
        assert_eq!(t.unclear.as_deref(), Some("the file does not state the window"));
        assert_eq!(s.delivered()[1], (786_432, 786_432));
    }

    #[test]
    fn text_without_windows_says_what_it_is_and_damage_is_no_panic() {
        let none = text("Bitrate", "", &[5]).replace("  0   ", "\n").replace("  7   ", "\n");
        let t = rows(&none).expect("a receiver's").remove(0);
        assert_eq!(t.unclear.as_deref(), Some("the file does not state the window"));
        let udp = none.replace("Transfer     Bitrate", "Transfer     Bitrate         Total Datagrams");
        assert!(rows(&udp).is_err_and(|e| e.to_string().contains("it is not of TCP")));
        let whole = text("Bitrate", "[TX-C]", &[5]);
        for at in (0..whole.len()).filter(|i| whole.is_char_boundary(*i)) {
            let _ = rows(&whole[..at]);
            let _ = rows(&whole[at..]);
        }
        for line in [
            "[5] nan-inf sec 1 KBytes 1 M 1 1 KBytes",
            "[99999999999] 0-1 sec 1 KBytes 1 M 1 1 KBytes",
            "[",
            "][",
        ] {
            assert!(rows(line).is_err(), "{line}");
        }
    }
}
