//! `HyStart` as deployed, as published and as in ns-3.

use crate::language::play;

/// With a minimum RTT of 100 ms the threshold is 12.5 ms, and it must be exceeded.
#[test]
fn the_delay_threshold_is_an_eighth_and_strict() {
    for (rtt, last) in [("112.4ms", "cwnd 41, ssthresh -"), ("112.5ms", "cwnd 41, ssthresh -")] {
        play(&format!(
            "startup hystart:detect=delay
             iw 16
             ack 1 x16 rtt 100ms -> cwnd 32
             ack 1 x9 rtt {rtt} -> {last}"
        ));
    }
    play(
        "startup hystart:detect=delay
         iw 16
         ack 1 x16 rtt 100ms -> cwnd 32
         ack 1 x8 rtt 112.6ms -> cwnd 40, ssthresh -      # samples 1 to 8 of the round never end it
         ack 1 rtt 112.6ms -> exit delay, cwnd 40, ssthresh 40, left 40, detected 40, phase avoidance",
    );
}

/// The first round begins when acknowledgements advance, not with data that was acknowledged selectively before: Linux
/// begins one with the connection, which ends with the first byte.
#[test]
fn the_first_round_begins_when_acknowledgements_advance() {
    play(
        "startup hystart
         iw 16
         ack 0 rtt 100ms -> delay_min_s 0.1, train_s NaN
         ack 1 rtt 100ms -> train_s 0",
    );
}

/// clamp(20 ms / 8, 4 ms, 16 ms) = 4 ms; clamp(200 ms / 8, 4 ms, 16 ms) = 16 ms.
#[test]
fn the_delay_threshold_is_clamped() {
    for (base, within, beyond) in [("20ms", "24ms", "24.1ms"), ("200ms", "216ms", "216.1ms")] {
        play(&format!(
            "startup hystart:detect=delay
             iw 16
             round rtt {base} -> cwnd 32
             ack 1 x9 rtt {within} -> cwnd 41, ssthresh -"
        ));
        play(&format!(
            "startup hystart:detect=delay
             iw 16
             round rtt {base} -> cwnd 32
             ack 1 x9 rtt {beyond} -> exit delay, cwnd 40, ssthresh 40"
        ));
    }
}

/// The minimum of all samples of the round counts, not that of its first eight (Linux since 2021).
#[test]
fn a_late_low_sample_clears_the_round() {
    play(
        "startup hystart:detect=delay
         iw 16
         round rtt 100ms -> cwnd 32
         ack 1 x8 rtt 150ms
         ack 1 rtt 100ms -> cwnd 41
         ack 1 x23 rtt 150ms -> cwnd 64, ssthresh -",
    );
}

/// Nothing is detected below `low_window`. At it, a detection does not require that the window is used.
#[test]
fn nothing_is_detected_below_16_segments() {
    play(
        "startup hystart
         iw 15
         limit application
         round rtt 100ms -> cwnd 15
         ack 1 x100 rtt 300ms -> cwnd 15, ssthresh -
         +1ms ack 1 x200 rtt 300ms -> cwnd 15, ssthresh -",
    );
    play(
        "startup hystart:detect=delay
         iw 16
         limit application
         round rtt 100ms -> cwnd 16
         ack 1 x8 rtt 300ms -> cwnd 16, ssthresh -
         ack 1 rtt 300ms -> exit delay, cwnd 16, ssthresh 16",
    );
}

/// Unpaced, the train may last half the minimum RTT; one gap of more than `ack_delta` ends the train of the
/// round.
#[test]
fn an_unpaced_train_ends_it_after_half_the_least_rtt() {
    play(
        "startup hystart
         iw 64
         +2ms ack 1 x26 rtt 100ms -> cwnd 90, ssthresh -      # the 26th is 50 ms after the first
         +2ms ack 1 rtt 100ms -> exit ack-train, cwnd 90, ssthresh 90",
    );
    play(
        "startup hystart
         iw 64
         +2ms ack 1 x10 rtt 100ms
         +2.001ms ack 1 rtt 100ms
         +1ms ack 1 x53 rtt 100ms -> cwnd 128, ssthresh -
         +2ms ack 1 x26 rtt 100ms -> cwnd 154, ssthresh -     # the next round's train
         +2ms ack 1 rtt 100ms -> exit ack-train, cwnd 154",
    );
}

