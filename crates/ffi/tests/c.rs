//! The interface for C: through C programs, and with the vectors that every startup has.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![allow(unsafe_code, reason = "calls the functions of the interface as C does")]

use serde_json::Value;
use slowstart_abi::event::*;
use slowstart_abi::facts::*;
use slowstart_abi::packet::*;
use slowstart_abi::plugin::*;
use slowstart_abi::state::*;
use slowstart_abi::{SLOWSTART_MOST_WINDOW, SLOWSTART_UNKNOWN, SLOWSTART_VERSION};
use slowstart_c::call::*;
use slowstart_c::controller::*;
use slowstart_c::state::*;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

/// A C compiler, or `None`, and then one line.
fn compiler() -> Option<&'static str> {
    let found =
        ["cc", "clang", "gcc"].into_iter().find(|c| Command::new(c).arg("--version").output().is_ok());
    if found.is_none() {
        eprintln!("skipped: no C compiler");
    }
    found
}

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The static library that cargo built beside this test.
fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a file");
    let deps = exe.parent().expect("it is in a folder");
    let newest = |d: &Path| {
        let all = std::fs::read_dir(d).into_iter().flatten().flatten().map(|e| e.path());
        let is_it = |p: &PathBuf| {
            let name = p.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            name.starts_with("libslowstart_c") && p.extension().is_some_and(|e| e == "a")
        };
        all.filter(is_it).max_by_key(|p| p.metadata().and_then(|m| m.modified()).ok())
    };
    newest(deps).or_else(|| newest(deps.parent()?)).expect("cargo builds the static library with the tests")
}

fn compile(cc: &str, source: &Path, to: &Path, link: bool) {
    let mut c = Command::new(cc);
    c.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(dir().join("include")).arg(source);
    if link {
        c.arg(library()).args(["-lm", "-lpthread", "-ldl"]);
    } else {
        c.arg("-c");
    }
    let out = c.arg("-o").arg(to).output().expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The header and the library agree on the place of every field.
#[test]
fn the_header_has_the_structures_of_the_library() {
    let Some(cc) = compiler() else { return };
    let mut text = String::from("#include \"slowstart.h\"\n");
    macro_rules! same {
        ($($t:ident { $($field:ident),+ })+) => {$(
            let _ = write!(text, "_Static_assert(sizeof(struct {0}) == {1}, \"{0}\");\n", stringify!($t), size_of::<$t>());
            $(let _ = write!(text,
                "_Static_assert(offsetof(struct {0}, {1}) == {2}, \"{0}.{1}\");\n",
                stringify!($t), stringify!($field), offset_of!($t, $field)
            );)+
        )+};
    }
    same! {
        slowstart_facts {
            size, now_ns, mss, iw, min_window, inflight, delivered, lost, marked, next, unacked, srtt_ns, min_rtt_ns, rwnd,
            pacing_rate_bps, unsent, host_queue_used, host_queue_limit, nic_rate_bps, supports_pacing, pacing_on, in_recovery,
            reserved, gso_max
        }
        slowstart_sent {
            size, mark, at_ns, bytes, sent_total, inflight, delivered, delivered_at_ns, first_sent_at_ns, lost, cwnd,
            retransmission, app_limited
        }
        slowstart_ack { size, upto, bytes, delivered, newly_lost, prior_inflight, rtt_ns, limit, newest }
        slowstart_handshake {
            size, rtt_ns, syn_losses, spurious, granted_bps, remembered_cwnd, remembered_rtt_ns, remembered_rate_bps
        }
        slowstart_congestion { size, signal, first, lost, lost_ranges, reserved, newest }
        slowstart_plugin {
            size, version, flags, create, destroy, established, sent, ack, congestion, recovered, timer, idle
        }
        slowstart_state {
            size, cwnd, ssthresh, wake_ns, pace_kind, pace, resend, exit_detected_ns, exit_detected_cwnd, exit_cwnd, exit_why
        }
    }
    let _ = writeln!(text, "_Static_assert(SLOWSTART_VERSION == {SLOWSTART_VERSION}, \"version\");");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&source, text).expect("the temporary folder is writable");
    compile(cc, &source, &source.with_extension("o"), false);
}

