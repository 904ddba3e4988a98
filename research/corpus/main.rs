//! Makes a corpus of connections of the running kernel, with the kernel's own account of each:
//! `cargo run --release -p slowstart-research --features kernel --bin corpus -- --seed 1 --runs 1000 --jobs 12 --out DIR`
//! (root).
//!
//! For case N of the seed it writes `N-sender.pcap`, `N-receiver.pcap` (tcpdump at both ends of an emulated
//! path), `N-middle.pcap` (what a point between them sees), `N.probes.csv` (the sender's state at each ACK,
//! from the tracepoint `tcp:tcp_probe`: time in microseconds since 1970, `snd_una`, `snd_nxt`, `snd_cwnd`,
//! `ssthresh`, `snd_wnd`, `srtt`), and a line of `index.jsonl`. Cases with an even number are for
//! development, those with an odd number are only reported. What a case is depends on the seed alone; when
//! its packets are sent depends on the machine. `research/score` compares `slowstart replay`
//! with it. With `--senders` the cases are bulk transfers over a hundred paths, whose controls are drawn evenly from all of this
//! project and three of the kernel: they show which startups are named. With `--cases FILE` they are those of the file, which
//! `certain FROM TO cases` (`crates/replay/examples`) prints: kernels under the conditions of simulated recordings.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

mod case;
mod probe;
mod rewrite;

use case::{CONTROLS, Case, Kind};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::sockopt::{Linger, RcvBuf, SndBuf, TcpCongestion};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt, socket,
};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use probe::{PORTS, Trace};
use slowstart_linux::emulate::{CLIENT, Emulation, SERVER};
use slowstart_linux::{Held, Spec, TABLE, load_as};
use slowstart_sim::path::PathSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Controls of the kernel itself.
const STOCK: [&str; 3] = ["cubic", "reno", "bbr"];

struct Options {
    seed: u64,
    first: u64,
    runs: u64,
    jobs: u64,
    senders: bool,
    cases: Option<PathBuf>,
    out: PathBuf,
}

fn options() -> Result<Options> {
    let mut o = Options {
        seed: 1,
        first: 0,
        runs: 1000,
        jobs: 8,
        senders: false,
        cases: None,
        out: PathBuf::from("corpus"),
    };
    let mut words = std::env::args().skip(1);
    while let Some(key) = words.next() {
        if key == "--senders" {
            o.senders = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{key}: found no value"))?;
        match key.as_str() {
            "--seed" => o.seed = value.parse()?,
            "--first" => o.first = value.parse()?,
            "--runs" => o.runs = value.parse()?,
            "--jobs" => o.jobs = value.parse()?,
            "--cases" => o.cases = Some(PathBuf::from(value)),
            "--out" => o.out = PathBuf::from(value),
            _ => {
                return Err(format!(
                    "{key}: expected --seed, --first, --runs, --jobs, --senders, --cases or --out"
                )
                .into());
            }
        }
    }
    Ok(o)
}

fn micros(clock: ClockId) -> Result<i64> {
    let t = clock_gettime(clock)?;
    Ok(t.tv_sec() * 1_000_000 + t.tv_nsec() / 1000)
}

/// Starts tcpdump in a namespace and waits until it listens.
fn tcpdump(ns: &str, file: &Path) -> Result<Child> {
    let mut command = Command::new("tcpdump");
    command.args("-Z root -i path0 -s 96 -B 4096 --immediate-mode -w".split(' ')).arg(file).arg("tcp");
    let mut child = Emulation::spawn(ns, command.stderr(Stdio::piped()))?;
    let mut stderr = BufReader::new(child.stderr.take().ok_or("tcpdump has no standard error")?);
    let mut said = String::new();
    while !said.contains("listening on") {
        if stderr.read_line(&mut said)? == 0 {
            return Err(format!("tcpdump ended: {said}").into());
        }
    }
    thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    Ok(child)
}

fn configure(e: &Emulation, case: &Case) -> Result<()> {
    for ns in [e.server(), e.client()] {
        let settings = &case.settings;
        Emulation::in_namespace(ns, || {
            for (key, value) in settings {
                let _ = fs::write(format!("/proc/sys/net/ipv4/{key}"), value);
            }
            Ok(())
        })?;
        if let Some(n) = case.initial_window {
            let n = n.to_string();
            let args = ["-n", ns, "route", "change", "10.77.0.0/24", "dev", "path0", "initcwnd", &n];
            Command::new("ip").args(args).output()?;
        }
    }
    Ok(())
}

/// A socket in a namespace with the buffers of an end.
fn open(ns: &str, receive: Option<usize>, send: Option<usize>, control: Option<&str>) -> Result<OwnedFd> {
    let made = Emulation::in_namespace(ns, || {
        Ok(socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None))
    })??;
    if let Some(bytes) = receive {
        setsockopt(&made, RcvBuf, &bytes)?;
    }
    if let Some(bytes) = send {
        setsockopt(&made, SndBuf, &bytes)?;
    }
    if let Some(name) = control {
        setsockopt(&made, TcpCongestion, &OsString::from(name))?;
    }
    Ok(made)
}

