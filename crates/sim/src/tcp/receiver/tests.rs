//! Tests of the receiving half.

use super::*;

/// Fewer bytes than a window, so that no round trip is measured: the window that `count` segments of `len` bytes, in
/// order, leave on offer, and how many of the first are acknowledged one by one.
fn takes(r: &mut Receiver, count: u64, len: u64) -> (u64, u64) {
    let (mut singly, mut all) = (0, true);
    for i in 0..count {
        let from = r.next();
        let decision = r.on_data(Instant(i * 1_000_000), from, from + len, (false, false), None);
        all &= decision == AckDecision::Now;
        singly += u64::from(all);
        if decision == AckDecision::Now {
            r.acknowledge(true);
        }
    }
    (r.advertise_at_once(), singly)
}

fn receiver(first: u64, most: u64) -> Receiver {
    Receiver::new(&Profile { rmem_first: Bytes(first), rmem: Bytes(most), ..Profile::LINUX_6_18 })
}

/// Each segment takes 2304 bytes of memory. With 1250 bytes in each, 138 of 256 bytes of a buffer are window, with
/// 1448 bytes 160; while the window grows from the one to the other, two segments for each that comes, data is
/// acknowledged at once.
#[test]
fn the_largest_segment_tells_how_much_of_the_buffer_is_window() {
    let mut r = receiver(1 << 20, 256 << 20);
    let near = |window: u64, whole: u64| whole - 2 * 1448 < window && window <= whole;
    let (window, _) = takes(&mut r, 300, 1250);
    assert!(near(window, (1 << 20) * 138 / 256), "{window}");
    let (window, singly) = takes(&mut r, 60, 1448);
    assert!(near(window, (1 << 20) * 160 / 256), "{window}");
    let growth = (1_u64 << 20) * (160 - 138) / 256;
    assert_eq!(singly, growth.div_ceil(2 * 1448));
}

/// Five eighths of the largest buffer are window.
#[test]
fn a_buffer_holds_more_than_payload() {
    let mut r = receiver(128 << 10, 128 << 10);
    let (window, _) = takes(&mut r, 40, 1448);
    assert!(window <= 81_920 && window > 81_920 - 2 * 1448, "{window}");
}

/// The second of three segments is lost and the third late; what fills the hole was sent after the third, which
/// is discarded then, and acknowledged at once. Within a millisecond it is taken.
#[test]
fn what_is_older_than_what_filled_a_hole_is_discarded() {
    for (stamp, next) in [(100, 1 + 2 * 1448), (101, 1 + 4 * 1448)] {
        let mut r = receiver(128 << 10, 256 << 20);
        let mut data = |from: u64, stamp| {
            let from = 1 + from * 1448;
            let decision = r.on_data(Instant::ZERO, from, from + 1448, (false, false), Some(stamp));
            r.acknowledge(true);
            (decision, r.next())
        };
        assert_eq!(data(0, 99).1, 1 + 1448);
        assert_eq!(data(3, 101).1, 1 + 1448);
        assert_eq!(data(1, 102).1, 1 + 2 * 1448);
        // A duplicate that is older than the last acknowledgement does not make others old.
        data(0, 200);
        let late = data(2, stamp);
        assert_eq!(late, (AckDecision::Now, next));
    }
}

/// The window after a segment was lost, `beyond` arrived and the lost one came late, of a buffer that is as large as it
/// may be, and that after one more: both as what they lack of the whole, segments.
fn lacks_after_a_hole(beyond: u64) -> (u64, u64) {
    let mut r = receiver(1 << 20, 1 << 20);
    takes(&mut r, 600, 1448);
    let whole = (1 << 20) * 160 / 256;
    let mut arrives = |from: u64| {
        r.on_data(Instant::ZERO, from, from + 1448, (false, false), None);
        r.acknowledge(true);
        (r.advertise_at_once(), r.next())
    };
    let lost = 1 + 600 * 1448;
    let edge = (1..=beyond).map(|i| arrives(lost + i * 1448)).map(|(window, next)| window + next).last();
    assert!(edge.is_some_and(|e| e - lost <= whole), "{edge:?}");
    let (unread, next) = arrives(lost);
    assert_eq!(next, lost + (1 + beyond) * 1448);
    ((whole - unread) / 1448, (whole - arrives(next).0) / 1448)
}

