//! What the link saw of the connections of a program, and of flows beside it.

use super::{PacketRecord, Report};
use slowstart::units::{Instant, Span};
use slowstart_sim::path::Kind;
use slowstart_study::record::Others;
use slowstart_study::stats;

/// What the link saw of a program's download. Times count from its first large packet: one of at least half the
/// bytes of the largest, after the handshake. What the client, the server and their handshake take before is no startup.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// From the first packet of the connection until the server sent the first large one.
    pub before: Span,
    /// When the last large packet arrived. (What follows says goodbye.)
    pub last: Span,
    /// Bytes of the IP packets with data that arrived, those of the handshake included.
    pub bytes: u64,
    /// Bytes of the IP packets with data that arrived from the first large one to the last.
    pub bulk: u64,
    /// Bytes of the largest IP packet with data.
    pub largest: u32,
    /// When each data packet was dropped, and its bytes as an IP packet; those of the handshake were dropped at 0.
    pub drops: Vec<(Span, u32)>,
    /// The longest time on the path over the shortest.
    pub queue_delay: Span,
    /// The effect on the flows beside it.
    pub others: Option<Others>,
}

const SECOND: Span = Span::secs(1);

/// What the link saw, if it carried data. `beside` are the numbers of the packets that are not the program's.
pub fn seen(report: &Report, beside: &[[u32; 2]]) -> Option<Seen> {
    let is_beside = |p: &&PacketRecord| beside.iter().any(|flows| flows.contains(&p.packet.flow));
    let all = || report.forward.records.iter().chain(&report.back.records);
    let connected = all().filter(|p| !is_beside(p)).map(|p| p.at).min()?;
    let is_data = |p: &&PacketRecord| p.packet.kind == Kind::Data && !is_beside(p);
    let data = || report.forward.records.iter().filter(is_data);
    let arrived = |p: &PacketRecord| p.outcome.ok().filter(|due| *due != Instant::NEVER);
    let largest = data().map(|p| p.packet.bytes).max()?;
    let large = |p: &&PacketRecord| p.packet.bytes * 2 >= largest;
    // A server that began with a handshake sends the file after the client's answer to it.
    let answer = data().filter(|p| p.handshake).filter_map(arrived).min().and_then(|greeted| {
        let answers = report.back.records.iter().filter(is_data).filter(|p| p.at >= greeted);
        answers.filter_map(arrived).min()
    });
    let after = answer.unwrap_or(Instant::ZERO);
    let bulk = || data().filter(large).filter(|p| !p.handshake && p.at >= after);
    let began = bulk().map(|p| p.at).min()?;
    let last = bulk().filter_map(arrived).max()?;
    let took = || data().filter_map(|p| Some(arrived(p)?.since(p.at)));
    let bytes = |from: Instant| {
        let those = data().filter(|p| p.at >= from && arrived(p).is_some());
        those.map(|p| u64::from(p.packet.bytes)).sum()
    };
    let drops = data().filter_map(|p| Some((p.outcome.err()?.at.since(began), p.packet.bytes)));
    Some(Seen {
        before: began.since(connected),
        last: last.since(began),
        bytes: bytes(Instant::ZERO),
        bulk: bytes(began),
        largest,
        drops: drops.collect(),
        queue_delay: took().max()? - took().min()?,
        others: others(report, beside, began, last),
    })
}

/// The effect on the flows beside the program, from `began` until `ended`, by the definitions of the
/// simulator.
fn others(report: &Report, beside: &[[u32; 2]], began: Instant, ended: Instant) -> Option<Others> {
    let first = beside.first()?;
    let of = |p: &&PacketRecord, flows: &[[u32; 2]]| {
        p.packet.kind == Kind::Data && flows.iter().any(|f| f[0] == p.packet.flow)
    };
    let data = || report.forward.records.iter().filter(|p| of(p, beside));
    let within = |at: Instant| (began..=ended).contains(&at);
    let arrivals: Vec<(Instant, u32)> = data()
        .filter_map(|p| Some((p.outcome.ok().filter(|due| *due != Instant::NEVER)?, p.packet.bytes)))
        .collect();
    let second = |from: Instant| -> f64 {
        let to = from + SECOND;
        arrivals.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, b)| f64::from(*b)).sum()
    };
    let before: Vec<f64> =
        (1..=5).filter(|s| began.0 >= s * SECOND.0).map(|s| second(began - SECOND * s)).collect();
    let lasted = ended.since(began).0 / SECOND.0;
    let during: Vec<f64> = (0..lasted).map(|s| second(began + SECOND * s)).collect();
    let delays = || {
        data().filter(|p| of(p, &[*first])).filter_map(|p| {
            let due = p.outcome.ok().filter(|due| *due != Instant::NEVER)?;
            Some((due, due.since(p.at)))
        })
    };
    let least = delays().map(|d| d.1).min();
    let above: Vec<f64> =
        delays().filter(|d| within(d.0)).filter_map(|d| Some((d.1 - least?).as_secs_f64())).collect();
    let lost = data().filter_map(|p| p.outcome.err()).filter(|d| within(d.at)).count() as u64;
    Some(Others::new(lost, &before, &during, stats::quantile(&above, 0.99)))
}

