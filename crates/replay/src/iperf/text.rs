//! The text that iperf3 (any version since 3.0), iperf 2 and nuttcp print: a line for each interval, with what
//! was sent in it, the retransmissions, and at the side that sends on Linux the window at its end (of iperf 2
//! with `-e`). Amounts are rounded to three digits.

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
    /// Its begin, and its end, or with nuttcp its length, seconds.
    begin: f64,
    end: f64,
    bytes: u64,
    retransmits: Option<u64>,
    /// Without it the side that receives printed the line, or another system than Linux.
    cwnd: Option<u64>,
    rtt: Option<Span>,
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
    // iperf 2 leaves a space within a range: `0.0- 1.0`.
    let (begin, end, words) = match words.as_slice() {
        [begin, end, words @ ..] if begin.ends_with('-') => (begin.trim_end_matches('-'), *end, words),
        [range, words @ ..] => {
            let (begin, end) = range.split_once('-')?;
            (begin, end, words)
        }
        [] => return None,
    };
    let ["sec", sent, unit, _rate, _per, rest @ ..] = words else { return None };
    let (begin, end): (f64, f64) = (begin.parse().ok()?, end.parse().ok()?);
    let whole = |text: &str| text.parse::<u64>().ok().filter(|n| *n < MOST);
    let (retransmits, cwnd, rtt) = match rest {
        // iperf 2 with -e: calls of write and those that failed, and behind the retransmissions the window and
        // the RTT. A receiver prints calls of read.
        [calls, retransmits, state, "us", ..] if calls.contains('/') && state.contains('/') => {
            let (cwnd, rtt) = window_and_rtt(state)?;
            (whole(retransmits), cwnd, rtt)
        }
        [calls, ..] if calls.contains(['/', '=']) => (None, None, None),
        [retransmits, cwnd, unit] => (whole(retransmits), Some(amount(cwnd, unit)?), None),
        // The sums at the end name the side.
        [.., "sender" | "receiver"] => return None,
        [retransmits] => (Some(whole(retransmits)?), None, None),
        [] => (None, None, None),
        _ => return None,
    };
    let good = begin >= 0.0 && end.is_finite() && (0.0..1e9).contains(&end);
    good.then_some(Interval {
        socket,
        begin,
        end,
        bytes: amount(sent, unit)?,
        retransmits,
        cwnd,
        rtt,
        omitted,
    })
}

/// Window and RTT of iperf 2, with what is in flight before them or without: `56K/50012(500)`,
/// `14K(10)/56K(39)/50012(500)`.
fn window_and_rtt(state: &str) -> Option<(Option<u64>, Option<Span>)> {
    let mut parts = state.rsplit('/');
    let number = |part: &str| part.split('(').next().map(str::to_string);
    let (rtt, cwnd) = (number(parts.next()?)?, number(parts.next()?)?);
    let rtt = rtt.parse::<u32>().ok().filter(|us| *us > 0).map(|us| Span::micros(us.into()));
    Some((cwnd.strip_suffix('K').and_then(|k| amount(k, "KBytes")), rtt))
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
    let count = |n: &str| n.parse::<u64>().ok();
    let (retransmits, cwnd) = match rest {
        [] => (None, None),
        [n, "retrans"] => (count(n), None),
        [n, "retrans", cwnd, "KB-cwnd"] => (count(n), Some(amount(cwnd, "KBytes")?)),
        _ => return None,
    };
    let end: f64 = length.parse().ok().filter(|l| (0.0..1e9).contains(l))?;
    let bytes = amount(sent, "MBytes")?;
    Some(Interval { socket: 0, begin: 0.0, end, bytes, retransmits, cwnd, rtt: None, omitted: false })
}