/// What waits behind a hole takes its place in the buffer. The acknowledgement that says that the hole is filled
/// leaves before the application has read, unless a window twice as large follows at once.
#[test]
fn data_behind_a_hole_is_not_free_space() {
    assert_eq!(lacks_after_a_hole(100), (100, 1));
    assert_eq!(lacks_after_a_hole(220), (220, 1));
    assert_eq!(lacks_after_a_hole(300), (1, 1));
}

/// While ACKs are held back, a third block is not taken before what the others say was sent.
#[test]
fn blocks_are_told_before_others_take_their_place() {
    let mut r = receiver(1 << 20, 1 << 20);
    takes(&mut r, 600, 1448);
    r.sample_rtt(Instant(10_000_000_000), 9_900, 1448);
    let lost = r.next();
    let packet = |i: u64| (lost + i * 1448, lost + (i + 1) * 1448);
    let mut owed = Vec::new();
    // The first three are told at once; 5 is a second block, which is held back; 7, 9 and 11 each would be a third.
    for i in [1, 2, 3, 5, 7, 9, 11, 10] {
        let (from, to) = packet(i);
        owed.push(r.owes_blocks(from, to, None));
        if r.owes_blocks(from, to, None) {
            r.acknowledge(true);
        }
        if r.on_data(Instant::ZERO, from, to, (false, false), None) == AckDecision::Now {
            r.acknowledge(true);
        }
    }
    assert_eq!(owed, [false, false, false, false, true, true, true, false]);
}

/// A buffer that may grow has room for what waits behind a hole.
#[test]
fn a_hole_grows_the_buffer() {
    let mut r = receiver(128 << 10, 256 << 20);
    let (window, _) = takes(&mut r, 40, 1448);
    let lost = r.next();
    for i in 1..=70 {
        r.on_data(Instant::ZERO, lost + i * 1448, lost + (i + 1) * 1448, (false, false), None);
    }
    let clamp = 2 * 10 * 1448 + 71 * 1448;
    assert!(clamp > window && r.clamp == clamp, "{window}, {}", r.clamp);
}

/// A shorter RTT is the estimate at once; a longer one counts an eighth.
#[test]
fn the_least_rtt_is_taken_at_once() {
    let mut r = receiver(128 << 10, 256 << 20);
    for (ms, estimate) in [(80, 80_000), (160, 90_000), (50, 50_000)] {
        r.sample_rtt(Instant(10_000_000_000), 10_000 - ms, 1448);
        assert_eq!(r.rtt, Some(Span::micros(estimate)));
    }
}

/// Two segments that are as long as any before are worth an acknowledgement, however small they are.
#[test]
fn the_second_of_two_small_segments_is_acknowledged() {
    use AckDecision::{Later, Now};
    let mut r = receiver(128 << 10, 256 << 20);
    takes(&mut r, 50, 600);
    let mut decide = || {
        let from = r.next();
        let decision = r.on_data(Instant::ZERO, from, from + 600, (false, false), None);
        if decision == AckDecision::Now {
            r.acknowledge(true);
        }
        decision
    };
    let decisions: Vec<AckDecision> = (0..4).map(|_| decide()).collect();
    assert!(decisions == [Later, Now, Later, Now] || decisions == [Now, Later, Now, Later], "{decisions:?}");
}

