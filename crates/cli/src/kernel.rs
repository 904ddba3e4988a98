//! `slowstart kernel`: startups in the running kernel.

use crate::output::{print, tell};
use crate::printable::printable;
use crate::signals;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use slowstart_linux::emulate::{Way, way};
use slowstart_linux::{
    Capability, Check, Counts, DefaultChange, DefaultRecord, Finding, PinnedSelection, RestoredDefault,
    Running, SelectionState, Spec, Verb, Verdict, check_default_is_free, drop_privileges, list,
    list_defaults, list_selections, load, load_pinned, restore_default, restore_stale_defaults, select,
    set_default, unload, unselect,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Startups in the running Linux kernel: load, list, select, watch and trials
///
/// Loading changes no default. A connection uses a startup if its program asks
/// for it (TCP_CONGESTION), if its cgroup was selected, or if --default made it
/// the default.
///
/// Examples:
///   slowstart kernel load search --pin
///   slowstart kernel list
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is not Markdown")]
pub(crate) struct Kernel {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(Load),
    /// Remove a pinned startup; connections that use it keep it until they close
    ///
    /// Restores the default where it was the default. Fails if a process holds it:
    /// stop that process instead.
    ///
    /// Examples:
    ///   slowstart kernel unload search
    ///   slowstart kernel unload --all
    #[command(verbatim_doc_comment)]
    Unload {
        /// Name of the startup, or of the congestion control
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Every pinned selection and every pinned startup
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// List loaded startups, who loaded them, how many connections use them, selections and defaults
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Use a startup for each new connection of a cgroup, until Ctrl-C or, with --pin, until it is removed
    ///
    /// Without --pin the selection follows the path: if the cgroup is removed and made again, as when a
    /// service restarts, it is attached to the new one. A pinned selection does not follow; repeat the
    /// command to attach it again.
    ///
    /// Example: slowstart kernel select --pin --cgroup /sys/fs/cgroup/system.slice/nginx.service search
    Select {
        /// Directory of the cgroup, such as /sys/fs/cgroup/system.slice/nginx.service
        #[arg(long)]
        cgroup: PathBuf,
        /// A startup that is loaded, or any congestion control of the kernel
        control: String,
        /// Keep the selection after this program ends; replaces the one pinned for this cgroup
        #[arg(long)]
        pin: bool,
    },
    /// Remove a selection, also if its cgroup no longer exists; a process that keeps one ends
    Unselect {
        /// Directory of the cgroup
        #[arg(long)]
        cgroup: PathBuf,
    },
    Watch(crate::watch::Watch),
    Trial(Box<crate::trial::TrialArgs>),
    Memory(crate::kernel_memory::MemoryArgs),
    /// Show which of these commands work here, what each lacks, and how to get what is missing
    ///
    /// It loads a small program and a map of each type that a command needs, to find out which of them the
    /// kernel refuses. The exit status is 0 if `load` works, 2 if not.
    Check,
}

/// Load a startup and keep it until Ctrl-C or, with --pin, until it is removed
///
/// Examples:
///   slowstart kernel load search:threshold=0.3
///   slowstart kernel load hystart++ --avoidance reno --pin
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Load {
    /// A startup, such as `search` or `search:threshold=0.35`
    startup: String,
    /// Congestion avoidance after the startup: cubic or reno
    #[arg(long, default_value = "cubic")]
    avoidance: String,
    /// Keep it after this program ends; replaces a pinned one of the same name without ending a connection
    #[arg(long)]
    pin: bool,
    /// Make it the default for new connections of this network namespace, until it is removed
    #[arg(long)]
    default: bool,
    /// Path memory: lengths of the IPv4 and IPv6 prefixes whose connections share an entry [default: 32,64]
    #[arg(long, value_name = "BITS,BITS")]
    memory_prefix: Option<String>,
    /// Path memory: keep entries by port (the listening one, or the peer's) or by cgroup
    #[arg(long, value_name = "SCOPE", default_value = "port", value_parser = ["port", "cgroup"])]
    memory_by: String,
    /// Path memory: how long an entry is used, up to a day
    #[arg(long, value_name = "TIME", default_value = "3600s")]
    memory_lifetime: String,
}

/// Makes a control the default and prints what that changes.
fn make_default(name: &str, pinned: bool) -> Result<()> {
    let end =
        if pinned { format!("`slowstart kernel unload {name}`") } else { "the end of this program".into() };
    match set_default(name, pinned)? {
        DefaultChange::Set { previous } => tell(&format!(
            "{name} is now the default of new connections in this network namespace; {end} restores {previous}"
        )),
        DefaultChange::AlreadySet => tell(&format!(
            "{name} is the default already, set by another program; {end} does not change that"
        )),
    }
    Ok(())
}

fn say_restored(restored: &RestoredDefault) {
    tell(&restored.to_string());
}

/// Restores the default when it is dropped, so on every way out but a kill.
struct Default<'a>(&'a str);

impl Drop for Default<'_> {
    fn drop(&mut self) {
        match restore_default(self.0) {
            Ok(restored) => restored.iter().for_each(say_restored),
            Err(e) => tell(&format!("the default was not restored: {e}")),
        }
    }
}

