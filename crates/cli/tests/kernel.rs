//! Tests of `slowstart kernel` as a command. Each names the commands that it needs and prints `skipped` with
//! the kernel's reason where one of them does not work.
#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![cfg(feature = "kernel")]

mod works;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use nix::unistd::Pid;
use slowstart_linux::Verb;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use works::works;

fn slowstart(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.args(args).env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[allow(clippy::disallowed_methods, reason = "the server runs on the real clock")]
fn now() -> Instant {
    Instant::now()
}

/// Reads the counters once; the time it took, or why it failed.
fn scrape(address: SocketAddr) -> Result<Duration, String> {
    let (begin, patience) = (now(), Duration::from_secs(4));
    let mut s = TcpStream::connect_timeout(&address, patience).map_err(|e| format!("connect: {e}"))?;
    s.set_read_timeout(Some(patience)).expect("a timeout");
    s.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        .map_err(|e| e.to_string())?;
    let mut answer = String::new();
    s.read_to_string(&mut answer).map_err(|e| format!("read: {e}"))?;
    let whole = answer.starts_with("HTTP/1.1 200") && answer.contains("slowstart_connections");
    if whole { Ok(begin.elapsed()) } else { Err(answer) }
}

/// Asserts that one of three scrapes is answered within a second: another process may delay one of them.
fn answers(address: SocketAddr, when: &str) {
    let times: Vec<_> = (0..3).map(|_| scrape(address)).collect();
    assert!(times.iter().flatten().any(|t| *t < Duration::from_secs(1)), "{when}: {times:?}");
}

/// Resident memory of a process, in bytes.
fn memory(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let kilobytes = status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next());
    kilobytes.and_then(|k| k.parse::<u64>().ok()).expect("a figure") * 1024
}

/// Ends the child if the test fails.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn scrapes_are_answered_beside_hostile_clients() {
    if !works(&[Verb::Watch]) {
        return;
    }
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let seconds = 25;
    let args = ["kernel", "watch", "--json", "--duration", &format!("{seconds}s"), "--prometheus"];
    let begin = now();
    let mut watch =
        Watch(slowstart(&args).arg(free.to_string()).stdout(Stdio::null()).spawn().expect("it runs"));
    while scrape(free).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(15), "the server does not start");
        thread::sleep(Duration::from_millis(50));
    }
    answers(free, "alone");

    // A client that sends a byte each 100 ms.
    let slow = thread::spawn(move || {
        let mut s = TcpStream::connect(free).expect("connects");
        let sent = (0..30).take_while(|_| {
            thread::sleep(Duration::from_millis(100));
            s.write_all(b"G").is_ok()
        });
        sent.count()
    });
    thread::sleep(Duration::from_millis(300));
    answers(free, "a slow client");

    // A line without an end.
    let before = memory(&watch.0);
    let mut endless = TcpStream::connect(free).expect("connects");
    endless.set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    let (block, limit) = (vec![b'a'; 1 << 16], 256 << 20);
    let mut written = 0;
    while written < limit {
        match endless.write(&block) {
            Ok(n) => written += n,
            Err(_) => break,
        }
    }
    assert!(written < limit, "the server reads a line without an end");
    let grown = memory(&watch.0).saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more after a line of {written} bytes");
    answers(free, "an endless line");

    // Connections that send nothing: as many as this process may open, up to 3,000.
    let silent: Vec<_> = (0..3000).map_while(|_| TcpStream::connect(free).ok()).collect();
    assert!(silent.len() > 500, "{} connections", silent.len());
    // Free one file descriptor for the scrape.
    let silent: Vec<_> = silent.into_iter().skip(8).collect();
    answers(free, "silent connections");
    let grown = memory(&watch.0).saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more with {} silent connections", silent.len());
    println!("{} silent connections, {written} bytes of a line, {grown} bytes more memory", silent.len());
    assert!(slow.join().expect("no panic") < 30, "a slow client is disconnected");

    // The watch itself was never held up: it ends when it was told to.
    let status = watch.0.wait().expect("it ends");
    let late = begin.elapsed().saturating_sub(Duration::from_secs(seconds));
    assert!(status.success() && late < Duration::from_secs(8), "{status}, {late:?} after its end");
}

