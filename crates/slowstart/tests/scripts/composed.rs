//! `Composed`, the only code that writes a window: how it applies the requests of a startup and an avoidance.

use crate::language::play;

/// The window grows only if it is used; the startup still receives every ACK.
#[test]
fn a_limited_sender_does_not_grow_but_still_measures() {
    for limit in ["application", "peer"] {
        play(&format!(
            "startup hystart:detect=delay
             iw 20
             limit {limit}
             round rtt 100ms -> cwnd 20
             ack 1 x8 rtt 120ms -> cwnd 20, ssthresh -
             ack 1 rtt 120ms -> exit delay, cwnd 20, ssthresh 20
             round x30 rtt 120ms -> cwnd 20                  # nor does the avoidance grow"
        ));
    }
    play("limit pacer\nround -> cwnd 20");
}

/// In recovery the endpoint limits sending; neither startup nor avoidance increases the window.
#[test]
fn nothing_grows_in_recovery() {
    play(
        "startup hystart
         iw 32
         loss 1 -> exit loss, cwnd 16, ssthresh 16
         ack 1 x32 -> cwnd 16
         recovered -> cwnd 16
         ack 1 x16 -> cwnd 17",
    );
}

/// A startup that ended before the loss does not end again, and one episode makes one reduction.
#[test]
fn an_episode_makes_one_cut() {
    play(
        "iw 64
         loss 1 -> exit loss, cwnd 32, ssthresh 32, detected 64, left 32
         loss 1 -> cwnd 32
         loss 1 -> cwnd 32
         recovered
         loss 1 -> cwnd 16, ssthresh 16",
    );
}

/// RFC 3168 §6.1.2 and Linux 2.4: a mark and a stall of the host's own queue act like a loss, with their own
/// reasons.
#[test]
fn marks_and_stalls_end_it_too() {
    play("iw 64\necn -> exit ecn, cwnd 32, ssthresh 32");
    play("iw 64\nstall -> exit local-stall, cwnd 32, ssthresh 32");
}

/// As Linux: window and threshold are restored, and the startup that the loss ended continues.
#[test]
fn a_spurious_loss_is_undone() {
    play(
        "startup hystart:detect=delay
         iw 16
         ack 1 x16 rtt 100ms -> cwnd 32
         loss 1 -> exit loss, cwnd 16, ssthresh 16, phase avoidance
         undone -> resumed, cwnd 32, ssthresh -, phase slow-start
         ack 1 x8 rtt 120ms -> cwnd 40
         ack 1 rtt 120ms -> exit delay, cwnd 40, ssthresh 40   # which it recognises with what it knew
         loss 1 -> cwnd 20, ssthresh 20
         undone -> cwnd 40, ssthresh 40, phase avoidance      # nothing to resume: it had left by itself",
    );
    // The state before the episode is restored, even if a timeout occurred in it.
    play(
        "iw 16
         loss 1 -> exit loss, cwnd 8
         timeout -> cwnd 1, ssthresh 8
         round x3 -> cwnd 8
         undone -> resumed, cwnd 16, ssthresh -",
    );
}

/// RFC 5681 §3.1: one segment, and slow start up to the threshold. A connection has one exit.
#[test]
fn a_timeout_begins_again_below_the_threshold() {
    for startup in ["standard", "limited", "hystart", "hystart++", "search-2.0", "search"] {
        play(&format!(
            "startup {startup}
             iw 16
             timeout -> exit timeout, cwnd 1, ssthresh 8, detected 16, left 1, phase slow-start
             round -> cwnd 2
             round -> cwnd 4
             round -> cwnd 8, ssthresh 8, phase slow-start
             round -> cwnd 9, phase avoidance
             timeout -> cwnd 1, ssthresh 4.5"
        ));
    }
}