impl Load {
    fn set_memory(&self, spec: &mut Spec) -> Result<()> {
        if let Some(text) = &self.memory_prefix {
            spec.memory.set_prefixes(text)?;
        }
        spec.memory.by_cgroup = self.memory_by == "cgroup";
        let lifetime = slowstart_study::scenario::time("--memory-lifetime", &self.memory_lifetime)?;
        spec.memory.lifetime = Duration::from_nanos(lifetime.0);
        Ok(())
    }

    fn main(&self) -> Result<()> {
        let mut spec = Spec::read(&self.startup, &self.avoidance)?;
        self.set_memory(&mut spec)?;
        if self.default {
            check_default_is_free(&spec.name()?)?;
        }
        if self.pin {
            let (name, replaced) = load_pinned(&spec)?;
            let what =
                if replaced { "replaced: new connections use the new one" } else { "loaded and pinned" };
            print(&format!("{name}: {what}; `slowstart kernel unload {name}` removes it"))?;
            if self.default {
                make_default(&name, true)?;
            }
            return Ok(());
        }
        signals::catch()?;
        let held = load(&spec)?;
        print(&format!("{}: loaded until this program ends (Ctrl-C)", held.name))?;
        let default = self.default.then_some(Default(&held.name));
        if self.default {
            make_default(&held.name, false)?;
        }
        drop_privileges(if self.default { &[Capability::NetAdmin] } else { &[] })?;
        signals::wait(|| Ok(()))?;
        drop(default);
        if let Some(c) = held.counts() {
            print(&format!(
                "{}: {} connections, {} of them still open",
                held.name,
                c.started,
                open_text(&c)
            ))?;
        }
        Ok(())
    }
}

/// The number of open connections, or what is known of it.
fn open_text(c: &Counts) -> String {
    c.open.map_or_else(|| format!("an unknown number (at most {})", c.at_most_open()), |n| n.to_string())
}

fn control_line(r: &Running) -> String {
    let by = match (r.pinned, r.held_by.first()) {
        (true, _) => "pinned".to_string(),
        (false, Some((pid, comm))) => format!("held by process {pid} ({})", printable(comm)),
        (false, None) => "registered".to_string(),
    };
    let counts = r.counts.as_ref().map_or("  counts unknown".to_string(), |c| {
        let exits: Vec<String> =
            c.exits.iter().filter(|(_, n)| *n > 0).map(|(w, n)| format!("{} {n}", w.name())).collect();
        let exits = if exits.is_empty() { String::new() } else { format!("; exits: {}", exits.join(", ")) };
        format!("  {} open of {}{exits}", open_text(c), c.started)
    });
    let startup = r.startup.unwrap_or(if r.is_arm() { "an arm of a trial" } else { "-" });
    format!("{:<16}{startup:<19}{by}{counts}", printable(&r.name))
}

fn selection_line(s: &PinnedSelection) -> String {
    let (cgroup, control) = (s.cgroup.display().to_string(), printable(&s.control));
    let cgroup = printable(&cgroup);
    match s.state {
        SelectionState::Active => {
            let held = s.held_by.map_or(String::new(), |pid| format!(", while process {pid} runs"));
            format!("{cgroup}: new connections use {control}{held}")
        }
        SelectionState::CgroupGone if s.held_by.is_some() => {
            let pid = s.held_by.unwrap_or_default();
            format!(
                "{cgroup}: NOT IN EFFECT: the cgroup does not exist; process {pid} selects {control} when it does"
            )
        }
        SelectionState::CgroupReplaced => format!(
            "{cgroup}: NOT IN EFFECT: the cgroup was made again after {control} was selected; `slowstart kernel select \
             --pin --cgroup {cgroup} {control}` selects it again"
        ),
        SelectionState::CgroupGone => format!(
            "{cgroup}: NOT IN EFFECT: the cgroup for which {control} was selected does not exist; `slowstart kernel \
             unselect --cgroup {cgroup}` removes the selection"
        ),
    }
}

