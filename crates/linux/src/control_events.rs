//! Events of the controls that are loaded, whoever loaded them.

use crate::clock::clock;
use crate::error::KernelError;
use crate::facts::{Facts, Numbers};
use crate::list::{Holders, available, lookup};
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use slowstart::units::{Instant, Span};
use std::cell::RefCell;
use std::rc::Rc;

/// How long an object writes events after the last [`ControlEvents::poll`], so that a reader that was killed
/// costs nothing.
const LEASE: Span = Span::secs(3);

/// Sets which events an object writes (0 none, 1 all but ACKs, 2 all) and until when, in nanoseconds of
/// `CLOCK_MONOTONIC`.
pub(crate) fn set_level(map: &impl MapCore, level: u64, until: u64) -> libbpf_rs::Result<()> {
    let value = [level.to_ne_bytes(), until.to_ne_bytes()].concat();
    map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)
}

/// True if an object writes events for somebody at `now`, from the value that [`set_level`] writes; `None` if
/// that is not a value of this version.
fn has_reader(value: &[u8], now: Instant) -> Option<bool> {
    let n = &mut Numbers(value);
    let (level, until) = (n.u64()?, n.u64()?);
    n.0.is_empty().then_some(level > 0 && until > now.0)
}

/// Reads the events of the controls that were loaded when it was made. When it is dropped, they stop writing
/// events.
pub struct ControlEvents<'a> {
    levels: Vec<MapHandle>,
    level: u64,
    ring: Option<RingBuffer<'a>>,
}

impl std::fmt::Debug for ControlEvents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlEvents").field("controls", &self.levels.len()).finish_non_exhaustive()
    }
}

impl ControlEvents<'_> {
    /// Passes on the events since the last call. Must be called at least every three seconds, or events are
    /// lost.
    pub fn poll(&self) -> Result<(), KernelError> {
        for map in &self.levels {
            set_level(map, self.level, (clock() + LEASE).0).map_err(KernelError::bpf("watch controls"))?;
        }
        self.ring.as_ref().map_or(Ok(()), RingBuffer::consume).map_err(KernelError::bpf("read events"))
    }
}

impl Drop for ControlEvents<'_> {
    fn drop(&mut self) {
        for map in &self.levels {
            let _ = set_level(map, 0, 0);
        }
    }
}

/// Makes every control of this project that is loaded now write events, with `acks` one for each ACK too;
/// `each` is called with the control's name and the event, from [`ControlEvents::poll`]. A ring has one
/// reader: a control that writes events for somebody else (a study) is left out, as is one loaded by another
/// version of this program.
pub fn watch_controls<'a>(
    acks: bool,
    each: impl FnMut(&str, Facts) + 'a,
) -> Result<ControlEvents<'a>, KernelError> {
    let what = "watch controls";
    let names: Vec<String> = available()?.into_iter().filter(|n| n.starts_with("ss_")).collect();
    let all = Holders::find();
    let each = Rc::new(RefCell::new(each));
    let mut ring = RingBufferBuilder::new();
    let (mut levels, mut rings) = (Vec::new(), Vec::new());
    for name in names {
        let both = all.map_of(&name, ".data.watching").zip(all.map_of(&name, "events"));
        let is_free = |level: &MapHandle| {
            level.value_size() == 16 && lookup(level).and_then(|v| has_reader(&v, clock())) == Some(false)
        };
        if let Some((level, events)) = both.filter(|(level, _)| is_free(level)) {
            levels.push(level);
            rings.push((name, events));
        }
    }
    for (name, map) in &rings {
        let (name, each) = (name.clone(), Rc::clone(&each));
        ring.add(map, move |record| {
            if let Some(f) = Facts::read(record) {
                (each.borrow_mut())(&name, f);
            }
            0
        })
        .map_err(KernelError::bpf(what))?;
    }
    let ring = if levels.is_empty() { None } else { Some(ring.build().map_err(KernelError::bpf(what))?) };
    let events = ControlEvents { levels, level: if acks { 2 } else { 1 }, ring };
    events.poll()?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_has_a_reader_until_its_lease_ends_and_it_is_unknown_for_another_value() {
        let value = |level: u64, until: u64| [level.to_ne_bytes(), until.to_ne_bytes()].concat();
        let now = Instant(1000);
        assert_eq!(has_reader(&value(1, 1001), now), Some(true));
        assert_eq!(has_reader(&value(1, 1000), now), Some(false));
        assert_eq!(has_reader(&value(0, 1001), now), Some(false));
        // Of another length: nobody knows whether it has one.
        assert_eq!(has_reader(&[], now), None);
        assert_eq!(has_reader(&value(0, 0)[..12], now), None);
        assert_eq!(has_reader(&[0; 24], now), None);
    }
}
