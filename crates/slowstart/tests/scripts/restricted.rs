//! Restricted slow start: the arithmetic of the controller, with segments of 1000 bytes and a queue of 100.

use crate::common::{facts, startup};
use crate::language::play;
use slowstart::startup::Startup;
use slowstart::step::Window;
use slowstart::units::{Bytes, Instant};
use slowstart::view::{Ack, HostQueue, Sent, View};

/// The control loop of the paper's host with P only: each ACK of a segment releases one segment and changes
/// the window, and so the queue, at once. Returns the errors from ACK to ACK, in bytes, after one of 400.
fn errors(kp: f64) -> Vec<i64> {
    let mut s = startup(&format!("restricted:kp={kp},ti=0s,td=0us,hold=off"));
    let (mut f, mut queue, mut cwnd) = (facts(1000, 100), 89_600_u64, Bytes(500_000));
    let mut seen = Vec::new();
    for _ in 0..200 {
        seen.push(90_000 - queue.cast_signed());
        f.now = Instant(f.now.0 + 120_000);
        f.host_queue = Some(HostQueue { used: Bytes(queue), limit: Bytes(100_000) });
        let ack = Ack::new(Sent::default(), f.mss, cwnd);
        let before = cwnd;
        match s.on_ack(&View { facts: &f, cwnd, ssthresh: None }, &ack).window {
            Window::Grow(b) => cwnd += b,
            Window::Set(b) => cwnd = b,
            Window::Keep => {}
            other => panic!("no window {other:?}"),
        }
        queue = queue + cwnd.0 - before.0;
    }
    seen
}

/// Ziegler and Nichols: raise the gain until the loop oscillates permanently. It does at Kc = 2, with a
/// period of two ACKs (240 us at 100 Mbit/s); "some overshoot" is then 0.33 Kc, Tc / 2, Tc / 3: the defaults.
#[test]
fn gains_by_ziegler_and_nichols() {
    let sustained = |kp: &f64| errors(*kp)[190..].iter().any(|e| e.abs() >= 200);
    let critical = (1..100).map(|n| f64::from(n) / 20.0).find(sustained).expect("it oscillates");
    assert_eq!(critical, 2.0);
    let tail = &errors(critical)[190..];
    assert!(tail.windows(2).all(|w| w[0] == -w[1]) && tail[0] != 0, "a period of two: {tail:?}");
    let mut gains = Vec::new();
    startup("restricted").each_param(&mut |k, v| gains.push(format!("{k} {v:?}")));
    assert_eq!(gains[1..4], ["kp Number(0.66)", "ti Number(0.00012)", "td Number(8e-5)"]);
}

/// The increment lies within [0, 1 MSS]. P only, 0.5 per segment: an error of 90 - 89 = 1 segment
/// permits a half.
#[test]
fn the_increment_is_what_the_error_leaves_of_one() {
    play(
        "startup restricted:kp=0.5,ti=0s,td=0us
         queue 0 100
         +1ms ack 1 -> cwnd 11, error_bytes 90000
         queue 88 100
         +1ms ack 1 -> cwnd 12, output 1
         queue 89 100
         +1ms ack 1 -> cwnd 12.5, output 0.5
         queue 90 100
         +1ms ack 1 -> cwnd 12.5, output 0
         queue 95 100
         +1ms ack 1 -> cwnd 12.5, output -2.5",
    );
}

/// A negative output holds the window; `hold=off` is only for finding gains.
#[test]
fn a_negative_output_shrinks_only_where_that_is_asked_for() {
    play("startup restricted:kp=0.5,ti=0s,td=0us,hold=off\nqueue 95 100\n+1ms ack 1 -> cwnd 9, output -2.5");
}

/// The integral does not change while the output is at a limit: after a long ramp nothing must be undone.
#[test]
fn the_integral_does_not_wind_up() {
    play(
        "startup restricted:kp=0.5,ti=1ms,td=0us
         queue 0 100
         +1ms ack 1 x9 -> cwnd 19, output 45   # the first sample has no time before it: e alone
         queue 90 100
         +1ms ack 1 -> output 0",
    );
}

/// e = 0.5 segments, 1 ms apart, ti = 1 ms: the integral grows by half a segment a sample.
#[test]
fn the_integral_closes_what_is_left() {
    play(
        "startup restricted:kp=0.5,ti=1ms,td=0us
         mss 2000
         queue 178 200             # 180 - 178 = 2 segments, the output just bounded
         +1ms ack 1 -> output 1
         queue 180 200
         +1ms ack 1 -> output 0
         queue 179 200
         +1ms ack 1 -> output 1    # 0.5 (1 + 1): the integral has taken the sample
         queue 180 200
         +1ms ack 1 -> output 0.5",
    );
}

/// td de/dt: from 90 to 89 segments of error in a millisecond with td = 2 ms subtracts two segments.
#[test]
fn the_derivative_reacts_to_a_growing_queue() {
    play(
        "startup restricted:kp=0.01,ti=0s,td=2ms
         queue 0 100
         +1ms ack 1 -> output 0.9
         queue 1 100
         +1ms ack 1 -> output 0.87",
    );
}

#[test]
fn two_acks_at_once_are_one_sample() {
    play(
        "startup restricted:kp=0.5,ti=0s,td=80us
         queue 89 100
         +1ms ack 1 -> cwnd 10.5, output 0.5
         queue 50 100
         ack 1 -> cwnd 11, output 0.5",
    );
}

#[test]
fn a_host_that_shows_no_queue_gets_standard_slow_start() {
    play("startup restricted\nround -> cwnd 20\nround -> cwnd 40");
}

#[test]
fn a_stall_ends_it_all_the_same() {
    play("startup restricted\nqueue 0 100\nstall -> exit local-stall, cwnd 5");
}

/// The other reading of the output: an increment of the window in segments, once each sampling period.
#[test]
fn the_output_can_be_an_increment_each_period() {
    play(
        "startup restricted:kp=0.5,ti=0s,td=0us,every=10ms
         queue 88 100
         +1ms ack 1 -> cwnd 11, output 1
         queue 84 100
         +1ms ack 1 -> cwnd 11, output 1
         +9ms ack 1 -> cwnd 14, output 3
         queue 95 100
         +10ms ack 1 -> cwnd 14, output -2.5",
    );
}