/// Paced, it may last the whole minimum RTT, and 4 GSO bursts at the pacing rate more, up to 1 ms.
#[test]
fn a_paced_train_ends_it_after_the_least_rtt_and_a_cushion() {
    play(
        "startup hystart
         iw 200
         pacing 64000000
         +2ms ack 1 x51 rtt 100ms -> cwnd 251                 # the 51st is 100 ms after the first
         +2ms ack 1 rtt 100ms -> exit ack-train, cwnd 251, ssthresh 251",
    );
    play(
        "startup hystart
         iw 200
         pacing 64000000
         gso 1000                                             # 4 kB at 64 Mbit/s: 0.5 ms
         +2ms ack 1 x51 rtt 100ms
         +0.5ms ack 1 rtt 100ms -> cwnd 252, ssthresh -
         +0.001ms ack 1 rtt 100ms -> exit ack-train, cwnd 252",
    );
    play(
        "startup hystart
         iw 200
         pacing 64000000
         gso 65536                                            # 32.8 ms, of which 1 ms counts
         +2ms ack 1 x51 rtt 100ms
         +1ms ack 1 rtt 100ms -> cwnd 252, ssthresh -
         +0.001ms ack 1 rtt 100ms -> exit ack-train, cwnd 252",
    );
}

/// For an unpaced sender the sum of minimum RTT and cushion is halved (`threshold >>= 1` comes last).
#[test]
fn an_unpaced_cushion_is_halved_too() {
    play(
        "startup hystart
         iw 64
         pacing 64000000
         gso 1000
         unpaced
         +2ms ack 1 x26 rtt 100ms
         +0.25ms ack 1 rtt 100ms -> cwnd 91, ssthresh -
         +0.001ms ack 1 rtt 100ms -> exit ack-train, cwnd 91",
    );
}

/// Either detector can be switched off.
#[test]
fn detectors_are_separate() {
    play(
        "startup hystart:detect=delay
         iw 64
         +1ms ack 1 x200 rtt 100ms -> cwnd 264, ssthresh -",
    );
    play(
        "startup hystart:detect=train
         iw 64
         round rtt 100ms
         ack 1 x100 rtt 300ms -> cwnd 228, ssthresh -",
    );
}

/// 25c1a9ca53db: with `rules=5.16` rounds are marked only from 16 segments on, so the first begins in the
/// middle of a round trip (at the seventh ACK, with 22 segments sent) and its minimum RTT is of both.
#[test]
fn rules_differ_in_when_rounds_are_marked() {
    play(
        "startup hystart:detect=delay
         ack 1 x10 rtt 100ms -> cwnd 20
         ack 1 x8 rtt 120ms -> cwnd 28
         ack 1 rtt 120ms -> exit delay, cwnd 28",
    );
    play(
        "startup hystart:detect=delay,rules=5.16
         ack 1 x10 rtt 100ms -> cwnd 20
         ack 1 x20 rtt 120ms -> cwnd 40, ssthresh -
         ack 1 rtt 120ms -> exit delay, cwnd 40",
    );
}

/// A timeout resets the state (`CA_Loss`): with a minimum RTT of 100 ms it would exit at 16 segments.
#[test]
fn a_timeout_forgets_the_least_rtt() {
    play(
        "startup hystart:detect=delay
         iw 64
         round rtt 100ms -> cwnd 128
         timeout -> exit timeout, cwnd 1, ssthresh 64
         round x6 rtt 150ms -> cwnd 64, ssthresh 64, delay_min_s 0.15",
    );
}

/// The restart of an idle window does not.
#[test]
fn an_idle_spell_does_not() {
    play(
        "startup hystart:detect=delay
         iw 64
         round rtt 100ms -> cwnd 128
         idle 1s rto 300ms -> cwnd 64, ssthresh -
         ack 1 x8 rtt 120ms -> cwnd 72
         ack 1 rtt 120ms -> exit delay, cwnd 72",
    );
}

/// After a loss `ca->found` is 0: after an idle period Linux detects again, up to the threshold. With a minimum
/// RTT of 100 ms a rise of 12.5 ms ends it.
#[test]
fn after_a_loss_and_an_idle_period_it_detects_again() {
    play(
        "startup hystart:detect=delay
         avoidance reno
         iw 16
         ack 1 x64 rtt 100ms -> cwnd 80
         loss 1 -> exit loss, cwnd 40, ssthresh 40
         recovered
         idle 1s rto 300ms -> cwnd 16, ssthresh 40
         ack 1 x8 rtt 120ms -> cwnd 24, ssthresh 40
         ack 1 rtt 120ms -> ssthresh 24, phase avoidance",
    );
}

