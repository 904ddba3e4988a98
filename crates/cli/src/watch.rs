//! `slowstart kernel watch`: connections and how their startups end, live.

use crate::output::print;
use crate::printable::printable;
use crate::watch_json::{control_event, tracepoint_record};
use crate::watch_state::{State, phase, reason};
use crate::{prometheus, signals};
use anyhow::{Context, Result};
use clap::Args;
use ratatui::layout::Constraint;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Row, Table};
use slowstart::units::Span;
use slowstart_linux::{
    ExitReason, Facts, Flow, Kind, RecordKind, Watch as Kernel, drop_privileges, watch_controls,
};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Show connections and how their startups end, until Ctrl-C (or q)
///
/// It shows connections of every congestion control. Without a terminal, or with
/// --json, prints one line for each startup that ended and each connection that
/// closed.
///
/// Examples:
///   slowstart kernel watch
///   slowstart kernel watch --prometheus 127.0.0.1:9477
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Watch {
    /// Print one JSON object per line, one for each event, which `slowstart replay` reads
    #[arg(long)]
    json: bool,
    /// With --json, also print each ACK of connections under a startup of this project
    #[arg(long, requires = "json")]
    acks: bool,
    /// Serve counters and histograms for Prometheus at this address, such as 127.0.0.1:9477
    #[arg(long)]
    prometheus: Option<SocketAddr>,
    /// Stop after this time, such as 10s
    #[arg(long)]
    duration: Option<String>,
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
            printable(&f.control).into_owned(),
            phase(f).to_string(),
            reason(f, &state.reasons).to_string(),
            exit,
            f.cwnd.to_string(),
            format!("{:.1}", f64::from(f.srtt_us) / 1e3),
            format!("{rate:.1}"),
            f.retransmitted.to_string(),
        ])
    });
    let widths = [28, 16, 11, 11, 18, 8, 10, 10, 8].map(Constraint::Length);
    let head =
        ["peer", "control", "phase", "exit reason", "exit cwnd", "cwnd", "RTT (ms)", "Mbit/s", "retrans"];
    let (closed, exits) = {
        let metrics = state.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        (metrics.closed(), metrics.exits())
    };
    let title =
        format!(" {} connections, {closed} closed, {exits} startups ended; q quits ", state.flows.len());
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
            .map(|d| slowstart_study::scenario::time("duration", d))
            .transpose()?
            .map(|d| signals::now() + Duration::from_nanos(d.0));
        let listener =
            self.prometheus.map(|a| TcpListener::bind(a).with_context(|| a.to_string())).transpose()?;
        signals::catch()?;
        let watch = Kernel::start(0, Span::millis(100))?;
        let state = RefCell::new(State::default());
        let lines = RefCell::new(Vec::new());
        let live = !self.json && std::io::stdout().is_terminal();
        let records = watch.records(|f| {
            let state = &mut *state.borrow_mut();
            let mut lines = lines.borrow_mut();
            let ours = state.reported.contains(&f.sk);
            if self.json && !ours && !state.flows.contains_key(&f.sk) {
                lines.push(tracepoint_record(&f, "none", true));
            }
            if (self.json && !ours) || (!live && f.kind != RecordKind::Sample) {
                lines.push(tracepoint_record(&f, reason(&f, &state.reasons), false));
            }
            drop(lines);
            state.add(f);
        })?;
        // Controls of this project report the exit reason themselves. Their events are read first.
        let controls = watch_controls(self.acks, |control: &str, f: Facts| {
            let state = &mut *state.borrow_mut();
            if f.why != ExitReason::None {
                state.reasons.insert(f.sk, f.why);
            }
            if self.json {
                state.reported.insert(f.sk);
                lines.borrow_mut().push(control_event(control, &f));
            }
            if f.kind == Kind::End {
                state.ended.push(f.sk);
            }
        })?;
        drop_privileges(&[])?;
        if let Some(listener) = listener {
            let metrics = Arc::clone(&state.borrow().metrics);
            let text = move || metrics.lock().unwrap_or_else(PoisonError::into_inner).text();
            prometheus::serve(listener, text)?;
        }
        let mut terminal = live.then(ratatui::init);
        let mut done = Ok(());
        while done.is_ok() && !signals::caught() && until.is_none_or(|u| signals::now() < u) {
            let polled = controls.poll().map_err(anyhow::Error::from);
            done = polled.and_then(|()| records.consume().map_err(anyhow::Error::from));
            state.borrow_mut().forget_ended();
            for line in lines.borrow_mut().drain(..) {
                done = done.and_then(|()| print(&line));
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
