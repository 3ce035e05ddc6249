//! `gosched demo`.

use crate::args::DemoArgs;
use crate::outcome::{self, Failed, ended, own_program, print};
use gosched_demos::{Asked, Demo, Say, Setup};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::{Command, ExitCode};
use std::sync::Arc;

pub(crate) fn run(args: &DemoArgs) -> ExitCode {
    let result = if args.list { list(args.json) } else { named(args) };
    ended("demo", result)
}

fn list(as_json: bool) -> Result<(), Failed> {
    let demos = gosched_demos::all();
    if as_json {
        let demos: Vec<_> = demos.iter().map(|demo| described(demo)).collect();
        return print(format!("{}\n", Value::from(demos)));
    }
    let line = |demo: &&Demo| {
        let name = format!("{}{}", demo.name, if demo.wants_folder { " DIR" } else { "" });
        let (what, usual) = (demo.size.what, demo.size.usual);
        format!("{name:<14} {}\n{:<14} --size: {what}, {usual} unless said\n", demo.about, "")
    };
    print(demos.iter().map(line).collect::<String>())
}

fn described(demo: &Demo) -> Value {
    json!({
        "name": demo.name,
        "about": demo.about,
        "question": demo.question,
        "wants_folder": demo.wants_folder,
        "size": {"what": demo.size.what, "usual": demo.size.usual, "quick": demo.size.quick,
                 "most": demo.size.most},
    })
}

fn named(args: &DemoArgs) -> Result<(), Failed> {
    let (demo, size) = args.demo().unwrap_or_else(|error| error.exit());
    // With JSON the lines of the cases would be in its way.
    let say: Say = if args.json { Arc::new(|_| ()) } else { Arc::new(show) };
    let setup = Setup { size, quick: args.quick, folder: args.folder.clone(), say };
    if let Some(case) = &args.case {
        return gosched_demos::run_case(demo, case, Setup { say: Arc::new(show), ..setup });
    }
    if let Some(folder) = &args.folder {
        // Better said once than by each case.
        std::fs::read_dir(folder)
            .map_err(|error| format!("can't read {}: {error}", folder.display()))?;
    }
    if !args.json {
        print(format!(
            "{}: {}\n\n{}\n",
            demo.name,
            demo.about,
            gosched_demos::paragraph(demo.question)
        ))?;
    }
    let program = own_program()?;
    let command = |case: &str| {
        let mut command = Command::new(&program);
        command.args(["demo", demo.name]).args(&args.folder);
        command.args(["--case", case, "--size", &size.to_string()]);
        if args.quick {
            command.arg("--quick");
        }
        command
    };
    let story = gosched_demos::run(demo, &Asked { setup, command: &command })?;
    let text = if args.json { outcome::json(&story)? } else { gosched_demos::story(demo, &story) };
    print(&text)
}

/// A line while a case runs. Nobody may be there to read it, and that is no reason to fail.
fn show(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
