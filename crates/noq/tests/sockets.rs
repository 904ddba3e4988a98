//! The examples on real sockets, over a path that `slowstart emulate` makes. Needs root and a built command.

use std::path::PathBuf;
use std::process::Command;

/// Where Cargo puts what it builds for this profile.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_path_buf()
}

#[test]
fn a_download_over_an_emulated_path_reports_its_exit() {
    let (slowstart, examples) = (built().join("slowstart"), built().join("examples"));
    // A command without the feature kernel has no emulator; any failure but what this machine lacks is one of
    // the test.
    let tried = |args: &[&str]| Command::new(&slowstart).arg("emulate").args(args).output();
    let built = tried(&["--help"]).is_ok_and(|o| o.status.success());
    let path = tried(&["rate=1Mbit rtt=1ms queue=1bdp", "--", "true"]);
    let lacks = |why: &str| ["not permitted", "there is no"].iter().any(|words| why.contains(words));
    if !built || path.is_ok_and(|o| lacks(&String::from_utf8_lossy(&o.stderr))) {
        return println!(
            "skipped: QUIC on real sockets (needs the emulator: root, and the command built with --features kernel)"
        );
    }
    let cert = std::env::temp_dir().join(format!("slowstart-{}.der", std::process::id()));
    let program = |name: &str| examples.join(name).display().to_string();
    let serve = format!("{} --cert {} --startup standard --size 2000000", program("server"), cert.display());
    let out = Command::new(slowstart)
        .args(["emulate", "rate=20Mbit rtt=40ms queue=1bdp", "--serve", &serve, "--"])
        .args([program("client"), "--cert".into(), cert.display().to_string()])
        .output()
        .unwrap();
    let _ = std::fs::remove_file(cert);
    let (said, noted) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(said.contains(r#""received_bytes":2000000"#), "{said}{noted}");
    // 2 MB over 20 Mbit/s take 0.8 s, and slow start overflows a queue of 100 kB.
    assert!(noted.contains(r#""startup":"standard","exit":{"reason":"loss""#), "{said}{noted}");
}
