//! Two network namespaces joined by a veth, and TCP connections between them.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![allow(dead_code, reason = "no test uses all of it")]

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{getsockopt, setsockopt, sockopt::TcpCongestion};
use slowstart_linux::{Check, Held, Verb, Verdict};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

static CHECK: LazyLock<Check> = LazyLock::new(Check::tried);

/// True if the commands that a test needs work here; otherwise prints the kernel's reasons, one a line.
pub(crate) fn works(needs: &[Verb]) -> bool {
    let reasons = needs.iter().flat_map(|verb| match CHECK.verdict(*verb) {
        Verdict::Fails(why) => why,
        _ => Vec::new(),
    });
    let reasons: BTreeSet<String> = reasons.collect();
    for reason in &reasons {
        println!("skipped: kernel tests that need {reason}");
    }
    reasons.is_empty()
}

/// True if there are TUN devices.
pub(crate) fn has_tun() -> bool {
    let there = std::path::Path::new("/dev/net/tun").exists();
    if !there {
        println!("skipped: kernel tests that need /dev/net/tun");
    }
    there
}

/// Runs `ip`, which must succeed.
pub(crate) fn ip(line: &str) {
    let done = Command::new("ip").args(line.split(' ')).output().expect("iproute2 is installed");
    assert!(done.status.success(), "ip {line}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Mounts a BPF filesystem that only this thread and its children see.
pub(crate) fn own_bpffs() {
    unshare(CloneFlags::CLONE_NEWNS).expect("root may");
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("root may");
    mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), none).expect("the kernel has bpffs");
}

/// Removes the BPF filesystem for this thread and its children.
pub(crate) fn no_bpffs() {
    own_bpffs();
    nix::mount::umount2("/sys/fs/bpf", nix::mount::MntFlags::MNT_DETACH).expect("just mounted");
    while nix::mount::umount2("/sys/fs/bpf", nix::mount::MntFlags::MNT_DETACH).is_ok() {}
}

/// Two network namespaces, deleted on drop.
pub(crate) struct Net {
    pub(crate) sender: String,
    pub(crate) receiver: String,
}

impl Net {
    pub(crate) fn veth(name: &str) -> Self {
        let id = std::process::id();
        let net = Self { sender: format!("ss-{id}-{name}-a"), receiver: format!("ss-{id}-{name}-b") };
        ip(&format!("netns add {}", net.sender));
        ip(&format!("netns add {}", net.receiver));
        ip(&format!("-n {} link add v0 type veth peer name v0 netns {}", net.sender, net.receiver));
        for (ns, n) in [(&net.sender, 1), (&net.receiver, 2)] {
            ip(&format!("-n {ns} addr add 10.99.0.{n}/24 dev v0"));
            ip(&format!("-n {ns} addr add fd99::{n}/64 dev v0 nodad"));
            ip(&format!("-n {ns} link set v0 up"));
            ip(&format!("-n {ns} link set lo up"));
        }
        net
    }

    /// Runs a closure in a namespace, on a thread that then ends.
    pub(crate) fn within<T: Send>(ns: &str, what: impl FnOnce() -> T + Send) -> T {
        thread::scope(|s| {
            s.spawn(|| {
                let file = File::open(format!("/run/netns/{ns}")).expect("the namespace exists");
                setns(file, CloneFlags::CLONE_NEWNET).expect("root may enter it");
                what()
            })
            .join()
            .expect("no panic")
        })
    }

    /// Runs a closure in a namespace, on this thread.
    pub(crate) fn here<T>(ns: &str, what: impl FnOnce() -> T) -> T {
        let before = File::open("/proc/thread-self/ns/net").expect("it has one");
        setns(
            File::open(format!("/run/netns/{ns}")).expect("the namespace exists"),
            CloneFlags::CLONE_NEWNET,
        )
        .expect("root may enter it");
        let result = what();
        setns(before, CloneFlags::CLONE_NEWNET).expect("root may return");
        result
    }

