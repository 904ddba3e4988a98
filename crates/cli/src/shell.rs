//! `slowstart completions` and `slowstart man`: files for shells and for `man`.

use crate::folder::write_bytes;
use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_complete::Shell;
use slowstart_files::Folder;
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
        Folder::create(&self.dir).with_context(|| self.dir.display().to_string())?;
        let mut command = command.name("slowstart").disable_help_subcommand(true);
        command.build();
        let pages = self.write(&command)?;
        print(&format!("{pages} pages in {}", crate::printable::printable(&self.dir.display().to_string())))
    }

    /// Writes the page of a command and those of the commands within it; returns how many.
    fn write(&self, command: &Command) -> Result<usize> {
        let page = clap_mangen::Man::new(command.clone());
        let (name, mut text) = (page.get_filename(), Vec::new());
        // Pages of an earlier version are replaced; what a link names is not ours.
        let file = self.dir.join(&name);
        if file.is_symlink() {
            bail!("{}: found a symbolic link, expected a page; remove it", file.display());
        }
        page.render(&mut text)?;
        write_bytes(&self.dir, &name, &text)?;
        let within = command.get_subcommands().filter(|c| !c.is_hide_set());
        within.map(|c| self.write(c)).sum::<Result<usize>>().map(|n| n + 1)
    }
}
