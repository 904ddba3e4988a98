//! `slowstart kernel watch`: connections and how their startups end, live.

use crate::output::print;
use crate::watch_json::{shown, told};
use anyhow::{Context, Result};
use clap::Args;
use ratatui::layout::Constraint;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Row, Table};
use slowstart::units::Span;
use slowstart_linux::{
    ExitReason, Facts, Flow, RecordKind, Watch as Kernel, drop_privileges, watch_controls,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Connections and how their startups end, whatever their congestion control; live until Ctrl-C (or q).
///
/// Without a terminal, or with `--json`, one line for each end of a startup and each connection that closed.
///
/// Example: slowstart kernel watch --prometheus 127.0.0.1:9477
#[derive(Args)]
pub(crate) struct Watch {
    /// One JSON object a line, an event each: `slowstart replay` reads them
    #[arg(long)]
    json: bool,
    /// With --json, each ACK of a connection under a startup of this project
    #[arg(long, requires = "json")]
    acks: bool,
    /// Serve counts and histograms for Prometheus at this address, such as 127.0.0.1:9477
    #[arg(long)]
    prometheus: Option<SocketAddr>,
    /// Stop after so long, such as 10s
    #[arg(long)]
    duration: Option<String>,
}

/// Upper bounds of the histograms of windows, in segments.
const BOUNDS: [u32; 8] = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000];

/// What is known.
#[derive(Default)]
struct State {
    flows: BTreeMap<u64, Flow>,
    /// What objects of ours said themselves.
    whys: BTreeMap<u64, ExitReason>,
    /// Connections of which they tell.
    ours: BTreeSet<u64>,
    /// Ends by control and reason: how many, and their windows.
    exits: BTreeMap<(String, &'static str), [u64; BOUNDS.len() + 1]>,
    windows: BTreeMap<(String, &'static str), u64>,
    closed: u64,
}

fn reason(f: &Flow, whys: &BTreeMap<u64, ExitReason>) -> &'static str {
    match (f.why, whys.get(&f.sk)) {
        (Some(ExitReason::None), _) => "-",
        (None, _) => "before",
        (Some(ExitReason::Ssthresh), Some(w)) => w.name(),
        (Some(w), _) => w.name(),
    }
}

pub(crate) fn phase(f: &Flow) -> &'static str {
    match f.state {
        2 => "reducing",
        3 => "recovery",
        4 => "timeout",
        _ if f.cwnd < f.ssthresh && f.why == Some(ExitReason::None) => "startup",
        _ if f.cwnd < f.ssthresh => "slow start",
        _ => "avoidance",
    }
}

impl State {
    fn take(&mut self, f: Flow) {
        if f.kind == RecordKind::Exit {
            let key = (f.control.clone(), reason(&f, &self.whys));
            let class = BOUNDS.iter().position(|b| f.exit_cwnd <= *b).unwrap_or(BOUNDS.len());
            self.exits.entry(key.clone()).or_default()[class] += 1;
            *self.windows.entry(key).or_default() += u64::from(f.exit_cwnd);
        }
        if f.kind == RecordKind::Closed {
            self.closed += 1;
            self.flows.remove(&f.sk);
            self.whys.remove(&f.sk);
            self.ours.remove(&f.sk);
        } else {
            self.flows.insert(f.sk, f);
        }
    }