fn send(stream: &mut TcpStream, case: &Case, over: &AtomicBool) {
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let data = vec![7; 1 << 16];
    for (bytes, pause) in &case.blocks {
        let mut left = *bytes;
        while left > 0 && !over.load(Ordering::Relaxed) {
            match stream.write(&data[..left.min(1 << 16) as usize]) {
                Ok(n) => left -= n as u64,
                Err(e)
                    if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
        }
        thread::sleep(Duration::from_millis(*pause));
    }
}

fn receive(stream: &mut TcpStream, case: &Case, over: &AtomicBool) -> u64 {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let all: u64 = case.blocks.iter().map(|b| b.0).sum();
    let (mut got, mut buffer, mut stop) = (0, vec![0; 1 << 16], case.stop_reading);
    while got < all && !over.load(Ordering::Relaxed) {
        if let Some((_, pause)) = stop.take_if(|s| got >= s.0) {
            thread::sleep(Duration::from_millis(pause));
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => got += n as u64,
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    got
}

/// Runs a case; returns its line of the index.
fn run(case: &Case, controls: &BTreeMap<&str, String>, trace: &Trace, out: &Path) -> Result<String> {
    let spec = PathSpec::load(&case.path, None).map_err(|e| format!("{}: {e}", case.path))?;
    let e = Emulation::start(&spec, case.seed, false)?;
    configure(&e, case)?;
    let upload = case.kind == Kind::Upload;
    let file = |end: &str| out.join(format!("{:04}-{end}.pcap", case.number));
    let mut dumps = [tcpdump(e.server(), &file("sender"))?, tcpdump(e.client(), &file("receiver"))?];
    let port = PORTS.start + (case.number % u64::from(PORTS.end - PORTS.start)) as u16;
    let control = controls.get(&*case.control).map(String::as_str);
    let of = |sends: bool| {
        if sends { (None, case.send_buffer, control) } else { (case.receive_buffer, None, None) }
    };
    // Data takes the link of the path in either case: for an upload the end that sends over it calls the
    // other.
    let (listens, calls, ip) =
        if upload { (e.client(), e.server(), CLIENT) } else { (e.server(), e.client(), SERVER) };
    let (receive_buffer, send_buffer, its) = of(!upload);
    let listener = open(listens, receive_buffer, send_buffer, its)?;
    let address = SocketAddrV4::new(ip.parse()?, port);
    bind(listener.as_raw_fd(), &SockaddrIn::from(address))?;
    listen(&listener, Backlog::new(1)?)?;
    let listener = TcpListener::from(listener);
    let (receive_buffer, send_buffer, its) = of(upload);
    let client = open(calls, receive_buffer, send_buffer, its)?;
    let offset = micros(ClockId::CLOCK_REALTIME)? - micros(ClockId::CLOCK_MONOTONIC)?;
    let over = AtomicBool::new(false);
    let connects = Instant::now();
    let mut took = Duration::ZERO;
    let got = thread::scope(|s| -> Result<u64> {
        let (over, listener) = (&over, &listener);
        let timer = s.spawn(move || {
            let mut waited = Duration::ZERO;
            while waited < case.longest && !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(50));
                waited += Duration::from_millis(50);
            }
            over.store(true, Ordering::Relaxed);
        });
        let serving = s.spawn(move || -> Result<(TcpStream, u64)> {
            let mut server = listener.accept()?.0;
            let mut got = 0;
            if upload {
                got = receive(&mut server, case, over);
            } else {
                send(&mut server, case, over);
                // Waits until the client has everything and closes.
                let _ = server.set_read_timeout(Some(case.longest));
                let _ = server.read(&mut [0]);
            }
            Ok((server, got))
        });
        let connected = connect(client.as_raw_fd(), &SockaddrIn::from(address));
        let mut client = TcpStream::from(client);
        let mut got = 0;
        if connected.is_ok() {
            if upload {
                send(&mut client, case, over);
                let _ = client.shutdown(Shutdown::Write);
            } else {
                got = receive(&mut client, case, over);
                let _ = client.shutdown(Shutdown::Both);
            }
        }
        let (server, received) = serving.join().map_err(|_| "the server failed")??;
        took = connects.elapsed();
        over.store(true, Ordering::Relaxed);
        let _ = timer.join();
        thread::sleep(Duration::from_millis(300));
        // Closes with a reset, so that no socket stays behind when the path is removed.
        for end in [&server, &client] {
            let _ = setsockopt(end, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        }
        connected?;
        Ok(got + received)
    })?;
    for dump in &mut dumps {
        kill(Pid::from_raw(dump.id().cast_signed()), Signal::SIGINT)?;
        dump.wait()?;
    }
    let report = e.stop()?;
    let all = trace.take(port, got);
    let mut text = String::from("us,una,next,cwnd,ssthresh,window,srtt\n");
    for p in &all {
        let us = p.us.cast_signed() + offset;
        writeln!(text, "{us},{},{},{},{},{},{}", p.una, p.next, p.cwnd, p.ssthresh, p.window, p.srtt)?;
    }
    fs::write(out.join(format!("{:04}.probes.csv", case.number)), text)?;
    rework(case, &file("sender"), &file("receiver"), &file("middle"))?;
    let mut line = case.describe();
    line["received"] = got.into();
    line["seconds"] = took.as_secs_f64().into();
    line["probes"] = all.len().into();
    line["late"] = (!report.valid()).into();
    Ok(line.to_string())
}

/// Makes the capture between the ends, and the super-segments of offloads.
fn rework(case: &Case, sender: &Path, receiver: &Path, middle: &Path) -> Result<()> {
    let (at_sender, at_receiver) = (fs::read(sender)?, fs::read(receiver)?);
    let mut frames = rewrite::read(&at_sender);
    // A third of the way by the handshake's round trip.
    if let [a, b, c, ..] = &frames[..] {
        let rtt = if case.kind == Kind::Upload { b.ns - a.ns } else { c.ns - b.ns };
        let away = rewrite::away(&frames, rtt / 6);
        fs::write(middle, rewrite::write(&at_sender, &away))?;
    }
    if case.offload {
        frames = rewrite::join(&frames, 60_000, false);
        fs::write(sender, rewrite::write(&at_sender, &frames))?;
        let frames = rewrite::join(&rewrite::read(&at_receiver), 400_000, true);
        fs::write(receiver, rewrite::write(&at_receiver, &frames))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let o = options()?;
    fs::create_dir_all(&o.out)?;
    let mut held: Vec<Held> = Vec::new();
    let mut controls: BTreeMap<&str, String> = BTreeMap::new();
    let names: Vec<&str> = if o.senders {
        STOCK
            .into_iter()
            .chain(TABLE.iter().map(|c| c.startup))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    } else {
        CONTROLS.iter().map(|c| c.0).collect()
    };
    for (n, name) in names.iter().enumerate() {
        let name_in_kernel = if STOCK.contains(name) {
            (*name).to_string()
        } else {
            let loaded = load_as(&Spec::read(name, "cubic")?, format!("cp_{:x}_{n:x}", std::process::id()))?;
            held.push(loaded);
            held[held.len() - 1].name.clone()
        };
        controls.insert(name, name_in_kernel);
    }
    let drawn: Vec<String> = names.iter().map(ToString::to_string).collect();
    let trace = Trace::start()?;
    let index = Mutex::new(File::options().create(true).append(true).open(o.out.join("index.jsonl"))?);
    let given = match &o.cases {
        Some(file) => {
            let text = fs::read_to_string(file)?;
            let read = |(line, n)| {
                Case::read(n, line, &o.out)
                    .map_err(|e| format!("{}: line {}: {e}", file.display(), n + 1).into())
            };
            let cases = text.lines().zip(0..).map(read);
            Some(cases.collect::<Result<Vec<Case>>>()?)
        }
        None => None,
    };
    let last = given.as_ref().map_or(o.first + o.runs, |g| g.len() as u64);
    let (over, next) = (AtomicBool::new(false), AtomicU64::new(o.first));
    thread::scope(|s| -> Result<()> {
        let follower = s.spawn(|| trace.follow(&over));
        let worker = || {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= last {
                    return;
                }
                let case = match &given {
                    Some(given) => given[n as usize].clone(),
                    None if o.senders => Case::draw_sender(o.seed, n, &drawn),
                    None => Case::draw(o.seed, n),
                };
                match run(&case, &controls, &trace, &o.out) {
                    Ok(line) => {
                        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
                        let _ = writeln!(index, "{line}");
                    }
                    Err(e) => eprintln!("case {n}: {e}"),
                }
            }
        };
        let workers: Vec<_> = (0..o.jobs).map(|_| s.spawn(worker)).collect();
        for w in workers {
            let _ = w.join();
        }
        over.store(true, Ordering::Relaxed);
        follower.join().map_err(|_| "the reader of the trace failed")??;
        Ok(())
    })?;
    println!("{} lines of the trace were lost", trace.lost());
    Ok(())
}
