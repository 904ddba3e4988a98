//! Path memory of the startups that use it (RFC 9959): what connections left for the next one on their path,
//! in a map of the kernel (`bpf/memory.h`) of at most 16,384 entries.

use crate::error::KernelError;
use crate::facts::Numbers;
use crate::list::{Holders, list, lookup};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// How path memory is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Length of the prefix of an IPv4 address that connections share an entry for, 0 to 32.
    pub v4_bits: u32,
    /// Length of the prefix of an IPv6 address, 0 to 128.
    pub v6_bits: u32,
    /// True to keep it by cgroup, false by port.
    pub by_cgroup: bool,
    /// How long an entry is used.
    pub lifetime: Duration,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { v4_bits: 32, v6_bits: 64, by_cgroup: false, lifetime: Duration::from_hours(1) }
    }
}

impl MemoryConfig {
    /// Parses the lengths of prefixes, as in `24,56`.
    ///
    /// # Errors
    /// If the text is not two lengths, or one exceeds that of an address.
    pub fn set_prefixes(&mut self, text: &str) -> Result<(), KernelError> {
        let lengths = text.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let Some((v4, v6)) = lengths.filter(|(v4, v6)| *v4 <= 32 && *v6 <= 128) else {
            let why = format!("{text:?} is not two lengths of prefixes up to 32 and 128 bits, such as 24,56");
            return Err(KernelError::refused("path memory", why));
        };
        (self.v4_bits, self.v6_bits) = (v4, v6);
        Ok(())
    }

    /// The constants of the object.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let words = [self.v4_bits, self.v6_bits, self.by_cgroup.into(), 0];
        let lifetime = u64::try_from(self.lifetime.as_nanos()).unwrap_or(u64::MAX);
        words.iter().flat_map(|w| w.to_ne_bytes()).chain(lifetime.to_ne_bytes()).collect()
    }

    fn read(value: &[u8]) -> Option<Self> {
        let n = &mut Numbers(value);
        let (v4_bits, v6_bits, by_cgroup) = (n.u32()?, n.u32()?, n.u32()? != 0);
        let lifetime = n.u32().and_then(|_| n.u64())?;
        Some(Self { v4_bits, v6_bits, by_cgroup, lifetime: Duration::from_nanos(lifetime) })
    }
}

/// Whose connections share an entry, besides the prefix.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryScope {
    /// Those of a port: the local one that listens, or the peer's for connections opened by this host.
    Port(u16),
    /// Those of a cgroup, by its identifier (the inode of its directory).
    Cgroup(u64),
}

/// What a connection left.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    /// First address of the prefix.
    pub prefix: IpAddr,
    /// Length of the prefix, in bits.
    pub bits: u32,
    /// The port or the cgroup whose connections it is of.
    pub scope: MemoryScope,
    /// cwnd at the end, as far as it was used, in bytes.
    pub cwnd_bytes: u64,
    /// Minimum RTT, in microseconds.
    pub rtt_us: u32,
    /// cwnd per SRTT, in bits per second.
    pub rate_bps: u64,
    /// When it was left: time since 1970.
    pub saved: Duration,
}

/// The largest window of TCP, in bytes (RFC 7323, section 2.3): no connection can have used more.
const MAX_CWND: u64 = 1 << 30;
/// The largest RTT, in microseconds: the kernel's largest RTO, 120 s.
const MAX_RTT_US: u32 = 120_000_000;

impl MemoryEntry {
    /// Checks the values that a connection left: the rate is the window per SRTT, which is not much below the
    /// minimum RTT.
    fn check_values(&self) -> Result<(), String> {
        let Self { cwnd_bytes, rtt_us, rate_bps, .. } = *self;
        if !(1..=MAX_CWND).contains(&cwnd_bytes) {
            return Err(format!(
                "cwnd_bytes: expected 1 to {MAX_CWND}, the largest window of TCP, found {cwnd_bytes}"
            ));
        }
        if !(1..=MAX_RTT_US).contains(&rtt_us) {
            return Err(format!("rtt_us: expected 1 to {MAX_RTT_US}, the largest RTO, found {rtt_us}"));
        }
        let most = (2 * cwnd_bytes * 8 * 1_000_000).div_ceil(u64::from(rtt_us));
        if !(1..=most).contains(&rate_bps) {
            return Err(format!(
                "rate_bps: expected 1 to {most}, twice the window in each RTT, found {rate_bps}"
            ));
        }
        Ok(())
    }
}

