//! Rapid start: draft-kazuho-ccwg-rapid-start-00, then its editor's copy.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::control::Controller;
use slowstart::step::{Exit, Pace};
use slowstart::units::Gain;

/// Two bytes per byte acknowledged while the recent minimum RTT is within min(4 ms, 10 %), one above.
#[test]
fn the_window_triples_while_there_is_no_queue() {
    play(
        "startup rapid-start-00
         round rtt 100ms -> cwnd 30, phase rapid
         round -> cwnd 90, ssthresh -
         +100ms ack 1 rtt 104ms -> cwnd 92, phase rapid
         +100ms ack 1 rtt 104.001ms -> cwnd 93, phase slow-start
         +100ms ack 1 rtt 100ms -> cwnd 95, phase rapid",
    );
    play(
        "startup rapid-start-00
         ack 1 rtt 20ms -> cwnd 12
         +20ms ack 1 rtt 22ms -> cwnd 14, phase rapid
         +20ms ack 1 rtt 22.001ms -> cwnd 15, phase slow-start",
    );
}

/// One sample without a queue is enough for a round trip, because its minimum counts.
#[test]
fn the_floor_is_of_the_last_round_trip() {
    play(
        "startup rapid-start-00
         iw 100
         ack 1 rtt 100ms
         +10ms ack 1 rtt 150ms x7 -> phase rapid, rtt_floor_s 0.1
         +40ms ack 1 rtt 150ms -> phase slow-start, rtt_floor_s 0.15",
    );
}

