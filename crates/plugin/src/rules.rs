//! What the state that a plugin writes must keep to.

use slowstart::control::{Exited, State};
use slowstart::step::{Exit, Pace};
use slowstart::units::{Bytes, Instant};
use slowstart::view::Facts;
use slowstart_abi::state::slowstart_state;
use slowstart_abi::{SLOWSTART_MOST_WINDOW, SLOWSTART_UNKNOWN};

/// Returns the state and the end of the startup, if it has ended, or what is wrong.
///
/// # Safety
/// `exit_why` is null or a static string.
pub(crate) unsafe fn check(told: &slowstart_state, f: &Facts) -> Result<(State, Option<Exited>), String> {
    let wrong =
        |field: &str, found: u64, expected: &str| Err(format!("{field}: found {found}, expected {expected}"));
    if told.cwnd < f.min_window.0 {
        return wrong("cwnd", told.cwnd, &format!("at least min_window, {}", f.min_window.0));
    }
    if told.cwnd > SLOWSTART_MOST_WINDOW {
        return wrong("cwnd", told.cwnd, &format!("at most 2^40, {SLOWSTART_MOST_WINDOW}"));
    }
    let Some(state) = told.to_state() else {
        return wrong("pace_kind", told.pace_kind, "0 to 3, with a gain below 2^32");
    };
    match state.pace {
        Some(Pace::Rate(r)) if r.0 == 0 => return wrong("pace", 0, "bit/s above 0"),
        Some(Pace::Gain(g)) if g.0 == 0 => return wrong("pace", 0, "a gain above 0"),
        _ => {}
    }
    if let Some(at) = state.wake.filter(|at| *at <= f.now) {
        return wrong("wake_ns", at.0, &format!("after now_ns, {}", f.now.0));
    }
    if told.exit_detected_ns == SLOWSTART_UNKNOWN {
        return Ok((state, None));
    }
    if told.exit_detected_ns > f.now.0 {
        return wrong("exit_detected_ns", told.exit_detected_ns, &format!("at most now_ns, {}", f.now.0));
    }
    // SAFETY: as the caller promises.
    let named = unsafe { told.why() }.map(|w| w.to_string_lossy().into_owned());
    let Some(named) = named else {
        return Err("exit_why: found null, expected a word such as loss, or one of its own".into());
    };
    let why = Exit::named(&named).unwrap_or(Exit::Other);
    let exited = Exited {
        why,
        at: f.now,
        detected_at: Instant(told.exit_detected_ns),
        detected_cwnd: Bytes(told.exit_detected_cwnd),
        exit_cwnd: Bytes(told.exit_cwnd),
        inflight: f.inflight,
    };
    Ok((state, Some(exited)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let mut f = Facts::new(Bytes(1000), Bytes(10_000));
        f.now = Instant(500);
        f
    }

    fn state() -> slowstart_state {
        let s = State { cwnd: Bytes(10_000), ssthresh: None, pace: None, wake: None };
        slowstart_state::of(&s, None, None)
    }

    fn why(change: impl FnOnce(&mut slowstart_state)) -> String {
        let mut s = state();
        change(&mut s);
        // SAFETY: the tests set static strings.
        unsafe { check(&s, &facts()) }.err().unwrap_or_default()
    }

    #[test]
    fn a_state_that_keeps_the_rules_is_taken_as_it_is() {
        assert_eq!(why(|s| s.cwnd = 1000), "");
        assert_eq!(why(|s| (s.wake_ns, s.pace_kind, s.pace) = (501, 3, 1)), "");
        assert_eq!(why(|s| (s.exit_detected_ns, s.exit_why) = (500, c"loss".as_ptr())), "");
    }

    #[test]
    fn each_rule_is_told_by_field_and_value() {
        assert_eq!(why(|s| s.cwnd = 0), "cwnd: found 0, expected at least min_window, 1000");
        assert!(why(|s| s.cwnd = 1 << 63).starts_with("cwnd: found 9223372036854775808, expected at most"));
        assert_eq!(why(|s| s.wake_ns = 500), "wake_ns: found 500, expected after now_ns, 500");
        assert!(why(|s| s.pace_kind = 4).starts_with("pace_kind: found 4"));
        assert!(why(|s| s.pace_kind = 3).starts_with("pace: found 0"));
        assert!(why(|s| s.exit_detected_ns = 501).starts_with("exit_detected_ns: found 501"));
        assert!(why(|s| s.exit_detected_ns = 1).starts_with("exit_why: found null, expected a word"));
    }

    #[test]
    fn a_word_of_its_own_is_other() {
        let mut s = state();
        (s.exit_detected_ns, s.exit_why) = (1, c"bored".as_ptr());
        // SAFETY: a static string.
        let exited = unsafe { check(&s, &facts()) }.expect("it keeps the rules").1;
        assert_eq!(exited.map(|e| e.why), Some(Exit::Other));
    }
}
