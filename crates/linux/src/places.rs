//! The cgroups that a trial is attached to: one directory, or all that match a pattern, those that are made
//! later too.

use crate::attach::{Attached, absolute, existing};
use crate::error::KernelError;
use crate::lock::state_folder;
use libbpf_rs::Object;
use slowstart_files::{Lock, LockError};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A cgroup that belongs to one trial as long as this lives, or until the process ends.
pub(crate) struct Claim {
    pub(crate) cgroup: PathBuf,
    /// In the folder of this program's state, since any user may lock a cgroup. `None` for who may not write
    /// there: another trial is then found by its program.
    lock: Option<Lock>,
}

impl Claim {
    fn new(what: &str, cgroup: PathBuf) -> Result<Self, KernelError> {
        let inode = fs::metadata(&cgroup).map_err(KernelError::path("open", &cgroup))?.ino();
        let lock = match state_folder() {
            Ok(folder) => folder.lock(&format!("trial-{inode}"), Duration::ZERO),
            Err(e) => Err(LockError::Io(e)),
        };
        match lock {
            Ok(lock) => Ok(Self { cgroup, lock: Some(lock) }),
            Err(LockError::Held(by)) => {
                let by = by.map_or_else(String::new, |n| format!(" (process {n})"));
                Err(KernelError::refused(
                    what,
                    format!("another trial runs on this cgroup{by}: end it first"),
                ))
            }
            Err(LockError::Io(_)) => Ok(Self { cgroup, lock: None }),
        }
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns the absolute paths of the cgroups that a path names or that match a pattern, in order. A cgroup
/// below another of them is left out: programs of the upper one see its connections.
fn matching(what: &str, wanted: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let Some(pattern) = wanted.to_str().filter(|t| is_pattern(t)) else {
        return Ok(vec![existing(what, wanted)?]);
    };
    let found = glob::glob(pattern).map_err(|e| KernelError::refused(what, format!("the pattern: {e}")))?;
    let mut cgroups: Vec<PathBuf> = Vec::new();
    // A directory that vanishes meanwhile is none.
    for dir in found.flatten().filter(|d| existing(what, d).is_ok()) {
        let dir = absolute(&dir)?;
        if !cgroups.iter().any(|c| dir.starts_with(c)) {
            cgroups.push(dir);
        }
    }
    Ok(cgroups)
}

/// Claims the cgroups that a path names or that match a pattern.
///
/// # Errors
/// If there is none, if one is not of version 2, or if one has a trial already.
pub(crate) fn claim(what: &str, wanted: &Path) -> Result<Vec<Claim>, KernelError> {
    let cgroups = matching(what, wanted)?;
    if cgroups.is_empty() {
        return Err(KernelError::refused(what, "no cgroup of version 2 matches this pattern"));
    }
    cgroups.into_iter().map(|c| Claim::new(what, c)).collect()
}

/// A cgroup with the programs of the trial. Dropping it detaches them.
struct Place {
    attached: Vec<Attached>,
    claim: Claim,
}

impl Place {
    fn new(object: &Object, claim: Claim, sees_choices: bool) -> Result<Self, KernelError> {
        // A connection is seen from its first packet, and its program's choice, if those are seen before any is
        // assigned. They are detached in the reverse order.
        let programs = sees_choices.then_some("on_choice").into_iter().chain(["on_packet", "trial"]);
        let attached = programs.map(|p| Attached::new(object, p, &claim.cgroup));
        let mut attached = attached.collect::<Result<Vec<_>, _>>()?;
        attached.reverse();
        Ok(Self { attached, claim })
    }

    /// Attaches the programs again if the cgroup was removed and made again since; returns true if so.
    fn follow(&mut self, what: &str, object: &Object) -> Result<bool, KernelError> {
        let mut followed = false;
        for program in self.attached.iter_mut().rev() {
            followed = program.follow(object)?;
        }
        if followed {
            self.claim.lock = Claim::new(what, self.claim.cgroup.clone())?.lock;
        }
        Ok(followed)
    }
}

/// All cgroups of a trial.
pub(crate) struct Places {
    pub(crate) wanted: PathBuf,
    all: Vec<Place>,
    sees_choices: bool,
}

impl Places {
    pub(crate) fn new(
        wanted: &Path,
        claims: Vec<Claim>,
        object: &Object,
        sees_choices: bool,
    ) -> Result<Self, KernelError> {
        let all =
            claims.into_iter().map(|c| Place::new(object, c, sees_choices)).collect::<Result<_, _>>()?;
        // A path may be relative, and a cgroup of it may be made again.
        Ok(Self { wanted: absolute(wanted)?, all, sees_choices })
    }

    /// Attaches the trial to cgroups that were made since, and returns them. Needs `CAP_BPF` and
    /// `CAP_NET_ADMIN`.
    pub(crate) fn follow(&mut self, object: &Object) -> Result<Vec<PathBuf>, KernelError> {
        let what = format!("trial on {}", self.wanted.display());
        let mut made = Vec::new();
        for place in &mut self.all {
            if place.follow(&what, object)? {
                made.push(place.claim.cgroup.clone());
            }
        }
        if self.wanted.to_str().is_some_and(is_pattern) {
            self.all.retain(|p| p.claim.cgroup.exists());
            for cgroup in matching(&what, &self.wanted)? {
                if self.all.iter().any(|p| p.claim.cgroup == cgroup) {
                    continue;
                }
                match Claim::new(&what, cgroup.clone()).and_then(|c| Place::new(object, c, self.sees_choices))
                {
                    Ok(place) => {
                        self.all.push(place);
                        made.push(cgroup);
                    }
                    // It was removed meanwhile.
                    Err(_) if !cgroup.exists() => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_the_upper_cgroups_in_order() {
        let root = std::env::temp_dir().join(format!("slowstart-places-{}", std::process::id()));
        for (dir, is_cgroup) in
            [("pod-b/one", true), ("pod-b", true), ("pod-a", true), ("pod-c", false), ("x", true)]
        {
            let dir = root.join(dir);
            fs::create_dir_all(&dir).expect("writable");
            if is_cgroup {
                fs::write(dir.join("cgroup.procs"), "").expect("writable");
            }
        }
        let of = |pattern: &str| matching("trial", &root.join(pattern));
        let names = |pattern: &str| -> Vec<String> {
            let found = of(pattern).expect("a pattern");
            found.iter().map(|p| p.file_name().expect("a name").to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names("pod-*"), ["pod-a", "pod-b"]);
        assert_eq!(names("**"), ["pod-a", "pod-b", "x"]);
        assert_eq!(names("pod-?/one"), ["one"]);
        assert!(names("none-*").is_empty());
        let e = claim("trial", &root.join("none-*")).err().expect("there is none").to_string();
        assert!(e.contains("no cgroup of version 2 matches this pattern"), "{e}");
        let e = of("pod-***").expect_err("no pattern").to_string();
        assert!(e.contains("the pattern: "), "{e}");
        let e = of("pod-c").expect_err("no cgroup").to_string();
        assert!(e.contains("is not a directory of cgroup v2"), "{e}");
        fs::remove_dir_all(&root).expect("removable");
    }
}
