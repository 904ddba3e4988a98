//! One download over 50 Mbit/s and 50 ms at virtual time, for measuring what it costs:
//! `download noq,crypto=null`.

use slowstart_quic_sim::Knobs;
use slowstart_sim::engine::Sampling;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (which, knobs) = Knobs::parse(&std::env::args().nth(1).unwrap_or_default())?;
    let text = StudyText {
        path: "rate=50Mbit rtt=50ms queue=1bdp".into(),
        startups: vec!["search".into()],
        size: Some("20MB".into()),
        runs: Some(1),
        ..StudyText::default()
    };
    let study = Study::check(&text, None)?;
    let row = which.run(&knobs, &study, Job { contender: 0, run: 0 }, Sampling::Off, false)?.row;
    println!("{}: {} data packets, {:?} s", row.profile, row.cost.packets, row.completion_s);
    Ok(())
}
