//! Rapid start, draft-kazuho-ccwg-rapid-start-00: section 3.14 and part 9.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::control::Controller;
use slowstart::step::Exit;

/// Two bytes per byte acknowledged while the recent minimum RTT is within min(4 ms, 10 %), one above.
#[test]
fn the_window_triples_while_there_is_no_queue() {
    play(
        "startup rapid-start
         round rtt 100ms -> cwnd 30, phase rapid
         round -> cwnd 90, ssthresh -
         +100ms ack 1 rtt 104ms -> cwnd 92, phase rapid
         +100ms ack 1 rtt 104.001ms -> cwnd 93, phase slow-start
         +100ms ack 1 rtt 100ms -> cwnd 95, phase rapid",
    );
    play(
        "startup rapid-start
         ack 1 rtt 20ms -> cwnd 12
         +20ms ack 1 rtt 22ms -> cwnd 14, phase rapid
         +20ms ack 1 rtt 22.001ms -> cwnd 15, phase slow-start",
    );
}

/// One sample without a queue is enough for a round trip, because its minimum counts.
#[test]
fn the_floor_is_of_the_last_round_trip() {
    play(
        "startup rapid-start
         iw 100
         ack 1 rtt 100ms
         +10ms ack 1 rtt 150ms x7 -> phase rapid, rtt_floor_s 0.1
         +40ms ack 1 rtt 150ms -> phase slow-start, rtt_floor_s 0.15",
    );
}

/// With beta = 0.7: 53/60 on entering and per byte lost, 11/60 per byte acknowledged; with 0.5: 29/36 and 11/36.
#[test]
fn the_factors_are_those_of_the_draft() {
    for (params, entry, acked) in [
        ("", 87.45, 85.617),
        (":beta=0.5", 79.75, 76.695),
        (":k=2/3", 89.1, 87.1),
        (":beta=0.5,k=2/3", 82.5, 79.167),
    ] {
        play(&format!(
            "startup rapid-start{params}
             iw 100
             loss 1 -> exit loss, cwnd {entry}, ssthresh {entry}, phase down, detected 100
             ack 10 -> cwnd {acked}"
        ));
    }
}

/// Of 300 in flight 200 are lost and 100 arrive, which is what the path held; the result is beta times that.
#[test]
fn recovery_ends_at_beta_of_what_the_path_held() {
    for (params, beta) in [("", 0.7), (":beta=0.5", 0.5), (":k=2/3", 0.7), (":beta=0.8", 0.8)] {
        for (lost, arrives) in [(200, 100), (150, 150), (30, 270)] {
            let mut host =
                Host::new(startup(&format!("rapid-start{params}")), avoidance("cubic"), facts(1000, 300));
            host.fill();
            assert!(host.control.owns_recovery());
            assert_eq!(host.lose(lost).exited.map(|e| e.why), Some(Exit::Loss));
            for _ in 0..arrives {
                let _ = host.ack(1000, None);
            }
            let _ = host.recovered(false);
            // Each of three products is rounded down to whole bytes.
            let want = beta * f64::from(arrives);
            assert!((host.cwnd() - want).abs() < 0.004, "{lost} lost: {}, wanted {want}", host.cwnd());
            assert_eq!(host.ssthresh(), Some(host.cwnd()));
            assert!(!host.control.owns_recovery());
        }
    }
}

/// At least a third of beta times the original window. Later losses of the episode count; a mark acts like a loss.
#[test]
fn the_floor_holds() {
    play(
        "startup rapid-start
         iw 300
         loss 100 -> exit loss
         loss 250 -> cwnd 70
         ack 30 -> cwnd 70
         recovered -> cwnd 70, phase avoidance",
    );
    play(
        "startup rapid-start\niw 100\necn -> exit ecn, cwnd 88.333, phase down\nrecovered -> phase avoidance",
    );
}

/// A spurious loss restores everything; a timeout ends it like any startup.
#[test]
fn a_spurious_loss_and_a_timeout() {
    play(
        "startup rapid-start
         iw 100
         loss 1 -> exit loss, phase down
         undone -> resumed, cwnd 100, ssthresh -, phase rapid
         ack 1 rtt 100ms -> cwnd 102",
    );
    play(
        "startup rapid-start
         iw 100
         loss 50 -> exit loss, cwnd 44.167
         timeout -> cwnd 1, ssthresh 44.167, phase slow-start",
    );
    play("startup rapid-start\niw 100\ntimeout -> exit timeout, cwnd 1, ssthresh 50\nack 1 -> cwnd 2");
}
