//! The packets of one run on the path: when each left, and when it arrived or that it did not.

use crate::request::Request;
use serde::Serialize;
use slowstart::units::Instant;
use slowstart_sim::trace::CapturedPacket;
use slowstart_study::run::Job;
use std::collections::BTreeMap;

/// The most packets of a direction; later ones are left out.
pub const MOST: usize = 4000;

/// A packet on the path. Times are in microseconds since the flow began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packet {
    /// When it left the sender, in microseconds since the flow began.
    pub left: u64,
    /// When it arrived; null if it was lost.
    pub arrived: Option<u64>,
    /// Data: the number of its first byte. An ACK: the next byte expected.
    pub number: u32,
    /// The bytes of its payload.
    pub bytes: u32,
    /// True if its first byte was sent before.
    pub again: bool,
}

/// Both directions of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Packets {
    data: Vec<Packet>,
    acks: Vec<Packet>,
    /// True if there were more than [`MOST`].
    cut: bool,
    base_rtt_us: u64,
    rate_bps: u64,
}

/// Captures a run of one startup, the `contender`th, and returns its packets as JSON.
pub fn packets(json: &str, contender: usize, run: u32) -> Result<String, String> {
    let study = Request::read(json)?.study()?;
    if contender >= study.contenders.len() || run >= study.runs {
        return Err("found no such startup or run".to_string());
    }
    let all = study.capture(Job { contender, run }).trace.packets;
    let start = study.start();
    let (data, more_data) = way(&all, 0, start);
    let (acks, more_acks) = way(&all, 1, start);
    let facts = study.path.facts();
    let packets = Packets {
        data,
        acks,
        cut: more_data || more_acks,
        base_rtt_us: facts.base_rtt.0 / 1000,
        rate_bps: facts.rate.0,
    };
    Ok(serde_json::to_string(&packets).expect("numbers are JSON"))
}

/// The packets that leave `end`, and whether some were left out. A packet that arrives is the earliest one
/// that left with the same numbers and is not there yet.
fn way(all: &[CapturedPacket], end: u8, start: Instant) -> (Vec<Packet>, bool) {
    type Name = (u32, u32, u32, u8, Option<(u32, u32)>);
    let name = |p: &CapturedPacket| -> Name {
        let s = &p.segment;
        (s.seq, s.len, s.ack, s.flags & 0x3f, s.timestamp)
    };
    let us = |at: Instant| at.since(start).0 / 1000;
    let mut out: Vec<Packet> = Vec::new();
    let mut on_the_way: BTreeMap<Name, std::collections::VecDeque<usize>> = BTreeMap::new();
    let mut highest: Option<u32> = None;
    let mut more = false;
    for p in all.iter().filter(|p| p.flow == 0) {
        if p.end == end && p.leaves {
            if out.len() == MOST {
                more = true;
                continue;
            }
            let s = &p.segment;
            let again = s.len > 0 && highest.is_some_and(|h| (h.wrapping_sub(s.seq) as i32) > 0);
            if s.len > 0 && !again {
                highest = Some(s.seq.wrapping_add(s.len));
            }
            on_the_way.entry(name(p)).or_default().push_back(out.len());
            let number = if end == 0 { s.seq } else { s.ack };
            out.push(Packet { left: us(p.at), arrived: None, number, bytes: s.len, again });
        } else if p.end != end
            && !p.leaves
            && let Some(i) = on_the_way.get_mut(&name(p)).and_then(std::collections::VecDeque::pop_front)
        {
            out[i].arrived = Some(us(p.at));
        }
    }
    (out, more)
}
