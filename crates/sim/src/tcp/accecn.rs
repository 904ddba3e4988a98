//! The `AccECN` option: how many bytes of payload arrived with each codepoint (RFC 9768 §3.2.3; Linux
//! `tcp_accecn_*`, 6.19 and later).
//!
//! Each segment carries it (`tcp_ecn_option=2`, the default of Linux) once the peer has sent one, and the
//! first SYN-ACK. It has the fields ECT(1), CE and ECT(0) in this order (kind 174), each the low 24 bits of a
//! counter. The fields share the space of options with timestamps and SACK blocks (`tcp_options_fit_accecn`):
//! three beside one block, two beside two. Of three blocks one gives way if a counter of the first two fields
//! has changed; else there is no option.
//!
//! Departs from its sources: there is as little space without timestamps; a path never removes or changes the
//! option, so that only a SYN-ACK that had to be sent again shows its loss.

use crate::path::Ecn;

/// Bytes that the option takes in a segment, three fields, padded.
pub(super) const FULL_OPTION: u32 = 12;
/// The option is not used if it was not seen before so many bytes were sent: a counter may have wrapped.
pub(super) const LATEST: u64 = (1 << 23) - 1;
/// Counters have so many bits in the option.
const MASK: u32 = (1 << 24) - 1;
/// Where the counters begin (RFC 9768 §3.2.1).
const FIRST: [u32; 3] = [1, 0, 1];
/// The field for CE.
const CE: usize = 1;

/// The `AccECN` option of a segment (RFC 9768).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct EcnOption {
    /// Which fields it has: bit 0 for ECT(1), bit 1 for CE, bit 2 for ECT(0).
    pub fields: u8,
    /// The values of the fields for ECT(1), CE and ECT(0), 0 for one that it does not have.
    pub bytes: [u32; 3],
}

impl EcnOption {
    /// The option of a SYN-ACK.
    pub(super) const FIRST: Self = Self { fields: 0b111, bytes: FIRST };
}

/// What arrived, by codepoint.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    bytes: [u32; 3],
    /// The fields that have changed since they were sent last, as bits.
    changed: u8,
    /// True if segments carry the option.
    pub(super) is_sent: bool,
}

impl Default for Arrived {
    fn default() -> Self {
        Self { bytes: FIRST, changed: 0, is_sent: false }
    }
}

impl Arrived {
    /// Counts the payload of a segment.
    pub(super) fn count(&mut self, ecn: Ecn, len: u32) {
        let field = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect1 => 0,
            Ecn::Ce => CE,
            Ecn::Ect0 => 2,
        };
        if len > 0 {
            self.bytes[field] = self.bytes[field].wrapping_add(len) & MASK;
            self.changed |= 1 << field;
        }
    }

    /// The option of a segment with so many SACK blocks, if it has one, and how many of the blocks remain.
    pub(super) fn option(&mut self, blocks: usize) -> (usize, Option<EcnOption>) {
        if !self.is_sent {
            return (blocks, None);
        }
        let needed = u8::BITS - self.changed.leading_zeros();
        let (remain, fields) = match blocks {
            0 | 1 => (blocks, 3),
            2 => (2, 2),
            _ if (1..=2).contains(&needed) => (2, 2),
            _ => (blocks, 0),
        };
        if fields == 0 || fields < needed {
            return (blocks, None);
        }
        self.changed = 0;
        let mut bytes = self.bytes;
        bytes[fields as usize..].fill(0);
        (remain, Some(EcnOption { fields: (1 << fields) - 1, bytes }))
    }
}

/// What the peer said of the bytes that were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    bytes: [u32; 3],
}

impl Default for Reported {
    fn default() -> Self {
        Self { bytes: FIRST }
    }
}