fn clock(id: ClockId) -> Duration {
    clock_gettime(id).map_or(Duration::ZERO, Into::into)
}

/// The path memory of one control.
#[derive(Debug)]
pub struct Memory {
    /// The control's name in the kernel.
    pub control: String,
    /// How it is kept.
    pub config: MemoryConfig,
    map: MapHandle,
}

impl Memory {
    pub(crate) fn of(control: &str, map: &impl MapCore, config: &impl MapCore) -> Option<Self> {
        let map = MapHandle::from_map_id(map.info().ok()?.info.id).ok()?;
        let config = MemoryConfig::read(&lookup(config)?)?;
        Some(Self { control: control.to_string(), config, map })
    }

    fn read(&self, key: &[u8], value: &[u8]) -> Option<MemoryEntry> {
        let (k, v) = (&mut Numbers(key), &mut Numbers(value));
        let prefix = Ipv6Addr::from(k.take::<16>()?).to_canonical();
        let scope = k.u64()?;
        let (cwnd_bytes, rate_bps, at, rtt_us) = (v.u64()?, v.u64()?, v.u64()?, v.u32()?);
        let age = clock(ClockId::CLOCK_BOOTTIME).saturating_sub(Duration::from_nanos(at));
        Some(MemoryEntry {
            prefix,
            bits: if prefix.is_ipv4() { self.config.v4_bits } else { self.config.v6_bits },
            scope: if self.config.by_cgroup {
                MemoryScope::Cgroup(scope)
            } else {
                MemoryScope::Port(u16::try_from(scope).ok()?)
            },
            cwnd_bytes,
            rtt_us,
            rate_bps,
            saved: clock(ClockId::CLOCK_REALTIME).saturating_sub(age),
        })
    }

    /// Returns its entries that have not expired, by prefix.
    pub fn entries(&self) -> Vec<MemoryEntry> {
        let value = |key: &Vec<u8>| self.map.lookup(key, MapFlags::ANY).ok().flatten();
        let mut all: Vec<MemoryEntry> =
            self.map.keys().filter_map(|key| self.read(&key, &value(&key)?)).collect();
        let now = clock(ClockId::CLOCK_REALTIME);
        all.retain(|e| now.saturating_sub(e.saved) <= self.config.lifetime);
        all.sort_by_key(|e| (e.prefix, e.scope));
        all
    }

    /// Removes all entries, expired ones too. Returns their number.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn clear(&self) -> Result<u64, KernelError> {
        let keys: Vec<Vec<u8>> = self.map.keys().collect();
        let mut removed = 0;
        for key in keys {
            // A connection may have taken it meanwhile.
            match self.map.delete(&key) {
                Ok(()) => removed += 1,
                Err(e) if e.kind() == libbpf_rs::ErrorKind::NotFound => {}
                Err(e) => return Err(KernelError::bpf(format!("clear the memory of {}", self.control))(e)),
            }
        }
        Ok(removed)
    }

    /// Checks that an entry can be added.
    ///
    /// # Errors
    /// If the entry does not fit how this control keeps its memory, is expired, lies in the future or has a
    /// window, rate or RTT of zero.
    pub fn check(&self, entry: &MemoryEntry) -> Result<(), KernelError> {
        self.encode(entry).map(|_| ())
    }

    /// Adds an entry, or replaces the one of the same prefix and scope.
    ///
    /// # Errors
    /// Those of [`Self::check`], and if the kernel refuses.
    pub fn put(&self, entry: &MemoryEntry) -> Result<(), KernelError> {
        let (key, value) = self.encode(entry)?;
        let what = format!("add to the memory of {}", self.control);
        self.map.update(&key, &value, MapFlags::ANY).map_err(KernelError::bpf(what))
    }

    /// Returns key and value of an entry.
    fn encode(&self, entry: &MemoryEntry) -> Result<(Vec<u8>, Vec<u8>), KernelError> {
        let refused = |why: String| Err(KernelError::refused(format!("{}: memory", self.control), why));
        let (wanted, mapped) = match entry.prefix {
            IpAddr::V4(a) => (self.config.v4_bits, a.to_ipv6_mapped()),
            IpAddr::V6(a) => (self.config.v6_bits, a),
        };
        if entry.bits != wanted {
            return refused(format!("prefix of {} bits, where it keeps prefixes of {wanted}", entry.bits));
        }
        let whole = if entry.prefix.is_ipv4() { 96 + wanted } else { wanted };
        let beyond = u128::MAX.checked_shr(whole).unwrap_or(0);
        if mapped.to_bits() & beyond != 0 {
            return refused(format!("{} has bits set beyond its first {wanted}", entry.prefix));
        }
        let scope = match entry.scope {
            MemoryScope::Port(port) if !self.config.by_cgroup => port.into(),
            MemoryScope::Cgroup(id) if self.config.by_cgroup => id,
            MemoryScope::Port(_) => return refused("an entry by port, where it is kept by cgroup".into()),
            MemoryScope::Cgroup(_) => return refused("an entry by cgroup, where it is kept by port".into()),
        };
        if let Err(why) = entry.check_values() {
            return refused(why);
        }
        let Some(age) = clock(ClockId::CLOCK_REALTIME).checked_sub(entry.saved) else {
            return refused(format!("saved at {} s, which is in the future", entry.saved.as_secs()));
        };
        // The kernel stores the time since the last boot, so it cannot store an earlier one.
        let Some(at) = clock(ClockId::CLOCK_BOOTTIME).checked_sub(age) else {
            return refused(format!("saved {} s ago, before this machine was started", age.as_secs()));
        };
        if age > self.config.lifetime {
            return refused(format!("saved {} s ago, longer than its lifetime", age.as_secs()));
        }
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let key = mapped.octets().into_iter().chain(u64::to_ne_bytes(scope)).collect();
        let value = [entry.cwnd_bytes, entry.rate_bps, at, entry.rtt_us.into()];
        Ok((key, value.iter().flat_map(|n| n.to_ne_bytes()).collect()))
    }
}

