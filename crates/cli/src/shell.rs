//! `slowstart completions` and `slowstart man`: files for shells and for `man`.

use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;

/// Print the completions of a shell
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart completions bash > ~/.local/share/bash-completion/completions/slowstart
  slowstart completions fish > ~/.config/fish/completions/slowstart.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn main(&self, mut command: Command) -> Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, "slowstart", &mut text);
        print(String::from_utf8_lossy(&text).trim_end())
    }
}

/// Write a man page for each command
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart man ~/.local/share/man/man1
  sudo slowstart man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// The folder of the pages; it is created if there is none, and pages of these names in it are replaced
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    pub(crate) fn main(&self, command: Command) -> Result<()> {
        fs::create_dir_all(&self.dir).with_context(|| self.dir.display().to_string())?;
        let there = fs::read_dir(&self.dir).with_context(|| self.dir.display().to_string())?.flatten();
        let of_ours = |f: &fs::DirEntry| f.file_name().to_string_lossy().starts_with("slowstart");
        // Pages of an earlier version are replaced; what a link names is not ours.
        if let Some(link) = there.filter(of_ours).find(|f| f.file_type().is_ok_and(|t| t.is_symlink())) {
            bail!("{}: found a symbolic link, expected a page; remove it", link.path().display());
        }
        clap_mangen::generate_to(command.name("slowstart"), &self.dir)
            .with_context(|| self.dir.display().to_string())?;
        let pages = fs::read_dir(&self.dir)?.flatten();
        let ours = pages.filter(|f| f.file_name().to_string_lossy().starts_with("slowstart")).count();
        print(&format!("{ours} pages in {}", crate::printable::printable(&self.dir.display().to_string())))
    }
}