/// The path holds 431 segments.
#[test]
fn a_host_in_c_leaves_slow_start_where_the_path_is_full() {
    let Some(cc) = compiler() else { return };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("host");
    compile(cc, &dir().join("examples/host.c"), &program, true);
    let run = |startup: &str| {
        let out = Command::new(&program).arg(startup).output().expect("it was built");
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr),
        )
    };
    let (status, text) = run("search");
    let (why, window) = text.trim().split_once(' ').expect("two words");
    assert_eq!((status, why), (Some(0), "rate-flat"));
    assert!((400..480).contains(&window.parse::<u64>().expect("a number")), "{text}");
    assert_eq!(run("hystart++").0, Some(0));
    let (status, text) = run("serch");
    assert!(status == Some(2) && text.contains("found \"serch\""), "{text}");
}

/// A controller through the interface.
struct C(*mut slowstart_controller);

impl Drop for C {
    fn drop(&mut self) {
        // SAFETY: it is of `slowstart_create` and not used afterwards.
        unsafe { slowstart_free(self.0) };
    }
}

impl C {
    fn new(startup: &str, avoidance: &str, iw: u64) -> Result<Self, String> {
        let (s, a) = (CString::new(startup).expect("no zero"), CString::new(avoidance).expect("no zero"));
        let mut why = [0 as c_char; 200];
        // SAFETY: strings with a zero, and a buffer with its length.
        let c = unsafe { slowstart_create(s.as_ptr(), a.as_ptr(), iw, 1, why.as_mut_ptr(), why.len()) };
        if c.is_null() {
            // SAFETY: it was ended by a zero.
            return Err(unsafe { CStr::from_ptr(why.as_ptr()) }.to_string_lossy().into_owned());
        }
        Ok(Self(c))
    }

    fn state(&self) -> slowstart_state {
        let mut s = slowstart_state {
            size: size_of::<slowstart_state>() as u64,
            cwnd: 0,
            ssthresh: 0,
            wake_ns: 0,
            pace_kind: 0,
            pace: 0,
            resend: 0,
            exit_detected_ns: 0,
            exit_detected_cwnd: 0,
            exit_cwnd: 0,
            exit_why: ptr::null(),
        };
        // SAFETY: a controller that lives, and a structure with its size.
        assert_eq!(unsafe { slowstart_get_state(self.0, &raw mut s) }, 0);
        s
    }
}

fn number(v: &Value) -> u64 {
    v.as_u64().or_else(|| v.as_bool().map(u64::from)).unwrap_or(SLOWSTART_UNKNOWN)
}

fn sent(v: &Value) -> slowstart_sent {
    let n = |key: &str| number(&v[key]);
    let state = |key: &str| v.get("state").map_or(0, |s| number(&s[key]));
    slowstart_sent {
        size: size_of::<slowstart_sent>() as u64,
        mark: n("mark"),
        at_ns: n("at_ns"),
        bytes: n("bytes"),
        sent_total: state("sent_total"),
        inflight: state("inflight"),
        delivered: state("delivered"),
        delivered_at_ns: state("delivered_at_ns"),
        first_sent_at_ns: state("first_sent_at_ns"),
        lost: state("lost"),
        cwnd: state("cwnd"),
        retransmission: n("retransmission") as u32,
        app_limited: state("app_limited") as u32,
    }
}

fn facts(v: &serde_json::Map<String, Value>) -> slowstart_facts {
    let n = |key: &str| v.get(key).map_or(SLOWSTART_UNKNOWN, number);
    let queue = |i: usize| v.get("host_queue").map_or(SLOWSTART_UNKNOWN, |q| number(&q[i]));
    slowstart_facts {
        size: size_of::<slowstart_facts>() as u64,
        now_ns: n("now_ns"),
        mss: n("mss"),
        iw: n("iw"),
        min_window: n("min_window"),
        inflight: n("inflight"),
        delivered: n("delivered"),
        lost: n("lost"),
        marked: n("marked"),
        next: n("next"),
        unacked: n("unacked"),
        srtt_ns: n("srtt_ns"),
        min_rtt_ns: n("min_rtt_ns"),
        rwnd: n("rwnd"),
        pacing_rate_bps: n("pacing_rate_bps"),
        unsent: n("unsent"),
        host_queue_used: queue(0),
        host_queue_limit: queue(1),
        nic_rate_bps: n("nic_rate_bps"),
        supports_pacing: n("supports_pacing") as u32,
        pacing_on: n("pacing_on") as u32,
        in_recovery: n("in_recovery") as u32,
        reserved: 0,
        gso_max: v.get("gso_max").map_or(0, number),
    }
}