/// A small segment, and one that echoes this millisecond, give no sample.
#[test]
fn only_full_segments_and_whole_milliseconds_measure_the_rtt() {
    let mut r = receiver(128 << 10, 256 << 20);
    takes(&mut r, 1, 1448);
    for (echo, len) in [(9_900, 1447), (10_000, 1448)] {
        r.sample_rtt(Instant(10_000_000_000), echo, len);
        assert_eq!(r.rtt, None);
    }
    r.sample_rtt(Instant(10_000_000_000), 9_999, 1448);
    assert_eq!(r.rtt, Some(Span::millis(1)));
}

/// What 20 segments in an RTT after 10 allow.
#[test]
fn until_6_16_the_window_has_room_for_16_segments_more() {
    for (right_size, segments) in [(RightSize::V618, 40 * 3), (RightSize::V612, (40 + 16) * 3)] {
        let p = Profile {
            rmem_first: Bytes(128 << 10),
            rmem: Bytes(256 << 20),
            right_size,
            ..Profile::LINUX_6_18
        };
        let mut r = Receiver::new(&p);
        takes(&mut r, 1, 1448);
        r.grow_buffer(20 * 1448);
        assert_eq!(r.clamp, segments * 1448);
    }
}

/// The application reads what an acknowledgement is for after that has left: it does not yet tell of the room that this
/// makes, so that the second segment of the next RTT is the first that is acknowledged alone.
#[test]
fn the_window_grows_after_the_acknowledgement() {
    let mut r = Receiver::new(&Profile { quick: 0, ..Profile::LINUX_6_18 });
    r.begin(Instant::ZERO, None, 0);
    r.sample_rtt(Instant(100_000_000), 0, 1448);
    let mut arrives = |ms: u64| {
        let from = r.next();
        let decision = r.on_data(Instant(ms * 1_000_000), from, from + 1448, (false, false), None);
        if decision == AckDecision::Now {
            r.acknowledge(true);
        }
        decision
    };
    // The window grows to the limit; then pairs are acknowledged.
    let _ = (0..40).map(|_| arrives(50)).count();
    let pairs: Vec<AckDecision> = (0..4).map(|_| arrives(60)).collect();
    assert!(pairs[0] != pairs[1] && pairs[..2] == pairs[2..], "{pairs:?}");
    if pairs[1] == AckDecision::Later {
        arrives(60);
    }
    assert_eq!([200, 200, 200].map(&mut arrives), [AckDecision::Later, AckDecision::Now, AckDecision::Now]);
}

/// The window that is offered is the next that the header can tell.
#[test]
fn the_window_is_rounded_up() {
    let mut r = receiver(128 << 10, 256 << 20);
    let (window, _) = takes(&mut r, 1, 1448);
    r.begin(Instant::ZERO, None, 13);
    assert!(window % 8192 != 0 && r.advertise_at_once() == window.next_multiple_of(8192), "{window}");
}

/// Beyond a hole three are acknowledged at once. One of them may be what came before another hole. Then ACKs are held
/// back for a twentieth of the RTT of the handshake, if the queue has made the measured one longer.
#[test]
fn held_back_for_a_twentieth_of_the_shorter_rtt() {
    use AckDecision::{Later, Now};
    let mut r = receiver(1 << 20, 1 << 20);
    takes(&mut r, 600, 1448);
    r.begin(Instant::ZERO, Some(Span::millis(10)), 0);
    r.sample_rtt(Instant(10_000_000_000), 9_900, 1448);
    let lost = r.next();
    let mut arrives = |i: u64| {
        let d = r.on_data(Instant::ZERO, lost + i * 1448, lost + (i + 1) * 1448, (false, false), None);
        if d == Now {
            r.acknowledge(true);
        }
        d
    };
    assert_eq!([2, 3, 4, 5].map(&mut arrives), [Now, Now, Now, Later]);
    assert_eq!([0, 6, 7, 8].map(&mut arrives), [Now, Now, Now, Later]);
    assert_eq!(r.ack_deadline(), Instant(600_000));
}
