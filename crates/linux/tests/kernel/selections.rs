//! A startup for the connections of a cgroup.

use crate::common::{Net, with_control};
use crate::{able, spec};
use slowstart_linux::{
    Check, PinnedSelection, SelectionState, Verb, list_selections, load, select, unselect,
};
use std::fs;

#[test]
fn a_selection_applies_until_it_is_removed() {
    let Some(_one) = able(&[Verb::Load, Verb::Select]) else { return };
    let Some(cgroup) = crate::common::Cgroup::new("select") else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    if Check::new().links {
        crate::common::own_bpffs();
    }
    let net = Net::veth("select");
    let e = select(&cgroup.0, "search", false).expect_err("not loaded").to_string();
    assert!(e.contains("not loaded"), "{e}");
    let held = load(&spec("search")).expect("loads");
    let selection = select(&cgroup.0, "search", false).expect("selects");
    assert_eq!(selection.control, "ss_search");
    let before = with_control(&net, "reno", 1000);
    assert_eq!(before, "reno", "this process is not in the cgroup");
    assert_eq!(cgroup.run_inside(&net), "ss_search", "it overrides the choice of the program");
    drop(selection);
    assert_eq!(cgroup.run_inside(&net), "reno");
    if Check::new().links {
        drop(select(&cgroup.0, "search", true).expect("pins"));
        assert_eq!(cgroup.run_inside(&net), "ss_search");
        assert_eq!(unselect(&cgroup.0).expect("removes").control, "ss_search");
        assert_eq!(cgroup.run_inside(&net), "reno");
    }
    assert!(held.counts().unwrap().started >= 1);
}

#[test]
fn a_selection_survives_a_new_cgroup_or_is_reported() {
    let Some(_one) = able(&[Verb::Load, Verb::Select]) else { return };
    let Some(cgroup) = crate::common::Cgroup::new("again") else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    if !Check::new().links {
        println!("skipped: kernel tests of pins (this kernel has no links)");
        return;
    }
    crate::common::own_bpffs();
    let net = Net::veth("again");
    let held = load(&spec("search")).expect("loads");
    let make_again = || {
        fs::remove_dir(&cgroup.0).expect("it is empty");
        fs::create_dir(&cgroup.0).expect("root may");
    };

    // One that is held follows the path.
    let mut selection = select(&cgroup.0, "search", false).expect("selects");
    assert!(!selection.follow().expect("nothing to do"));
    make_again();
    assert_eq!(cgroup.run_inside(&net), "reno", "the new cgroup has no selection");
    assert!(selection.follow().expect("attaches"));
    assert_eq!(cgroup.run_inside(&net), held.name);
    drop(selection);

    // A pinned one is reported, and repaired by the same command. The machine may have others.
    let state = || {
        let ours = list_selections().into_iter().filter(|s| s.cgroup == cgroup.0);
        ours.map(|s| s.state).collect::<Vec<_>>()
    };
    drop(select(&cgroup.0, "search", true).expect("pins"));
    assert_eq!(state(), [SelectionState::Active]);
    make_again();
    assert_eq!(state(), [SelectionState::CgroupReplaced]);
    let repaired = select(&cgroup.0, "search", true).expect("pins again");
    assert_eq!(repaired.replaced.as_ref().map(|s| s.state), Some(SelectionState::CgroupReplaced));
    drop(repaired);
    assert_eq!(state(), [SelectionState::Active]);
    assert_eq!(cgroup.run_inside(&net), held.name);

    // One whose cgroup is gone can be removed.
    fs::remove_dir(&cgroup.0).expect("it is empty");
    assert_eq!(state(), [SelectionState::CgroupGone]);
    let removed = unselect(&cgroup.0).expect("removes what is stale");
    let expected = PinnedSelection {
        cgroup: cgroup.0.clone(),
        control: held.name.clone(),
        state: SelectionState::CgroupGone,
        held_by: None,
    };
    assert_eq!((removed, state()), (expected, vec![]));
    let e = unselect(&cgroup.0).expect_err("nothing is left").to_string();
    assert!(e.contains("there is no selection"), "{e}");
}
