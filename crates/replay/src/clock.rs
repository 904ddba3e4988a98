//! Times at the begin of a line, as people and tools put them there: `date` in any of its forms, `ts` of
//! moreutils, `watch`.

/// Days of the months before each month of a year without 29 February.
const DAYS: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Numbers from here on are seconds since 1970 in 1973 or later, and no count of bytes in a queue.
const SECONDS: f64 = 1e8;

/// The time with which a line begins, in seconds, and what follows it. Forms: seconds since 1970 or since the
/// start, with decimals or since 1973 (`date +%s.%N`, `ts %.s`); milliseconds, microseconds or nanoseconds
/// since 1970; ISO 8601 (`date -Ins`); a time of day (`ts -s`); `Nov 22 21:16:21` (`ts`);
/// `Sun Nov 22 21:16:21 UTC 2026` (`date`, `watch`); `Sun, 22 Nov 2026 21:16:21 +0000` (`date -R`). Any of
/// these in brackets. The zone counts in ISO 8601 only, as all times of a file have the same; times without a
/// year or a date count from a day of their own.
pub(crate) fn leading(line: &str) -> Option<(f64, &str)> {
    let line = without_marks(line.trim());
    // A column of its own.
    if let Some((time, rest)) = line.split_once([',', ';', '|'])
        && let Some(t) = time.trim().parse::<f64>().ok().and_then(since_1970)
        && (time.contains('.') || t >= SECONDS)
        && !rest.starts_with(|c: char| c.is_ascii_digit())
    {
        return Some((t, rest.trim_start()));
    }
    if let Some((time, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
        return whole(time).map(|t| (t, rest.trim_start()));
    }
    if let Some(command) = line.strip_prefix("Every ") {
        // The header of watch: the interval, the command, the host and the time.
        return command.rsplit_once(": ").and_then(|(_, time)| whole(time)).map(|t| (t, ""));
    }
    if let Some(t) = line.parse::<f64>().ok().and_then(since_1970) {
        return Some((t, ""));
    }
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let (t, used) = words_time(&words)?;
    let last = words[used - 1];
    let end = last.as_ptr() as usize + last.len() - line.as_ptr() as usize;
    Some((t, line[end..].trim_start()))
}

/// Words before a time that say that it is one.
const KEYS: [&str; 7] = ["time", "timestamp", "ts", "date", "datetime", "epoch", "now"];

/// A line without what scripts put before a time: `# `, `@`, `---`, `time:`, `timestamp=`.
fn without_marks(line: &str) -> &str {
    let line = line.trim_start_matches(['#', '@', '=', '*', '>', ';', '/', '-', ' ', '\t']);
    match line.split_once([':', '=']) {
        Some((key, rest)) if KEYS.iter().any(|k| key.eq_ignore_ascii_case(k)) => rest.trim_start(),
        _ => line,
    }
}

/// A text that is a time and nothing else.
fn whole(text: &str) -> Option<f64> {
    leading(text).filter(|(_, rest)| rest.is_empty()).map(|(t, _)| t)
}

/// Seconds of a number in any unit since 1970.
fn since_1970(n: f64) -> Option<f64> {
    let unit = match n {
        n if !(0.0..1e20).contains(&n) => return None,
        n if n < 1e11 => 1.0,
        n if n < 1e14 => 1e3,
        n if n < 1e17 => 1e6,
        _ => 1e9,
    };
    Some(n / unit)
}

/// The time that some words begin with, and the number of words that it takes.
fn words_time(words: &[&str]) -> Option<(f64, usize)> {
    let word = |i: usize| words.get(i).copied().unwrap_or_default();
    let first = word(0).trim_end_matches([',', ';', '|', ':']);
    if let Ok(n) = first.parse::<f64>() {
        return since_1970(n).filter(|_| first.contains('.') || n >= SECONDS).map(|t| (t, 1));
    }
    if let Some((date, time)) = first.split_once('T').filter(|(date, _)| date.contains('-')) {
        return iso(date, time).map(|t| (t, 1));
    }
    if first.matches('-').count() == 2 {
        let zone = word(2).starts_with(['+', '-']) && word(2).len() >= 5;
        let time = if zone { format!("{}{}", word(1), word(2)) } else { word(1).to_string() };
        return iso(first, &time).map(|t| (t, if zone { 3 } else { 2 }));
    }
    if first.contains(':') {
        return day(first).map(|t| (t, 1));
    }
    // Day and month stand in either order, the year before or behind the time.
    let mut used = usize::from(WEEKDAYS.contains(&first.trim_end_matches(',')));
    let (a, b) = (word(used), word(used + 1));
    let (month, date) = if MONTHS.contains(&a) { (a, b) } else { (b, a) };
    let month = MONTHS.iter().position(|m| *m == month)?;
    let date: i64 = date.parse().ok().filter(|d| (1..=31).contains(d))?;
    used += 2;
    let year_of = |w: &str| w.parse::<i64>().ok().filter(|y| (1970..3000).contains(y));
    let mut year = year_of(word(used));
    used += usize::from(year.is_some());
    let mut t = day(word(used))?;
    used += 1;
    if matches!(word(used), "AM" | "PM") {
        let (hour, pm) = ((t / 3600.0) as i64, word(used) == "PM");
        t += match (hour, pm) {
            (12, false) => -43_200.0,
            (1..12, true) => 43_200.0,
            _ => 0.0,
        };
        used += 1;
    }
    let zone = |w: &str| {
        let name = (3..=5).contains(&w.len()) && w.bytes().all(|b| b.is_ascii_uppercase());
        name || (w.len() == 5 && w.starts_with(['+', '-']) && w[1..].bytes().all(|b| b.is_ascii_digit()))
    };
    // `ts` writes neither zone nor year, and the state that may follow it looks like a zone.
    if zone(word(used)) && (year.is_some() || year_of(word(used + 1)).is_some()) {
        used += 1;
    }
    if year.is_none() {
        year = year_of(word(used));
        used += usize::from(year.is_some());
    }
    let days = match year {
        Some(year) => days_since_1970(year, month as i64 + 1, date),
        None => DAYS[month] + date - 1,
    };
    Some((days as f64 * 86_400.0 + t, used))
}

/// Seconds of a time of day: hours, minutes, and seconds with decimals after a point or a comma.
fn day(time: &str) -> Option<f64> {
    let mut hms = time.splitn(3, ':');
    let hour: f64 = hms.next()?.parse().ok()?;
    let minute: f64 = hms.next()?.parse().ok()?;
    let second: f64 = hms.next()?.replace(',', ".").parse().ok()?;
    let valid = (0.0..1e4).contains(&hour) && (0.0..60.0).contains(&minute) && (0.0..61.0).contains(&second);
    valid.then_some(hour * 3600.0 + minute * 60.0 + second)
}

/// Seconds since 1970 of an ISO 8601 date and time.
fn iso(date: &str, time: &str) -> Option<f64> {
    let mut ymd = date.splitn(3, '-').map(|n| n.parse::<i64>().ok());
    let (year, month, day_of) = (ymd.next()??, ymd.next()??, ymd.next()??);
    let time = time.trim_end_matches('Z');
    let (time, zone) = match time.rfind(['+', '-']) {
        Some(at) => (&time[..at], time[at..].replace(':', "")),
        None => (time, "+0000".to_string()),
    };
    let zone: i64 = zone.parse().ok().filter(|z: &i64| z.abs() < 2400)?;
    if !(1970..3000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day_of) {
        return None;
    }
    let zone_s = (zone / 100 * 60 + zone % 100) as f64 * 60.0;
    let t = days_since_1970(year, month, day_of) as f64 * 86_400.0 + day(time)? - zone_s;
    Some(t).filter(|t| *t >= 0.0)
}

/// Days since 1970 in the proleptic Gregorian calendar, with years that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_time_is_read() {
        let t = 1_714_564_800.5;
        for text in [
            "1714564800.5",
            "1714564800500",
            "1714564800500000",
            "1714564800500000000",
            "2024-05-01T14:00:00,500000000+02:00",
            "2024-05-01 12:00:00.5",
            "2024-05-01 14:00:00.5 +0200",
            "[2024-05-01T12:00:00.5Z]",
            "Wed May  1 12:00:00.5 UTC 2024",
            "Wed May  1 12:00:00.5 2024",
            "Wed May 1 12:00:00.5 PM CEST 2024",
            "Wed, 01 May 2024 12:00:00.5 +0000",
            "Every 0.1s: ss -tin 'dst :443'    host-1: Wed May  1 12:00:00.5 2024",
        ] {
            assert_eq!(leading(text), Some((t, "")), "{text}");
        }
        let line = "ESTAB 0 9000 192.0.2.1:443 198.51.100.1:50000";
        let year = 120.0 * 86_400.0 + 43_200.5;
        for (stamp, t) in [
            ("1714564800.5", t),
            ("0.25", 0.25),
            ("00:00:01", 1.0),
            ("[12:00:00.5]", 43_200.5),
            ("May 01 12:00:00.5", year),
            ("2024-05-01T12:00:00.5", t),
            ("2024-05-01 12:00:00.5", t),
            ("Wed May 1 12:00:00.5 AM UTC 2024", t - 43_200.0),
        ] {
            assert_eq!(leading(&format!("{stamp} {line}")), Some((t, line)), "{stamp}");
        }
        assert_eq!(leading("1970-01-01T00:00:00Z"), Some((0.0, "")));
        for text in [
            line,
            "0 9000 192.0.2.1:443 198.51.100.1:50000",
            "\t cubic wscale:7,7 rto:204 cwnd:10",
            "2024-13-01T00:00:00Z",
            "May 32 00:00:00",
            "State Recv-Q Send-Q Local Address:Port Peer Address:Port",
            "1e300",
            "",
        ] {
            assert_eq!(leading(text), None, "{text}");
        }
    }
}
