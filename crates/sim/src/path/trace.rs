//! Traces from files: packet opportunities in the form of Mahimahi, delays by the slot, or a [table](super::table) of
//! rates, delays and losses.
//!
//! An opportunity trace has one line for each opportunity to send 1500 bytes: its time in milliseconds. The
//! trace repeats with a period of its last time. As in Mahimahi's `LinkQueue`, an opportunity serves only
//! packets that came before it, carries as many of them as fit, part of the next one too, and is lost when
//! none waits.
//!
//! Departs from Mahimahi: counts IP packets against 1500 bytes, not TUN frames (4 bytes longer) against 1504.

use slowstart_files::head;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use slowstart::units::{Bytes, Fixed, Instant, NS_PER_S, Rate, Span};

use super::error::PathError;
use super::files::Files;
use super::quantity;
use super::table::{self, SLOT};

/// Bytes that one opportunity can carry.
const OPPORTUNITY: u32 = 1500;
const NS_PER_MS: u64 = 1_000_000;
/// The most opportunities of a trace that a table gives: a gigabit for ten minutes.
const MOST: usize = 50_000_000;
/// The largest trace read, decompressed: a gigabit for five minutes is a tenth of it.
const LARGEST: u64 = 256_000_000;

/// The text of a file, decompressed if its first bytes are gzip's.
fn read(file: &Path, files: &Files, expected: &'static str) -> Result<String, PathError> {
    let wrong = |why: String| PathError::File { file: file.display().to_string(), why, expected };
    let text = files.open(file).and_then(|f| unpack(f, LARGEST)).map_err(|e| wrong(e.to_string()))?;
    let text = text.ok_or_else(|| wrong(format!("longer than {} MB", LARGEST / 1_000_000)))?;
    String::from_utf8(text).map_err(|_| wrong("not UTF-8 text".into()))
}

/// Reads at most `most` bytes; `None` if there are more.
fn unpack(source: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut plain = head(source, most + 1)?;
    if plain.starts_with(&[0x1f, 0x8b]) {
        plain = head(MultiGzDecoder::new(plain.as_slice()), most + 1)?;
    }
    Ok((plain.len() as u64 <= most).then_some(plain))
}

/// Parses each line with `parse`. The error names the first bad line.
fn lines<T>(
    file: &str,
    text: &str,
    expected: &str,
    mut parse: impl FnMut(&str) -> Option<T>,
) -> Result<Vec<T>, PathError> {
    let each = |(i, line): (usize, &str)| {
        parse(line).ok_or_else(|| PathError::Line {
            file: file.into(),
            line: i + 1,
            found: line.chars().take(40).collect(),
            expected: expected.into(),
        })
    };
    text.lines().enumerate().map(each).collect()
}

/// The times at which 1500-byte packets may leave a link, in milliseconds. The trace repeats.
#[derive(Debug)]
pub(super) struct Trace {
    /// Never decreasing; the last, above zero, is also the period.
    times: Box<[u32]>,
}

impl Trace {
    const EXPECTED: &'static str =
        "a trace with the time of one 1500-byte opportunity in milliseconds on each line";

    pub(super) fn load(file: &Path, files: &Files) -> Result<Self, PathError> {
        Self::parse(&file.display().to_string(), &read(file, files, Self::EXPECTED)?)
    }

    fn parse(file: &str, text: &str) -> Result<Self, PathError> {
        if table::is_table(text) {
            let rates = table::RATE.read(file, text)?;
            let why = format!("more than {MOST} packets");
            let times = rates.opportunities(MOST).ok_or_else(|| PathError::File {
                file: file.into(),
                why,
                expected: table::EXPECTED,
            })?;
            return Ok(Self { times: times.into() });
        }
        let mut last = 0;
        let expected = "a whole number of milliseconds, not less than the line before";
        let times = lines(file, text, expected, |line| {
            let ms = u32::try_from(quantity::whole(line)?).ok().filter(|ms| *ms >= last)?;
            last = ms;
            Some(ms)
        })?;
        let why = if times.is_empty() { "no lines" } else { "the last line is 0, so it takes no time" };
        if last == 0 {
            return Err(PathError::File { file: file.into(), why: why.into(), expected: Self::EXPECTED });
        }
        Ok(Self { times: times.into() })
    }

