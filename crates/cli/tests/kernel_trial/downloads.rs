//! Downloads over an emulated path: this program is also its server and its client.

use super::running::Cgroup;
use super::{slowstart, text};
use nix::sys::socket::{getsockopt, sockopt::TcpCongestion};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// One download, as its two ends saw it.
#[derive(Debug)]
pub(crate) struct Download {
    /// The server's congestion control.
    pub(crate) control: String,
    /// Time from the request to byte 100,000, and to the last byte.
    pub(crate) time_100kb_s: f64,
    pub(crate) time_last_s: f64,
}

/// The command that runs a test of this file alone: [`serves`] or [`downloads`].
pub(crate) fn role(name: &str) -> String {
    let program = std::env::current_exe().expect("known");
    format!("{} --exact downloads::{name} --nocapture", program.display())
}

/// Downloads `n` times this number of bytes over an emulated path from a server in the cgroup, `parallel` at
/// a time, each with a new connection.
pub(crate) fn download(
    cgroup: &Cgroup,
    path: &str,
    n: usize,
    parallel: usize,
    bytes: usize,
) -> Vec<Download> {
    let done =
        slowstart(&["emulate", path, "--serve", &role("serves"), "--", "sh", "-c", &role("downloads")])
            // The server has a /sys of its own.
            .env("SLOWSTART_SERVE_IN", format!("/proc/{}/root{}", std::process::id(), cgroup.0.display()))
            .env("SLOWSTART_DOWNLOAD", format!("{n} {parallel} {bytes}"))
            .output()
            .expect("it runs");
    let said = text(&done.stdout);
    let all: Vec<Download> = said
        .lines()
        .filter_map(|l| {
            let (_, row) = l.split_once("downloaded ")?;
            let [control, first, last] = row.split(' ').collect::<Vec<_>>()[..] else { return None };
            let time = |t: &str| t.parse().expect("a number");
            Some(Download {
                control: control.to_string(),
                time_100kb_s: time(first),
                time_last_s: time(last),
            })
        })
        .collect();
    assert_eq!(all.len(), n, "{said}\n{}", text(&done.stderr));
    all
}

/// How many downloads used each control.
pub(crate) fn by_control(all: &[Download]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for d in all {
        *counts.entry(d.control.as_str()).or_default() += 1;
    }
    counts
}

fn control_of(socket: &TcpStream) -> String {
    let name = getsockopt(socket, TcpCongestion).expect("a TCP socket");
    name.to_string_lossy().trim_end_matches('\0').to_string()
}

/// A server: the first line of a request is the number of bytes to send. They begin with the name of the
/// control.
#[test]
fn serves() {
    let Ok(cgroup) = std::env::var("SLOWSTART_SERVE_IN") else { return };
    if !cgroup.is_empty() {
        fs::write(format!("{cgroup}/cgroup.procs"), std::process::id().to_string()).expect("root may");
    }
    let listener = TcpListener::bind("10.77.0.1:8000").expect("a port");
    for socket in listener.incoming() {
        let mut socket = socket.expect("connected");
        thread::spawn(move || {
            let mut request = String::new();
            BufReader::new(&socket).read_line(&mut request).expect("text");
            let bytes: usize = request.trim().parse().expect("a number");
            let mut page = vec![0; bytes];
            let control = control_of(&socket);
            page[..control.len()].copy_from_slice(control.as_bytes());
            let _ = socket.write_all(&page);
        });
    }
}

/// Its client: prints a line for each download.
#[test]
fn downloads() {
    let Ok(what) = std::env::var("SLOWSTART_DOWNLOAD") else { return };
    let numbers: Vec<usize> = what.split(' ').map(|n| n.parse().expect("a number")).collect();
    let [n, parallel, bytes] = numbers[..] else { panic!("{what}") };
    let one = || {
        let mut socket = TcpStream::connect("10.77.0.1:8000").expect("the server listens");
        let begin = Instant::now();
        socket.write_all(format!("{bytes}\n").as_bytes()).expect("the connection lives");
        let (mut page, mut first) = (Vec::new(), None);
        let mut buffer = vec![0; 1 << 16];
        while page.len() < bytes {
            let n = socket.read(&mut buffer).expect("the connection lives");
            assert!(n > 0, "closed after {} bytes", page.len());
            page.extend(&buffer[..n]);
            if page.len() >= 100_000 {
                first.get_or_insert(begin.elapsed());
            }
        }
        let control = CStr::from_bytes_until_nul(&page).expect("ended").to_str().expect("text");
        let (first, last) = (first.unwrap_or_default(), begin.elapsed());
        // Its end, which the server sends with the last data.
        while socket.read(&mut buffer).is_ok_and(|n| n > 0) {}
        println!("downloaded {control} {} {}", first.as_secs_f64(), last.as_secs_f64());
    };
    thread::scope(|s| {
        for worker in 0..parallel {
            s.spawn(move || (worker..n).step_by(parallel).for_each(|_| one()));
        }
    });
    // The last ACK is still on its way, and the path ends with this program.
    thread::sleep(Duration::from_millis(500));
}