/// The place of a word in a list, which is its number in the header.
fn place(words: &[&str], word: &Value) -> u64 {
    words.iter().position(|w| word == w).unwrap_or_else(|| panic!("no word {word}")) as u64
}

/// Makes the call of a line.
fn play(c: &C, f: &slowstart_facts, line: &Value) -> i32 {
    // SAFETY: the controller lives, and every structure has its size.
    unsafe {
        match line["event"].as_str().expect("an event") {
            "established" => {
                let n = |key: &str| number(&line["handshake"][key]);
                let m = |key: &str| number(&line["handshake"]["remembered"][key]);
                let hs = slowstart_handshake {
                    size: size_of::<slowstart_handshake>() as u64,
                    rtt_ns: n("rtt_ns"),
                    syn_losses: n("syn_losses"),
                    spurious: n("spurious"),
                    granted_bps: n("granted_bps"),
                    remembered_cwnd: m("cwnd"),
                    remembered_rtt_ns: m("rtt_ns"),
                    remembered_rate_bps: m("rate_bps"),
                };
                slowstart_on_established(c.0, f, &raw const hs)
            }
            "sent" => slowstart_on_sent(c.0, f, &sent(&line["sent"])),
            "ack" => {
                let n = |key: &str| number(&line["ack"][key]);
                let a = slowstart_ack {
                    size: size_of::<slowstart_ack>() as u64,
                    upto: n("upto"),
                    bytes: n("bytes"),
                    delivered: n("delivered"),
                    newly_lost: n("newly_lost"),
                    prior_inflight: n("prior_inflight"),
                    rtt_ns: n("rtt_ns"),
                    limit: place(&["window", "pacer", "application", "peer"], &line["ack"]["limit"]),
                    newest: sent(&line["ack"]["newest"]),
                };
                slowstart_on_ack(c.0, f, &raw const a)
            }
            "congestion" => {
                let e = &line["congestion"];
                let signal = place(&["loss", "ecn", "timeout", "local-stall"], &e["signal"]);
                let (first, lost, ranges) =
                    (number(&e["first"]) as u32, number(&e["lost"]), number(&e["lost_ranges"]) as u32);
                slowstart_on_congestion(c.0, f, signal as u32, first, lost, ranges, &sent(&e["newest"]))
            }
            "recovered" => {
                let r = &line["recovery"];
                slowstart_on_recovered(c.0, f, number(&r["retransmitted"]), number(&r["undone"]) as u32)
            }
            "timer" => slowstart_on_timer(c.0, f),
            "idle" => slowstart_on_idle(
                c.0,
                f,
                number(&line["idle"]["idle_ns"]),
                number(&line["idle"]["restart_ns"]),
            ),
            other => panic!("no event {other}"),
        }
    }
}

/// What `slowstart vectors` prints, through the interface for C: the same windows, thresholds, timers and
/// exits.
#[test]
fn every_vector_has_the_same_states() {
    let events: u32 = slowstart::registry::all().map(|e| same_states(e.name, e.algorithm)).sum();
    assert!(events > 100_000, "{events}");
}