fn default_line(d: &DefaultRecord) -> String {
    let DefaultRecord { namespace, control, previous, owner } = d;
    let end = if d.is_stale() {
        format!("{owner} has ended; `slowstart kernel unload {control}` restores {previous}")
    } else {
        format!("set by {owner}, instead of {previous}")
    };
    format!("default of network namespace {namespace}: {control}, {end}")
}

/// What is loaded, selections and defaults as JSON.
fn listed() -> Result<serde_json::Value> {
    let control = |r: &Running| {
        let counts = r.counts.as_ref();
        let exits = counts.map(|c| {
            let some = c.exits.iter().filter(|(_, n)| *n > 0);
            some.map(|(w, n)| (w.name().to_string(), (*n).into())).collect::<serde_json::Map<_, _>>()
        });
        let held: Vec<_> = r.held_by.iter().map(|(pid, comm)| json!({"pid": pid, "comm": comm})).collect();
        json!({
            "name": r.name, "startup": r.startup, "pinned": r.pinned, "held_by": held,
            "connections": counts.map(|c| c.started), "open": counts.and_then(|c| c.open), "exits": exits,
        })
    };
    let selection = |s: &PinnedSelection| {
        let state = match s.state {
            SelectionState::Active => "active",
            SelectionState::CgroupReplaced => "cgroup-replaced",
            SelectionState::CgroupGone => "cgroup-gone",
        };
        json!({
            "cgroup": s.cgroup, "control": s.control, "state": state, "pinned": s.held_by.is_none(), "pid": s.held_by,
        })
    };
    let default = |d: &DefaultRecord| {
        let DefaultRecord { namespace, control, previous, owner } = d;
        json!({
            "namespace": namespace, "control": control, "previous": previous, "owner": owner.to_string(),
            "stale": d.is_stale(),
        })
    };
    Ok(json!({
        "schema": 1,
        "controls": list()?.iter().map(control).collect::<Vec<_>>(),
        "selections": list_selections().iter().map(selection).collect::<Vec<_>>(),
        "defaults": list_defaults()?.iter().map(default).collect::<Vec<_>>(),
    }))
}

fn show_list() -> Result<()> {
    let controls = list()?.into_iter().map(|r| control_line(&r));
    let selections = list_selections().into_iter().map(|s| selection_line(&s));
    let defaults = list_defaults()?.into_iter().map(|d| default_line(&d));
    let lines: Vec<String> = controls.chain(selections).chain(defaults).collect();
    if lines.is_empty() {
        return print("nothing of slowstart is loaded, selected or set as default");
    }
    lines.iter().try_for_each(|line| print(line))
}

fn select_main(cgroup: &Path, control: &str, pin: bool) -> Result<()> {
    if !pin {
        signals::catch()?;
    }
    let mut selection = select(cgroup, control, pin)?;
    let name = selection.control.clone();
    let replaced = match &selection.replaced {
        Some(old) if old.state != SelectionState::Active => {
            format!(" (the selection of {} was not in effect)", printable(&old.control))
        }
        Some(old) if old.control != name => format!(" instead of {}", printable(&old.control)),
        _ => String::new(),
    };
    print(&format!("{}: new connections use {name}{replaced}", cgroup.display()))?;
    if pin {
        return Ok(());
    }
    drop_privileges(&[Capability::NetAdmin, Capability::Bpf])?;
    signals::wait(|| {
        if selection.follow()? {
            print(&format!("{}: made again; new connections use {name}", cgroup.display()))?;
        }
        Ok(())
    })
}

fn finding_line(f: &Finding) -> String {
    let mend = if f.mend.is_empty() { String::new() } else { format!(": {}", f.mend) };
    format!("  {:<5}{:<25}{}{mend}", if f.present { "yes" } else { "no" }, f.what, f.detail)
}

