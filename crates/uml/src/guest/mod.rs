//! What runs inside a guest: the first process of its kernel, which does what it is asked and powers off.

mod ends;
mod info;
mod lane;
mod net;
mod run;

use crate::error::GuestError;
use crate::order::{ANSWER, Answer, Description, ORDER, Order};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use slowstart_files::{MOST_REPORT, read_kernel};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Does what the order in its folder says, leaves the answer there and powers off. Only for the first process of a guest.
pub fn main() -> ExitCode {
    // All files are the host's until this kernel has mounted its own: this is the directory of its process there.
    let folder = fs::read_link("/proc/self/cwd").map_err(GuestError::io("find the folder of the order"));
    let done = folder.and_then(|folder| {
        prepare(&folder)?;
        let folder = folder.as_path();
        let answer = serve(folder).unwrap_or_else(|e| Answer::Failed(e.to_string()));
        write(folder, &answer)
    });
    if let Err(e) = done {
        // The host shows the last lines of the console.
        let _ = writeln!(std::io::stderr(), "guest: {e}");
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
    ExitCode::FAILURE
}

/// Mounts what the kernel shows of itself, its devices, and the folder in which the answer goes; all else of the host is
/// read-only.
fn prepare(folder: &Path) -> Result<(), GuestError> {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(GuestError::io(format!("mount {at}")))?;
    }
    mount(Some("none"), folder, Some("hostfs"), MsFlags::empty(), Some(folder))
        .map_err(GuestError::io(format!("mount {}", folder.display())))?;
    // Timers of this process fire when they are due, not up to 50 us later.
    fs::write("/proc/self/timerslack_ns", "1").map_err(GuestError::io("set the timer slack"))
}

fn write(folder: &Path, answer: &Answer) -> Result<(), GuestError> {
    let file = folder.join(ANSWER);
    let what = || format!("write {}", file.display());
    let mut to = BufWriter::with_capacity(1 << 16, File::create(&file).map_err(GuestError::io(what()))?);
    serde_json::to_writer(&mut to, answer).map_err(GuestError::io(what()))?;
    // Complete, as the host can tell.
    to.write_all(b"\n").and_then(|()| to.flush()).map_err(GuestError::io(what()))
}

fn serve(folder: &Path) -> Result<Answer, GuestError> {
    let text =
        slowstart_files::read(&folder.join(ORDER), MOST_REPORT).map_err(GuestError::io("read the order"))?;
    let order: Order = serde_json::from_slice(&text).map_err(GuestError::io("read the order"))?;
    Ok(match order {
        Order::Describe { modules } => {
            load(&modules)?;
            Answer::Described(describe()?)
        }
        Order::Transfer(t) => {
            load(&t.modules)?;
            allow_memory()?;
            set_parameters(&t.control, &t.parameters)?;
            Answer::Ran(Box::new(run::transfer(&t)?))
        }
    })
}

fn load(modules: &[PathBuf]) -> Result<(), GuestError> {
    for module in modules {
        let what = || format!("module {}", module.display());
        let file = File::open(module).map_err(GuestError::io(what()))?;
        let none = CString::default();
        nix::kmod::finit_module(&file, &none, nix::kmod::ModuleInitFlags::empty())
            .map_err(GuestError::io(what()))?;
    }
    Ok(())
}

/// Lets TCP use all memory of the guest. By default it is under pressure from a sixteenth on: the receiver then drops what came out
/// of order, which no real machine of more memory does, and not in each run at the same packet.
fn allow_memory() -> Result<(), GuestError> {
    let file = "/proc/sys/net/ipv4/tcp_mem";
    let pages = u32::MAX;
    fs::write(file, format!("{pages} {pages} {pages}")).map_err(GuestError::io(format!("write to {file}")))
}

/// The folder of the parameters of a control.
fn parameters(control: &str) -> PathBuf {
    Path::new("/sys/module").join(format!("tcp_{control}")).join("parameters")
}

fn set_parameters(control: &str, given: &BTreeMap<String, String>) -> Result<(), GuestError> {
    for (name, value) in given {
        let file = parameters(control).join(name);
        fs::write(&file, value).map_err(|e| {
            GuestError::Refused(format!("{control}:{name}={value}: the kernel refused the value ({e})"))
        })?;
    }
    Ok(())
}

fn read(file: &str) -> Result<String, GuestError> {
    read_kernel(file).map_err(GuestError::io(format!("read {file}")))
}

fn describe() -> Result<Description, GuestError> {
    let release = read("/proc/sys/kernel/osrelease")?.trim().to_string();
    let all = read("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    let of = |control: &str| {
        let files = fs::read_dir(parameters(control)).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        (control.to_string(), names)
    };
    // This kernel sends nothing.
    let accecn = fs::write("/proc/sys/net/ipv4/tcp_ecn", "3").is_ok();
    Ok(Description { release, controls: all.split_whitespace().map(of).collect(), accecn })
}
