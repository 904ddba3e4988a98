//! Waits for a state of what runs beside a test.

use std::thread;
use std::time::{Duration, Instant};

/// Waits up to 30 s for a condition.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        thread::sleep(Duration::from_millis(10));
    }
}
