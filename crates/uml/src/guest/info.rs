//! The state of a TCP connection, as the kernel tells it.

use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd};

/// Bytes of `struct tcp_info` that are read; kernels only add to its end.
const INFO: usize = 232;

/// `TCP_INFO` of a connection.
pub(super) struct Info([u8; INFO]);

/// What fills `to` from an option of the level TCP. Returns the number of bytes that the kernel wrote.
#[allow(
    unsafe_code,
    reason = "no crate in use has these options; the kernel writes at most the length that it is given"
)]
fn option(socket: impl AsFd, name: libc::c_int, to: &mut [u8]) -> Result<usize, Errno> {
    let mut length = to.len() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    let done =
        // SAFETY: the kernel writes at most `length` bytes, those of `to`.
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, name, to.as_mut_ptr().cast(), &raw mut length) };
    Errno::result(done).map(|_| length as usize)
}

impl Info {
    pub(super) fn of(socket: impl AsFd) -> Result<Self, Errno> {
        let mut bytes = [0; INFO];
        option(socket, libc::TCP_INFO, &mut bytes)?;
        Ok(Self(bytes))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    /// `tcp_ca_state`.
    pub(super) fn state(&self) -> u32 {
        u32::from(self.0[1])
    }

    /// Payload of a full segment, bytes.
    pub(super) fn mss(&self) -> u32 {
        self.u32(16)
    }

    /// Segments that are out and neither acknowledged nor deemed lost (`tcp_packets_in_flight`).
    pub(super) fn inflight(&self) -> u32 {
        let [unacked, sacked, lost, retrans] = [24, 28, 32, 36].map(|at| self.u32(at));
        unacked.saturating_sub(sacked + lost) + retrans
    }

    /// The smoothed round-trip time, microseconds.
    pub(super) fn srtt(&self) -> u32 {
        self.u32(68)
    }

    /// Segments; `u32::MAX` if none is set.
    pub(super) fn ssthresh(&self) -> u32 {
        // TCP_INFINITE_SSTHRESH
        Some(self.u32(76)).filter(|s| *s < 0x7fff_ffff).unwrap_or(u32::MAX)
    }

    /// The window, segments.
    pub(super) fn cwnd(&self) -> u32 {
        self.u32(80)
    }

    /// Segments sent again.
    pub(super) fn retransmitted(&self) -> u32 {
        self.u32(100)
    }

    /// Bytes per second.
    pub(super) fn pacing(&self) -> u64 {
        self.u64(104)
    }

    /// Bytes that wait in the send buffer and were never sent.
    pub(super) fn unsent(&self) -> u32 {
        self.u32(144)
    }

    /// How long there was data out or to be sent, how long the peer's window limited that, and how long the send buffer, in
    /// microseconds.
    pub(super) fn chrono(&self) -> [u64; 3] {
        [168, 176, 184].map(|at| self.u64(at))
    }

    /// The least round-trip time, microseconds; 0 until there is a sample.
    pub(super) fn min_rtt(&self) -> u32 {
        Some(self.u32(148)).filter(|rtt| *rtt != u32::MAX).unwrap_or(0)
    }
}

/// The gains of bbr, of pacing and of the window, of 256; `None` if its kernel does not tell.
pub(super) fn bbr_gains(socket: impl AsFd) -> Option<(u32, u32)> {
    // tcp_bbr_info: bandwidth in two halves, least RTT, pacing gain, window gain.
    let mut bytes = [0; 64];
    let n = option(socket, libc::TCP_CC_INFO, &mut bytes).ok()?;
    let gain = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (n >= 20).then(|| (gain(12), gain(16)))
}

/// The values of these counters in the text of `/proc/net/netstat`; 0 for one that the kernel does not have.
pub(super) fn counters<const N: usize>(text: &str, names: [&str; N]) -> [u64; N] {
    let mut lines = text.lines().filter(|l| l.starts_with("TcpExt:"));
    let (keys, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let value = |name: &str| {
        let pairs = keys.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        pairs.into_iter().find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok())
    };
    names.map(|name| value(name).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "TcpExt: SyncookiesSent TCPHystartTrainDetect TCPHystartDelayDetect\nTcpExt: 4 1 0\nIpExt: A\nIpExt: 7\n";
        assert_eq!(counters(text, ["TCPHystartTrainDetect", "TCPHystartDelayDetect", "None"]), [1, 0, 0]);
        assert_eq!(counters("", ["A"]), [0]);
    }
}