/// Growth after a restart: by the host's rule (Standard), or with a new instance of the startup
/// (`FromStart`), which may end before the threshold. `hystart` does, and no second exit is recorded;
/// `hystart++` does not (RFC 9406 §4.2: only the initial slow start).
#[test]
fn a_startup_chooses_the_growth_after_a_restart() {
    play(
        "startup hystart:detect=train,low_window=1
         iw 128
         timeout -> exit timeout, cwnd 1, ssthresh 64
         +2ms ack 1 x26 rtt 100ms -> cwnd 27, phase slow-start
         +2ms ack 1 rtt 100ms -> cwnd 27, ssthresh 27, phase avoidance",
    );
    play(
        "startup hystart++
         iw 128
         timeout -> exit timeout, cwnd 1, ssthresh 64
         round x5 rtt 100ms -> cwnd 32
         round rtt 150ms -> cwnd 64, ssthresh 64, phase slow-start",
    );
}

/// `tcp_slow_start`: the avoidance receives the part of an ACK that exceeds the threshold.
#[test]
fn the_rest_of_an_ack_goes_to_the_avoidance() {
    play(
        "iw 16
         timeout -> exit timeout, cwnd 1, ssthresh 8
         round x2 -> cwnd 4
         ack 4 -> cwnd 8                         # exactly at the threshold
         ack 7 -> cwnd 8
         ack 1 -> cwnd 9",
    );
    play(
        "iw 16
         timeout -> exit timeout, cwnd 1, ssthresh 8
         round -> cwnd 2
         ack 1 -> cwnd 3
         ack 3 -> cwnd 6
         ack 6 -> cwnd 8, phase avoidance         # two to the threshold, four to Reno
         ack 3 -> cwnd 8
         ack 1 -> cwnd 9",
    );
}

/// The ACK that ends a startup requests no growth: all of it goes to the avoidance.
#[test]
fn the_ack_that_ends_it_goes_to_the_avoidance() {
    play(
        "startup hystart:detect=delay
         iw 16
         round rtt 100ms -> cwnd 32
         ack 1 x8 rtt 150ms -> cwnd 40
         ack 1 rtt 150ms -> exit delay, cwnd 40
         ack 1 x38 -> cwnd 40
         ack 1 -> cwnd 41                         # 1 + 38 + 1 = 40",
    );
}

/// RFC 2861 as in `tcp_cwnd_restart`: half for each timeout of idle time, at least IW; 3/4 is kept in
/// ssthresh.
#[test]
fn an_idle_window_decays() {
    let script = |idle, end| {
        format!(
            "iw 10
             growth abc
             round x4 -> cwnd 160
             loss 1 -> exit loss, cwnd 80, ssthresh 80
             recovered
             idle {idle} rto 300ms -> {end}"
        )
    };
    play(&script("300ms", "cwnd 80, ssthresh 80, phase avoidance"));
    play(&script("301ms", "cwnd 40, ssthresh 80, phase slow-start"));
    play(&script("601ms", "cwnd 20, ssthresh 80"));
    play(&script("901ms", "cwnd 10, ssthresh 80"));
    play(&script("100s", "cwnd 10, ssthresh 80"));
    // Three quarters of the window where that is more than the threshold.
    play(
        "iw 16
         loss 1 -> exit loss, cwnd 8, ssthresh 8
         recovered
         round x16 -> cwnd 24
         idle 301ms rto 300ms -> cwnd 16, ssthresh 18
         ack 2 -> cwnd 18
         ack 1 -> cwnd 18, phase avoidance",
    );
    // A startup that has not ended has no threshold to raise, and continues.
    play(
        "iw 10
         round x3 -> cwnd 80
         idle 301ms rto 300ms -> cwnd 40, ssthresh -, phase slow-start
         round -> cwnd 80",
    );
}

/// RFC 5681 equation 4: no threshold below two segments, and no window below one.
#[test]
fn thresholds_and_windows_have_floors() {
    play("iw 1\nloss 1 -> exit loss, cwnd 2, ssthresh 2");
    play(
        "iw 2
         loss 1 -> exit loss, cwnd 2, ssthresh 2
         recovered
         loss 1 -> cwnd 2, ssthresh 2
         recovered
         timeout -> cwnd 1, ssthresh 2
         timeout -> cwnd 1, ssthresh 2",
    );
}