/// `cubictcp_acked` measures in avoidance too, but never the handshake. With a minimum RTT of 90 ms a rise of
/// 11.25 ms ends it; with that of the handshake, 4.1 ms would.
#[test]
fn its_baseline_after_an_idle_period_contains_avoidance_and_no_handshake() {
    for (rtt, end) in [("101ms", "ssthresh 40"), ("102ms", "ssthresh 24, phase avoidance")] {
        play(&format!(
            "startup hystart:detect=delay
             avoidance reno
             handshake 33ms
             iw 16
             ack 1 x64 rtt 100ms -> cwnd 80
             loss 1 -> exit loss, cwnd 40, ssthresh 40
             recovered
             ack 1 x8 rtt 90ms
             idle 1s rto 300ms -> cwnd 16, ssthresh 40
             ack 1 x8 rtt {rtt} -> cwnd 24, ssthresh 40
             ack 1 rtt {rtt} -> {end}"
        ));
    }
}

/// After an exit by its own rule (`ca->found` is 1) it does not.
#[test]
fn after_its_own_exit_and_an_idle_period_it_does_not() {
    play(
        "startup hystart:detect=delay
         iw 64
         round rtt 100ms -> cwnd 128
         ack 1 x8 rtt 120ms -> cwnd 136
         ack 1 rtt 120ms -> exit delay, cwnd 136, ssthresh 136
         idle 1s rto 300ms -> cwnd 64, ssthresh 136
         ack 1 x16 rtt 120ms -> cwnd 80, phase slow-start",
    );
}

/// Before 5.16 the ACK that ends a round is a sample of that round: the low RTT at the beginning of a flight
/// does not lower the minimum of the round that begins. 112.6 ms is more than 100 + 12.5 ms.
#[test]
fn before_5_16_a_round_begins_after_its_first_ack() {
    play(
        "startup hystart:detect=delay,rules=5.10
         iw 16
         ack 1 x16 rtt 100ms -> cwnd 32
         ack 1 rtt 100ms                                      # ends the first round
         ack 1 x8 rtt 112.6ms -> cwnd 41, ssthresh -
         ack 1 rtt 112.6ms -> exit delay, cwnd 41, ssthresh 41",
    );
    for rules in ["6.13", "5.16"] {
        play(&format!(
            "startup hystart:detect=delay,rules={rules}
             iw 16
             ack 1 x16 rtt 100ms -> cwnd 32
             ack 1 rtt 100ms
             ack 1 x9 rtt 112.6ms -> cwnd 42, ssthresh -"
        ));
    }
}

/// 4e1fddc98d25: before it, a sender that does not use its window marks no rounds, so that a train of many
/// round trips, here of 80 ms each, counts as one.
#[test]
fn before_5_16_a_sender_held_back_marks_no_rounds() {
    for (rules, end) in [("5.10", "exit ack-train"), ("5.16", "ssthresh -"), ("6.13", "ssthresh -")] {
        play(&format!(
            "startup hystart:rules={rules}
             iw 40
             pacing 64000000
             ack 1 rtt 100ms
             limit application
             +2ms ack 1 x50 rtt 100ms -> ssthresh -           # 100 ms after the first
             +2ms ack 1 rtt 100ms -> {end}, cwnd 41"
        ));
    }
}

/// The paper compares with the previous round, by ceil(lastRTT / 16) and at least two ticks of a millisecond,
/// from the eighth sample on, and equality is enough.
#[test]
fn the_paper_compares_rounds() {
    for (before, within, beyond) in [
        ("100ms", "106.999ms", "107ms"), // 6.25, so 7
        ("96ms", "101.999ms", "102ms"),  // 6
        ("10ms", "11.999ms", "12ms"),    // 0.625, so 1, but at least 2
    ] {
        let begin = format!(
            "startup hystart-paper:detect=delay
             iw 16
             ack 1 x16 rtt {before} -> cwnd 32"
        );
        play(&format!("{begin}\n ack 1 x32 rtt {within} -> cwnd 64, ssthresh -"));
        play(&format!(
            "{begin}
             ack 1 x7 rtt {beyond} -> cwnd 39, ssthresh -
             ack 1 rtt {beyond} -> exit delay, cwnd 39, ssthresh 39"
        ));
    }
    // 6 ms per round is below the threshold, though 30 % above the minimum; and nothing is detected in the
    // first round.
    play(
        "startup hystart-paper:detect=delay
         iw 16
         ack 1 x16 rtt 100ms
         ack 1 x32 rtt 106ms
         ack 1 x64 rtt 112ms
         ack 1 x128 rtt 118ms
         ack 1 x256 rtt 124ms -> cwnd 512, ssthresh -",
    );
}

/// Only the first eight samples of a round count, in the paper and in ns-3: a later low sample has no effect.
#[test]
fn the_first_eight_samples_decide() {
    play(
        "startup hystart-paper:detect=delay
         iw 16
         ack 1 x16 rtt 100ms
         ack 1 x7 rtt 120ms
         ack 1 rtt 106ms                                      # the eighth
         ack 1 x24 rtt 120ms -> cwnd 64, ssthresh -           # their least is 106 ms
         ack 1 x7 rtt 120ms
         ack 1 rtt 120ms -> exit delay, cwnd 71",
    );
    play(
        "startup hystart-ns3:detect=delay
         iw 16
         ack 1 x16 rtt 100ms
         ack 1 rtt 100ms                                      # ends the first round
         ack 1 x8 rtt 201ms
         ack 1 rtt 100ms -> exit delay, cwnd 41",
    );
}

