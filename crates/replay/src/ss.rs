//! Repeated output of `ss -ti`, in all of its forms: with and without the columns of netid, state and queues,
//! with numbers or names of ports, on one line or two; and the times that people put before it.

use crate::clock;
use crate::counters::Counters;
use crate::error::InputError;
use crate::limits::{Held, Lines};
use crate::samples::{MSS, SOCKET, Sample, Series, segments, series, since, threshold, transfer};
use crate::transfer::{Source, Transfer};
use slowstart::units::{Bytes, Span};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;

/// How much earlier than the line before a time may be, seconds: the rounding of a time as text.
const BACK: f64 = 1e-3;
/// Bytes of a line that a message shows.
const SHOWN: usize = 40;

/// Words with a colon that are no addresses: what stands before it.
const KEYS: [&str; 58] = [
    "advmss",
    "ato",
    "backoff",
    "bbr",
    "busy",
    "bytes_acked",
    "bytes_received",
    "bytes_retrans",
    "bytes_sent",
    "cgroup",
    "class_id",
    "cwnd",
    "data_segs_in",
    "data_segs_out",
    "dctcp",
    "delivered",
    "delivered_ce",
    "dsack_dups",
    "fackets",
    "fastopen",
    "fwmark",
    "ino",
    "inode",
    "lastack",
    "lastrcv",
    "lastsnd",
    "lost",
    "mem",
    "minrtt",
    "mss",
    "notsent",
    "opt",
    "pmtu",
    "rcv_ooopack",
    "rcv_rtt",
    "rcv_space",
    "rcv_ssthresh",
    "rcvmss",
    "reord_seen",
    "reordering",
    "retrans",
    "rehash",
    "rto",
    "rtt",
    "rwnd_limited",
    "sacked",
    "segs_in",
    "segs_out",
    "sk",
    "skmem",
    "snd_wnd",
    "sndbuf_limited",
    "ssthresh",
    "timer",
    "uid",
    "unacked",
    "users",
    "wscale",
];

/// The words before the congestion control.
const FLAGS: [&str; 6] = ["ts", "sack", "ecn", "ecnseen", "accecn", "fastopen"];

/// A connection while it is read.
struct Socket {
    mss: u64,
    control: Option<String>,
    samples: Vec<Sample>,
}

/// The connections of a file while it is read.
#[derive(Default)]
struct Sockets {
    all: BTreeMap<(String, String), Socket>,
    held: Held,
    now: Option<f64>,
    begin: Option<f64>,
    ends: Option<(String, String)>,
    /// The newest line that was neither a time nor part of a socket, for messages.
    other: String,
    /// True if a time has a fraction of a second.
    finer: bool,
}

/// A line without the escape sequences that `watch` writes to a terminal.
fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return line.into();
    }
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = |c: char| c.is_ascii_alphabetic() || c == '~';
        out.push_str(part.find(end).map_or("", |at| &part[at + 1..]));
    }
    out.into()
}

/// True for an address with a port or the name of a service.
fn is_address(word: &str) -> bool {
    let name = |port: &str| {
        port.starts_with(|c: char| c.is_ascii_lowercase())
            && port.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-+_.".contains(&b))
    };
    let port = |port: &str| port == "*" || port.parse::<u16>().is_ok() || name(port);
    word.rsplit_once(':').is_some_and(|(host, p)| !host.is_empty() && port(p))
}

/// The local and the peer's address: the first two of a line, before what is known of the connection.
fn ends<'a>(words: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let is_key = |w: &&&str| w.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key));
    let mut all = words.iter().take_while(|w| !is_key(w)).filter(|w| is_address(w));
    Some((all.next()?, all.next()?))
}

/// The congestion control: the word before the window scale or the timeout, behind the flags.
fn control<'a>(words: &[&'a str]) -> Option<&'a str> {
    let at = words.iter().position(|w| w.starts_with("wscale:") || w.starts_with("rto:"))?;
    let name = words[at.checked_sub(1)?];
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    let plain = name.bytes().all(is_name) && name.starts_with(|c: char| c.is_ascii_alphabetic());
    (plain && !FLAGS.contains(&name)).then_some(name)
}

