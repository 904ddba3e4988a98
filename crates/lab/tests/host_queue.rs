//! The queue of the sender's own interface: Linux 2.4 took a full queue for congestion (a send-stall), and Restricted
//! Slow-Start was designed to avoid it (Allcock, Hegde & Kettimuthu 2005, section 4).

mod common;

use common::{run, sized};
use slowstart::units::Span;
use slowstart_lab::engine::End;
use slowstart_lab::tcp::profile::Profile;

/// Number of stalls of a transfer over 100 Mbit/s and 60 ms with an interface queue of 100 packets.
fn stalls(startup: &str, profile: &str) -> u64 {
    let profile = Profile::named(profile).expect("a profile");
    let path = "rate=100Mbit rtt=60ms queue=100packets link=host";
    let e = run(path, vec![sized(startup, profile, 30_000_000)], Span::secs(60));
    e.flows[0].ends[End::Server].tx.counters.stalls
}

#[test]
fn restricted_slow_start_never_stalls_at_nine_tenths_of_the_queue() {
    assert_eq!(stalls("restricted", "linux-2.4"), 0);
    for startup in ["standard", "hystart", "limited"] {
        assert!(stalls(startup, "linux-2.4") > 0, "{startup}");
    }
}