    /// Lists the sockets of either end that the kernel has not freed, for messages.
    pub(crate) fn sockets(&self) -> String {
        let of = |ns: &str| {
            let done = Command::new("ip")
                .args(["netns", "exec", ns, "ss", "-tanoiH", "exclude", "time-wait"])
                .output();
            done.map_or_else(|e| e.to_string(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
        };
        format!("{}:\n{}{}:\n{}", self.sender, of(&self.sender), self.receiver, of(&self.receiver))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for ns in [&self.sender, &self.receiver] {
            let _ = Command::new("ip").args(["netns", "del", ns]).output();
        }
    }
}

/// Both ends of a connection.
pub(crate) struct Pair {
    pub(crate) sender: TcpStream,
    receiver: TcpStream,
}

impl Pair {
    /// Sends `bytes` bytes and waits until they have arrived.
    pub(crate) fn send(&mut self, bytes: usize) {
        let (sender, receiver) = (&mut self.sender, &mut self.receiver);
        thread::scope(|s| {
            s.spawn(move || sender.write_all(&vec![7; bytes]).expect("the connection lives"));
            let mut buffer = vec![0; 1 << 16];
            let mut left = bytes;
            while left > 0 {
                let n = receiver.read(&mut buffer).expect("the connection lives");
                assert!(n > 0, "closed with {left} bytes to come");
                left -= n;
            }
        });
    }

    pub(crate) fn control(&self) -> String {
        getsockopt(&self.sender, TcpCongestion)
            .expect("a TCP socket")
            .to_string_lossy()
            .trim_end_matches('\0')
            .to_string()
    }
}

/// Opens a connection whose sender uses this congestion control.
pub(crate) fn transfer(net: &Net, control: Option<&str>) -> Pair {
    transfer_to(net, control, "10.99.0.2")
}

/// Like [`transfer`], to one of the receiver's addresses.
pub(crate) fn transfer_to(net: &Net, control: Option<&str>, address: &str) -> Pair {
    let listener = Net::within(&net.receiver, || TcpListener::bind("[::]:0")).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let address = (address, port);
    let sender = Net::within(&net.sender, || TcpStream::connect(address)).expect("connects");
    if let Some(name) = control {
        setsockopt(&sender, TcpCongestion, &OsString::from(name)).expect("the control is loaded");
    }
    let (receiver, _) = listener.accept().expect("connected");
    for s in [&sender, &receiver] {
        s.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        s.set_write_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    }
    Pair { sender, receiver }
}

/// Opens `n` connections.
pub(crate) fn many(net: &Net, control: &str, n: usize) -> Vec<Pair> {
    let listener = Net::within(&net.receiver, || TcpListener::bind("10.99.0.2:0")).expect("a port");
    let address = listener.local_addr().expect("bound");
    Net::within(&net.sender, || {
        (0..n)
            .map(|_| {
                let sender = TcpStream::connect(address).expect("connects");
                setsockopt(&sender, TcpCongestion, &OsString::from(control)).expect("the control is loaded");
                Pair { sender, receiver: listener.accept().expect("connected").0 }
            })
            .collect()
    })
}

/// Sends bytes under a congestion control and closes. Returns the name of the control that the connection
/// used.
pub(crate) fn with_control(net: &Net, control: &str, bytes: usize) -> String {
    let mut pair = transfer(net, Some(control));
    pair.send(bytes);
    pair.control()
}

/// Waits up to five seconds for a figure to become `wanted`, and returns it.
pub(crate) fn settles<T: PartialEq + Copy>(mut figure: impl FnMut() -> T, wanted: T) -> T {
    for _ in 0..500 {
        if figure() == wanted {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    figure()
}

/// Waits until every connection of a control has ended and the kernel has told the control so: a closed socket
/// cannot be found any more before the control's last hook has run. Of some connections the kernel does not
/// report the end (docs/evidence/kernel.md); then this takes five seconds.
pub(crate) fn ended(held: &Held) {
    settles(|| held.counts().expect("counts").open, Some(0));
    settles(|| held.counts().expect("counts").at_most_open(), 0);
}

/// A cgroup, removed on drop.
pub(crate) struct Cgroup(pub(crate) PathBuf);

impl Cgroup {
    pub(crate) fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let root = mounts.lines().find_map(|l| {
            let mut parts = l.split(' ');
            let (place, kind) = (parts.nth(1)?, parts.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(place))
        })?;
        let dir = root.join(format!("slowstart-{}-{name}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self(dir))
    }

    /// Connects from within the cgroup after requesting Reno, and returns the control of the connection. A
    /// child process does this: it runs the test [`connects_in_a_cgroup`] of this program.
    pub(crate) fn run_inside(&self, net: &Net) -> String {
        let listener = Net::within(&net.receiver, || TcpListener::bind("10.99.0.2:0")).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let mut child = Net::within(&net.sender, || {
            Command::new(std::env::current_exe().expect("known"))
                .args(["--exact", "common::connects_in_a_cgroup", "--nocapture"])
                .env("SLOWSTART_CONNECT", format!("{}|10.99.0.2:{port}", self.0.display()))
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("starts")
        });
        let mut said = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        child.wait().expect("ends");
        said.lines()
            .find_map(|l| l.split_once("uses "))
            .map_or_else(|| said.clone(), |(_, name)| name.to_string())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The child process of [`Cgroup::run_inside`].
#[test]
fn connects_in_a_cgroup() {
    let Ok(request) = std::env::var("SLOWSTART_CONNECT") else { return };
    let (cgroup, address) = request.split_once('|').expect("both");
    fs::write(format!("{cgroup}/cgroup.procs"), std::process::id().to_string())
        .expect("root may move itself");
    let socket = connect_asking_for_reno(address);
    let used = getsockopt(&socket, TcpCongestion).expect("a TCP socket");
    println!("uses {}", used.to_string_lossy().trim_end_matches('\0'));
}

/// Requests Reno before it connects.
fn connect_asking_for_reno(address: &str) -> std::os::fd::OwnedFd {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
    use std::os::fd::AsRawFd;
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).expect("a socket");
    setsockopt(&fd, TcpCongestion, &OsString::from("reno")).expect("reno is there");
    let address: std::net::SocketAddrV4 = address.parse().expect("an address");
    connect(fd.as_raw_fd(), &SockaddrIn::from(address)).expect("connects");
    fd
}
