//! Reads samples of TCP connections under any congestion control, which `watch.bpf.c` takes in the kernel.

use crate::bpf_log::keep_log;
use crate::check::{Check, Verb};
use crate::error::KernelError;
use crate::facts::{ExitReason, Numbers};
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use slowstart::units::Span;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));

/// Why a record was written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The connection closed, or switched to another control.
    Closed,
    /// The state at a regular interval.
    Sample,
    /// The connection's startup ended.
    Exit,
}

/// The state of a connection at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Address of the socket: identifies the connection while it is open.
    pub sk: u64,
    /// Time of the record, in nanoseconds of the kernel's monotonic clock.
    pub now_ns: u64,
    /// Bytes acknowledged since the connection began.
    pub acked_bytes: u64,
    /// The value of `acked_bytes` once everything sent so far is acknowledged.
    pub next: u64,
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Pacing rate, in bytes per second.
    pub pacing_rate: u64,
    /// Why this record was written.
    pub kind: RecordKind,
    /// Why the startup ended: [`ExitReason::None`] if it has not; `None` if it ended before the watch began.
    pub why: Option<ExitReason>,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow start threshold, in segments; above 2^31 - 2 it is unset.
    pub ssthresh: u32,
    /// Segments in flight at that time.
    pub inflight: u32,
    /// Maximum payload of a segment, in bytes.
    pub mss: u32,
    /// Smoothed round-trip time, in microseconds; 0 if there is no sample yet.
    pub srtt_us: u32,
    /// Minimum RTT, in microseconds.
    pub min_rtt_us: u32,
    /// Segments sent again since the connection began.
    pub retransmitted: u32,
    /// Congestion state of the kernel (`tcp_ca_state`): 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub state: u32,
    /// Number of retransmission timeouts.
    pub timeouts: u32,
    /// cwnd at the end of the startup, in segments; before the reduction, if a loss ended it.
    pub exit_cwnd: u32,
    /// Time of the end of the startup, in nanoseconds; 0 if it has not ended.
    pub exit_ns: u64,
    /// Time of the first record, in nanoseconds.
    pub begun_ns: u64,
    /// The port of this host.
    pub sport: u16,
    /// The port of the peer.
    pub dport: u16,
    /// The address of the peer.
    pub peer: IpAddr,
    /// Name of the congestion control.
    pub control: String,
}

impl Flow {
    pub(crate) fn read(record: &[u8]) -> Option<Self> {
        let n = &mut Numbers(record);
        let (sk, now_ns, acked_bytes, next, sent_bytes, pacing_rate) =
            (n.u64()?, n.u64()?, n.u64()?, n.u64()?, n.u64()?, n.u64()?);
        let kind = *[RecordKind::Closed, RecordKind::Sample, RecordKind::Exit].get(n.u32()? as usize)?;
        let why = ExitReason::ALL.get(n.u32()? as usize).copied();
        let (cwnd, ssthresh, inflight, mss) = (n.u32()?, n.u32()?, n.u32()?, n.u32()?);
        let (srtt_us, min_rtt_us, retransmitted, state) = (n.u32()?, n.u32()?, n.u32()?, n.u32()?);
        let (timeouts, exit_cwnd, exit_ns, begun_ns) = (n.u32()?, n.u32()?, n.u64()?, n.u64()?);
        let (sport, dport, family, _) = (n.u16()?, n.u16()?, n.u16()?, n.u16()?);
        let bytes: [u8; 16] = n.take()?;
        let name: [u8; 16] = n.take()?;
        let peer = if i32::from(family) == libc::AF_INET6 {
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        } else {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        };
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let control = String::from_utf8_lossy(&name[..end]).into_owned();
        Some(Self {
            sk,
            now_ns,
            acked_bytes,
            next,
            sent_bytes,
            pacing_rate,
            kind,
            why,
            cwnd,
            ssthresh,
            inflight,
            mss,
            srtt_us,
            min_rtt_us,
            retransmitted,
            state,
            timeouts,
            exit_cwnd,
            exit_ns,
            begun_ns,
            sport,
            dport,
            peer,
            control,
        })
    }
}

/// A running watch. Dropping it removes its programs and maps from the kernel.
pub struct Watch {
    object: Object,
    _links: Vec<Link>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Starts to watch the connections of one network namespace (its inode number; 0 for all), each sampled
    /// at most once per `period`.
    pub fn start(namespace: u64, period: Span) -> Result<Self, KernelError> {
        let what = "watch connections";
        Check::new().must(Verb::Watch, what)?;
        keep_log();
        let mut object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(what))?;
        for mut map in object.maps_mut() {
            if map.name() == ".rodata.scope" {
                let value = map.initial_value_mut().unwrap_or_default();
                for (slot, n) in value.chunks_exact_mut(8).zip([namespace, period.0]) {
                    slot.copy_from_slice(&n.to_ne_bytes());
                }
            }
        }
        let object = object.load().map_err(KernelError::bpf(what))?;
        let links = object.progs_mut().map(|p| p.attach()).collect::<Result<_, _>>();
        Ok(Self { _links: links.map_err(KernelError::bpf(what))?, object })
    }

    /// Returns a ring buffer that calls `each` with each record when it is polled.
    pub fn records<'a>(&self, mut each: impl FnMut(Flow) + 'a) -> Result<RingBuffer<'a>, KernelError> {
        let what = "watch connections";
        let map = self.object.maps().find(|m| m.name() == "records");
        let map = map.ok_or_else(|| KernelError::refused(what, "the object has no map of this name"))?;
        let mut ring = RingBufferBuilder::new();
        ring.add(&map, move |record| {
            if let Some(f) = Flow::read(record) {
                each(f);
            }
            0
        })
        .map_err(KernelError::bpf(what))?;
        ring.build().map_err(KernelError::bpf(what))
    }
}

#[cfg(test)]
mod tests {
    use super::OBJECT;
    use crate::table::TABLE;

    #[test]
    fn objects_do_not_contain_the_folder_of_the_build() {
        let folder = env!("CARGO_MANIFEST_DIR").as_bytes();
        for object in TABLE.iter().map(|c| c.object).chain([OBJECT]) {
            assert!(!object.windows(folder.len()).any(|w| w == folder));
        }
    }
}