/// What `Checked` says to a host that breaks the order of calls (see `Controller`). Tests are debug builds.
mod order {
    use crate::common::facts;
    use slowstart::avoidance::reno::Reno;
    use slowstart::control::{Checked, Composed, Controller};
    use slowstart::startup::standard::Standard;
    use slowstart::units::{Bytes, Instant, SendOrder, Span};
    use slowstart::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent, Signal};

    type Control = Checked<Composed<Standard, Reno>>;

    fn begun() -> (Control, Facts) {
        let f = facts(1000, 10);
        let mut c = Checked::new(Composed::new(Standard::default(), Reno::default(), f.iw));
        let _ = c.on_established(&f, &Handshake::default());
        (c, f)
    }

    fn ack(f: &mut Facts, bytes: u64) -> Ack {
        f.delivered += Bytes(bytes);
        let mut a = Ack::new(Sent::default(), Bytes(bytes), Bytes(bytes));
        a.upto = SendOrder::new(f.delivered.0);
        a
    }

    #[test]
    fn a_host_that_keeps_it_hears_nothing() {
        let (mut c, mut f) = begun();
        f.next = SendOrder::new(10_000);
        let a = ack(&mut f, 1000);
        let _ = c.on_ack(&f, &a);
        let _ = c.on_congestion(&f, &Congestion::new(Signal::Ecn, true, Sent::default()));
        let _ = c.on_recovered(&f, &Recovery::default());
        f.now = Instant(5);
        let _ = c.on_idle(&f, Span(5), None);
        assert_eq!(c.get().state(), c.state());
    }

    #[test]
    #[should_panic(expected = "on_ack before on_established")]
    fn an_ack_before_the_beginning() {
        let mut f = facts(1000, 10);
        let mut c = Checked::new(Composed::new(Standard::default(), Reno::default(), f.iw));
        let a = ack(&mut f, 1000);
        let _ = c.on_ack(&f, &a);
    }

    #[test]
    #[should_panic(expected = "on_established for the second time")]
    fn two_beginnings() {
        let (mut c, f) = begun();
        let _ = c.on_established(&f, &Handshake::default());
    }

    #[test]
    #[should_panic(expected = "the time went back")]
    fn time_that_goes_back() {
        let (mut c, mut f) = begun();
        f.now = Instant(7);
        let a = ack(&mut f, 1000);
        let _ = c.on_ack(&f, &a);
        f.now = Instant(6);
        let a = ack(&mut f, 1000);
        let _ = c.on_ack(&f, &a);
    }

    #[test]
    #[should_panic(expected = "the facts do not contain what the ACK delivered")]
    fn facts_from_before_the_ack() {
        let (mut c, f) = begun();
        let _ = c.on_ack(&f, &Ack::new(Sent::default(), Bytes(1000), Bytes(1000)));
    }

    #[test]
    #[should_panic(expected = "acknowledgements went back")]
    fn acknowledgements_that_go_back() {
        let (mut c, mut f) = begun();
        let a = ack(&mut f, 1000);
        let _ = c.on_ack(&f, &a);
        let mut a = ack(&mut f, 1000);
        a.upto = SendOrder::new(500);
        let _ = c.on_ack(&f, &a);
    }

    #[test]
    #[should_panic(expected = "a further signal before a first")]
    fn an_episode_without_a_beginning() {
        let (mut c, f) = begun();
        let _ = c.on_congestion(&f, &Congestion::new(Signal::Loss, false, Sent::default()));
    }

    #[test]
    #[should_panic(expected = "on_recovered without an episode that lasts")]
    fn an_end_of_no_episode() {
        let (mut c, f) = begun();
        let _ = c.on_recovered(&f, &Recovery::default());
    }

    #[test]
    #[should_panic(expected = "on_timer")]
    fn a_timer_that_nobody_set() {
        let (mut c, f) = begun();
        let _ = c.on_timer(&f);
    }

    #[test]
    #[should_panic(expected = "in flight")]
    fn idle_with_data_in_flight() {
        let (mut c, mut f) = begun();
        f.inflight = Bytes(1000);
        let _ = c.on_idle(&f, Span(5), None);
    }
}
