//! The lines of JSON.

use serde_json::{Map, Value, json};
use slowstart::control::{Change, Controller};
use slowstart::step::Pace;
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Sent, Signal};

/// One call and the state after it.
pub(super) fn of(
    event: &str,
    facts: &Map<String, Value>,
    key: &str,
    argument: Value,
    control: &impl Controller,
    change: &Change,
) -> Value {
    let state = control.state();
    let mut line = json!({
        "event": event, "facts": facts, "cwnd": state.cwnd.0, "ssthresh": state.ssthresh.map(|t| t.0),
        "pace": state.pace.map(pace), "wake_ns": state.wake.map(|t| t.0),
    });
    line[key] = argument;
    if control.owns_recovery() {
        line["owns_recovery"] = json!(true);
    }
    if let Some(e) = change.exited {
        line["exit"] = json!({
            "why": e.why.name(), "detected_at_ns": e.detected_at.0, "detected_cwnd": e.detected_cwnd.0,
            "cwnd": e.exit_cwnd.0,
        });
    }
    if change.resumed {
        line["resumed"] = json!(true);
    }
    if change.restarted {
        line["restarted"] = json!(true);
    }
    if let Some(back) = change.resend {
        line["resend"] = json!(back.0);
    }
    line
}

/// The facts that differ from those of the line before, which these replace.
pub(super) fn changed_facts(f: &Facts, next: u64, before: &mut Map<String, Value>) -> Map<String, Value> {
    let now = facts(f, next);
    let differs = now.iter().filter(|(k, v)| before.get(*k) != Some(v));
    let changed = differs.map(|(k, v)| (k.clone(), v.clone())).collect();
    *before = now;
    changed
}

fn facts(f: &Facts, next: u64) -> Map<String, Value> {
    let Value::Object(all) = json!({
        "now_ns": f.now.0, "mss": f.mss.0, "iw": f.iw.0, "min_window": f.min_window.0, "inflight": f.inflight.0,
        "delivered": f.delivered.0, "lost": f.lost.0, "marked": f.marked.map(|b| b.0), "next": next,
        "unacked": f.unacked.map(|b| b.0), "srtt_ns": f.srtt.map(|t| t.0), "min_rtt_ns": f.min_rtt.map(|t| t.0),
        "rwnd": Some(f.rwnd.0).filter(|b| *b < u64::MAX), "pacing_rate_bps": f.pacing_rate.map(|r| r.0),
        "pacing_on": f.pacing_on, "gso_max": f.gso_max.0, "unsent": f.unsent.map(|b| b.0),
        "host_queue": f.host_queue.map(|q| [q.used.0, q.limit.0]), "nic_rate_bps": f.nic_rate.map(|r| r.0),
        "supports_pacing": f.supports_pacing, "in_recovery": f.in_recovery,
    }) else {
        unreachable!("it is an object")
    };
    all
}

pub(super) fn handshake(hs: &Handshake) -> Value {
    let remembered =
        hs.remembered.map(|m| json!({"cwnd": m.cwnd.0, "rtt_ns": m.rtt.0, "rate_bps": m.rate.0}));
    json!({
        "syn_losses": hs.syn_losses, "spurious": hs.spurious, "rtt_ns": hs.rtt.map(|t| t.0),
        "granted_bps": hs.granted.map(|r| r.0), "remembered": remembered,
    })
}

/// A packet; its delivery state is zero where the controller does not read it.
pub(super) fn sent(s: &Sent) -> Value {
    let mut packet = json!({
        "mark": s.mark.position(), "at_ns": s.at.0, "bytes": s.bytes.0, "retransmission": s.retransmission,
    });
    if s.sent_total.0 > 0 {
        packet["state"] = json!({
            "sent_total": s.sent_total.0, "inflight": s.inflight.0, "delivered": s.delivered.0,
            "delivered_at_ns": s.delivered_at.0, "first_sent_at_ns": s.first_sent_at.0, "lost": s.lost.0,
            "app_limited": s.app_limited, "cwnd": s.cwnd.0,
        });
    }
    packet
}

pub(super) fn ack(a: &Ack) -> Value {
    let limit = match a.limit {
        Limit::Pacer => "pacer",
        Limit::Application => "application",
        Limit::Peer => "peer",
        _ => "window",
    };
    json!({
        "upto": a.upto.position(), "bytes": a.bytes.0, "delivered": a.delivered.0, "newly_lost": a.newly_lost.0,
        "prior_inflight": a.prior_inflight.0, "rtt_ns": a.rtt.map(|t| t.0), "newest": sent(&a.newest), "limit": limit,
    })
}

pub(super) fn congestion(c: &Congestion) -> Value {
    let signal = match c.signal {
        Signal::Ecn => "ecn",
        Signal::Timeout => "timeout",
        Signal::LocalStall => "local-stall",
        _ => "loss",
    };
    json!({
        "signal": signal, "first": c.first, "lost": c.lost.0, "lost_ranges": c.lost_ranges, "newest": sent(&c.newest),
    })
}

fn pace(p: Pace) -> Value {
    match p {
        Pace::Off => json!("off"),
        Pace::Gain(gain) => json!({"gain_1024ths": gain.0}),
        Pace::Rate(rate) => json!({"rate_bps": rate.0}),
        _ => Value::Null,
    }
}