/// Kilobits per second of a rate such as `3200000bps` or `3.2Mbps`.
fn kbps(word: &str) -> Option<u32> {
    let rate = word.strip_suffix("bps")?;
    let (number, unit) = match rate.as_bytes().last()? {
        b'K' => (&rate[..rate.len() - 1], 1.0),
        b'M' => (&rate[..rate.len() - 1], 1e3),
        b'G' => (&rate[..rate.len() - 1], 1e6),
        _ => (rate, 1e-3),
    };
    let value = number.parse::<f64>().ok()? * unit;
    (0.0..f64::from(u32::MAX)).contains(&value).then_some(value as u32)
}

/// What `ss` prints of a connection.
fn sample(words: &[&str], mss: u64) -> Option<Sample> {
    let value = |key: &str| {
        let v = words.iter().find_map(|w| w.strip_prefix(key))?;
        Some(v.split(['/', ',', '(']).next().unwrap_or(v))
    };
    let count = |key: &str| value(key).and_then(|v| v.parse::<u64>().ok());
    let ms = |key: &str| {
        let v: f64 = value(key)?.parse().ok()?;
        (0.0..1e9).contains(&v).then_some(Span((v * 1e6) as u64))
    };
    let whole_ms = |key: &str| value(key).and_then(|v| v.strip_suffix("ms")?.parse::<u32>().ok());
    let resent = words.iter().find_map(|w| w.strip_prefix("retrans:")?.split_once('/')?.1.parse().ok());
    let rate = words.iter().position(|w| *w == "delivery_rate").and_then(|at| kbps(words.get(at + 1)?));
    Some(Sample {
        cwnd: segments(count("cwnd:")?, mss),
        ssthresh: count("ssthresh:").and_then(|n| threshold(n, mss)),
        rtt: ms("rtt:"),
        min_rtt: ms("minrtt:"),
        delivered: count("bytes_acked:").map(Bytes),
        // Counts of zero are left out.
        retransmitted: Some(resent.unwrap_or(0)),
        counters: Counters {
            busy_ms: whole_ms("busy:"),
            receive_window_ms: whole_ms("rwnd_limited:"),
            send_buffer_ms: whole_ms("sndbuf_limited:"),
            delivery_kbps: rate,
            application: words.contains(&"app_limited").then_some(true),
        },
        ..Sample::default()
    })
}

/// What a kernel states only where it is not zero is zero in the other samples of the connection.
fn with_zeros(samples: &mut [Sample]) {
    let has = |of: fn(&Sample) -> bool| samples.iter().any(of);
    let acked = has(|s| s.delivered.is_some());
    let busy = has(|s| s.counters.busy_ms.is_some());
    let rate = has(|s| s.counters.delivery_kbps.is_some() || s.counters.application.is_some());
    for s in samples {
        let c = &mut s.counters;
        if acked {
            s.delivered.get_or_insert(Bytes::ZERO);
        }
        if busy {
            for count in [&mut c.busy_ms, &mut c.receive_window_ms, &mut c.send_buffer_ms] {
                count.get_or_insert(0);
            }
        }
        if rate {
            c.application.get_or_insert(false);
        }
    }
}