/// The train of the paper ends it at half the minimum RTT, whether the sender paces or not.
#[test]
fn the_papers_train_may_not_last_half_the_least_rtt() {
    for pacing in ["unpaced", "pacing 64000000"] {
        play(&format!(
            "startup hystart-paper
             iw 64
             {pacing}
             +2ms ack 1 x25 rtt 100ms -> cwnd 89, ssthresh -  # the 25th is 48 ms after the first
             +2ms ack 1 rtt 100ms -> exit ack-train, cwnd 89, ssthresh 89"
        ));
    }
}

/// Algorithm 1: `found` is sticky, so that a detection below 16 segments ends it there. Linux discards it.
#[test]
fn the_paper_keeps_what_it_found_below_16_segments_unless_told_otherwise() {
    for (latch, end) in [(",latch=off", "cwnd 17, ssthresh -"), ("", "exit delay, cwnd 16, ssthresh 16")] {
        play(&format!(
            "startup hystart-paper:detect=delay{latch}
             iw 8
             limit application
             ack 1 x8 rtt 100ms -> cwnd 8
             ack 1 x8 rtt 120ms -> cwnd 8, ssthresh -         # found, below low_window
             limit window
             ack 1 x8 rtt 100ms -> cwnd 16, ssthresh -
             ack 1 rtt 100ms -> {end}"
        ));
    }
}

/// ns-3 compares a rise with the minimum RTT itself, within 4 ms and 1 s, and a train with the whole of it.
#[test]
fn ns_3_waits_for_a_whole_round_trip() {
    for (base, within, beyond) in
        [("100ms", "200ms", "200.1ms"), ("2ms", "6ms", "6.1ms"), ("1.5s", "2.5s", "2.501s")]
    {
        let begin = format!(
            "startup hystart-ns3:detect=delay
             iw 16
             ack 1 x17 rtt {base} -> cwnd 33"
        );
        play(&format!("{begin}\n ack 1 x31 rtt {within} -> cwnd 64, ssthresh -"));
        play(&format!(
            "{begin}
             ack 1 x8 rtt {beyond} -> cwnd 41, ssthresh -
             ack 1 rtt {beyond} -> exit delay, cwnd 41, ssthresh 41"
        ));
    }
    play(
        "startup hystart-ns3
         iw 64
         +2ms ack 1 x51 rtt 100ms -> cwnd 115, ssthresh -     # the 51st is 100 ms after the first
         +2ms ack 1 rtt 100ms -> exit ack-train, cwnd 115, ssthresh 115",
    );
}

/// The paper's text and figure 3b skip wide gaps in a train; Algorithm 1 ends it at the first. Closely spaced are
/// 25 gaps of 2 ms, half of the least RTT, in both.
#[test]
fn a_summed_train_skips_wide_gaps() {
    for (train, end) in [("gap", "cwnd 91, ssthresh -"), ("sum", "exit ack-train, cwnd 90, ssthresh 90")] {
        play(&format!(
            "startup hystart-paper:detect=train,train={train}
             iw 64
             +2ms ack 1 x13 rtt 100ms -> cwnd 77, ssthresh -  # 24 ms
             +10ms ack 1 rtt 100ms -> cwnd 78, ssthresh -     # a wide gap
             +2ms ack 1 x12 rtt 100ms -> cwnd 90, ssthresh -  # 48 ms
             +2ms ack 1 rtt 100ms -> {end}"
        ));
    }
}

/// With `pause=2`, a round after more than a quarter of the minimum RTT without ACKs is not judged by its delay.
#[test]
fn a_round_after_a_pause_is_not_judged() {
    for (pause, end) in [
        ("25ms", "exit delay, cwnd 40, ssthresh 40"),
        ("25.1ms", "cwnd 48, ssthresh -"),
    ] {
        play(&format!(
            "startup hystart:detect=delay,pause=2
             iw 16
             ack 1 x16 rtt 100ms -> cwnd 32
             +{pause} ack 1 x16 rtt 130ms -> {end}"
        ));
    }
}

/// The first round follows a pause: nothing was in flight before it.
#[test]
fn the_first_round_follows_a_pause() {
    play(
        "startup hystart:detect=delay,pause=2
         iw 16
         ack 1 rtt 100ms
         ack 1 x15 rtt 130ms -> cwnd 32, ssthresh -",
    );
}
