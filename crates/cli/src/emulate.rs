//! `slowstart emulate`: runs a program over an emulated path.

use crate::interrupt::{Interrupt, Interrupted};
use crate::output::tell;
use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, User, geteuid};
use slowstart::units::Span;
use slowstart_linux::emulate::{Cgroup, DirectionStats, Emulation, INVALID, SERVER, enter_user_namespace};
use slowstart_sim::path::PathSpec;
use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// Run a program over an emulated path on the real clock
///
/// The TCP is that of the running kernel. Without root it runs in a user
/// namespace, where the system permits that (`slowstart kernel check` tells).
/// The program runs at the client's end of the path. The server's end has the
/// address 10.77.0.1 ($SLOWSTART_SERVER) and is the network namespace
/// $SLOWSTART_SERVER_NS. As root, the server has a cgroup
/// ($SLOWSTART_SERVER_CGROUP), which `kernel trial` and `kernel select` take
/// outside of this command; the program and the server see no cgroups.
/// The link of the path carries the direction from server to client.
///
/// Exit status: that of the program; 128+N if signal N ended it; 130 after
/// Ctrl-C; 2 if the run is invalid or the path failed.
///
/// Examples:
///   slowstart emulate "rate=20Mbit rtt=40ms queue=1bdp" -- ping -c 3 10.77.0.1
///   slowstart emulate geo --serve "python3 -m http.server 80" -- curl -sSo page http://10.77.0.1/
///   slowstart emulate "rate=50Mbit rtt=80ms queue=1bdp" --serve "iperf3 -s" -- iperf3 -Rc 10.77.0.1
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is no markdown")]
pub(crate) struct Emulate {
    /// A built-in path (`slowstart list paths`), a TOML file, or inline as "rate=100Mbit rtt=40ms queue=1bdp"
    path: String,
    /// Random seed of the path
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the path's traces
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// A shell command to run at the server's end. The program starts once it listens; it is ended after the
    /// program
    #[arg(long, value_name = "COMMAND")]
    serve: Option<String>,
    /// Run the program and the server as this user; needs root [default: the user of this command]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Time between two checks of the program, of signals and of the path.
const POLL: Duration = Duration::from_millis(10);
/// Checks until a server that does not listen is no longer waited for: 10 s.
const LISTEN_POLLS: u32 = 1000;
/// Checks until a program that was asked to end gets a stronger signal: 2 s.
const END_POLLS: u32 = 200;

fn note(text: &str) {
    tell(&format!("note: {text}"));
}

fn print_stats(direction: &str, s: &DirectionStats) {
    let refused =
        if s.refused > 0 { format!(", {} refused by the device", s.refused) } else { String::new() };
    let (entered, dropped, lateness) = (s.entered, s.dropped, &s.lateness);
    tell(&format!("{direction}: {entered} packets, {dropped} dropped{refused}; {lateness}"));
}

impl Emulate {
    pub(crate) fn main(&self) -> Result<ExitCode> {
        let spec = PathSpec::load(&self.path, self.traces.as_deref())?;
        let user = self.user.as_deref().map(find_user).transpose()?;
        if enter_user_namespace()? {
            if let Some(user) = &self.user {
                bail!("--user {user}: without root there is no other user; leave it out");
            }
            note(
                "without root: the program runs in a user namespace, as root of its network and as you elsewhere",
            );
        } else if user.is_none() && geteuid().is_root() {
            let name = std::env::var("SUDO_USER").unwrap_or_else(|_| "NAME".to_string());
            note(&format!("the program runs as root; --user {name} runs it as another user"));
        }
        let interrupt = Interrupt::record()?;
        // Before the path, so that it is removed after the processes of the path have ended.
        let cgroup = self.serve.as_ref().and_then(|_| Cgroup::create());
        let emulation = Emulation::start(&spec, self.seed, false)?;
        if let Some(cgroup) = &cgroup {
            note(&format!("the server's cgroup: {}", cgroup.path().display()));
        }
        for caveat in &emulation.caveats {
            note(caveat);
        }
        if self.serve.is_some() && !emulation.releases_by_stamps() {
            note("this kernel has no fq (sch_fq): pacing by SO_TXTIME does not act");
        }
        let start = |ns: &str, command: &mut Command| {
            if let Some(u) = &user {
                command.uid(u.uid.as_raw()).gid(u.gid.as_raw());
                command.env("HOME", &u.dir).env("USER", &u.name).env("LOGNAME", &u.name);
            }
            command.env("SLOWSTART_SERVER", SERVER).env("SLOWSTART_SERVER_NS", emulation.server());
            if let Some(cgroup) = &cgroup {
                command.env("SLOWSTART_SERVER_CGROUP", cgroup.path());
            }
            Emulation::spawn(ns, command)
        };
        let mut server = None;
        if let Some(text) = &self.serve {
            // A process group of its own: Ctrl-C ends the program first.
            let mut command = Command::new("sh");
            command.args(["-c", text]).process_group(0).stdin(Stdio::null()).stdout(io::stderr());
            cgroup.as_ref().map_or(Ok(()), |c| c.hold(&mut command))?;
            let server = server.insert(start(emulation.server(), &mut command)?);
            wait_for_listener(text, server, &emulation, &interrupt)?;
        }
        let mut program = start(emulation.client(), Command::new(&self.command[0]).args(&self.command[1..]))?;
        let (status, signal) = wait(&mut program, &emulation, &interrupt)?;
        if let Some(server) = &mut server {
            end_server(server)?;
        }
        let report = emulation.stop()?;
        print_stats("forward", &report.forward);
        print_stats("back", &report.back);
        if report.stood_still > Span(0) {
            tell(&format!("the path stood still for {:.2} s", report.stood_still.0 as f64 / 1e9));
        }
        if !status.success() {
            tell(&format!("{} ended with {status}", self.command[0]));
        }
        if !report.valid() {
            tell(INVALID);
        }
        Ok(ExitCode::from(exit_status(status, signal, report.valid())))
    }
}

/// Returns the exit status of this command, from that of the program and the signal that interrupted this
/// command.
fn exit_status(program: ExitStatus, signal: Option<u8>, valid: bool) -> u8 {
    match (signal, program.code(), program.signal()) {
        (Some(signal), ..) => 128 + signal,
        (None, Some(0), _) => {
            if valid {
                0
            } else {
                2
            }
        }
        (None, Some(code), _) => code as u8,
        (None, None, signal) => 128 + signal.unwrap_or(0) as u8,
    }
}

fn find_user(name: &str) -> Result<User> {
    let user = User::from_name(name).with_context(|| format!("--user {name}"))?;
    user.with_context(|| format!("--user {name}: no such user"))
}

/// Waits until the server listens. A server that does not listen within 10 s gets a note and no more.
pub(crate) fn wait_for_listener(
    text: &str,
    server: &mut Child,
    emulation: &Emulation,
    interrupt: &Interrupt,
) -> Result<()> {
    for _ in 0..LISTEN_POLLS {
        if Emulation::has_listener(emulation.server())? {
            return Ok(());
        }
        // A server may have gone to the background, and then its first process ended with status 0.
        if let Some(status) = server.try_wait()?.filter(|s| !s.success()) {
            bail!("--serve {text:?}: ended with {status} before it listened");
        }
        if let Some(signal) = interrupt.signal() {
            return Err(Interrupted { signal, finished: None }.into());
        }
        thread::sleep(POLL);
    }
    note(&format!("--serve {text:?}: does not listen after 10 s; the program starts now"));
    Ok(())
}

/// Waits for the program to end; returns its status, and the signal that interrupted this command, if one
/// did.
///
/// SIGINT and SIGTERM are forwarded to the program, except for the SIGINT of a terminal, which the program
/// received itself. A program that does not end gets SIGTERM and then SIGKILL, also if the path failed.
fn wait(
    program: &mut Child,
    emulation: &Emulation,
    interrupt: &Interrupt,
) -> Result<(ExitStatus, Option<u8>)> {
    let pid = Pid::from_raw(program.id().cast_signed());
    let terminal = io::stdin().is_terminal();
    let mut received = None;
    // Checks since the program was asked to end.
    let mut ending: Option<u32> = None;
    loop {
        if let Some(status) = program.try_wait()? {
            return Ok((status, received));
        }
        if let Some(signal) = interrupt.take() {
            received = Some(signal);
            if !(terminal && i32::from(signal) == Signal::SIGINT as i32) {
                let _ = kill(pid, Signal::try_from(i32::from(signal))?);
                ending.get_or_insert(0);
            }
        }
        if !emulation.is_running() && ending.is_none() {
            let _ = kill(pid, Signal::SIGTERM);
            ending = Some(0);
        }
        if let Some(polls) = &mut ending {
            *polls += 1;
            for (polls_before, signal) in [(END_POLLS, Signal::SIGTERM), (2 * END_POLLS, Signal::SIGKILL)] {
                if *polls == polls_before {
                    let _ = kill(pid, signal);
                }
            }
        }
        thread::sleep(POLL);
    }
}

/// Ends the server with SIGTERM. What still runs in its namespace after 2 s is killed when the namespace is
/// removed.
pub(crate) fn end_server(server: &mut Child) -> Result<()> {
    if let Some(status) = server.try_wait()?.filter(|s| !s.success()) {
        note(&format!("the server ended with {status} before the program did"));
    }
    let _ = killpg(Pid::from_raw(server.id().cast_signed()), Signal::SIGTERM);
    for _ in 0..END_POLLS {
        if server.try_wait()?.is_some() {
            break;
        }
        thread::sleep(POLL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_status_is_passed_on() {
        let (exited, killed) = (|n: i32| ExitStatus::from_raw(n << 8), ExitStatus::from_raw);
        assert_eq!(exit_status(exited(0), None, true), 0);
        assert_eq!(exit_status(exited(0), None, false), 2);
        assert_eq!(exit_status(exited(7), None, true), 7);
        assert_eq!(exit_status(exited(7), None, false), 7);
        assert_eq!(exit_status(killed(9), None, true), 137);
        assert_eq!(exit_status(exited(0), Some(2), true), 130);
        assert_eq!(exit_status(killed(15), Some(15), true), 143);
    }
}