    /// The period after which the trace repeats.
    pub(super) fn period(&self) -> Span {
        Span::millis(u64::from(self.times[self.times.len() - 1]))
    }

    /// The mean rate over a period.
    pub(super) fn mean(&self) -> Rate {
        let bytes = Bytes(self.times.len() as u64 * u64::from(OPPORTUNITY));
        Rate::new(bytes, self.period()).unwrap_or_default()
    }

    /// The first opportunity later than `t` nanoseconds after the start of the trace: the start of its
    /// period, and its index in the trace. `rounds * times.len() + place` opportunities come before it.
    fn after(&self, t: u64) -> (u64, usize) {
        let period = self.period().0;
        let (round, within) = (t / period, t % period);
        let place = self.times.partition_point(|ms| u64::from(*ms) * NS_PER_MS <= within);
        (round * period, place)
    }

    /// The number of opportunities up to and including `t` nanoseconds after the start.
    fn count(&self, t: u64) -> u64 {
        let (round, place) = self.after(t);
        round / self.period().0 * self.times.len() as u64 + place as u64
    }
}

/// A link that sends at the opportunities of a trace.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    trace: Arc<Trace>,
    /// The position in the trace at which the run starts.
    offset: Span,
    /// The next opportunity, or the current one while bytes of it are left: the start of its period, and its
    /// index.
    round: u64,
    place: usize,
    /// Bytes left of that opportunity, above zero.
    left: u32,
}

impl Opportunities {
    pub(super) fn new(trace: Arc<Trace>, offset: Span) -> Self {
        let (round, place) = trace.after(offset.0);
        Self { trace, offset, round, place, left: OPPORTUNITY }
    }

    fn time(&self, round: u64, place: usize) -> Instant {
        Instant(round + u64::from(self.trace.times[place]) * NS_PER_MS) - self.offset
    }

    /// The time at which transmission of a packet that arrives now would start.
    pub(super) fn start(&self, now: Instant) -> Instant {
        let at = self.time(self.round, self.place);
        if at > now {
            return at;
        }
        let (round, place) = self.trace.after((now + self.offset).0);
        self.time(round, place)
    }

    /// Sends a packet that arrives now, after all earlier packets. Returns the time at which its last byte
    /// leaves.
    pub(super) fn send(&mut self, now: Instant, bytes: u32) -> Instant {
        if self.time(self.round, self.place) <= now {
            (self.round, self.place) = self.trace.after((now + self.offset).0);
            self.left = OPPORTUNITY;
        }
        let mut bytes = bytes;
        loop {
            let at = self.time(self.round, self.place);
            if bytes < self.left {
                self.left -= bytes;
                return at;
            }
            bytes -= self.left;
            self.left = OPPORTUNITY;
            self.place += 1;
            if self.place == self.trace.times.len() {
                self.place = 0;
                self.round += self.trace.period().0;
            }
            if bytes == 0 {
                return at;
            }
        }
    }

    /// Does not send what has not left by `at`.
    pub(super) fn abandon(&mut self, at: Instant) {
        if self.time(self.round, self.place) > at {
            (self.round, self.place) = self.trace.after((at + self.offset).0);
            self.left = OPPORTUNITY;
        }
    }

    /// Bytes that the opportunities after `from`, up to and including `to`, can carry.
    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        let count = |t: Instant| self.trace.count((t + self.offset).0);
        Bytes(count(to).saturating_sub(count(from)) * u64::from(OPPORTUNITY))
    }
}

