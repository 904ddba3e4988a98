//! `CapStart` (Cavendish et al. 2009).

use crate::language::play;

/// One segment of 1000 bytes per millisecond is 8 Mbit/s: below the rate of the interface growth is limited,
/// above it is not.
#[test]
fn growth_is_limited_if_the_path_is_narrower_than_the_interface() {
    for (nic, cwnd, phase) in [(9, 103.5, "limited"), (8, 104.0, "slow-start"), (7, 104.0, "slow-start")] {
        play(&format!(
            "startup capstart:nic={nic}
             iw 100
             +100ms ack 1 -> cwnd 101
             +1ms ack 1 x2 -> cwnd 103, phase slow-start
             +1ms ack 1 -> cwnd {cwnd}, phase {phase}, capacity_bps 8000000"
        ));
    }
}

/// The smallest spacing counts, and a later pair can change the decision.
#[test]
fn a_closer_pair_shows_more_capacity() {
    play(
        "startup capstart:nic=9
         iw 100
         +100ms ack 1
         +1ms ack 1 x3 -> phase limited
         +500us ack 1 -> phase slow-start, capacity_bps 16000000
         +1ms ack 1 -> phase slow-start",
    );
}
