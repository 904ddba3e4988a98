//! The messages of libbpf, which it would otherwise print on standard error.

use libbpf_rs::PrintLevel;
use std::sync::Mutex;

/// Lines that an error message quotes.
const LINES: usize = 12;

static LOG: Mutex<String> = Mutex::new(String::new());

/// Makes libbpf collect its warnings for [`take_log`] instead of printing them.
pub(crate) fn keep_log() {
    #[allow(clippy::needless_pass_by_value, reason = "the type of a libbpf-rs print callback")]
    fn keep(_: PrintLevel, message: String) {
        if let Ok(mut log) = LOG.lock() {
            log.push_str(&message);
        }
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

/// Returns the last lines of the warnings since the previous call, which hold the verifier's reason, and
/// forgets them all.
pub(crate) fn take_log() -> String {
    let log = LOG.lock().map(|mut l| std::mem::take(&mut *l)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().fold(String::new(), |all, line| all + "\n  " + line)
}
