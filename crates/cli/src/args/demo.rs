//! `gosched demo`.

use super::Args;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Error};
use gosched_demos::Demo;
use std::path::PathBuf;

/// What goes wrong with goroutines, and what goes right, measured here and now
///
/// Runs the wrong way and the right one, each in a process of its own, and prints what came out,
/// what to look at, and why it is so, computed from the numbers of this very run.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct DemoArgs {
    /// Which one
    #[arg(value_name = "NAME", required_unless_present = "list", value_parser = names())]
    name: Option<String>,

    /// The folder that the demo `pipeline` works on
    #[arg(value_name = "DIR", requires = "name")]
    pub(crate) folder: Option<PathBuf>,

    /// List the demos
    #[arg(long, conflicts_with_all = ["name", "quick", "size"])]
    pub(crate) list: bool,

    /// Do little: well below a second
    #[arg(long)]
    pub(crate) quick: bool,

    /// How much to do; of what, and how much is usual, --list says
    #[arg(long, value_name = "N")]
    size: Option<u64>,

    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Run one case in this process
    #[arg(long, value_name = "CASE", hide = true)]
    pub(crate) case: Option<String>,
}

impl DemoArgs {
    /// The demo that was asked for, and how much it is to do.
    pub(crate) fn demo(&self) -> Result<(&'static Demo, u64), Error> {
        let demo = self.name.as_deref().and_then(gosched_demos::find);
        let demo = demo.ok_or_else(|| wrong("name a demo; --list lists them"))?;
        let name = demo.name;
        match (demo.wants_folder, &self.folder) {
            (true, None) => {
                let text = format!("`{name}` works on a folder: gosched demo {name} DIR");
                return Err(wrong(&text));
            }
            (false, Some(folder)) => {
                let text = format!("`{name}` takes no folder, so what is '{}'?", folder.display());
                return Err(wrong(&text));
            }
            _ => {}
        }
        let usual = if self.quick { demo.size.quick } else { demo.size.usual };
        let size = self.size.unwrap_or(usual);
        if size == 0 || size > demo.size.most {
            let (what, most) = (demo.size.what, demo.size.most);
            let text = format!("--size of `{name}` is the {what}: 1 to {most}, not {size}");
            return Err(wrong(&text));
        }
        Ok((demo, size))
    }
}

/// An error as clap's own.
fn wrong(text: &str) -> Error {
    let mut gosched = Args::command();
    gosched.build();
    match gosched.find_subcommand_mut("demo") {
        Some(demo) => demo.error(ErrorKind::ValueValidation, text),
        None => gosched.error(ErrorKind::ValueValidation, text),
    }
}

fn names() -> PossibleValuesParser {
    gosched_demos::all().iter().map(|demo| demo.name).collect::<Vec<_>>().into()
}