/// Plays the vectors of a startup; returns their number of events.
fn same_states(name: &str, algorithm: slowstart::registry::Algorithm) -> u32 {
    let mut out = Vec::new();
    slowstart_study::vectors::write(&[(name.into(), algorithm)], &mut out).expect("memory");
    let text = String::from_utf8(out).expect("JSON");
    let (mut c, mut known, mut case, mut events) = (None, serde_json::Map::new(), String::new(), 0);
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line.get("case").is_some() {
            let word = |key: &str| line[key].as_str().expect("text").to_string();
            case = format!("{} {}", word("startup"), word("case"));
            c = Some(C::new(&word("startup"), &word("avoidance"), number(&line["iw"])).expect("it is known"));
            known.clear();
            continue;
        }
        let c = c.as_ref().expect("a case has begun");
        let Value::Object(told) = line["facts"].take() else { panic!("{case}: no facts in {line}") };
        known.extend(told);
        assert_eq!(play(c, &facts(&known), &line), 0, "{case}: {line}");
        let s = c.state();
        let wanted = (
            number(&line["cwnd"]),
            number(&line["ssthresh"]),
            number(&line["wake_ns"]),
            number(&line["resend"]),
        );
        assert_eq!((s.cwnd, s.ssthresh, s.wake_ns, s.resend), wanted, "{case}: {line}");
        if let Some(exit) = line.get("exit") {
            // SAFETY: a static string, since the line says that it left.
            let why = unsafe { CStr::from_ptr(s.exit_why) }.to_str().expect("a word");
            assert_eq!(
                (why, s.exit_cwnd),
                (exit["why"].as_str().expect("a word"), number(&exit["cwnd"])),
                "{case}"
            );
        }
        events += 1;
    }
    events
}

/// Each function, so that Miri runs it too (`ci/miri.sh`): the vectors take it an hour.
#[test]
fn a_connection_calls_each_function() {
    for startup in ["standard", "search", "bbr3"] {
        let c = C::new(startup, "cubic", 10_000).expect("it is known");
        let mut f = facts(&serde_json::Map::new());
        (f.mss, f.iw, f.min_window, f.lost, f.marked) = (1000, 10_000, 1000, 0, 0);
        (f.now_ns, f.next, f.unacked, f.delivered, f.inflight) = (0, 0, 0, 0, 0);
        (f.supports_pacing, f.pacing_on, f.in_recovery) = (1, 0, 0);
        let hs = slowstart_handshake {
            size: size_of::<slowstart_handshake>() as u64,
            rtt_ns: 40_000_000,
            syn_losses: 0,
            spurious: 0,
            granted_bps: SLOWSTART_UNKNOWN,
            remembered_cwnd: SLOWSTART_UNKNOWN,
            remembered_rtt_ns: SLOWSTART_UNKNOWN,
            remembered_rate_bps: SLOWSTART_UNKNOWN,
        };
        // SAFETY: the controller lives, and every structure has its size.
        unsafe {
            assert_eq!(slowstart_on_established(c.0, &raw const f, &raw const hs), 0);
            for n in 1..40 {
                (f.next, f.inflight) = (n * 1000, 1000);
                let packet = sent(&serde_json::json!({"mark": n * 1000, "at_ns": f.now_ns, "bytes": 1000,
                    "retransmission": 0}));
                if slowstart_needs_sent(c.0) == 1 {
                    assert_eq!(slowstart_on_sent(c.0, &raw const f, &raw const packet), 0);
                }
                (f.now_ns, f.unacked, f.delivered, f.inflight) = (n * 40_000_000, n * 1000, n * 1000, 0);
                (f.srtt_ns, f.min_rtt_ns) = (40_000_000, 40_000_000);
                let ack = slowstart_ack {
                    size: size_of::<slowstart_ack>() as u64,
                    upto: n * 1000,
                    bytes: 1000,
                    delivered: 1000,
                    newly_lost: 0,
                    prior_inflight: 1000,
                    rtt_ns: 40_000_000,
                    limit: 0,
                    newest: packet,
                };
                assert_eq!(slowstart_on_ack(c.0, &raw const f, &raw const ack), 0);
                // None may be due.
                let _ = slowstart_on_timer(c.0, &raw const f);
                if n == 20 {
                    f.lost = 1000;
                    let lost = slowstart_on_congestion(c.0, &raw const f, 0, 1, 1000, 1, &raw const packet);
                    let ended = slowstart_on_recovered(c.0, &raw const f, 1000, 0);
                    let idle = slowstart_on_idle(c.0, &raw const f, 1_000_000_000, SLOWSTART_UNKNOWN);
                    assert_eq!((lost, ended, idle), (0, 0, 0), "{startup}");
                }
                assert!(c.state().cwnd >= 1000, "{startup}");
            }
        }
        // Standard slow start ends with the loss.
        let why = c.state().exit_why;
        if startup == "standard" {
            // SAFETY: a static string, if it is not null.
            assert_eq!(unsafe { CStr::from_ptr(why) }, c"loss");
        }
    }
}

