//! The third of three: `tcp_cubic.c` of a kernel tree with the patch of `contrib/linux`, compiled as it is, decides on each
//! acknowledgement that the object `hystart:pause=2` got.

use slowstart_linux::{ExitReason, Facts, Kind};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;

/// The kernel's headers that `tcp_cubic.c` names.
const HEADERS: [&str; 6] =
    ["linux/mm.h", "linux/btf.h", "linux/btf_ids.h", "linux/module.h", "linux/math64.h", "net/tcp.h"];

/// What it decided on an acknowledgement: the window, the threshold, and which tests ended slow start.
type Decision = (u32, u32, bool, bool);

/// A process that runs the patched `tcp_cubic.c`. It reads the events of connections and writes its decisions.
pub(crate) struct Patched {
    child: Child,
    events: BufWriter<ChildStdin>,
    decisions: JoinHandle<Vec<Decision>>,
    /// Which flow of the program is which connection, until they may part for another reason than the rule.
    flows: BTreeMap<u64, u32>,
    begun: u32,
    /// What the object did on each acknowledgement that the program was told of.
    asked: Vec<Facts>,
}

/// The kernel tree of the newest `make uml KERNEL=6.12`, or of the kernel that `SLOWSTART_UML` names.
fn tree() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || Some(set("HOME")?.join(".cache"));
    let cache =
        || set("SLOWSTART_CACHE").or_else(|| Some(set("XDG_CACHE_HOME").or_else(home)?.join("slowstart")));
    let beside = set("SLOWSTART_UML")
        .and_then(|kernel| Some(kernel.canonicalize().ok()?.parent()?.parent()?.to_path_buf()));
    let folders = [beside, cache().map(|c| c.join("uml"))];
    let trees = folders.into_iter().flatten().map(|f| f.join("linux-source-6.12"));
    trees.into_iter().find(|t| t.join("net/ipv4/tcp_cubic.c").is_file())
}

/// Runs a command; returns what it says if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let said = || String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    if out.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", said())) }
}

/// Compiles the program in a folder.
fn build(tree: &Path, folder: &Path) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| e.to_string();
    let (net, headers) = (folder.join("net/ipv4"), folder.join("include"));
    fs::create_dir_all(&net).map_err(failed)?;
    fs::copy(tree.join("net/ipv4/tcp_cubic.c"), net.join("tcp_cubic.c")).map_err(failed)?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let patch = here.join("../../contrib/linux/0001-tcp_cubic-skip-HyStart-delay-after-a-pause.patch");
    run(Command::new("patch").args(["-s", "-p1", "-d"]).arg(folder).arg("-i").arg(patch))?;
    for name in HEADERS {
        let header = headers.join(name);
        fs::create_dir_all(header.parent().unwrap_or(&headers)).map_err(failed)?;
        fs::write(header, "").map_err(failed)?;
    }
    let program = folder.join("patched");
    let cc = &mut Command::new("cc");
    cc.args(["-O2", "-w", "-I"]).arg(&headers).arg("-I").arg(&net);
    run(cc.arg("-o").arg(&program).arg(here.join("tests/parity/patched.c")))?;
    Ok(program)
}

impl Patched {
    /// Starts the program; says why the comparison is skipped if there is none.
    pub(crate) fn start() -> Option<Self> {
        let skipped = |why: &str| println!("skipped: parity with the patched tcp_cubic.c ({why})");
        let Some(tree) = tree() else {
            skipped("no kernel tree: make uml KERNEL=6.12");
            return None;
        };
        if Command::new("patch").arg("--version").output().is_err() {
            skipped("no program patch");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("patched-{}", std::process::id()));
        let program = build(&tree, &folder).unwrap_or_else(|e| panic!("{e}"));
        let started = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let _ = fs::remove_dir_all(&folder);
        let mut child = started.expect("it was just compiled");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let decisions = std::thread::spawn(move || {
            let decision = |line: String| {
                let n: Vec<u32> = line.split(' ').map(|n| n.parse().expect(&line)).collect();
                (n[0], n[1], n[2] == 1, n[3] == 1)
            };
            answers.lines().map(|l| decision(l.expect("text"))).collect()
        });
        let events = BufWriter::new(child.stdin.take().expect("piped"));
        Some(Self { child, events, decisions, flows: BTreeMap::new(), begun: 0, asked: Vec::new() })
    }

    /// Tells it of an event of the object. It is asked until slow start ends, or a timeout or a spurious loss: the kernel's
    /// own then has seen acknowledgements for which no object is called. After an idle time the object, as the Rust code,
    /// takes the RTT of the handshake into its minimum, which the kernel does not.
    pub(crate) fn take(&mut self, f: &Facts) {
        let now = f.now_ns / 1000;
        match f.kind {
            Kind::Begin if f.asked => {
                self.begun += 1;
                self.flows.insert(f.sk, self.begun);
                writeln!(self.events, "b {} {now} {}", self.begun, f.next).expect("it runs");
            }
            Kind::Ack => {
                let Some(flow) = self.flows.get(&f.sk).filter(|_| f.cwnd < f.ssthresh) else {
                    self.flows.remove(&f.sk);
                    return;
                };
                writeln!(
                    self.events,
                    "a {flow} {now} {} {} {} {} {} {} {} {} {} {}",
                    f.acked_bytes,
                    f.next,
                    f.cwnd,
                    f.ssthresh,
                    f.rtt_us,
                    f.acked,
                    f.pacing_rate,
                    f.gso_max,
                    u32::from(f.paced),
                    u32::from(f.limited)
                )
                .expect("it runs");
                self.asked.push(*f);
                if f.why != ExitReason::None {
                    self.flows.remove(&f.sk);
                }
            }
            Kind::Loss | Kind::Timeout | Kind::Undo | Kind::Idle | Kind::End => {
                self.flows.remove(&f.sk);
            }
            _ => {}
        }
    }

    /// Compares what it decided with what the object did; returns the messages of those that differ, and prints the counts.
    pub(crate) fn differences(self) -> Vec<String> {
        let Self { mut child, events, decisions, asked, .. } = self;
        drop(events.into_inner().expect("it reads to the end"));
        let decisions = decisions.join().expect("no panic");
        assert!(child.wait().expect("its end").success(), "the program with the patched tcp_cubic.c failed");
        assert_eq!(decisions.len(), asked.len(), "one decision for each acknowledgement");
        let (mut trains, mut delays, mut differ) = (0, 0, Vec::new());
        for (f, (cwnd, ssthresh, train, delay)) in asked.iter().zip(&decisions) {
            let why = match (train, delay) {
                (true, _) => ExitReason::AckTrain,
                (false, true) => ExitReason::Delay,
                (false, false) => ExitReason::None,
            };
            trains += u32::from(*train);
            delays += u32::from(*delay && !train);
            // Beyond the end CUBIC grows it, by the kernel's clock ticks.
            let same_window = f.why != ExitReason::None || *cwnd == f.cwnd_after;
            if why != f.why || *ssthresh != f.ssthresh_after || !same_window {
                differ.push(format!("the patched C has {why:?}, cwnd {cwnd}, ssthresh {ssthresh}: {f:?}"));
            }
        }
        println!(
            "patched tcp_cubic.c: {} ACKs of {} connections, {trains} exits by train, {delays} by delay; {} differ",
            asked.len(),
            self.begun,
            differ.len()
        );
        differ
    }
}