/// Runs a command in a mount namespace of its own in which nothing is mounted at /sys/fs/bpf.
fn without_bpffs(args: &[&str]) -> Output {
    let script = "while umount -l /sys/fs/bpf 2>/dev/null; do :; done; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_slowstart")]).args(args);
    command.output().expect("util-linux is installed")
}

#[test]
fn check_tells_which_commands_work() {
    if !works(&[Verb::Load]) {
        return;
    }
    let check = without_bpffs(&["kernel", "check"]);
    let said = text(&check.stdout);
    assert!(check.status.success(), "{said}");
    assert!(said.contains("mount -t bpf -o mode=0700 bpf /sys/fs/bpf"), "{said}");
    let of = |verb: &str| {
        let line = said.lines().find_map(|l| l.strip_prefix(&format!("  {verb:<14}")));
        line.unwrap_or_else(|| panic!("no {verb:?} in {said}")).to_string()
    };
    assert!(of("load").starts_with("works"), "{said}");
    assert!(of("load --pin").contains("does not work: no bpffs (not mounted"), "{said}");
    let pin = without_bpffs(&["kernel", "load", "search", "--pin"]);
    let said = text(&pin.stderr);
    assert_eq!(pin.status.code(), Some(2), "{said}");
    assert!(
        said.contains("mount -t bpf -o mode=0700 bpf /sys/fs/bpf") && said.contains("Without --pin"),
        "{said}"
    );
}

/// The child of the test below, in a network namespace of its own: what `load` and `list` print while a
/// connection is open.
#[test]
fn lists_an_open_connection_as_child() {
    if std::env::var("SLOWSTART_LIST").is_err() {
        return;
    }
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("iproute2").success());
    let mut load = slowstart(&["kernel", "load", "tsl"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut said = BufReader::new(load.stdout.take().expect("piped")).lines();
    assert!(said.next().is_some_and(|l| l.is_ok_and(|l| l.contains("loaded"))));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
    setsockopt(&client, TcpCongestion, &OsString::from("ss_tsl")).expect("it is loaded");
    println!("{}", text(&slowstart(&["kernel", "list"]).output().expect("it runs").stdout));
    kill(Pid::from_raw(load.id() as i32), Signal::SIGINT).expect("it runs");
    said.map_while(Result::ok).for_each(|l| println!("{l}"));
    assert!(load.wait().expect("it ends").success());
}

#[test]
fn an_unknown_number_is_shown_as_unknown() {
    if !works(&[Verb::Load]) {
        return;
    }
    for (refused, open) in [(Some("all"), "an unknown number (at most 1)"), (Some("1"), "1"), (None, "1")] {
        let mut command = Command::new("unshare");
        command.arg("--net").arg(std::env::current_exe().expect("known"));
        command.args(["--exact", "lists_an_open_connection_as_child", "--nocapture"]);
        if let Some(refused) = refused {
            command.env("SLOWSTART_REFUSE_ITERATOR", refused);
        }
        let done = command.env("SLOWSTART_LIST", "1").output().expect("util-linux is installed");
        let said = text(&done.stdout);
        assert!(done.status.success(), "{said}{}", text(&done.stderr));
        assert!(said.contains(&format!("  {open} open of 1\n")), "{refused:?}: {said}");
        assert!(said.contains(&format!("ss_tsl: 1 connections, {open} of them still open")), "{said}");
    }
}

/// Runs a script with `$S` for the command, in mount and network namespaces of its own with a bpffs and a
/// state of its own, so that `unload --all` of one test ends nothing of another.
fn in_namespaces(script: &str) -> Output {
    let script = format!(
        "trap 'kill -9 $holder 2>/dev/null' EXIT
        mount -t bpf bpf /sys/fs/bpf
        mkdir -p /run/slowstart && mount -t tmpfs -o mode=755 tmpfs /run/slowstart
        {script}"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", &script]).env("S", env!("CARGO_BIN_EXE_slowstart"));
    command.output().expect("util-linux is installed")
}

