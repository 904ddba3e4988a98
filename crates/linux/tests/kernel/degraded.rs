//! What is lost where the kernel refuses the iterator over the connections of a control, which
//! `SLOWSTART_REFUSE_ITERATOR` does on every kernel: only the number of open connections, which is then right
//! or unknown.

use crate::common::{Net, settles, transfer};
use crate::{able, spec};
use slowstart_linux::{Check, Verb, Verdict, load};

/// The child of the tests below: what it counts with no connection, with some in another network namespace,
/// from within that one, and with one more in a third.
#[test]
fn counts_as_child() {
    if std::env::var("SLOWSTART_COUNT").is_err() {
        return;
    }
    let (net, other) = (Net::veth("count"), Net::veth("other"));
    let held = load(&spec("search")).expect("loads");
    let open = || held.counts().expect("counts").open;
    println!("none: {:?}", open());
    let mut first = transfer(&net, Some(&held.name));
    first.send(100_000);
    let second = transfer(&net, Some(&held.name));
    println!("elsewhere: {:?}", open());
    println!("here: {:?}", Net::here(&net.sender, open));
    let third = transfer(&other, Some(&held.name));
    println!("both: {:?}", Net::here(&net.sender, open));
    let counts = held.counts().expect("counts");
    println!("at most: {} of {}", counts.at_most_open(), counts.started);
    drop((first, second, third));
    println!("closed: {:?}", settles(open, Some(0)));
}

fn counted(refuse: &str) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().expect("known"));
    command.args(["--exact", "degraded::counts_as_child", "--nocapture"]).env("SLOWSTART_COUNT", "1");
    let done = command.env("SLOWSTART_REFUSE_ITERATOR", refuse).output().expect("starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Asserts that each of these lines was printed.
fn says(said: &str, lines: &[&str]) {
    for line in lines {
        assert!(said.lines().any(|l| l.ends_with(line)), "no {line:?} in\n{said}");
    }
}

#[test]
fn without_the_iterator_the_number_of_open_connections_is_right_or_unknown() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let said = counted("1");
    says(&said, &["none: Some(0)", "elsewhere: None", "both: None", "at most: 3 of 3", "closed: Some(0)"]);
    let walk = Check::tried().tries.into_iter().find(|f| f.what == "iter/tcp").expect("it is tried");
    if walk.present {
        says(&said, &["here: Some(2)"]);
    } else {
        println!("skipped: kernel tests that need iter/tcp ({})", walk.detail);
    }
}

#[test]
fn without_any_iterator_only_none_is_known() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let said = counted("all");
    says(&said, &["none: Some(0)", "here: None", "at most: 3 of 3", "closed: Some(0)"]);
}

/// The child of the test below: what the kernel is said to lack.
#[test]
fn checks_as_child() {
    let Ok(_) = std::env::var("SLOWSTART_CHECK") else { return };
    let check = Check::tried();
    for verb in Verb::ALL {
        println!("verdict {}: {:?}", verb.name(), check.verdict(verb));
    }
}

#[test]
fn a_check_names_what_is_refused_and_what_is_lost() {
    let Some(_one) = able(&[Verb::Load, Verb::Select]) else { return };
    let mut command = std::process::Command::new(std::env::current_exe().expect("known"));
    command.args(["--exact", "degraded::checks_as_child", "--nocapture"]).env("SLOWSTART_CHECK", "1");
    let said = command.env("SLOWSTART_REFUSE_ITERATOR", "all").output().expect("starts");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    says(
        &said,
        &["verdict load: Lacks([\"the number of open connections above 0\"])", "verdict select: Works"],
    );
    // A process without capabilities is told which it lacks.
    let missing = std::thread::spawn(|| {
        slowstart_linux::drop_privileges(&[]).expect("needs no privilege");
        Check::tried().verdict(Verb::Load)
    });
    let Verdict::Fails(why) = missing.join().expect("no panic") else { panic!("it has no capabilities") };
    assert!(why.iter().any(|w| w.starts_with("struct_ops (")), "{why:?}");
    let capability = |name: &str| why.iter().any(|w| w == &format!("{name} (not held by this process)"));
    assert!(["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"].into_iter().all(capability), "{why:?}");
}