#[cfg(test)]
mod tests {
    use super::super::DirectionStats;
    use super::*;
    use slowstart_sim::path::{Cause, Dropped, Ecn, PacketInfo};

    fn packet(ms: u64, flow: u32, bytes: u32, outcome: Result<u64, u64>) -> PacketRecord {
        let at = |ms: u64| Instant(ms * 1_000_000);
        PacketRecord {
            at: at(ms),
            packet: PacketInfo { bytes, flow, kind: Kind::Data, ecn: Ecn::NotEct },
            handshake: false,
            outcome: outcome.map(at).map_err(|ms| Dropped::new(at(ms), Cause::QueueFull)),
        }
    }

    fn report(forward: Vec<PacketRecord>, back: Vec<PacketRecord>) -> Report {
        let stats = |records| DirectionStats { records, ..DirectionStats::default() };
        Report {
            start: Instant::ZERO,
            ran: Span(0),
            stood_still: Span(0),
            forward: stats(forward),
            back: stats(back),
        }
    }

    #[test]
    fn a_program_s_packets_are_told_from_those_beside_it() {
        let mut forward = vec![
            packet(1010, 7, 1500, Ok(1030)),
            packet(1011, 7, 1500, Ok(1041)),
            packet(1012, 7, 1500, Err(1012)),
            packet(1050, 7, 1500, Ok(1070)),
            packet(1060, 7, 60, Ok(1080)),
        ];
        // Beside it 10 packets a second, one of them dropped while it is there.
        forward.extend((0..20).map(|n| packet(n * 100, 9, 1000, Ok(n * 100 + 5))));
        forward.push(packet(1015, 9, 1000, Err(1015)));
        let r = report(forward, vec![packet(1000, 8, 60, Ok(1010))]);
        let s = seen(&r, &[[9, 10]]).expect("data");
        assert_eq!((s.before, s.last, s.bytes), (Span::millis(10), Span::millis(60), 3 * 1500 + 60));
        assert_eq!((s.drops, s.queue_delay), (vec![(Span::millis(2), 1500)], Span::millis(10)));
        let others = s.others.expect("a flow beside");
        assert_eq!((others.lost_packets, others.goodput_dip), (1, None), "it did not last a second");
        assert_eq!(seen(&report(Vec::new(), Vec::new()), &[]), None);
    }

    /// A server that takes 1.4 s to begin, and two packets for its handshake: the file is sent from 1.6 s on, after the
    /// client's answer.
    #[test]
    fn the_handshake_and_the_server_s_start_are_not_the_download() {
        let handshake = |p: PacketRecord| PacketRecord { handshake: true, ..p };
        let forward = vec![
            handshake(packet(1400, 7, 1228, Ok(1450))),
            // The rest of a chain of certificates in TCP has no mark of its own.
            packet(1400, 7, 1228, Ok(1451)),
            packet(1600, 7, 1228, Ok(1650)),
            packet(1600, 7, 1228, Ok(1651)),
        ];
        let back = vec![
            handshake(packet(0, 8, 1228, Ok(50))),
            handshake(packet(1451, 8, 100, Ok(1501))),
            packet(1550, 8, 90, Ok(1600)),
        ];
        let s = seen(&report(forward, back), &[]).expect("data");
        assert_eq!((s.before, s.last), (Span::millis(1600), Span::millis(51)));
        assert_eq!((s.bytes, s.bulk, s.largest), (4 * 1228, 2 * 1228, 1228));
    }

    #[test]
    fn the_dip_is_that_of_the_lowest_second() {
        let mut forward = vec![packet(5000, 7, 1500, Ok(5010)), packet(7500, 7, 1500, Ok(7510))];
        forward.extend((0..50).map(|n| packet(n * 100, 9, 1000, Ok(n * 100 + 5))));
        forward.extend((0..20).map(|n| packet(5000 + n * 200, 9, 1000, Ok(5000 + n * 200 + 25))));
        let others = seen(&report(forward, Vec::new()), &[[9, 10]]).and_then(|s| s.others).expect("beside");
        assert_eq!(others.goodput_dip, Some(0.5));
        assert_eq!(others.delay_p99_s, Some(0.02));
    }
}