impl Reported {
    /// The bytes with ECT(1), CE and ECT(0).
    pub(super) fn bytes(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.bytes[i].wrapping_sub(FIRST[i]) & MASK)
    }

    /// Takes an option; returns the bytes newly reported as marked, if it has that field
    /// (`tcp_update_ecn_bytes`).
    pub(super) fn take(&mut self, option: &EcnOption) -> Option<u64> {
        let mut marked = None;
        for (i, known) in self.bytes.iter_mut().enumerate().filter(|(i, _)| option.fields & 1 << i != 0) {
            // An option that was overtaken has a lower value: 24 bits with a sign.
            let more = (option.bytes[i].wrapping_sub(*known) << 8).cast_signed() >> 8;
            if i == CE {
                marked = Some(u64::from(more.max(0).unsigned_abs()));
            }
            if more > 0 {
                *known = option.bytes[i];
            }
        }
        marked
    }
}

/// How many of the `packets` that an ACK delivered with `bytes` bytes were marked (`__tcp_accecn_process`).
/// `least` is what the three bits of the ACE field say, and `marked` the bytes that the option reports, if
/// there was one.
pub(super) fn marked_packets(least: u64, packets: u64, bytes: u64, marked: Option<u64>, mss: u64) -> u64 {
    if packets <= 7 {
        return least;
    }
    // RFC 9768 §3.2.2.5.2: the field may have gone around while ACKs were lost or thinned; then the largest
    // number that fits is the safe one.
    let safe = packets - ((packets - least) & 7);
    let Some(marked) = marked else { return safe };
    match marked {
        0 => least,
        _ if packets >= 16 => {
            if bytes <= marked {
                return safe;
            }
            let estimate = (marked * packets).div_ceil(bytes);
            safe.min(least + (estimate & !7))
        }
        _ if marked <= least * mss && marked < (safe * mss) >> 1 => least,
        _ => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_take_the_space_that_sack_blocks_leave() {
        let mut rx = Arrived { is_sent: true, ..Arrived::default() };
        rx.count(Ecn::Ect1, 1000);
        assert_eq!(rx.option(1), (1, Some(EcnOption { fields: 0b111, bytes: [1001, 0, 1] })));
        rx.count(Ecn::Ect1, 1000);
        assert_eq!(rx.option(2), (2, Some(EcnOption { fields: 0b011, bytes: [2001, 0, 0] })));
        // A third block gives way to news of CE.
        rx.count(Ecn::Ce, 1000);
        assert_eq!(rx.option(3), (2, Some(EcnOption { fields: 0b011, bytes: [2001, 1000, 0] })));
        assert_eq!(rx.option(3), (3, None));
        // ECT(0) is the last field, for which there is no room.
        rx.count(Ecn::Ect0, 1000);
        assert_eq!((rx.option(3), rx.option(2)), ((3, None), (2, None)));
        assert_eq!(rx.option(0), (0, Some(EcnOption { fields: 0b111, bytes: [2001, 1000, 1001] })));
    }

    #[test]
    fn counters_wrap_and_late_options_change_nothing() {
        let mut tx = Reported::default();
        let option = |ce: u32| EcnOption { fields: 0b010, bytes: [0, ce & MASK, 0] };
        let step = 5_000_000;
        for n in 1..10 {
            assert_eq!(tx.take(&option(n * step)), Some(u64::from(step)), "{n}");
        }
        assert_eq!((tx.take(&option(8 * step)), tx.take(&option(9 * step))), (Some(0), Some(0)));
        assert_eq!(tx.take(&EcnOption { fields: 0b101, bytes: [1, 0, 1] }), None);
    }

    #[test]
    fn bytes_tell_how_often_the_field_went_around() {
        let mss = 1000;
        let of = |least, packets, marked| marked_packets(least, packets, packets * mss, marked, mss);
        // Of ten packets one or nine were marked: without bytes nine is safe.
        assert_eq!((of(1, 10, None), of(1, 10, Some(1000)), of(1, 10, Some(9000))), (9, 1, 9));
        assert_eq!(of(0, 10, Some(0)), 0);
        // Of forty: 3, 11, 19, 27 or 35.
        assert_eq!((of(3, 40, None), of(3, 40, Some(3000)), of(3, 40, Some(19_000))), (35, 3, 19));
        assert_eq!(of(3, 40, Some(40_000)), 35);
    }
}