/// `[  5] local 192.0.2.1 port 40000 connected to 198.51.100.7 port 5201`; iperf 2 says `with`.
fn ends(line: &str) -> Option<(u64, (String, String))> {
    let (socket, rest) = stream(line)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ["local", here, "port", port, "connected", "to" | "with", there, "port", other, ..] =
        words.as_slice()
    else {
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
        if line.starts_with("Client connecting to ") || line.starts_with("Server listening on TCP port") {
            tool = Source::Iperf2;
            all.not_tcp |= line.contains("UDP port");
        }
        if let Some(name) = line.trim().strip_prefix("TCP congestion control ") {
            all.control = name.split_whitespace().last().filter(|n| n.len() < 64).map(str::to_string);
        }
        // The initial window, the segment, and the RTT of the handshake in microseconds.
        if let Some(numbers) = line.split_once("icwnd/mss/irtt=").map(|l| l.1) {
            let mut numbers = numbers.split(['/', ')']).map(|n| n.parse::<u32>().ok().filter(|n| *n > 0));
            let (_, mss, rtt) = (numbers.next(), numbers.next().flatten(), numbers.next().flatten());
            all.mss = mss.filter(|m| *m < 1 << 16).map_or(all.mss, u64::from);
            all.handshake = rtt.map(|us| Span::micros(us.into())).or(all.handshake);
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
        let Some(Interval { socket, begin, end, bytes, retransmits, cwnd, rtt, omitted }) = found else {
            continue;
        };
        // The sum at the end of iperf 2 begins at zero again.
        if tool == Source::Iperf2 && begin == 0.0 && all.flows.contains_key(&socket) {
            continue;
        }
        if let Err(why) = all.sample(socket, end, bytes, retransmits, cwnd, rtt, omitted) {
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
                assert_eq!(t.retransmitted_packets, Some(7));
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

    #[test]
    fn iperf_2_is_read_too() {
        let text = |state: &dyn Fn(&str) -> String| {
            let mut out = String::from(
                "Client connecting to 198.51.100.1, TCP port 5001 with pid 4242 (1/0 flows/load)\n\
                 TCP congestion control using cubic\n\
                 [  1] local 192.0.2.1%eth0 port 50000 connected with 198.51.100.1 port 5001 (sock=3) \
                 (icwnd/mss/irtt=14/1400/50012) (ct=50.10 ms) on 2026-11-27 16:00:00.000 (UTC)\n\
                 [ ID] Interval        Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr\n",
            );
            for (i, (cwnd, lost)) in
                [("14", 0), ("56", 0), ("226", 0), ("113", 7), ("115", 0)].iter().enumerate()
            {
                let (from, to) = (i as f64 / 10.0, (i + 1) as f64 / 10.0);
                writeln!(
                    out,
                    "[  1] {from:.2}-{to:.2} sec  98.0 KBytes  8.03 Mbits/sec  1/0  {lost}  {} us  60",
                    state(cwnd)
                )
                .expect("a String");
            }
            out + "[  1] 0.00-0.50 sec  490 KBytes  8.03 Mbits/sec  5/0  7  115K/50012(500) us  60\n"
        };
        for state in [&(|k: &str| format!("{k}K/50012(500)")) as &dyn Fn(&str) -> String, &|k| {
            format!("9K(7)/{k}K(9)/50012(500)")
        }] {
            let t = rows(&text(state)).expect("valid").remove(0);
            let exit = t.exit.as_ref().expect("an exit");
            assert_eq!(
                (t.source, exit.cwnd_bytes, exit.evidence.as_str()),
                (Source::Iperf2, 231_424, "loss")
            );
            assert_eq!((t.bytes, t.retransmitted_packets, t.mss_bytes), (Some(501_760), Some(7), 1400));
            assert_eq!(
                (t.congestion_control.as_deref(), t.from.as_str()),
                (Some("cubic"), "192.0.2.1%eth0:50000")
            );
            assert_eq!(t.min_rtt_s, Some(0.050_012));
        }
        // Without -e there is no window.
        let plain = "Client connecting to 198.51.100.1, TCP port 5001\n[ ID] Interval       Transfer     Bandwidth\n\
                     [  3]  0.0- 1.0 sec  1.12 MBytes  9.4 Mbits/sec\n[  3]  1.0- 2.0 sec  1.12 MBytes  9.4 Mbits/sec\n\
                     [  3]  0.0- 2.0 sec  2.24 MBytes  9.4 Mbits/sec\n";
        let t = rows(plain).expect("valid").remove(0);
        assert_eq!((t.bytes, t.retransmitted_packets, t.exit), (Some(2 * 1_174_405), None, None));
        assert!(t.caveats.iter().any(|c| c.contains("iperf 2") && c.contains("-e")), "{:?}", t.caveats);
        let e = rows("Client connecting to 198.51.100.1, TCP port 5001\nnothing\n")
            .expect_err("refused")
            .to_string();
        assert!(e.contains("this is a result of iperf 2"), "{e}");
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
        assert_eq!((t.bytes, t.exit.clone(), t.retransmitted_packets), (Some(786_432), None, Some(0)));
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
