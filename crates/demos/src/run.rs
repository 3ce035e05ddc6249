//! The process of a case, from both sides.

use crate::container::Container;
use crate::demo::{Case, Demo, End, Setup};
use crate::row::{Row, Rows, Story, Verdict};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// What a line of a case begins with that is its row; all others are for whoever looks on.
const ROW: &str = "row: ";

/// How a demo is to be run.
pub struct Asked<'a> {
    /// What the cases are given.
    pub setup: Setup,
    /// The command of the process that calls [`run_case`] with this name and an equal setup.
    pub command: &'a dyn Fn(&str) -> Command,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("setup", &self.setup).finish_non_exhaustive()
    }
}

/// Runs all cases, each in a process of its own, and explains them.
///
/// # Errors
/// A sentence: a process could not be started, or failed.
pub fn run(demo: &Demo, asked: &Asked<'_>) -> Result<Story, String> {
    let mut rows = Vec::new();
    for case in demo.cases {
        let row = run_apart(case, asked).map_err(|why| format!("{}: {why}", case.name))?;
        rows.push(row);
    }
    let findings = (demo.explain)(&Rows(&rows));
    Ok(Story { demo: demo.name.to_owned(), size: asked.setup.size, rows, findings })
}

/// Runs one case in this process, which has not used the runtime before, and says its row.
///
/// # Errors
/// A sentence: there is no such case, or it failed.
pub fn run_case(demo: &Demo, name: &str, setup: Setup) -> Result<(), String> {
    let case = demo.cases.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| format!("{} has no case {name:?}", demo.name))?;
    let say = setup.say.clone();
    let figures = gosched::run(move || (case.run)(&setup))?;
    let row = serde_json::to_string(&figures.row(case)).map_err(|error| error.to_string())?;
    say(&format!("{ROW}{row}"));
    Ok(())
}

fn run_apart(case: &Case, asked: &Asked<'_>) -> Result<Row, String> {
    let mut command = (asked.command)(case.name);
    // Alive until the process has ended.
    let container = case.settings.contains("{container}").then(Container::new).transpose()?;
    let folder = container.as_ref().map(Container::folder).unwrap_or_default();
    set(&mut command, &case.settings.replace("{container}", &folder));
    let stderr = if case.end == End::MayDie { Stdio::piped() } else { Stdio::inherit() };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut child = command.spawn().map_err(|error| format!("can't start a process: {error}"))?;
    let stderr = child.stderr.take().map(|stderr| thread::spawn(move || text(stderr)));
    let mut row = None;
    for line in child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
        let line = line.map_err(|error| format!("can't read what the process says: {error}"))?;
        match line.strip_prefix(ROW) {
            Some(json) => row = Some(json.to_owned()),
            None => (asked.setup.say)(&line),
        }
    }
    let status = child.wait().map_err(|error| format!("can't wait for the process: {error}"))?;
    let report = stderr.and_then(|reader| reader.join().ok()).unwrap_or_default();
    match row {
        Some(json) if status.success() => serde_json::from_str(&json)
            .map_err(|error| format!("can't read the row of the process: {error}")),
        None if case.end == End::MayDie && !status.success() => Ok(died(case, status, &report)),
        _ => Err(format!("the process failed: {status}")),
    }
}

/// What the case asks for comes after what the caller's environment says.
fn set(command: &mut Command, own: &str) {
    if own.is_empty() {
        return;
    }
    if own.split(',').any(|setting| setting.starts_with("procs=") || setting.starts_with("root=")) {
        // It would win.
        command.env_remove("GOMAXPROCS");
    }
    let inherited = std::env::var("GOSCHED").ok().filter(|text| !text.is_empty());
    let settings = inherited.map_or_else(|| own.to_owned(), |text| format!("{text},{own}"));
    command.env("GOSCHED", settings);
}

fn text(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    // What could not be read is missing from the report, which is for people.
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn died(case: &Case, status: ExitStatus, report: &str) -> Row {
    let notes = report.lines().map(str::to_owned).collect();
    let figures = BTreeMap::from([("died".to_owned(), 1)]);
    let mut row = Row { case: case.name.to_owned(), verdict: case.verdict, figures, notes };
    row.notes.push(format!("({status})"));
    debug_assert_eq!(case.verdict, Verdict::Wrong, "a cure that kills");
    row
}