/// One-way delays, one for each slot of 10 ms. The trace repeats.
#[derive(Debug)]
pub(super) struct DelayTrace {
    slots: Box<[Span]>,
}

impl DelayTrace {
    const EXPECTED: &'static str =
        "a trace with the one-way delay of a 10-ms slot in milliseconds on each line";

    pub(super) fn load(file: &Path, files: &Files) -> Result<Self, PathError> {
        Self::parse(&file.display().to_string(), &read(file, files, Self::EXPECTED)?)
    }

    fn parse(file: &str, text: &str) -> Result<Self, PathError> {
        // One millionth of a millisecond is a nanosecond.
        const _: () = assert!(Fixed::ONE as u64 * 1000 == NS_PER_S);
        if table::is_table(text) {
            let delays = table::DELAY.read(file, text)?.slots();
            return Ok(Self { slots: delays.into_iter().map(Span).collect() });
        }
        let longest = Span::secs(1000);
        let slots = lines(file, text, "a delay in milliseconds, not above 1000 seconds", |line| {
            quantity::decimal(line).map(Span).filter(|d| *d <= longest)
        })?;
        if slots.is_empty() {
            return Err(PathError::File {
                file: file.into(),
                why: "no lines".into(),
                expected: Self::EXPECTED,
            });
        }
        Ok(Self { slots: slots.into() })
    }

    /// The period after which the trace repeats.
    pub(super) fn period(&self) -> Span {
        SLOT * self.slots.len() as u64
    }

    /// The smallest delay of the trace.
    pub(super) fn least(&self) -> Span {
        self.slots.iter().copied().min().unwrap_or_default()
    }

    /// The delay of a packet sent `t` after the start of the trace.
    pub(super) fn at(&self, t: Span) -> Span {
        self.slots[(t.0 / SLOT.0 % self.slots.len() as u64) as usize]
    }
}

/// Probabilities of loss in millionths, one for each slot of 10 ms. The trace repeats.
#[derive(Debug)]
pub(super) struct LossTrace {
    slots: Box<[u32]>,
}

impl LossTrace {
    pub(super) fn load(file: &Path, files: &Files) -> Result<Self, PathError> {
        let text = read(file, files, table::EXPECTED)?;
        let shares = table::LOSS.read(&file.display().to_string(), &text)?.slots();
        Ok(Self { slots: shares.into_iter().map(|share| share as u32).collect() })
    }

    /// The period after which the trace repeats.
    pub(super) fn period(&self) -> Span {
        SLOT * self.slots.len() as u64
    }