/// With beta = 0.7: 53/60 on entering and per byte lost, 11/60 per byte acknowledged; with 0.5: 29/36 and
/// 11/36.
#[test]
fn the_factors_are_those_of_the_draft() {
    for (params, entry, acked) in [
        ("", 87.45, 85.617),
        (":beta=0.5", 79.75, 76.695),
        (":k=2/3", 89.1, 87.1),
        (":beta=0.5,k=2/3", 82.5, 79.167),
    ] {
        play(&format!(
            "startup rapid-start-00{params}
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
                Host::new(startup(&format!("rapid-start-00{params}")), avoidance("cubic"), facts(1000, 300));
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

/// At least a third of beta times the original window. Later losses of the episode count; a mark acts like a
/// loss.
#[test]
fn the_floor_holds() {
    play(
        "startup rapid-start-00
         iw 300
         loss 100 -> exit loss
         loss 250 -> cwnd 70
         ack 30 -> cwnd 70
         recovered -> cwnd 70, phase avoidance",
    );
    play(
        "startup rapid-start-00\niw 100\necn -> exit ecn, cwnd 88.333, phase down\nrecovered -> phase avoidance",
    );
}

/// A spurious loss restores everything; a timeout ends it like any startup.
#[test]
fn a_spurious_loss_and_a_timeout() {
    play(
        "startup rapid-start-00
         iw 100
         loss 1 -> exit loss, phase down
         undone -> resumed, cwnd 100, ssthresh -, phase rapid
         ack 1 rtt 100ms -> cwnd 102",
    );
    play(
        "startup rapid-start-00
         iw 100
         loss 50 -> exit loss, cwnd 44.167
         timeout -> cwnd 1, ssthresh 44.167, phase slow-start",
    );
    play("startup rapid-start-00\niw 100\ntimeout -> exit timeout, cwnd 1, ssthresh 50\nack 1 -> cwnd 2");
}

/// The editor's copy: with beta = 0.7 9/10 and 1/5, with 0.5 5/6 and 1/3, with 0.8 (ABE, for a mark) 14/15
/// and 2/15.
#[test]
fn the_factors_are_those_of_the_editors_copy() {
    for (params, event, entry, acked) in [
        ("", "loss 1", 89.1, 87.1),
        (":beta=0.5", "loss 1", 82.5, 79.167),
        (":beta=0.8", "loss 1", 92.4, 91.067),
        (":beta_ecn=0.8", "ecn", 93.333, 92.0),
        (":beta_ecn=0.8", "loss 1", 89.1, 87.1),
    ] {
        let why = event.split(' ').next().unwrap();
        play(&format!(
            "startup rapid-start{params}
             iw 100
             {event} -> exit {why}, cwnd {entry}, ssthresh {entry}, phase down
             ack 10 -> cwnd {acked}"
        ));
    }
}

/// The derivation of the editor's copy: whatever is lost, beta of what arrived remains, and `W_max` is twice
/// what the path held. Then CUBIC grows towards it along the concave part of its curve, not by 5 % a round
/// trip.
#[test]
fn the_avoidance_looks_for_twice_what_the_path_held() {
    let rounds = |startup_text: &str, follows: &str| {
        let mut host = Host::new(startup(startup_text), avoidance(follows), facts(1000, 300));
        host.fill();
        assert_eq!(host.lose(200).exited.map(|e| e.why), Some(Exit::Loss));
        for _ in 0..100 {
            let _ = host.ack(1000, Some(slowstart::units::Span::millis(100)));
        }
        let _ = host.recovered(false);
        assert!((host.cwnd() - 70.0).abs() < 0.004, "{}", host.cwnd());
        host.fill();
        for _ in 0..20 {
            host.round(1, slowstart::units::Span::millis(100), slowstart::units::Span::millis(100));
        }
        host.cwnd()
    };
    // C (t - K)^3 + 200 with K = cbrt(130 / 0.4) = 6.88 s: 152.1 two seconds on, and a round trip ahead
    // 153.9.
    let (with, without) = (rounds("rapid-start", "cubic"), rounds("rapid-start:w_max=off", "cubic"));
    assert!((150.0..156.0).contains(&with), "{with}");
    assert_ne!(with, without);
    assert!(rounds("rapid-start", "cuback") > 100.0);
    assert_eq!(rounds("rapid-start", "reno"), rounds("rapid-start:w_max=off", "reno"));
}

/// The initial window is paced over a round trip, then (`pace=all`) each window; `iw` permits twice as much.
#[test]
fn the_first_window_is_paced_over_a_round_trip() {
    let begin = |text: &str, rtt: Option<u64>| {
        let mut f = facts(1000, 10);
        f.srtt = rtt.map(slowstart::units::Span::millis);
        let mut host = Host::new(startup(text), avoidance("cubic"), f);
        let first = (host.cwnd(), host.state().pace);
        host.fill();
        let _ = host.ack(1000, Some(slowstart::units::Span::millis(100)));
        (first, host.state().pace)
    };
    let over = Some(Pace::Gain(Gain::UNIT));
    assert_eq!(begin("rapid-start", Some(100)), ((10.0, over), over));
    assert_eq!(begin("rapid-start:pace=first,iw=2", Some(100)), ((20.0, over), None));
    assert_eq!(begin("rapid-start", None), ((10.0, None), None));
    assert_eq!(begin("rapid-start-00", Some(100)), ((10.0, None), None));
}

/// The reduction may stop at beta times the initial window, and never goes below beta / 3 of the window
/// before it.
#[test]
fn a_small_path_keeps_the_initial_window() {
    for (params, cwnd) in [("", 7), (":keep_iw=on", 7), (":keep_iw=on,beta=0.8", 8)] {
        play(&format!(
            "startup rapid-start{params}
             round rtt 100ms -> cwnd 30
             loss 25 -> exit loss
             loss 25 -> cwnd {cwnd}"
        ));
    }
    play("startup rapid-start\niw 12\nloss 11 -> exit loss, cwnd 2.8\nloss 11 -> cwnd 2.8");
    play("startup rapid-start:keep_iw=on\niw 12\nloss 11 -> exit loss, cwnd 8.4\nloss 11 -> cwnd 8.4");
}

/// Together with HyStart++ the rise of a round's RTT lowers growth to a quarter, and five such rounds end it.
#[test]
fn with_hystart_pp_it_leaves_by_delay_too() {
    play(
        "startup rapid-start:hystart=on
         pacing 1000000000
         iw 40
         round rtt 100ms -> cwnd 120
         ack 1 rtt 113ms x7 -> phase rapid
         ack 1 rtt 113ms -> phase css",
    );
    play("startup rapid-start\niw 40\nround rtt 100ms -> cwnd 120\nack 1 rtt 113ms x8 -> phase rapid");
}