#[test]
fn the_list_of_startups_is_the_registry() {
    let mut name = [0 as c_char; 64];
    let mut listed = Vec::new();
    // SAFETY: a buffer with its length.
    while unsafe { slowstart_startup(listed.len(), name.as_mut_ptr(), name.len()) } == 0 {
        // SAFETY: it was ended by a zero.
        listed.push(unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().expect("UTF-8").to_string());
    }
    let known: Vec<&str> = slowstart::registry::all().map(|e| e.name).collect();
    assert_eq!(listed, known);
    for name in listed {
        C::new(&name, "cubic", 10_000).expect("it is listed");
    }
    // SAFETY: null is permitted, and a length of 0.
    unsafe {
        assert_eq!(slowstart_startup(0, ptr::null_mut(), 0), 0);
        assert_eq!(slowstart_startup(usize::MAX, ptr::null_mut(), 0), -1);
    }
}

/// The header names the words that `exit_why` can have.
#[test]
fn the_header_lists_the_exit_words() {
    let header = std::fs::read_to_string(dir().join("include/slowstart.h")).expect("a header");
    for exit in slowstart::step::Exit::ALL {
        assert!(header.contains(&format!("\"{}\"", exit.name())), "{}", exit.name());
    }
}

#[test]
fn bad_arguments_are_refused() {
    let why = |s: &str, a: &str| C::new(s, a, 10_000).err().expect("refused");
    assert!(why("serch", "cubic").contains("found \"serch\""));
    let expected = [
        ("search:threshold=7", "startup: search: threshold: found \"7\", expected a share from 0 to 1"),
        ("delay:low=8", "startup: found \"low\", expected a parameter of delay: "),
        ("jump-start:low=8", "startup: found \"low\", expected no parameter: jump-start has none"),
        ("serch", "startup: found \"serch\", expected a name that slowstart_startup lists"),
        ("a\u{1b}[2J\u{e9}", "startup: found \"a?[2J\u{e9}\", expected"),
    ];
    for (startup, told) in expected {
        assert!(why(startup, "cubic").starts_with(told), "{}", why(startup, "cubic"));
    }
    assert_eq!(
        why("search", "renoo").find("avoidance: found \"renoo\", expected one of cubic, reno"),
        Some(0)
    );
    for iw in [0, SLOWSTART_MOST_WINDOW + 1, u64::MAX] {
        let told = C::new("search", "cubic", iw).err().expect("refused");
        assert_eq!(told, format!("iw: found {iw}, expected bytes from 1 to 1099511627776"));
    }
    let c = C::new("search", "cubic", 10_000).expect("known");
    let mut f = facts(&serde_json::Map::new());
    (f.mss, f.now_ns) = (0, 0);
    // SAFETY: null pointers and structures without sense are what is tested.
    unsafe {
        assert_eq!(slowstart_on_timer(c.0, &raw const f), -1, "no mss");
        assert_eq!(slowstart_on_timer(c.0, ptr::null()), -1);
        assert_eq!(slowstart_on_timer(ptr::null_mut(), &raw const f), -1);
        f.mss = 1000;
        f.iw = 0;
        assert_eq!(slowstart_on_timer(c.0, &raw const f), -1, "no initial window");
        (f.iw, f.min_window) = (10_000, u64::MAX);
        assert_eq!(slowstart_on_timer(c.0, &raw const f), -1, "a least window that no window can have");
        f.min_window = 0;
        for size in [0, 4, 8, size_of::<slowstart_facts>() as u64 - 1] {
            f.size = size;
            assert_eq!(slowstart_on_timer(c.0, &raw const f), -1, "a size of {size}");
        }
        assert_eq!(slowstart_get_state(c.0, ptr::null_mut()), -1);
        slowstart_free(ptr::null_mut());
    }
}
