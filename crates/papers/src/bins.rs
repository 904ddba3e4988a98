//! SEARCH's normalised difference with any number of bins, and without bins, computed over the delivered
//! bytes at each ACK (thesis, sections 4.2 and 4.4.4).

/// The thesis' window, in units of the first round-trip time.
const WINDOW: f64 = 3.5;
/// The thesis' threshold.
const THRESHOLD: f64 = 0.35;

/// An ACK: its time in seconds, the bytes delivered by then, the newest round-trip time in seconds.
pub type Ack = (f64, f64, f64);

/// Bytes delivered by the time `t`, from the last ACK up to then.
fn delivered(acks: &[Ack], t: f64) -> f64 {
    let i = acks.partition_point(|a| a.0 <= t);
    if i == 0 { 0.0 } else { acks[i - 1].1 }
}

/// The normalised difference at the time `t`, from the delivered bytes without bins.
fn exact(acks: &[Ack], t: f64, width: f64, rtt: f64) -> Option<f64> {
    let sum = |end: f64| delivered(acks, end) - delivered(acks, end - width);
    let twice = 2.0 * sum(t - rtt);
    (twice > 0.0).then(|| (twice - sum(t)) / twice)
}

/// At the first ACK after each bin's end: the time, the normalised difference from `bins` bins a window
/// (interpolated at the look-back), and the round-trip time that is the look-back.
fn binned(acks: &[Ack], bins: usize) -> Vec<(f64, f64, f64)> {
    let Some(first) = acks.first() else { return Vec::new() };
    let width = WINDOW * first.2 / bins as f64;
    // Totals at the first ACK after the end of a bin, as a sender knows them.
    let mut totals = vec![first.1];
    let mut all = Vec::new();
    let mut end = first.0 + width;
    for ack in acks {
        if ack.0 <= end {
            continue;
        }
        // If several bins ended, no ACK arrived in the others.
        while ack.0 > end + width {
            totals.push(*totals.last().unwrap_or(&0.0));
            end += width;
        }
        totals.push(ack.1);
        end += width;
        let now = totals.len() - 1;
        let back = ack.2 / width;
        let (whole, part) = (back as usize, back.fract());
        if now < bins + whole + 1 {
            continue;
        }
        let at = |i: usize| totals[i];
        let sum = |i: usize| at(i) - at(i - bins);
        let twice = 2.0 * (sum(now - whole) * (1.0 - part) + sum(now - whole - 1) * part);
        if twice > 0.0 {
            all.push((ack.0, (twice - sum(now)) / twice, ack.2));
        }
    }
    all
}

/// The time at which SEARCH 2.0 leaves slow start with `bins` bins in its window and `extra` bins beyond it.
/// It does not leave while the look-back spans `extra` bins or more, because it has no totals to compare with
/// (thesis, algorithm 1).
pub fn exit_time(acks: &[Ack], bins: usize, extra: usize) -> Option<f64> {
    let width = WINDOW * acks.first()?.2 / bins as f64;
    let reaches = |rtt: f64| ((rtt / width) as usize) < extra;
    let mut all = binned(acks, bins).into_iter();
    all.find(|(_, d, rtt)| *d >= THRESHOLD && reaches(*rtt)).map(|(t, ..)| t)
}

/// The number of bins beyond the window that SEARCH 2.0 needs: one more than the longest look-back up to its
/// exit spans.
pub fn extra_bins_needed(acks: &[Ack], bins: usize) -> Option<f64> {
    let width = WINDOW * acks.first()?.2 / bins as f64;
    let left = exit_time(acks, bins, usize::MAX).unwrap_or(f64::INFINITY);
    let longest = acks.iter().take_while(|a| a.0 <= left).map(|a| a.2).fold(0.0, f64::max);
    Some((longest / width).floor() + 1.0)
}

/// The mean absolute difference between the value from bins and the value without bins.
pub fn mean_error(acks: &[Ack], bins: usize) -> Option<f64> {
    let width = WINDOW * acks.first()?.2;
    let apart = |(t, d, rtt): (f64, f64, f64)| Some((d - exact(acks, t, width, rtt)?).abs());
    let all: Vec<f64> = binned(acks, bins).into_iter().filter_map(apart).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// The standard deviation of the normalised difference with `bins` bins a window before the time `until`,
/// seconds.
pub fn noise(acks: &[Ack], bins: usize, until: f64) -> Option<f64> {
    let before: Vec<f64> = binned(acks, bins).into_iter().filter(|(t, ..)| *t < until).map(|b| b.1).collect();
    if before.len() < 2 {
        return None;
    }
    let n = before.len() as f64;
    let mean = before.iter().sum::<f64>() / n;
    Some((before.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 ACKs a second of a rate that doubles each round trip of 1 s, up to `capacity`.
    fn acks(capacity: f64) -> Vec<Ack> {
        let mut sum = 0.0;
        let ack = |i: i32| {
            let t = f64::from(i) / 1000.0;
            sum += t.exp2().min(capacity) / 1000.0;
            (t, sum, 1.0)
        };
        (0..20_000).map(ack).collect()
    }

    #[test]
    fn bins_change_little_of_the_closed_form() {
        // Capacity is reached after 10 round trips; the closed form crosses 0.35 after 2.2 more. Bins add up
        // to one bin.
        for bins in [5, 10, 40] {
            let late = exit_time(&acks(1024.0), bins, usize::MAX).expect("it leaves") - 10.0;
            assert!((2.1..2.25 + 3.5 / bins as f64).contains(&late), "{bins}: {late}");
        }
        assert_eq!(exit_time(&acks(f64::INFINITY), 10, usize::MAX), None);
        let error_of = |bins| mean_error(&acks(1024.0), bins).expect("there is one");
        assert!(error_of(40) < error_of(5) && error_of(10) < 0.05);
        assert_eq!(
            (exit_time(&[], 10, 15), mean_error(&[], 10), extra_bins_needed(&[], 10)),
            (None, None, None)
        );
        // A look-back of one round trip spans 2.86 bins (of ten in 3.5 round trips): three are enough, two
        // are not.
        assert_eq!(extra_bins_needed(&acks(1024.0), 10), Some(3.0));
        assert_eq!(exit_time(&acks(1024.0), 10, 3), exit_time(&acks(1024.0), 10, usize::MAX));
        assert_eq!(exit_time(&acks(1024.0), 10, 2), None);
    }
}
