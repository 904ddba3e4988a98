//! Scripts of our own in packetdrill's language, and what is no script.

use slowstart_packetdrill::expr::{self, Names};
use slowstart_packetdrill::{parse, run};

/// Each holds on a stock kernel 6.18 as well, under CUBIC; `accurate` and `option` are for later kernels,
/// since 6.18 does not let `tcp_ecn` be 3.
const SCRIPTS: [(&str, &str); 26] = [
    ("grows", include_str!("scripts/grows.pkt")),
    ("holds", include_str!("scripts/holds.pkt")),
    ("closes", include_str!("scripts/closes.pkt")),
    ("rounds", include_str!("scripts/rounds.pkt")),
    ("reorders", include_str!("scripts/reorders.pkt")),
    ("counts", include_str!("scripts/counts.pkt")),
    ("last", include_str!("scripts/last.pkt")),
    ("waits", include_str!("scripts/waits.pkt")),
    ("mark", include_str!("scripts/mark.pkt")),
    ("ready", include_str!("scripts/ready.pkt")),
    ("limits", include_str!("scripts/limits.pkt")),
    ("more", include_str!("scripts/more.pkt")),
    ("refuses", include_str!("scripts/refuses.pkt")),
    ("stamps", include_str!("scripts/stamps.pkt")),
    ("late", include_str!("scripts/late.pkt")),
    ("gone", include_str!("scripts/gone.pkt")),
    ("twice", include_str!("scripts/twice.pkt")),
    ("undoes", include_str!("scripts/undoes.pkt")),
    ("delays", include_str!("scripts/delays.pkt")),
    ("marks", include_str!("scripts/marks.pkt")),
    ("echoes", include_str!("scripts/echoes.pkt")),
    ("accurate", include_str!("scripts/accurate.pkt")),
    ("option", include_str!("scripts/option.pkt")),
    ("again", include_str!("scripts/again.pkt")),
    ("limited", include_str!("scripts/limited.pkt")),
    ("falls", include_str!("scripts/falls.pkt")),
];

#[test]
fn scripts_hold() {
    for (name, text) in SCRIPTS {
        let script = parse::script(text).unwrap_or_else(|e| panic!("{name}.pkt:{e}"));
        run::run(&script, true, None).unwrap_or_else(|e| panic!("{name}.pkt:{e}"));
    }
}

#[test]
fn what_does_not_hold_is_shown_with_its_line() {
    let wrong = SCRIPTS[0].1.replace("1:12001(12000)", "1:11001(11000)");
    let fault = run::run(&parse::script(&wrong).expect("a script"), true, None).expect_err("ten segments");
    assert_eq!(fault.line, 11);
    assert!(fault.what.contains("expected  P. 1:11001(11000) ack 1\n    seen  "), "{fault}");
    let unsupported = parse::script("`sysctl -q net.ipv4.tcp_fastopen=1`").expect("a script");
    let fault = run::run(&unsupported, true, None).expect_err("not modelled");
    assert_eq!(fault.what, "unsupported: sysctl tcp_fastopen=1");
}

#[test]
fn what_is_no_script_is_refused_at_its_line() {
    for (text, line) in [
        ("\n\n+0 < Q 0:0(0)", 3),
        ("+0 > . 1:3(3) ack 1", 1),
        ("// a\n+0 listen(3, 1", 2),
        ("+0 %{ assert", 1),
        ("--speed=1", 1),
        ("--tcp_ts_tick_usecs=x", 1),
        ("\n+ > . 1:1(0)", 2),
    ] {
        assert_eq!(parse::script(text).expect_err(text).line, line, "{text}");
    }
}

/// A script may hold shell commands. Those that set what is modelled are understood, and none is run.
#[test]
fn no_shell_command_is_run() {
    let file = std::env::temp_dir().join(format!("slowstart-shell-{}", std::process::id()));
    let touch = format!("touch {}", file.display());
    for command in
        [touch.clone(), format!("sysctl -q net.ipv4.tcp_sack=0; {touch}"), format!("tc $({touch}) root fq")]
    {
        let text = format!("`{command}`\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 `{command}`\n");
        let _ = parse::script(&text).map(|script| run::run(&script, true, None));
    }
    assert!(!file.exists());
    let other = parse::script(&format!("`{touch}`\n")).expect("a script");
    let fault = run::run(&other, true, None).expect_err("no setting").to_string();
    assert!(fault.contains("unsupported") && fault.contains("touch"), "{fault}");
}

