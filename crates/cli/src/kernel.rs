//! `slowstart kernel`: startups in the running kernel.

use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use nix::sys::signal::{SigSet, Signal};
use slowstart_linux::{
    Check, Running, Spec, drop_privileges, list, load, load_pinned, select, unload, unselect,
};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Startups in the running Linux kernel: load, list, select, remove.
///
/// Loading changes no default: a connection uses a startup if its program asks for it (`TCP_CONGESTION`), if its cgroup
/// was selected, or if `--default` says so.
///
/// Example: slowstart kernel load search --pin
#[derive(Args)]
pub(crate) struct Kernel {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load a startup and hold it until Ctrl-C, or pin it
    Load(Load),
    /// Remove one that is pinned; connections that use it keep it until they close
    Unload {
        /// Its name here or in the kernel
        name: String,
    },
    /// What is loaded, by whom, and how many connections use it
    List,
    /// From now on, a startup for each new connection of a cgroup
    Select {
        /// The cgroup's folder, such as /sys/fs/cgroup/system.slice/nginx.service
        #[arg(long)]
        cgroup: PathBuf,
        /// A startup that is loaded, or any congestion control of the kernel
        control: String,
        /// Keep the choice when this program ends
        #[arg(long)]
        pin: bool,
    },
    /// Take back a choice made with `select --pin`
    Unselect {
        /// The cgroup's folder
        #[arg(long)]
        cgroup: PathBuf,
    },
    /// Connections and how their startups end, live
    Watch(crate::watch::Watch),
    /// What this kernel can do, and what is missing
    Check,
}

#[derive(Args)]
struct Load {
    /// A startup, as `search` or `search:threshold=0.35`
    startup: String,
    /// What follows it: cubic or reno
    #[arg(long, default_value = "cubic")]
    avoidance: String,
    /// Keep it when this program ends; replaces one of the same name that is pinned, without ending a connection
    #[arg(long)]
    pin: bool,
    /// Make it the default of every new connection of this network namespace
    #[arg(long)]
    default: bool,
}

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

static CAUGHT: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C and a request to stop are noted, for [`caught`].
pub(crate) fn catch() -> Result<()> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    set.thread_block()?;
    std::thread::spawn(move || {
        if set.wait().is_ok() {
            CAUGHT.store(true, Ordering::SeqCst);
        }
    });
    Ok(())
}

/// Whether this program is to stop.
pub(crate) fn caught() -> bool {
    CAUGHT.load(Ordering::SeqCst)
}

/// The time, for those who wait for some.
#[allow(clippy::disallowed_methods, reason = "what is watched happens on the real clock")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Waits for Ctrl-C or a request to stop.
fn wait() -> Result<()> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    set.thread_block()?;
    set.wait()?;
    Ok(())
}

/// Makes a control the default; answers the one it was.
fn make_default(name: &str) -> Result<String> {
    let was = fs::read_to_string(DEFAULT).context(DEFAULT)?.trim().to_string();
    fs::write(DEFAULT, name).context(DEFAULT)?;
    eprintln!(
        "slowstart: {name} is now the DEFAULT of every new connection of this network namespace, in place of {was}"
    );
    eprintln!("slowstart: to undo it: echo {was} > {DEFAULT}");
    Ok(was)
}

impl Load {
    fn main(&self) -> Result<()> {
        let spec = Spec::read(&self.startup, &self.avoidance)?;
        if self.pin {
            let (name, replaced) = load_pinned(&spec)?;
            let what =
                if replaced { "replaced: new connections use the new one" } else { "loaded and pinned" };
            print(&format!("{name}: {what}; `slowstart kernel unload {name}` removes it"))?;
            if self.default {
                make_default(&name)?;
            }
            return Ok(());
        }
        // Blocked before anything is loaded, so that a signal cannot end this before it has cleaned up.
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        set.thread_block()?;
        let held = load(&spec)?;
        print(&format!("{}: loaded until this ends (Ctrl-C)", held.name))?;
        let was = if self.default { Some(make_default(&held.name)?) } else { None };
        drop_privileges(self.default)?;
        wait()?;
        if let Some(was) = was {
            fs::write(DEFAULT, &was).context(DEFAULT)?;
            eprintln!("slowstart: the default is {was} again");
        }
        if let Some(c) = held.counts() {
            print(&format!("{}: {} connections, {} still open", held.name, c.started, c.open))?;
        }
        Ok(())
    }
}

fn line(r: &Running) -> String {
    let by = match (r.pinned, r.held_by.first()) {
        (true, _) => "pinned".to_string(),
        (false, Some((pid, comm))) => format!("held by {pid} ({comm})"),
        (false, None) => "registered".to_string(),
    };
    let counts = r.counts.as_ref().map_or_else(String::new, |c| {
        let exits: Vec<String> =
            c.exits.iter().filter(|(_, n)| *n > 0).map(|(w, n)| format!("{} {n}", w.name())).collect();
        let exits = if exits.is_empty() { String::new() } else { format!("; exits: {}", exits.join(", ")) };
        format!("  {} open of {}{exits}", c.open, c.started)
    });
    format!("{:<16}{:<12}{by}{counts}", r.name, r.startup.unwrap_or("-"))
}

impl Kernel {
    pub(crate) fn main(&self) -> Result<()> {
        match &self.command {
            Command::Load(l) => l.main()?,
            Command::Unload { name } => {
                let name = unload(name)?;
                print(&format!("{name}: removed"))?;
            }
            Command::List => {
                for r in list()? {
                    print(&line(&r))?;
                }
            }
            Command::Select { cgroup, control, pin } => {
                let selection = select(cgroup, control, *pin)?;
                print(&format!("{}: each new connection uses {}", cgroup.display(), selection.control))?;
                if !pin {
                    drop_privileges(false)?;
                    wait()?;
                }
            }
            Command::Unselect { cgroup } => unselect(cgroup)?,
            Command::Watch(w) => w.main()?,
            Command::Check => {
                let check = Check::new();
                for f in &check.findings {
                    print(&format!("{:<5}{:<22}{}", if f.present { "yes" } else { "no" }, f.what, f.detail))?;
                }
                if !check.can_load {
                    bail!("startups cannot be loaded here");
                }
            }
        }
        Ok(())
    }
}
