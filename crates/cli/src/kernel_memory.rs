//! `slowstart kernel memory`: what connections left for the next ones on their paths.

use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use slowstart_linux::{Memory, MemoryEntry, MemoryScope, memories};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Path memory: what connections left for the next ones on their paths
///
/// It is used by careful-resume and stateful. An entry is of a prefix of the
/// peer's address and of a port or cgroup; `kernel load` sets which. A connection
/// that begins takes the entry, and leaves its own when it ends.
///
/// Examples:
///   slowstart kernel memory list
///   slowstart kernel memory export > memory.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the entries of all controls that are loaded, or of one
    List {
        /// Name of a startup or congestion control
        control: Option<String>,
    },
    /// Remove the entries of all controls that are loaded, or of one
    Clear {
        /// Name of a startup or congestion control
        control: Option<String>,
    },
    /// Prints the entries as one JSON object per line
    Export {
        /// Name of a startup or congestion control
        control: Option<String>,
    },
    /// Adds the entries of an export to the controls that they name; adds none if one is not valid
    Import {
        /// File of an export
        file: PathBuf,
    },
}

/// The memory of the controls that are loaded, or of the one of this name.
fn chosen(control: Option<&str>) -> Result<Vec<Memory>> {
    let all = memories()?;
    let Some(name) = control else { return Ok(all) };
    let known: Vec<String> = all.iter().map(|m| m.control.clone()).collect();
    let names = slowstart_linux::Control::of(name, &[])
        .map_or(vec![name.to_string()], |c| vec![c.name(false), c.name(true)]);
    let found: Vec<Memory> = all.into_iter().filter(|m| names.contains(&m.control)).collect();
    if found.is_empty() {
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        bail!("{name}: no control of this name that has path memory is loaded; loaded: {known}");
    }
    Ok(found)
}

fn scope(entry: &MemoryEntry) -> (&'static str, u64) {
    match entry.scope {
        MemoryScope::Port(port) => ("port", port.into()),
        MemoryScope::Cgroup(id) => ("cgroup", id),
    }
}

fn to_json(control: &str, e: &MemoryEntry) -> Value {
    let (key, value) = scope(e);
    json!({
        "control": control,
        "prefix": format!("{}/{}", e.prefix, e.bits),
        key: value,
        "cwnd_bytes": e.cwnd_bytes,
        "rtt_us": e.rtt_us,
        "rate_bps": e.rate_bps,
        "saved_unix_s": e.saved.as_secs(),
    })
}

const KEYS: [&str; 8] =
    ["control", "prefix", "port", "cgroup", "cwnd_bytes", "rtt_us", "rate_bps", "saved_unix_s"];

/// Reads one line of an export: the control and the entry.
fn from_json(line: &str) -> Result<(String, MemoryEntry)> {
    let Value::Object(all) = serde_json::from_str(line)? else {
        bail!("expected a JSON object, found {line:.80}")
    };
    if let Some(key) = all.keys().find(|k| !KEYS.contains(&k.as_str())) {
        bail!("unknown key {key:?}; expected {}", KEYS.join(", "));
    }
    let text = |key: &str| {
        let value = all.get(key).and_then(Value::as_str);
        value.with_context(|| format!("{key}: expected text, found {}", all.get(key).unwrap_or(&Value::Null)))
    };
    let number = |key: &str| {
        let value = all.get(key).and_then(Value::as_u64);
        value.with_context(|| {
            format!("{key}: expected a whole number, found {}", all.get(key).unwrap_or(&Value::Null))
        })
    };
    let prefix = text("prefix")?;
    let (address, bits) = prefix
        .split_once('/')
        .and_then(|(a, b)| Some((a.parse::<IpAddr>().ok()?, b.parse().ok()?)))
        .with_context(|| format!("prefix: expected ADDRESS/BITS, found {prefix:?}"))?;
    let scope = match (all.contains_key("port"), all.contains_key("cgroup")) {
        (true, false) => {
            let port = number("port")?;
            MemoryScope::Port(
                u16::try_from(port)
                    .map_err(|_| anyhow::anyhow!("port: expected up to 65535, found {port}"))?,
            )
        }
        (false, true) => MemoryScope::Cgroup(number("cgroup")?),
        _ => bail!("expected one of the keys port and cgroup"),
    };
    let rtt = number("rtt_us")?;
    let entry = MemoryEntry {
        prefix: address,
        bits,
        scope,
        cwnd_bytes: number("cwnd_bytes")?,
        rtt_us: u32::try_from(rtt)
            .map_err(|_| anyhow::anyhow!("rtt_us: expected up to {}, found {rtt}", u32::MAX))?,
        rate_bps: number("rate_bps")?,
        saved: Duration::from_secs(number("saved_unix_s")?),
    };
    Ok((text("control")?.to_string(), entry))
}