    /// The probability for a packet that comes `t` after the start of the trace.
    pub(super) fn at(&self, t: Span) -> u32 {
        self.slots[(t.0 / SLOT.0 % self.slots.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use std::io::Write;
    use std::path::PathBuf;

    const MS: u64 = 1_000_000;

    fn link(text: &str, offset: Span) -> Opportunities {
        Opportunities::new(Arc::new(Trace::parse("test", text).expect("a good trace")), offset)
    }

    #[test]
    fn full_packets_leave_at_their_opportunities_again_and_again() {
        let mut link = link("1\n1\n4\n10\n", Span::ZERO);
        let left: Vec<u64> = (0..10).map(|_| link.send(Instant::ZERO, 1500).0 / MS).collect();
        assert_eq!(left, [1, 1, 4, 10, 11, 11, 14, 20, 21, 21]);
    }

    #[test]
    fn a_time_of_zero_falls_together_with_the_end_of_the_round_before() {
        let mut link = link("0\n5\n", Span::ZERO);
        let left: Vec<u64> = (0..4).map(|_| link.send(Instant::ZERO, 1500).0 / MS).collect();
        assert_eq!(left, [5, 5, 10, 10]);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_need_several() {
        let mut link = link("1\n2\n3\n4\n5\n", Span::ZERO);
        let sizes = [500, 500, 600, 1400, 3000, 1];
        let left = sizes.map(|bytes| link.send(Instant::ZERO, bytes).0 / MS);
        // 500 + 500 + 500 of 600 | 100 + 1400 | 1500 | 1500 | 1
        assert_eq!(left, [1, 1, 2, 2, 4, 5]);
    }

    #[test]
    fn an_idle_opportunity_is_lost_and_one_at_the_arrival_too() {
        let mut link = link("1\n2\n9\n", Span::ZERO);
        assert_eq!(link.send(Instant(2 * MS), 100), Instant(9 * MS));
        assert_eq!(link.start(Instant(3 * MS)), Instant(9 * MS), "1400 bytes are left");
        assert_eq!(link.start(Instant(9 * MS)), Instant(10 * MS));
        // Three million periods later the cost is the same.
        let late = Instant(27_000_000 * MS);
        assert_eq!(link.send(late, 1500), Instant(late.0 + MS));
        assert_eq!(link.capacity(Instant::ZERO, late), Bytes(9_000_000 * 1500));
    }

    #[test]
    fn an_offset_shifts_the_trace() {
        let mut link = link("1\n2\n9\n", Span::millis(2));
        assert_eq!(link.send(Instant::ZERO, 1500), Instant(7 * MS));
        assert_eq!(link.send(Instant::ZERO, 1500), Instant(8 * MS));
        assert_eq!(link.capacity(Instant::ZERO, Instant(8 * MS)), Bytes(3000));
    }

    #[test]
    fn capacity_is_what_a_saturated_link_carries() {
        let mut link = link("3\n3\n4\n11\n", Span::millis(4));
        let mut left = Vec::new();
        while left.last().is_none_or(|t: &Instant| t.0 < 1000 * MS) {
            left.push(link.send(Instant::ZERO, 1500));
        }
        for (from, to) in [(0, 1), (0, 7), (3, 500), (7, 999)] {
            let (from, to) = (Instant(from * MS), Instant(to * MS));
            let carried = left.iter().filter(|t| from < **t && **t <= to).count() as u64 * 1500;
            assert_eq!(link.capacity(from, to), Bytes(carried), "{from:?} {to:?}");
        }
    }

    #[test]
    fn mean_and_period() {
        let trace = Trace::parse("test", "0\n1\r\n1000").expect("a good trace");
        assert_eq!((trace.period(), trace.mean()), (Span::secs(1), Rate(36_000)));
        let delays = DelayTrace::parse("test", "12\n7.5\n68\n").expect("a good trace");
        assert_eq!((delays.period(), delays.least()), (Span::millis(30), Span::micros(7500)));
        assert_eq!([0, 10, 29, 30, 49].map(|ms| delays.at(Span::millis(ms)).0 / MS), [12, 7, 68, 12, 7]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let say = |text: &str| Trace::parse("links/x.down", text).expect_err("a bad trace").to_string();
        assert_eq!(
            say("1\n2\n3\n4\n5\n6\n12a\n"),
            "links/x.down: line 7: found \"12a\", expected a whole number of milliseconds, not less than the line before"
        );
        for (text, start) in [
            ("5\n4", "links/x.down: line 2: found \"4\""),
            ("5\n\n6", "links/x.down: line 2: found \"\""),
            ("-5", "links/x.down: line 1: found \"-5\""),
            ("4294967296", "links/x.down: line 1: found \"4294967296\""),
            ("", "links/x.down: no lines, expected a trace with the time of one 1500-byte opportunity"),
            ("0\n0\n", "links/x.down: the last line is 0, so it takes no time, expected a trace"),
        ] {
            assert!(say(text).starts_with(start), "{}", say(text));
        }
        let say = |text: &str| DelayTrace::parse("x.delay", text).expect_err("a bad trace").to_string();
        assert!(say("12\n-3").starts_with("x.delay: line 2: found \"-3\", expected a delay in milliseconds"));
        assert!(say("").starts_with("x.delay: no lines, expected a trace with the one-way delay"));
    }

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut gz = GzEncoder::new(Vec::new(), Compression::default());
        gz.write_all(plain).and_then(|()| gz.finish()).expect("memory takes it")
    }

    #[test]
    fn files_are_unpacked_within_bounds() {
        let plain = b"1\n2\n3\n".repeat(100);
        assert_eq!(unpack(plain.as_slice(), 600).expect("plain").as_ref(), Some(&plain));
        assert_eq!(unpack(packed(&plain).as_slice(), 600).expect("gzip").as_ref(), Some(&plain));
        assert_eq!(unpack(plain.as_slice(), 599).expect("too long"), None);
        assert_eq!(unpack(packed(&plain).as_slice(), 599).expect("too long"), None);
        assert!(unpack(&packed(&plain)[..20], 600).is_err(), "cut off");
    }

    #[test]
    fn files_that_are_no_traces_are_named() {
        let folder = std::env::temp_dir().join(format!("slowstart-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let file = folder.join("x.down");
        let missing = Trace::load(&file, &Files::default()).expect_err("no file").to_string();
        assert!(missing.contains("x.down: ") && missing.contains("expected a trace"), "{missing}");
        std::fs::write(&file, packed(b"1\n\xff\n")).expect("a file");
        let binary = Trace::load(&file, &Files::default()).expect_err("not text").to_string();
        assert!(binary.contains("x.down: not UTF-8 text, expected a trace"), "{binary}");
        std::fs::remove_dir_all(&folder).expect("to be removed");
    }

    /// The committed trace has (m^2 / 7) mod 4 opportunities in each millisecond m from 1 to 500; its twin of
    /// delays has 20 + (7 s mod 30) ms in each slot s from 0 to 49.
    #[test]
    fn the_synthetic_traces_are_their_formulas() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
        let times: Vec<u32> = (1..=500).flat_map(|m| vec![m; (m * m / 7 % 4) as usize]).collect();
        let trace =
            Trace::load(&folder.join("synthetic.down"), &Files::default()).expect("the committed trace");
        assert_eq!(*trace.times, times);
        let delays = DelayTrace::load(&folder.join("synthetic.delay.gz"), &Files::default())
            .expect("the committed delays");
        assert!(delays.slots.iter().copied().eq((0..50).map(|s| Span::millis(20 + 7 * s % 30))));
    }

    #[test]
    fn recorded_traces_load() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/links");
        let Ok(files) = folder.read_dir() else {
            println!("skipped: no recorded traces in shared/data/links");
            return;
        };
        let mut loaded = 0;
        for file in files.map(|f| f.expect("a readable folder").path()) {
            let name = file.to_string_lossy();
            let kind = name.trim_end_matches(".gz").rsplit('.').next().unwrap_or_default();
            match kind {
                "down" | "up" | "trace" | "bw" => {
                    assert!(
                        Trace::load(&file, &Files::default()).unwrap_or_else(|e| panic!("{e}")).mean()
                            > Rate(100_000)
                    );
                }
                "delay" => {
                    assert!(
                        DelayTrace::load(&file, &Files::default()).unwrap_or_else(|e| panic!("{e}")).least()
                            > Span::ZERO
                    );
                }
                _ => continue,
            }
            loaded += 1;
        }
        assert!(loaded > 0, "no trace among the files");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200), digits in "[0-9\r\n]{0,60}") {
            let text = String::from_utf8_lossy(&bytes);
            for text in [&*text, &*digits] {
                let _ = (Trace::parse("test", text), DelayTrace::parse("test", text));
            }
            let gzip = [&[0x1f, 0x8b, 8, 0], bytes.as_slice()].concat();
            let _ = (unpack(bytes.as_slice(), 100), unpack(gzip.as_slice(), 100));
        }
    }
}
