//! The ECN field of the IP header (RFC 3168 §5, RFC 8311, RFC 9331).

/// The ECN codepoint of a packet. The discriminants are the two bits of the header.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport: a queue drops it where it would mark others.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, ECT(1): by RFC 9331, a sender of the L4S service.
    Ect1 = 0b01,
    /// ECN-capable transport, ECT(0): a sender that responds to a mark as to a loss (RFC 3168).
    Ect0 = 0b10,
    /// Congestion experienced: a queue marked it.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the codepoint in the low two bits of the traffic class (the TOS byte of IPv4).
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns true if a queue may mark the packet in place of dropping it. A packet that is marked already
    /// counts.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Sets [`Ecn::Ce`] if the packet is capable; returns whether it was (`INET_ECN_set_ce`).
    pub const fn mark(&mut self) -> bool {
        if self.is_capable() {
            *self = Self::Ce;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_rfc_3168_and_only_a_capable_packet_is_marked() {
        for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
            assert_eq!((Ecn::from_bits(bits), Ecn::from_bits(0xb8 | bits), ecn as u8), (ecn, ecn, bits));
            let mut marked = ecn;
            assert_eq!(marked.mark(), bits != 0);
            assert_eq!(marked, if bits == 0 { Ecn::NotEct } else { Ecn::Ce });
        }
    }
}
