//! Three cells of `slowstart validate kernel`, three runs each, with bounds wide enough for a busy machine;
//! the command runs all with narrow bounds. Needs root and TUN devices, and is skipped otherwise.

mod common;

use slowstart_linux::emulate::INVALID;
use slowstart_linux::{Kernel, Verb};
use slowstart_sim::engine::Sampling;
use slowstart_study::cells::{Cell, Ran, compare};
use slowstart_study::engines::{Engine, Watched};
use slowstart_study::explain::Told;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::simulator::Simulator;

/// The runs of a cell in the simulator.
fn simulated(cell: &Cell) -> Vec<Ran> {
    let study = cell.study(&Simulator, None).expect("a path without a trace");
    let run = |job| Cell::run(&Simulator, &study, job, &|| false).expect("it runs");
    study.jobs().into_iter().map(run).collect()
}

/// The run of job `n` of a cell on the kernel; jobs begin again after the last.
fn run(kernel: &dyn Engine, study: &Study, n: usize) -> Ran {
    let jobs = study.jobs();
    Cell::run(kernel, study, jobs[n % jobs.len()], &|| false).expect("the emulator runs")
}

/// The largest ratio, either way, between a figure of the simulator and that of the kernel.
const MAX_RATIO: [(&str, f64); 3] =
    [("window at exit (packets)", 1.5), ("to 1 MB (s)", 1.25), ("goodput (Mbit/s)", 1.25)];

/// The cells whose names are in `SLOWSTART_CELLS`, separated by commas, as the command runs them: five times
/// each.
#[test]
fn named_cells_are_compared() {
    let Ok(names) = std::env::var("SLOWSTART_CELLS") else {
        println!("skipped: cells of SLOWSTART_CELLS");
        return;
    };
    let mut total = (0, 0);
    for cell in Cell::all().into_iter().filter(|c| names.split(',').any(|n| n == c.name)) {
        let engine = Kernel::default();
        let study = cell.study(&engine, None).expect("a path without a trace");
        let kernel: Vec<_> = (0..study.jobs().len()).map(|n| run(&engine, &study, n)).collect();
        let late = kernel.iter().filter(|o| o.row.caveats.iter().any(|c| c == INVALID)).count();
        let figures = compare(&cell, &simulated(&cell), &kernel);
        let differ: Vec<_> = figures.iter().filter(|f| !f.agrees).collect();
        println!(
            "{}: {} of {} figures agree, {late} runs late; {differ:?}",
            cell.name,
            figures.len() - differ.len(),
            figures.len()
        );
        total = (total.0 + figures.len() - differ.len(), total.1 + figures.len());
    }
    println!("{} of {} figures agree", total.0, total.1);
    assert!(total.1 > 0 && 100 * total.0 >= 95 * total.1, "{total:?}");
}

#[test]
fn the_kernel_s_figures_are_near_those_of_the_simulator() {
    if !common::works(&[Verb::Load]) || !common::has_tun() {
        return;
    }
    // Not HyStart on 10 ms: it tells 4 ms of delay, which a busy machine adds by itself.
    let cells = ["20M-40ms-1 cubic", "50M-50ms-1/2 cubic without HyStart", "100M-10ms-1 reno"];
    for cell in Cell::all().into_iter().filter(|c| cells.contains(&c.name.as_str())) {
        let engine = Kernel::default();
        let study = cell.study(&engine, None).expect("a path without a trace");
        let simulated = simulated(&cell);
        // A pause of the machine, or packets released too late, change what HyStart sees in a run: of each figure
        // most runs are near, of three or, if they are not, of up to eight.
        let (mut valid, mut near) = (0, MAX_RATIO.map(|_| 0));
        for n in 0..8 {
            let kernel = run(&engine, &study, n);
            if kernel.row.caveats.iter().any(|c| c == INVALID) {
                continue;
            }
            valid += 1;
            let figures = compare(&cell, &simulated, std::slice::from_ref(&kernel));
            for ((name, ratio), near) in MAX_RATIO.iter().zip(&mut near) {
                let figure = figures.iter().find(|f| f.name == *name).expect("compared");
                let (ours, theirs) =
                    (figure.ours.expect("ours has it"), figure.theirs.expect("theirs has it").0);
                println!("{}: {name}: simulator {ours}, kernel {theirs}", cell.name);
                *near += u32::from((1.0 / ratio..*ratio).contains(&(ours / theirs)));
            }
            if valid >= 3 && near.iter().all(|n| 2 * n > valid) {
                break;
            }
        }
        if valid < 3 {
            println!("skipped: cell {} (this machine is too busy)", cell.name);
            continue;
        }
        assert!(near.iter().all(|n| 2 * n > valid), "{}: {near:?} of {valid} runs are near", cell.name);
    }
}

/// The whole transfer fits into the send buffer: the loss comes when the application has long written everything.
#[test]
fn a_loss_after_everything_was_written_is_seen() {
    if !common::works(&[Verb::Load]) || !common::has_tun() {
        return;
    }
    let text = StudyText {
        path: "rate=20Mbit rtt=40ms queue=4bdp".into(),
        startups: vec!["reno".into()],
        size: Some("3MB".into()),
        ..StudyText::default()
    };
    let engine = Kernel::default();
    let study = engine.study(&text, None).expect("a study");
    let mut rows =
        (0..4).map(|run| engine.run(&study, Job { contender: 0, run }, &Watched::ROW).expect("it runs").row);
    let Some(row) = rows.find(|r| r.caveats.iter().all(|c| c != INVALID)) else {
        return println!("skipped: a loss after everything was written (this machine is too busy)");
    };
    assert!(row.lost_packets > Some(0) && row.completion_s.is_some(), "{row:?}");
    assert!(
        row.first_loss_time_s.is_some() && row.exit.is_some_and(|e| e.reason == "loss"),
        "{:?}",
        row.caveats
    );
}

/// The second that a lost SYN-ACK costs has its lines, and the time is that of the handshake.
#[test]
fn a_lost_syn_ack_has_its_lines() {
    if !common::works(&[Verb::Load]) || !common::has_tun() {
        return;
    }
    let text = StudyText {
        path: "rate=10Mbit rtt=40ms queue=1bdp drop_synack=1".into(),
        startups: vec!["cubic".into()],
        size: Some("100kB".into()),
        runs: Some(1),
        ..StudyText::default()
    };
    let engine = Kernel::default();
    let study = engine.study(&text, None).expect("a study");
    let watched = Watched { sampling: Sampling::EachAck, internals: false, stop: &|| false };
    let outcome = engine.run(&study, Job { contender: 0, run: 0 }, &watched).expect("the emulator runs");
    let told = Told::new(&study, &outcome.row, &outcome.trace, outcome.measured.packet.payload);
    let lines = told.timeline();
    let at = |what: &str| {
        let line = lines.iter().find(|(_, line)| line.contains(what));
        line.unwrap_or_else(|| panic!("{what}: {lines:?}")).0
    };
    let (dropped, again) = (at("The network drops the SYN-ACK."), at("is sent again."));
    assert!((0.0..0.5).contains(&dropped), "{dropped}");
    // The timer of a SYN is one second; a busy machine may add to it.
    assert!((0.9..3.0).contains(&again), "{again}");
    assert!(at("The first acknowledgement arrives") > again, "{lines:?}");
    let limits = outcome.row.limits.expect("observed");
    assert!(limits.handshake.is_some_and(|share| share > 0.3), "{limits:?}");
    assert_eq!((limits.pacing, limits.host_queue), (None, None), "the kernel does not tell");
    assert!(limits.busy.is_some_and(|busy| busy > 0.0), "{limits:?}");
}
