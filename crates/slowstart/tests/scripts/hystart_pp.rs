//! `HyStart++`, RFC 9406 §4.2 and §4.3.
//!
//! A round begins with the ACK of the first packet sent after the previous round began; its samples are of
//! its own packets.

use crate::language::play;

/// §4.2: `>=`, and from the eighth sample on; the ACK that detects it already permits only a quarter.
#[test]
fn a_rise_of_an_eighth_slows_growth() {
    play(
        "startup hystart++
         iw 16
         ack 1 x16 rtt 100ms -> cwnd 32
         ack 1 x7 rtt 112.5ms -> cwnd 39, phase slow-start
         ack 1 rtt 112.5ms -> cwnd 39.25, phase css
         ack 1 x24 rtt 112.5ms -> cwnd 45.25, ssthresh -",
    );
    play(
        "startup hystart++
         iw 16
         ack 1 x16 rtt 100ms
         ack 1 x32 rtt 112.499ms -> cwnd 64, phase slow-start",
    );
}

/// §4.3: at least 4 ms, at most 16 ms.
#[test]
fn the_threshold_is_clamped() {
    for (base, within, beyond) in [("20ms", "23.9ms", "24ms"), ("200ms", "215.9ms", "216ms")] {
        let script = |rtt, phase| {
            format!(
                "startup hystart++
                 iw 16
                 round rtt {base}
                 round rtt {rtt} -> phase {phase}"
            )
        };
        play(&script(within, "slow-start"));
        play(&script(beyond, "css"));
    }
}

/// The comparison is with the last round, not with the connection: 100, 110, 120 ms are small rises each.
#[test]
fn the_rise_is_against_the_last_round() {
    play(
        "startup hystart++
         iw 16
         round rtt 100ms
         round rtt 110ms
         round rtt 120ms -> cwnd 128, phase slow-start
         ack 1 x7 rtt 135ms
         ack 1 rtt 135ms -> phase css",
    );
}

/// The minimum RTT of the round is judged: one low sample prevents the detection.
#[test]
fn one_low_sample_clears_the_round() {
    play(
        "startup hystart++
         iw 16
         round rtt 100ms
         ack 1 rtt 100ms
         ack 1 x31 rtt 200ms -> cwnd 64, phase slow-start",
    );
}

/// §4.2: five rounds, including the one in which it began; the window is unchanged at the exit.
#[test]
fn conservative_slow_start_lasts_five_rounds() {
    play(
        "startup hystart++
         iw 16
         round rtt 100ms -> cwnd 32
         ack 1 x7 rtt 120ms -> cwnd 39
         ack 1 rtt 120ms -> cwnd 39.25, phase css
         ack 1 x24 rtt 120ms -> css_rounds 0     # the rest of the first
         round rtt 120ms -> css_rounds 1
         round rtt 120ms -> css_rounds 2
         round rtt 120ms -> css_rounds 3
         round rtt 120ms -> css_rounds 4, phase css
         ack 1 rtt 120ms -> exit css-rounds, phase avoidance",
    );
    // By calculation: 1.25 times per round.
    play(
        "startup hystart++:css_rounds=2
         iw 64
         round rtt 100ms -> cwnd 128
         ack 1 x7 rtt 120ms -> cwnd 135
         ack 1 x121 rtt 120ms -> cwnd 165.25     # 121 quarters
         round rtt 120ms -> cwnd 206.5           # 165 quarters
         ack 1 rtt 120ms -> exit css-rounds, cwnd 206.5, ssthresh 206.5, left 206.5",
    );
}

/// §4.2: an RTT below the one that started it ends it, after eight samples of the round.
#[test]
fn a_fall_resumes_slow_start() {
    play(
        "startup hystart++
         iw 16
         round rtt 100ms
         round rtt 120ms -> phase css
         ack 1 x7 rtt 119ms -> phase css
         ack 1 rtt 119ms -> phase slow-start
         ack 1 -> phase slow-start",
    );
    play(
        "startup hystart++
         iw 16
         round rtt 100ms
         round rtt 120ms -> phase css
         round rtt 120ms -> phase css            # not below: equal",
    );
}

/// `baseline=entry`: an RTT that still exceeds the threshold does not end it.
#[test]
fn with_the_entry_baseline_a_fall_must_cross_the_threshold() {
    let script = |rtt, phase| {
        format!(
            "startup hystart++:baseline=entry
             iw 16
             round rtt 100ms
             round rtt 120ms -> phase css
             round rtt {rtt} -> phase {phase}"
        )
    };
    play(&script("119ms", "css"));
    play(&script("112.5ms", "css"));
    play(&script("112.4ms", "slow-start"));
}

/// §4.2: min(N, L * SMSS), L = 8 unpaced, infinite paced; a quarter of that in conservative slow start.
#[test]
fn an_unpaced_stretch_ack_earns_at_most_eight_segments() {
    play(
        "startup hystart++
         iw 20
         ack 20 -> cwnd 28",
    );
    play(
        "startup hystart++
         iw 20
         pacing 1000000
         ack 20 -> cwnd 40",
    );
    for (pacing, cwnd) in [("", 49.25), ("pacing 1000000", 51.25)] {
        play(&format!(
            "startup hystart++
             iw 20
             {pacing}
             round rtt 100ms -> cwnd 40
             ack 1 x8 rtt 120ms -> cwnd 47.25, phase css
             ack 16 rtt 120ms -> cwnd {cwnd}"
        ));
    }
}

/// Loss ends it in either phase.
#[test]
fn loss_ends_it_in_either_phase() {
    play(
        "startup hystart++
         iw 16
         round rtt 100ms
         loss 1 -> exit loss, cwnd 16, ssthresh 16, detected 32",
    );
    play(
        "startup hystart++
         iw 16
         round rtt 100ms
         ack 1 x8 rtt 120ms -> phase css, cwnd 39.25
         loss 1 -> exit loss, cwnd 19.625, ssthresh 19.625",
    );
}

/// §4.2: only in the initial slow start: after a timeout growth is standard, whatever the delay.
#[test]
fn after_a_timeout_growth_is_standard() {
    play(
        "startup hystart++
         iw 64
         round rtt 100ms -> cwnd 128
         timeout -> exit timeout, cwnd 1, ssthresh 64
         round rtt 100ms -> cwnd 2
         round rtt 200ms -> cwnd 4
         round rtt 300ms -> cwnd 8
         round rtt 400ms -> cwnd 16
         round rtt 500ms -> cwnd 32, phase slow-start
         round rtt 600ms -> cwnd 64, ssthresh 64",
    );
}

/// Samples fall within a round that began with long RTTs, as behind a burst: each lowers the baseline and
/// none is below the threshold, so conservative slow start continues with a quarter of a segment per ACK. The
/// first that is below resumes slow start.
#[test]
fn a_fall_above_the_threshold_does_not_resume_slow_start() {
    play(
        "startup hystart++
         iw 16
         pacing 64000000
         ack 1 x16 rtt 100ms -> cwnd 32
         ack 1 x8 rtt 140ms -> cwnd 39.25, phase css
         ack 1 rtt 130ms -> cwnd 39.5, phase css
         ack 1 rtt 112.5ms -> cwnd 39.75, phase css           # 100 + 12.5: at the threshold
         ack 1 rtt 112.4ms -> cwnd 40.75, phase slow-start",
    );
}