/// The largest number of lines that an import may have: the entries of eight full maps.
const LINES: usize = 8 * 16_384;
/// The largest length of a line, in bytes; an export's are shorter than 300.
const LINE: u64 = 1024;

/// Reads a line into `line`, without its end; false at the end of the file. One that is too long is an error.
fn next_line(reader: &mut impl BufRead, line: &mut String) -> Result<bool> {
    let mut bytes = Vec::new();
    let n = slowstart_files::line(reader, LINE + 1, &mut bytes)?;
    if n as u64 > LINE {
        bail!("longer than {LINE} bytes");
    }
    *line = String::from_utf8(bytes).context("not text in UTF-8")?;
    Ok(n > 0)
}

fn import(file: &Path) -> Result<()> {
    let name = file.display();
    let mut reader = BufReader::new(File::open(file).with_context(|| format!("read {name}"))?);
    let memories = memories()?;
    let (mut read, mut line) = (Vec::new(), String::new());
    for n in 1.. {
        let at = || format!("{name}, line {n}");
        if !next_line(&mut reader, &mut line).with_context(at)? {
            break;
        }
        if n > LINES {
            bail!("{}: more than {LINES} lines", at());
        }
        if line.trim().is_empty() {
            continue;
        }
        let (control, entry) = from_json(&line).with_context(at)?;
        let memory = memories.iter().find(|m| m.control == control);
        let memory =
            memory.with_context(|| format!("{}: {control} is not loaded, or has no path memory", at()))?;
        memory.check(&entry).with_context(at)?;
        read.push((memory, entry));
    }
    for (memory, entry) in &read {
        memory.put(entry)?;
    }
    print(&format!("{} entries added", read.len()))
}

impl MemoryArgs {
    pub(crate) fn main(&self) -> Result<()> {
        match &self.command {
            Command::List { control } => {
                for m in chosen(control.as_deref())? {
                    let c = m.config;
                    let by = if c.by_cgroup { "cgroup" } else { "port" };
                    let entries = m.entries();
                    print(&format!(
                        "{}: {} entries, by /{} of IPv4, /{} of IPv6 and {by}, used for {} s",
                        m.control,
                        entries.len(),
                        c.v4_bits,
                        c.v6_bits,
                        c.lifetime.as_secs()
                    ))?;
                    for e in entries {
                        let (key, value) = scope(&e);
                        let (rtt, rate) = (f64::from(e.rtt_us) / 1e3, e.rate_bps as f64 / 1e6);
                        print(&format!(
                            "  {:<24} {key} {value:<8} cwnd {} kB  RTT {rtt:.1} ms  {rate:.1} Mbit/s",
                            format!("{}/{}", e.prefix, e.bits),
                            e.cwnd_bytes / 1000
                        ))?;
                    }
                }
                Ok(())
            }
            Command::Clear { control } => {
                for m in chosen(control.as_deref())? {
                    print(&format!("{}: {} entries removed", m.control, m.clear()?))?;
                }
                Ok(())
            }
            Command::Export { control } => {
                for m in chosen(control.as_deref())? {
                    for e in m.entries() {
                        print(&to_json(&m.control, &e).to_string())?;
                    }
                }
                Ok(())
            }
            Command::Import { file } => import(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"control":"ss_resume","prefix":"192.0.2.0/24","port":443,"cwnd_bytes":900000,"rtt_us":600000,"rate_bps":12000000,"saved_unix_s":1800000000}"#;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let (control, entry) = from_json(LINE).unwrap();
        assert_eq!(entry.scope, MemoryScope::Port(443));
        let again = from_json(&to_json(&control, &entry).to_string()).unwrap();
        assert_eq!(again, (control, entry));
    }

    #[test]
    fn a_line_that_is_not_valid_is_refused_with_key_and_value() {
        for (from, to, says) in [
            ("443", "65536", "port: expected up to 65535, found 65536"),
            ("192.0.2.0/24", "192.0.2.0", "expected ADDRESS/BITS"),
            ("900000", "-1", "cwnd_bytes: expected a whole number, found -1"),
            ("\"rtt_us\":600000", "\"rtt\":1", "unknown key \"rtt\""),
            ("\"port\":443,", "", "expected one of the keys port and cgroup"),
            ("\"ss_resume\"", "7", "control: expected text, found 7"),
        ] {
            let e = from_json(&LINE.replace(from, to)).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
        let read = |text: &[u8]| {
            let mut line = String::new();
            next_line(&mut &*text, &mut line).map(|more| (more, line)).map_err(|e| e.to_string())
        };
        assert_eq!(read(b"a\nb"), Ok((true, "a\n".to_string())));
        assert_eq!(read(b""), Ok((false, String::new())));
        assert_eq!(read(&[b'a'; 2000]), Err("longer than 1024 bytes".to_string()));
        assert!(from_json("[1]").unwrap_err().to_string().contains("JSON object"));
        assert!(from_json("{").is_err());
    }
}