    /// The text format of Prometheus.
    fn metrics(&self) -> String {
        let mut text = String::from("# TYPE slowstart_connections gauge\n");
        let _ = writeln!(text, "slowstart_connections {}", self.flows.len());
        text += "# TYPE slowstart_closed_total counter\n";
        let _ = writeln!(text, "slowstart_closed_total {}", self.closed);
        text += "# HELP slowstart_exit_window_segments Windows with which startups ended.\n";
        text += "# TYPE slowstart_exit_window_segments histogram\n";
        for ((control, why), classes) in &self.exits {
            let of = format!("control=\"{control}\",reason=\"{why}\"");
            let name = "slowstart_exit_window_segments";
            let mut sum = 0;
            for (bound, n) in BOUNDS.iter().zip(classes) {
                sum += n;
                let _ = writeln!(text, "{name}_bucket{{{of},le=\"{bound}\"}} {sum}");
            }
            let all: u64 = classes.iter().sum();
            let total = self.windows.get(&(control.clone(), *why)).copied().unwrap_or(0);
            let _ = writeln!(text, "{name}_bucket{{{of},le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "{name}_sum{{{of}}} {total}\n{name}_count{{{of}}} {all}");
        }
        text
    }
}

/// Answers one request, whatever it asks for.
fn answer(mut s: &TcpStream, text: &str) -> std::io::Result<()> {
    s.set_nonblocking(false)?;
    s.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut line = String::new();
    let mut reader = BufReader::new(s);
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
    write!(s, "{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

fn draw(frame: &mut ratatui::Frame<'_>, state: &State) {
    let mut flows: Vec<&Flow> = state.flows.values().collect();
    flows.sort_by_key(|f| std::cmp::Reverse(f.begun_ns));
    let rows = flows.iter().map(|f| {
        let exit = if f.exit_ns > 0 {
            let at = Span(f.exit_ns.saturating_sub(f.begun_ns)).as_secs_f64();
            format!("{} at {at:.2} s", f.exit_cwnd)
        } else {
            "-".into()
        };
        let rate = if f.srtt_us > 0 {
            f64::from(f.cwnd) * f64::from(f.mss) * 8.0 / f64::from(f.srtt_us)
        } else {
            0.0
        };
        Row::new([
            format!("{}:{}", f.peer, f.dport),
            f.control.clone(),
            phase(f).to_string(),
            reason(f, &state.whys).to_string(),
            exit,
            f.cwnd.to_string(),
            format!("{:.1}", f64::from(f.srtt_us) / 1e3),
            format!("{rate:.1}"),
            f.retransmitted.to_string(),
        ])
    });
    let widths = [28, 16, 11, 11, 18, 8, 10, 10, 8].map(Constraint::Length);
    let head = ["peer", "control", "phase", "left by", "with cwnd", "cwnd", "RTT (ms)", "Mbit/s", "again"];
    let exits: u64 = state.exits.values().flatten().sum();
    let title = format!(
        " {} connections, {} closed, {exits} startups ended; q leaves ",
        state.flows.len(),
        state.closed
    );
    let table = Table::new(rows, widths)
        .header(Row::new(head).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(ratatui::widgets::Block::bordered().title(title));
    frame.render_widget(table, frame.area());
}

impl Watch {
    pub(crate) fn main(&self) -> Result<()> {
        let until = self
            .duration
            .as_deref()
            .map(|d| slowstart_lab::scenario::time("duration", d))
            .transpose()?
            .map(|d| super::kernel::now() + Duration::from_nanos(d.0));
        let listener = self
            .prometheus
            .map(|a| -> Result<_> {
                let l = TcpListener::bind(a).with_context(|| a.to_string())?;
                l.set_nonblocking(true)?;
                Ok(l)
            })
            .transpose()?;
        super::kernel::catch()?;
        let watch = Kernel::start(0, Span::millis(100))?;
        let state = RefCell::new(State::default());
        let lines = RefCell::new(Vec::new());
        let live = !self.json && std::io::stdout().is_terminal();
        let records = watch.records(|f| {
            let state = &mut *state.borrow_mut();
            let mut lines = lines.borrow_mut();
            let ours = state.ours.contains(&f.sk);
            if self.json && !ours && !state.flows.contains_key(&f.sk) {
                lines.push(shown(&f, "none", true));
            }
            if (self.json && !ours) || (!live && f.kind != RecordKind::Sample) {
                lines.push(shown(&f, reason(&f, &state.whys), false));
            }
            drop(lines);
            state.take(f);
        })?;
        // Objects of ours say why themselves; they are asked first.
        let ours = watch_controls(self.acks, |control: &str, f: Facts| {
            let state = &mut *state.borrow_mut();
            if f.why != ExitReason::None {
                state.whys.insert(f.sk, f.why);
            }
            if self.json {
                state.ours.insert(f.sk);
                lines.borrow_mut().push(told(control, &f));
            }
        })?;
        drop_privileges(false)?;
        let mut terminal = live.then(ratatui::init);
        let mut done = Ok(());
        while done.is_ok() && !super::kernel::caught() && until.is_none_or(|u| super::kernel::now() < u) {
            let heard = ours.poll().map_err(anyhow::Error::from);
            done = heard.and_then(|()| records.consume().map_err(anyhow::Error::from));
            for line in lines.borrow_mut().drain(..) {
                done = done.and_then(|()| print(&line));
            }
            if let Some(Ok((stream, _))) = listener.as_ref().map(TcpListener::accept) {
                // Who asks and goes away is no error of ours.
                let _ = answer(&stream, &state.borrow().metrics());
            }
            if let Some(t) = &mut terminal {
                t.draw(|frame| draw(frame, &state.borrow()))?;
                if ratatui::crossterm::event::poll(Duration::from_millis(100))? {
                    use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers, read};
                    if let Event::Key(k) = read()?
                        && (k.code == KeyCode::Char('q')
                            || (k.code == KeyCode::Char('c') && k.modifiers == KeyModifiers::CONTROL))
                    {
                        break;
                    }
                }
            } else {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if terminal.is_some() {
            ratatui::restore();
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(kind: RecordKind, cwnd: u32) -> Flow {
        Flow {
            sk: 1,
            now_ns: 3,
            acked_bytes: 4,
            next: 4,
            sent_bytes: 5,
            pacing_rate: 6,
            kind,
            why: Some(ExitReason::Ssthresh),
            cwnd,
            ssthresh: cwnd,
            inflight: 1,
            mss: 1448,
            srtt_us: 1000,
            min_rtt_us: 1000,
            retransmitted: 0,
            state: 0,
            timeouts: 0,
            exit_cwnd: cwnd,
            exit_ns: 2,
            begun_ns: 1,
            sport: 80,
            dport: 5000,
            peer: std::net::Ipv4Addr::LOCALHOST.into(),
            control: "ss_search".into(),
        }
    }

    #[test]
    fn ends_are_counted_by_reason_and_window() {
        let mut s = State::default();
        s.whys.insert(1, ExitReason::RateFlat);
        s.take(flow(RecordKind::Exit, 250));
        s.take(flow(RecordKind::Closed, 250));
        let text = s.metrics();
        let of = "control=\"ss_search\",reason=\"rate-flat\"";
        assert!(text.contains(&format!("segments_bucket{{{of},le=\"100\"}} 0\n")), "{text}");
        assert!(text.contains(&format!("segments_bucket{{{of},le=\"300\"}} 1\n")), "{text}");
        assert!(text.contains(&format!("segments_sum{{{of}}} 250\n")), "{text}");
        assert!(text.contains("slowstart_connections 0\n") && text.contains("slowstart_closed_total 1\n"));
        assert_eq!((s.flows.len(), s.whys.len()), (0, 0));
    }
}