#[test]
fn a_default_ends_with_its_control() {
    if !works(&[Verb::Load]) {
        return;
    }
    let file = "/proc/sys/net/ipv4/tcp_congestion_control";
    let script = format!(
        "echo reno > {file}
        $S kernel load search --default & holder=$!
        while ! grep -q ss_search {file}; do sleep 0.1; kill -0 $holder || exit 9; done
        $S kernel list | grep '^default'
        kill -9 $holder; wait $holder
        $S kernel list | grep '^default'
        $S kernel unload search; echo \"unload: $?\"; cat {file}
        $S kernel load search --default & holder=$!
        while ! grep -q ss_search {file}; do sleep 0.1; kill -0 $holder || exit 9; done
        kill $holder; wait $holder; echo \"load: $?\"; cat {file}"
    );
    let out = in_namespaces(&script);
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    let expected = [
        "set by process",
        "has ended; `slowstart kernel unload ss_search` restores reno",
        "search: was not loaded any more\nunload: 0\nreno\n",
        "load: 0\nreno\n",
    ];
    for words in expected {
        assert!(said.contains(words), "no {words:?} in {said}\n{errors}");
    }
    assert!(errors.contains("restored from ss_search to reno"), "{errors}");
}

#[test]
fn unload_all_removes_what_is_pinned() {
    // The script has a bpffs of its own.
    if !works(&[Verb::Pin, Verb::SelectPin]) {
        return;
    }
    let out = in_namespaces(
        "mount -t cgroup2 cgroup2 /sys/fs/cgroup
        group=/sys/fs/cgroup/ss-unload-$$
        mkdir $group
        $S kernel load smooth --pin
        $S kernel load tsl --pin
        $S kernel select --pin --cgroup $group tsl
        $S kernel unload --all; echo \"unload: $?\"
        echo \"left: $(ls -A /sys/fs/bpf/slowstart | wc -l)\"
        $S kernel unload --all; echo \"again: $?\"
        rmdir $group",
    );
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    for words in [
        "selection of ss_tsl removed",
        "ss_smooth: removed",
        "ss_tsl: removed",
        "unload: 0\nleft: 0\n",
        "again: 0\n",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}\n{errors}");
    }
}

/// In a bpffs that is open to all, another user makes the directory of the pins, with links of the names of a control
/// and of a selection to a folder of root.
#[test]
fn a_directory_of_pins_of_another_user_is_refused() {
    if !works(&[Verb::Pin, Verb::SelectPin]) {
        return;
    }
    let out = in_namespaces(
        "mount -t cgroup2 cgroup2 /sys/fs/cgroup
        group=/sys/fs/cgroup/ss-links-$$
        mkdir $group
        mount -t tmpfs -o mode=700 tmpfs /mnt
        pins=/sys/fs/bpf/slowstart
        other='setpriv --reuid 65534 --regid 65534 --clear-groups'
        for made in directory link writable; do
            echo root > /mnt/file
            case $made in
                directory) $other mkdir $pins;;
                link) $other mkdir /sys/fs/bpf/theirs; $other ln -s /sys/fs/bpf/theirs $pins;;
                writable) mkdir $pins; chmod 777 $pins;;
            esac
            for name in ss_tsl ss_tsl-next; do $other ln -s /mnt $pins/$name; done
            $S kernel load tsl --pin; echo \"$made: load $?\"
            $S kernel select --pin --cgroup $group reno; echo \"$made: select $?\"
            $S kernel unselect --cgroup $group; echo \"$made: unselect $?\"
            $S kernel unload tsl; echo \"$made: unload $?\"
            echo \"$made: $(ls /mnt)\"
            rm -r $pins
        done
        $S kernel load tsl --pin; echo \"own: load $?\"; $S kernel unload tsl
        rmdir $group",
    );
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    for made in ["directory", "link", "writable"] {
        for words in ["load 2", "select 2", "unselect 2", "unload 2", "file"] {
            assert!(said.contains(&format!("{made}: {words}\n")), "{made}: no {words:?} in {said}\n{errors}");
        }
    }
    assert!(said.contains("own: load 0\n"), "{said}\n{errors}");
    let why = "open /sys/fs/bpf/slowstart: not a directory that this user alone can write to";
    assert_eq!(errors.matches(why).count(), 12, "{errors}");
}