#[test]
fn expressions_are_those_of_python() {
    let mut names = Names::new();
    let code = "a = 7 // 2 * 3\nassert 9 <= a <= 0x9 and not a == 8, a; a += 1 # ten\nassert (a % 4) == 2, 'a=%d' % a";
    assert_eq!(expr::run(code, &mut names), Ok(()));
    assert_eq!(names["a"], 10);
    assert_eq!(expr::run("assert a == 9, a", &mut names), Err("expected a == 9, a, seen a = 10".to_owned()));
    assert!(expr::run("assert b == 9", &mut names).is_err());
    assert!(expr::run(&"(".repeat(100_000), &mut names).is_err());
}

/// What a script asks of timestamps, of the send buffer and of the peer's window can fail.
#[test]
fn each_new_check_can_fail() {
    for (name, right, wrong) in [
        ("marks", "[ect0] W. 10001", "[ect0] . 10001"),
        ("marks", "[ect0] . 11001", "[noecn] . 11001"),
        ("echoes", "[noecn] E. 1:1(0) ack 3001", "[noecn] . 1:1(0) ack 3001"),
        ("accurate", "[ect0] EWA. 1:1(0) ack 4001", "[ect0] WA. 1:1(0) ack 4001"),
        ("stamps", "TS val 2200 ecr 201", "TS val 2100 ecr 201"),
        ("waits", "0.300 write", "0.200 write"),
        ("mark", "60000) = 25000", "60000) = 26000"),
        ("limits", "96000 <= tcpi_rwnd_limited <= 108000", "tcpi_rwnd_limited < 96000"),
        ("reorders", "tcpi_snd_cwnd == 11", "tcpi_snd_cwnd == 10"),
        ("counts", "tcpi_snd_cwnd == 12", "tcpi_snd_cwnd == 14"),
        ("rounds", "tcpi_snd_ssthresh == 36", "tcpi_snd_ssthresh == 48"),
        ("more", ". 1501:1541(40)", ". 1501:1540(39)"),
        ("refuses", "ack 1 <nop,nop,TS val 200 ecr 200>", "ack 2 <nop,nop,TS val 200 ecr 200000>"),
    ] {
        let text = SCRIPTS.iter().find(|s| s.0 == name).expect("a script").1;
        assert!(text.contains(right), "{name}");
        let script = parse::script(&text.replace(right, wrong)).expect("a script");
        assert!(run::run(&script, true, None).is_err(), "{name}: {wrong}");
    }
}

/// The time of a parse grows with the length of a script, not with its square. Each is the least of three.
#[test]
#[allow(clippy::disallowed_methods, reason = "a ratio of two times of one run")]
fn a_long_script_takes_time_in_proportion() {
    let once = |text: &str, statements: usize| {
        let begin = std::time::Instant::now();
        assert_eq!(parse::script(text).expect("a script").events.len(), statements);
        begin.elapsed()
    };
    let took = |statements: usize| {
        let text = "+0 < . 1:1(0) ack 1 win 100\n".repeat(statements);
        (0..3).map(|_| once(&text, statements)).min().expect("three")
    };
    took(1000);
    let (short, long) = (took(10_000), took(160_000));
    // Sixteen times the work; a walk from the beginning for each line number takes 256 times as long.
    assert!(long < 80 * short, "{long:?} and {short:?}");
}

#[test]
fn a_descriptor_is_an_int() {
    for fd in [i64::MAX, i64::from(i32::MAX) + 1] {
        let text = format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = {fd}\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4"
        );
        let fault =
            run::run(&parse::script(&text).expect("a script"), true, None).expect_err("no such descriptor");
        assert_eq!(fault.line, 1);
        assert!(fault.what.contains(&fd.to_string()), "{fault}");
    }
    let text =
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 2147483647\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4";
    assert_eq!(run::run(&parse::script(text).expect("a script"), true, None), Ok(()));
}
