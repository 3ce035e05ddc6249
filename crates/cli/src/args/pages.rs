//! What describes the command itself: completions and manual pages.

use clap_complete::Shell;
use std::path::PathBuf;

/// Print completions for a shell
///
/// For bash: gosched completions bash > ~/.local/share/bash-completion/completions/gosched
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one for each command into a folder
///
/// To read it at once: gosched man | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write gosched.1, gosched-lab.1 and so on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