impl Sockets {
    fn on_line(&mut self, number: u64, line: &str) -> Result<(), InputError> {
        let line = &plain(line);
        let mut line = line.as_ref();
        if let Some((t, rest)) = clock::leading(line) {
            if self.now.is_some_and(|before| t + BACK < before) {
                let why = format!("found the time {t}, expected no less than in the line before");
                return Err(InputError::line(number, why));
            }
            self.now = Some(t);
            self.begin = self.begin.or(self.now);
            self.finer |= t.fract() != 0.0;
            line = rest;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = ends(&words);
        if let Some((local, peer)) = found {
            self.ends = Some((local.to_string(), peer.to_string()));
        }
        if !line.contains("cwnd:") {
            if found.is_none() && !line.trim().is_empty() && !line.contains("Recv-Q") {
                self.other = line.trim().chars().take(SHOWN).collect();
            }
            return Ok(());
        }
        let expected = |what: &str| {
            let seen = if self.other.is_empty() {
                String::new()
            } else {
                format!("; the line {:?} before it is neither", self.other)
            };
            InputError::line(number, format!("found a socket without {what}{seen}"))
        };
        let (now, begin) = self.now.zip(self.begin).ok_or_else(|| {
            expected(
                "a time, expected one at the begin of the line or in a line before: date +%s.%N; ss -tin",
            )
        })?;
        let ends = self
            .ends
            .clone()
            .ok_or_else(|| expected("its addresses, expected a line with them before it"))?;
        let mss = words.iter().find_map(|w| w.strip_prefix("mss:")?.parse().ok()).filter(|m| *m > 0);
        let mss = mss.unwrap_or(MSS);
        let sample = sample(&words, mss)
            .ok_or_else(|| InputError::line(number, "cwnd: found no number, expected segments"))?;
        let new = if self.all.contains_key(&ends) { 0 } else { SOCKET + ends.0.len() + ends.1.len() };
        self.held.add(new + size_of::<Sample>(), "samples").map_err(|e| InputError::line(number, e))?;
        let new = || Socket { mss, control: None, samples: Vec::new() };
        let socket = self.all.entry(ends).or_insert_with(new);
        if socket.control.is_none() {
            socket.control = control(&words).map(str::to_string);
        }
        socket.samples.push(Sample { at: since(now, begin), ..sample });
        Ok(())
    }
}

/// Reads repeated output of `ss -ti`. The time stands at the begin of each line, or in a line before, in any
/// form that `date`, `ts` and `watch` write. The rows are those of the lines before the first invalid one.
pub fn replay(input: impl Read, mut each: impl FnMut(Transfer, Option<Series>)) -> Result<(), InputError> {
    let mut sockets = Sockets::default();
    let done = Lines::new(input).try_for_each(|line| {
        let (number, line) = line?;
        sockets.on_line(number, &line)
    });
    for (i, ((local, peer), socket)) in sockets.all.iter_mut().enumerate() {
        let (mss, samples) = (Bytes(socket.mss), &mut socket.samples);
        with_zeros(samples);
        let mut t = transfer(Source::Ss, i as u64 + 1, mss, samples);
        (t.from, t.to) = (local.clone(), peer.clone());
        t.congestion_control = socket.control.take();
        if !sockets.finer && samples.len() > 1 {
            t.caveats.push("times are whole seconds: several samples may have the same".to_string());
        }
        each(t, series(mss, samples));
    }
    done?;
    if sockets.all.is_empty() {
        return Err(InputError::whole("found no socket with cwnd:, expected the output of ss -tin"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::transfer::ExitClass;

    fn read(text: &str) -> Result<Vec<Transfer>, InputError> {
        let mut all = Vec::new();
        replay(text.as_bytes(), |t, _| all.push(t)).map(|()| all)
    }

    fn ss_text(cwnds: &[(u64, Option<u64>, u64)]) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for (i, (cwnd, ssthresh, resent)) in cwnds.iter().enumerate() {
            let threshold = ssthresh.map_or(String::new(), |s| format!(" ssthresh:{s}"));
            let _ = write!(
                text,
                "{}.{:03}\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
                 ESTAB 0 9000 192.0.2.1:443 198.51.100.1:50000\n\
                 \t cubic wscale:7,7 rto:204 rtt:40.5/2 mss:1000 cwnd:{cwnd}{threshold} bytes_acked:{} \
                 retrans:0/{resent} minrtt:40\n",
                1_700_000_000 + i / 10,
                i % 10 * 100,
                i * 100_000
            );
        }
        text
    }

    #[test]
    fn ss_samples_show_the_exit_by_the_threshold() {
        let text = ss_text(&[
            (10, None, 0),
            (40, None, 0),
            (160, None, 0),
            (170, Some(160), 0),
            (175, Some(160), 0),
        ]);
        let rows = read(&text).expect("samples");
        let exit = rows[0].exit.as_ref().expect("an exit");
        assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (160_000, "a threshold was set without loss"));
        assert!((exit.time_s - 0.3).abs() < 1e-6, "{exit:?}");
        // 160 kB in 40 ms is 4 MB/s, the median is 1 MB/s.
        assert_eq!(rows[0].class, ExitClass::LinkFull);
        assert_eq!(read(&text.replace("ESTAB ", "")).expect("samples"), rows);
        let lost = read(&ss_text(&[(10, None, 0), (40, None, 0), (28, Some(28), 3)])).expect("samples");
        assert_eq!(lost[0].exit.as_ref().map(|e| e.evidence.as_str()), Some("loss"));
        let began = read(&ss_text(&[(10, Some(9), 0), (11, Some(9), 0)])).expect("samples");
        assert_eq!(began[0].unclear.as_deref(), Some("began before the capture"));
    }

    /// Samples that are several round trips apart: congestion avoidance adds more than a tenth between two of
    /// them, slow start far more. A window that stays the same to the byte is not used up, so that its end of
    /// growth is no exit.
    #[test]
    fn growth_between_distant_samples_is_judged_per_round_trip() {
        let exit = |windows: &[u64]| {
            let windows: Vec<_> = windows.iter().map(|w| (*w, None, 0)).collect();
            let t = read(&ss_text(&windows).replace("rtt:40.5", "rtt:25").replace("minrtt:40", "minrtt:25"));
            let t = t.expect("samples").remove(0);
            t.exit.map(|e| (e.cwnd_bytes, (e.time_s * 10.0).round() as u64)).ok_or(t.unclear)
        };
        // CUBIC: four round trips between two samples.
        assert_eq!(exit(&[40, 320, 2032, 2294, 2565, 2704, 2710]), Ok((2_032_000, 2)));
        let otherwise = Err(Some("limited by something other than cwnd".to_string()));
        assert_eq!(exit(&[40, 240, 3616, 5163, 5163, 5163, 5163, 5163]), otherwise);
    }

    #[test]
    fn errors_name_what_is_missing() {
        assert!(read("ESTAB 0 0 1.2.3.4:5 6.7.8.9:10\n cwnd:10 mss:1448\n").is_err_and(|e| {
            e.to_string().starts_with("line 2: ") && e.to_string().contains("date +%s.%N")
        }));
        let e = read("00-00-00 x\nESTAB 0 0 1.2.3.4:5 6.7.8.9:10\n cwnd:10 mss:1448\n").expect_err("refused");
        assert!(e.to_string().contains("\"00-00-00 x\""), "{e}");
        let e = crate::samples::rows("{}\n".as_bytes(), |_| {}).expect_err("refused");
        assert!(e.to_string().starts_with("line 1: "), "{e}");
    }

    /// Every form of a time gives the same row: in a line of its own, at the begin of each line, and as watch
    /// writes it.
    #[test]
    fn every_form_of_a_time_gives_the_same_row() {
        let windows =
            [(10, None, 0), (40, None, 0), (160, None, 0), (170, Some(160), 0), (175, Some(160), 0)];
        let text = ss_text(&windows);
        let want = read(&text).expect("samples");
        // The texts of ss_text are a tenth of a second apart.
        let stamped = |of: &dyn Fn(usize) -> String, every: bool| {
            let (mut out, mut n) = (Vec::new(), 0);
            for line in text.lines() {
                if line.starts_with("17") {
                    n += 1;
                    out.extend((!every).then(|| of(n - 1)));
                } else if every {
                    out.push(format!("{} {line}", of(n - 1)));
                } else {
                    out.push(line.to_string());
                }
            }
            out.join("\n") + "\n"
        };
        for (of, every) in [
            (&(|n| format!("1700000000.{n}")) as &dyn Fn(usize) -> String, true),
            (&|n| format!("0.{n}"), true),
            (&|n| format!("Nov 14 22:13:20.{n}"), true),
            (&|n| format!("[2023-11-14T22:13:20.{n}]"), true),
            (&|n| format!("2023-11-14 22:13:20.{n}"), true),
            (&|n| format!("1700000000{n}00000000"), false),
            (&|n| format!("Tue Nov 14 22:13:20.{n} UTC 2023"), false),
            (&|n| format!("22:13:20.{n}"), false),
            (&|n| format!("\u{1b}[HEvery 0.1s: ss -tin   host: Tue Nov 14 22:13:20.{n} 2023\u{1b}[K"), false),
        ] {
            let found = read(&stamped(of, every)).expect("samples");
            let exit = |t: &Transfer| t.exit.clone().expect("an exit");
            let (a, b) = (exit(&found[0]), exit(&want[0]));
            assert_eq!((found.len(), &a), (1, &b), "{}", of(1));
            assert_eq!(found[0].bytes, want[0].bytes);
            assert_eq!(found[0].capacity_time_s, want[0].capacity_time_s, "{}", of(1));
            assert_eq!((&found[0].caveats, &found[0].from), (&want[0].caveats, &want[0].from), "{}", of(1));
            let kind = crate::open::detect(Box::new(std::io::Cursor::new(stamped(of, every).into_bytes())));
            assert_eq!(kind.expect("known").0, crate::open::Kind::Ss, "{}", of(1));
        }
        let seconds = read(&stamped(&|n| format!("Tue Nov 14 22:13:2{n} 2023"), false)).expect("samples");
        assert!(seconds[0].caveats.iter().any(|c| c.contains("whole seconds")), "{:?}", seconds[0].caveats);
        assert!(seconds[0].caveats.iter().any(|c| c.contains("1000 ms apart")), "{:?}", seconds[0].caveats);
    }

    /// Sockets of `ss` in other forms: columns before and behind, names of services, one line a socket, mapped
    /// addresses; and times that scripts write.
    #[test]
    fn every_form_of_ss_gives_the_same_row() {
        let windows =
            [(10, None, 0), (40, None, 0), (160, None, 0), (170, Some(160), 0), (175, Some(160), 0)];
        let text = ss_text(&windows);
        let want = read(&text).expect("samples").remove(0);
        let ends = "ESTAB 0 9000 192.0.2.1:443 198.51.100.1:50000";
        for other in [
            "tcp   ESTAB 0 9000 192.0.2.1:443 198.51.100.1:50000",
            "ESTAB 0 9000 192.0.2.1:https 198.51.100.1:50000 users:((\"nginx\",pid=7,fd=9))",
            "0 9000 [::ffff:192.0.2.1]:443 [::ffff:198.51.100.1]:50000 timer:(on,078ms,0)",
            "tcp 0 9000 192.0.2.1%eth0:443 198.51.100.1:50000 ESTAB",
            "ESTAB 192.0.2.1:443 198.51.100.1:50000 0 9000 ino:5 sk:7",
        ] {
            for text in [text.replace(ends, other), text.replace(&format!("{ends}\n\t"), other)] {
                let found = read(&text).unwrap_or_else(|e| panic!("{other}: {e}")).remove(0);
                assert_eq!((&found.exit, found.bytes), (&want.exit, want.bytes), "{other}");
                assert_eq!(found.congestion_control.as_deref(), Some("cubic"), "{other}");
            }
        }
        for (before, after) in [
            ("# ", ""),
            ("time:", ""),
            ("TIMESTAMP=", ""),
            ("@", ""),
            ("--- ", " ---"),
            ("", ","),
            ("Time: ", ";"),
            ("", " |"),
        ] {
            let stamp =
                |l: &str| if l.starts_with("17") { format!("{before}{l}{after}") } else { l.to_string() };
            let stamped = text.lines().map(stamp).collect::<Vec<_>>().join("\n");
            let found = read(&stamped).unwrap_or_else(|e| panic!("{before}{after}: {e}")).remove(0);
            assert_eq!((&found.exit, found.bytes), (&want.exit, want.bytes), "{before}{after}");
        }
    }

    /// Samples 100 ms apart with what the kernel counts; `more` is added to each.
    fn counted(windows: &[u64], more: impl Fn(u64) -> String) -> Transfer {
        let windows: Vec<_> = windows.iter().map(|w| (*w, None, 0)).collect();
        let (mut text, mut n) = (String::new(), 0);
        for line in ss_text(&windows).lines() {
            text += line;
            if line.contains("cwnd:") {
                text += &more(n);
                n += 1;
            }
            text += "\n";
        }
        read(&text).expect("samples").remove(0)
    }

    /// A window that is not used does not grow: that is no exit, and no rate of the path.
    #[test]
    fn counters_say_what_else_limited_the_sender() {
        let windows = [10, 20, 40, 80, 80, 80, 80, 81, 81, 82];
        let plain = counted(&windows, |_| String::new());
        assert_eq!((plain.class, plain.limits), (ExitClass::LinkFull, None));
        for (what, unclear, more) in [
            (
                "application",
                "application-limited",
                (&|_| " app_limited".to_string()) as &dyn Fn(u64) -> String,
            ),
            ("application", "application-limited", &|n| format!(" busy:{}ms", 1 + n * 20)),
            ("receive window", "limited by the receive window", &|n| {
                format!(" busy:{}ms rwnd_limited:{}ms(9%)", 1 + n * 100, n * 90)
            }),
            ("send buffer", "limited by the send buffer", &|n| {
                format!(" busy:{}ms sndbuf_limited:{}ms(9%)", 1 + n * 100, n * 90)
            }),
        ] {
            let t = counted(&windows, more);
            assert_eq!((&t.exit, t.unclear.as_deref(), t.class), (&None, Some(unclear), ExitClass::Unknown));
            assert_eq!(t.capacity_time_s, None, "{what}");
            let limits = t.limits.as_ref().expect("counted");
            let s: f64 = limits.iter().filter(|l| l.what == what).map(|l| l.until_s - l.from_s).sum();
            assert!((0.7..=0.9).contains(&s), "{what}: {s} of 0.9 s");
        }
        // The same counters, which say that nothing did.
        let busy = counted(&windows, |n| format!(" delivery_rate 8Mbps busy:{}ms", 1 + n * 100));
        assert_eq!((busy.class, busy.limits), (ExitClass::LinkFull, Some(Vec::new())));
    }

    /// A spurious loss that the kernel undoes ends nothing; the rule that sets a threshold later does.
    #[test]
    fn a_loss_that_is_undone_is_no_exit() {
        let windows = [
            (10, None, 0),
            (20, None, 0),
            (40, None, 0),
            (44, Some(30), 1),
            (80, None, 1),
            (160, None, 1),
            (320, Some(320), 1),
            (322, Some(320), 1),
        ];
        let t = read(&ss_text(&windows)).expect("samples").remove(0);
        let exit = t.exit.expect("an exit");
        assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (320_000, "a threshold was set without loss"));
        assert_eq!((t.first_loss_time_s, t.class), (None, ExitClass::LinkFull));
    }

    /// What was acknowledged before the first sample is not of this time.
    #[test]
    fn counts_from_before_the_first_sample_do_not_count() {
        let text = ss_text(&[(150, Some(120), 7), (151, Some(120), 7), (152, Some(120), 9)]);
        let earlier = text.replace("bytes_acked:", "bytes_acked:50");
        let t = read(&earlier).expect("samples").remove(0);
        // 500, 50100000 and 50200000: ten digits more in all but the first.
        assert_eq!((t.bytes, t.retransmitted_packets), (Some(50_200_000 - 500), Some(2)));
        let t = read(&text).expect("samples").remove(0);
        assert_eq!((t.bytes, t.capacity_time_s), (Some(200_000), None));
    }

    /// What a rule sets is the window, which had reached it between two samples; also in the last one.
    #[test]
    fn a_threshold_above_the_last_window_is_the_window() {
        for windows in
            [&[(10, None, 0), (80, None, 0), (160, Some(160), 0)][..], &[(80, None, 0), (150, Some(160), 0)]]
        {
            let t = read(&ss_text(windows)).expect("samples").remove(0);
            assert_eq!(t.exit.as_ref().map(|e| e.cwnd_bytes), Some(160_000), "{windows:?}");
        }
    }
}
