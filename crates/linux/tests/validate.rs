//! A few cells of `slowstart validate kernel`, once each, with bounds that a busy machine does not cross; the command holds
//! all fifty to narrow ones. Needs root and TUN devices; says so where it has them not.

use slowstart_lab::validate::kernel::{Cell, compare};
use slowstart_linux::{Check, LoadedControl, run_transfer};

/// How far apart a figure may be: ours over the kernel's, or the other way about.
const APART: [(&str, f64); 3] =
    [("window at exit (packets)", 1.5), ("to 1 MB (s)", 1.25), ("goodput (Mbit/s)", 1.25)];

#[test]
fn cells_of_the_kernel_are_near_those_of_the_simulator() {
    if !Check::new().can_load {
        println!("skipped: kernel test of cells (see slowstart kernel check)");
        return;
    }
    let cells = ["20M-40ms-1 cubic", "50M-50ms-1/2 cubic without HyStart", "100M-10ms-1 cubic"];
    for cell in Cell::all().into_iter().filter(|c| cells.contains(&c.name.as_str())) {
        let study = cell.study(None).expect("a path without a trace");
        let contestant = LoadedControl::load(cell.control.kernel, cell.control.avoidance).expect("it loads");
        let job = study.jobs().into_iter().next().expect("five runs");
        // A run in which the path was late is none.
        let kept_time = (0..4).find_map(|_| {
            let outcome = run_transfer(&study, &contestant, job).expect("the emulator runs");
            (!outcome.row.caveats.iter().any(|c| c.starts_with("INVALID"))).then_some(outcome)
        });
        let Some(kernel) = kept_time else {
            println!("skipped: cell {} (the machine does not keep time)", cell.name);
            continue;
        };
        let figures = compare(&cell, &Cell::ours(&study), std::slice::from_ref(&kernel));
        for (name, apart) in APART {
            let f = figures.iter().find(|f| f.name == name).expect("compared");
            let (ours, theirs) = (f.ours.expect("ours has it"), f.kernel.expect("the kernel has it").0);
            assert!(
                (1.0 / apart..apart).contains(&(ours / theirs)),
                "{}: {name}: {ours}, and {theirs} on the kernel",
                cell.name
            );
        }
    }
}