fn show_check() -> Result<()> {
    let check = Check::tried();
    print(match check.verdict(Verb::Load) {
        Verdict::Fails(_) => "Startups cannot be loaded here.",
        _ => "Startups can be loaded here.",
    })?;
    print("This kernel and this process have:")?;
    for f in &check.findings {
        print(&finding_line(f))?;
    }
    print("The kernel loads:")?;
    for f in &check.tries {
        print(&finding_line(f))?;
    }
    print("Commands of `slowstart kernel`:")?;
    for verb in Verb::ALL {
        let text = match check.verdict(verb) {
            Verdict::Works => "works".to_string(),
            Verdict::Lacks(what) => format!("works without {}", what.join("; ")),
            Verdict::Fails(why) => format!("does not work: no {}", why.join(", no ")),
        };
        print(&format!("  {:<14}{text}", verb.name()))?;
    }
    show_emulated(&check)?;
    match check.verdict(Verb::Load) {
        Verdict::Fails(_) => bail!("startups cannot be loaded here"),
        _ => Ok(()),
    }
}

/// Which commands over an emulated path work here.
fn show_emulated(check: &Check) -> Result<()> {
    print("Commands over an emulated path:")?;
    let fails = |verb| matches!(check.verdict(verb), Verdict::Fails(_));
    let (text, engine) = match way() {
        Err(e) => (format!("does not work: {e}"), format!("does not work: {e}")),
        Ok(way) => {
            let mut text = "works".to_string();
            if way == Way::UserNamespace {
                text += " without root, in a user namespace; without --user, and packets may be late on a busy machine";
            }
            let engine = match (fails(Verb::Watch), fails(Verb::Load)) {
                (true, _) => "does not work: it observes the sender as watch does",
                (false, true) => "works without startups of this project, as load does not work",
                (false, false) => "works",
            };
            (text, engine.to_string())
        }
    };
    let serve = text.replace("; without --user, and packets", "; packets");
    let interop = serve.replace("; packets", ", with a root that this user and group own; packets");
    for (name, text) in [
        ("emulate", &text),
        ("suite run --serve", &serve),
        ("suite run --interop", &interop),
        ("--engine kernel", &engine),
    ] {
        print(&format!("  {name:<21}{text}"))?;
    }
    Ok(())
}

fn unload_main(name: &str) -> Result<()> {
    let done = unload(name)?;
    done.defaults.iter().for_each(say_restored);
    match &done.control {
        Some(control) => print(&format!("{control}: removed; open connections keep it")),
        None => print(&format!("{name}: was not loaded any more")),
    }
}

fn unselect_main(cgroup: &Path) -> Result<()> {
    let done = unselect(cgroup)?;
    let was = if done.state == SelectionState::Active { "" } else { ", which was not in effect," };
    print(&format!(
        "{}: selection of {}{was} removed; open connections keep it",
        done.cgroup.display(),
        printable(&done.control)
    ))
}

impl Kernel {
    pub(crate) fn main(&self) -> Result<()> {
        if matches!(self.command, Command::Load(_) | Command::Select { .. } | Command::Unselect { .. }) {
            match restore_stale_defaults() {
                Ok(restored) => restored.iter().for_each(say_restored),
                Err(e) => tell(&format!("a default whose owner has ended was not restored: {e}")),
            }
        }
        if matches!(self.command, Command::Load(_)) {
            for s in
                list_selections().iter().filter(|s| s.state != SelectionState::Active && s.held_by.is_none())
            {
                tell(&selection_line(s));
            }
        }
        match &self.command {
            Command::Load(l) => l.main(),
            Command::Unload { name: Some(name), .. } => unload_main(name),
            Command::Unload { name: None, .. } => {
                for s in list_selections().iter().filter(|s| s.held_by.is_none()) {
                    unselect_main(&s.cgroup)?;
                }
                list()?.iter().filter(|r| r.pinned).try_for_each(|r| unload_main(&r.name))
            }
            Command::List { json: true } => print(&listed()?.to_string()),
            Command::List { json: false } => show_list(),
            Command::Select { cgroup, control, pin } => select_main(cgroup, control, *pin),
            Command::Unselect { cgroup } => unselect_main(cgroup),
            Command::Watch(w) => w.main(),
            Command::Trial(t) => t.main(),
            Command::Memory(m) => m.main(),
            Command::Check => show_check(),
        }
    }
}