/// Returns the path memory of each control that is registered and has one, whoever loaded it.
///
/// # Errors
/// If the controls cannot be listed.
pub fn memories() -> Result<Vec<Memory>, KernelError> {
    let all = Holders::find();
    let of =
        |name: &str| Memory::of(name, &all.map_of(name, "memory")?, &all.map_of(name, ".rodata.memory")?);
    Ok(list()?.iter().filter_map(|r| of(&r.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_two_lengths() {
        let mut c = MemoryConfig::default();
        assert_eq!((c.v4_bits, c.v6_bits), (32, 64));
        c.set_prefixes("24,56").unwrap();
        assert_eq!((c.v4_bits, c.v6_bits), (24, 56));
        for bad in ["", "24", "33,56", "24,129", "a,b", "24,56,1", "-1,0"] {
            assert!(c.set_prefixes(bad).unwrap_err().to_string().contains("such as 24,56"), "{bad}");
        }
    }

    #[test]
    fn values_that_no_connection_can_leave_are_refused() {
        let entry = |cwnd_bytes, rtt_us, rate_bps| MemoryEntry {
            prefix: IpAddr::from([192, 0, 2, 7]),
            bits: 32,
            scope: MemoryScope::Port(443),
            cwnd_bytes,
            rtt_us,
            rate_bps,
            saved: Duration::ZERO,
        };
        assert_eq!(entry(1_000_000, 50_000, 160_000_000).check_values(), Ok(()));
        for (bad, says) in [
            (entry(u64::MAX, 50_000, 1), "cwnd_bytes: expected 1 to 1073741824"),
            (entry(0, 50_000, 1), "cwnd_bytes"),
            (entry(1_000_000, 0, 1), "rtt_us"),
            (entry(1_000_000, u32::MAX, 1), "rtt_us: expected 1 to 120000000"),
            (entry(1_000_000, 50_000, 320_000_001), "rate_bps: expected 1 to 320000000"),
            (entry(1_000_000, 50_000, 0), "rate_bps"),
        ] {
            assert!(bad.check_values().unwrap_err().contains(says), "{bad:?}");
        }
    }

    #[test]
    fn a_configuration_is_read_as_it_was_written() {
        let c = MemoryConfig { v4_bits: 20, v6_bits: 48, by_cgroup: true, lifetime: Duration::from_secs(9) };
        assert_eq!(MemoryConfig::read(&c.to_bytes()), Some(c));
        assert_eq!(MemoryConfig::read(&[0; 20]), None);
    }
}