/// A selection that a process holds is listed with the process, and `unselect` ends it.
#[test]
fn a_selection_in_the_foreground_is_listed_and_undone() {
    if !works(&[Verb::Select]) {
        return;
    }
    let out = in_namespaces(
        "mount -t cgroup2 cgroup2 /sys/fs/cgroup
        group=/sys/fs/cgroup/ss-held-$$
        mkdir $group
        $S kernel select --cgroup $group reno >/dev/null & holder=$!
        for i in $(seq 100); do $S kernel list | grep -q $group && break; sleep 0.1; done
        $S kernel list | sed \"s#$group#GROUP#; s/process $holder/process HOLDER/\"
        $S kernel list --json | sed \"s#$group#GROUP#; s/\\\"pid\\\":$holder/\\\"pid\\\":HOLDER/\"
        $S kernel unselect --cgroup $group; echo \"unselect: $?\"
        wait $holder; echo \"holder: $?\"
        $S kernel list | grep -c $group
        $S kernel unselect --cgroup $group; echo \"again: $?\"
        rmdir $group",
    );
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    for words in [
        "GROUP: new connections use reno, while process HOLDER runs\n",
        "\"cgroup\":\"GROUP\",\"control\":\"reno\",\"state\":\"active\",\"pinned\":false,\"pid\":HOLDER",
        "selection of reno removed",
        "unselect: 0\nholder: 0\n0\nagain: 2\n",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}\n{errors}");
    }
    // Others on this machine may have some.
    let selected = errors.split_once("there is no selection for it; selected: ");
    assert!(selected.is_some_and(|(_, all)| !all.contains("ss-held")), "{errors}");
}

#[test]
fn unload_as_another_user_fails() {
    // The script has a bpffs of its own.
    if !works(&[Verb::Load]) {
        return;
    }
    let out = in_namespaces(
        "$S kernel load limited --pin
        setpriv --reuid 65534 --clear-groups $S kernel unload limited; echo \"status $?\"
        $S kernel unload limited",
    );
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    assert!(said.contains("status 2\nss_limited: removed"), "{said}\n{errors}");
    assert!(errors.contains("not permitted"), "{errors}");
}

#[test]
fn a_trial_that_is_not_valid_is_refused_with_what_was_found() {
    if !works(&[Verb::Trial]) {
        return;
    }
    let refused = |args: &[&str], says: &str| {
        let all = [&["kernel", "trial", "--cgroup", "/proc"], args].concat();
        let done = slowstart(&all).output().expect("it runs");
        let said = text(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(says), "{args:?}: {said}");
    };
    refused(&["--arm", "cubic:60%", "--arm", "search:50%"], "the shares add up to 110%");
    refused(&["--arm", "cubic:60%", "--arm", "search"], "expected NAME:SHARE%");
    refused(&["--arm", "cubic:60%", "--arm", "search:0%"], "from 0.0001% to 100%");
    refused(&["--arm", "cubic:60%"], "expected 2 to 8");
    let two = ["--arm", "cubic:50%", "--arm", "search:50%"];
    refused(&two, "not a directory of cgroup v2");
    refused(&[&two[..], &["--measure", "speed"]].concat(), "expected one of time-100kb");
    refused(&[&two[..], &["--stop-on-harm", "retrans=20%"]].concat(), "such as retrans=+20%");
    refused(&[&two[..], &["--stratify", "asn"]].concat(), "expected rtt, prefix or rtt,prefix");
    refused(&[&two[..], &["--for", "0s"]].concat(), "a time such as 30s");
    // A plan that has no end is not held.
    let plan = ["kernel", "trial", "--cgroup", "/proc", "--plan", "/dev/zero", "--server", "a"];
    let done = slowstart(&plan).output().expect("it runs");
    assert!(
        text(&done.stderr).contains("/dev/zero: found a special file, expected a regular one"),
        "{}",
        text(&done.stderr)
    );
    // A folder that holds anything is no place for results: they would replace it, as root.
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("trial-out");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).expect("writable");
    let out = ["--out", dir.to_str().expect("text")];
    fs::write(dir.join("result.json"), "kept").expect("writable");
    refused(&[&two[..], &out].concat(), "slowstart did not write it");
    fs::remove_file(dir.join("result.json")).expect("it is there");
    let elsewhere = dir.with_extension("elsewhere");
    symlink(&elsewhere, dir.join("report.html")).expect("writable");
    refused(&[&two[..], &out].concat(), "slowstart did not write it");
    assert!(!elsewhere.exists());
}
