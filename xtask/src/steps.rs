//! What each step of CI runs.
//!
//! A step that cannot run where it is says so as a skip with the reason; a step that finds
//! nothing to test where tests are expected fails.

use std::env;
use std::path::Path;
use std::time::Instant;

use crate::plan::{self, Treatment};
use crate::report::Report;
use crate::run::{Ended, Shown, Task};
use crate::tally::{Models, Tally};
use crate::tidy;
use crate::workspace::{self, Package, Workspace};

/// What a step works on.
pub(crate) struct Context<'a> {
    /// The crates.
    pub(crate) workspace: &'a Workspace,
    /// When the step must have ended.
    pub(crate) deadline: Instant,
}

pub(crate) fn fmt(context: &Context<'_>) -> Report {
    let tool = cargo(&["fmt", "--version"]);
    if let Err(reason) = tool.quiet_output(&context.workspace.root) {
        return Report::skip(format!("rustfmt is not installed: {reason}"));
    }
    check(context, &cargo(&["fmt", "--all", "--check"]))
}

pub(crate) fn tidy(context: &Context<'_>) -> Report {
    tidy::report(context.workspace)
}

pub(crate) fn clippy(context: &Context<'_>) -> Report {
    let tool = cargo(&["clippy", "--version"]);
    if let Err(reason) = tool.quiet_output(&context.workspace.root) {
        return Report::skip(format!("clippy is not installed: {reason}"));
    }
    let args = ["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"];
    check(context, &cargo(&args))
}

pub(crate) fn debug_tests(context: &Context<'_>) -> Report {
    let args = ["test", "--workspace", "--no-fail-fast", "--", "--show-output"];
    tests(context, &cargo(&args), Models::MayBeEmpty)
}

pub(crate) fn release_tests(context: &Context<'_>) -> Report {
    let mut report = Report::default();
    let mut task = quick_release(&["test", "--release", "--no-fail-fast"]);
    let mut any = false;
    for folder in plan::RELEASE_CRATES {
        let Some(package) = context.workspace.package_in(folder) else {
            report.absorb(Report::fail(format!("plan.rs names {folder}, which is no crate")));
            continue;
        };
        if package.has_tests(&context.workspace.root) {
            task = task.args(["-p", &package.name]);
            any = true;
        } else {
            report.absorb(Report::skip(format!("{folder} has no tests yet")));
        }
    }
    if any {
        report.absorb(tests(context, &task.args(["--", "--show-output"]), Models::MayBeEmpty));
    }
    report
}

/// The torture test, optimised and with debug assertions.
pub(crate) fn torture(context: &Context<'_>) -> Report {
    let args = ["test", "--release", "-p", "gosched", "--test", "torture"];
    let task = quick_release(&args).args(["--", "--show-output", "--test-threads=1"]);
    let task = task.variable("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    tests(context, &task.variable("TORTURE_SECS", plan::TORTURE_SECS), Models::MayBeEmpty)
}

pub(crate) fn extra_crates(context: &Context<'_>) -> Report {
    let root = &context.workspace.root;
    let mut report = Report::default();
    let known = |manifest: &str| {
        let folder = manifest.strip_suffix("Cargo.toml").unwrap_or(manifest).trim_end_matches('/');
        folder.is_empty()
            || context.workspace.package_in(folder).is_some()
            || plan::EXTRA_CRATES.iter().any(|extra| Path::new(folder).starts_with(extra.folder))
    };
    for path in workspace::files_below(root) {
        let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.ends_with("Cargo.toml") && !known(&path) {
            report.absorb(Report::fail(format!(
                "{path} is neither a member of the workspace nor in EXTRA_CRATES of xtask/src/plan.rs"
            )));
        }
    }
    for extra in plan::EXTRA_CRATES {
        let folder = extra.folder;
        report.absorb(match extra.treatment {
            Treatment::Leave(_) if !root.join(folder).exists() => Report::default(),
            Treatment::Leave(reason) => Report::skip(format!("{folder}: {reason}")),
            Treatment::Test(args) => {
                let manifest = format!("{folder}/Cargo.toml");
                let task = cargo(&["test", "--no-fail-fast", "--manifest-path", &manifest]);
                let task = task.args(args).args(["--", "--show-output"]);
                tests(context, &task, Models::MayBeEmpty)
            }
        });
    }
    if report == Report::default() { Report::pass() } else { report }
}

pub(crate) fn loom(context: &Context<'_>) -> Report {
    let packages = &context.workspace.packages;
    let mut report = Report::default();
    for package in packages.iter().filter(|package| !package.loom_tests().is_empty()) {
        report.absorb(loom_tests(context, package));
    }
    if report == Report::default() {
        return Report::skip("no crate has a tests/loom_*.rs yet");
    }
    report
}

/// The loom tests of the crate with this package or folder name.
pub(crate) fn loom_of(context: &Context<'_>, name: &str) -> Report {
    let named = |package: &&Package| {
        package.name == name || package.folder.rsplit('/').next() == Some(name)
    };
    match context.workspace.packages.iter().find(named) {
        None => Report::fail(format!("no crate is called {name}")),
        Some(package) if package.loom_tests().is_empty() => {
            Report::fail(format!("{} has no tests/loom_*.rs", package.folder))
        }
        Some(package) => loom_tests(context, package),
    }
}

fn loom_tests(context: &Context<'_>, package: &Package) -> Report {
    let args = ["test", "--release", "--no-fail-fast", "--target-dir", "target/loom", "-p"];
    let mut task = cargo(&args).args([&package.name]).variable("RUSTFLAGS", "--cfg loom");
    // Three preemptions find nearly every bug and keep the number of interleavings small; some
    // models also assert which outcomes must show.
    if env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        task = task.variable("LOOM_MAX_PREEMPTIONS", "3");
    }
    for test in package.loom_tests() {
        task = task.args(["--test", test]);
    }
    tests(context, &task.args(["--", "--show-output"]), Models::MustRun)
}

pub(crate) fn miri(context: &Context<'_>) -> Report {
    let root = &context.workspace.root;
    if let Err(reason) = nightly("cargo", &["miri", "--version"]).quiet_output(root) {
        return Report::skip(format!("Miri does not run here: {reason}"));
    }
    if let Err(reason) = needs_source(root) {
        return Report::skip(format!("Miri {reason}"));
    }
    let mut report = Report::default();
    for name in plan::MIRI_CRATES {
        let package = context.workspace.packages.iter().find(|package| package.name == *name);
        report.absorb(match package {
            None => Report::fail(format!("plan.rs names {name}, which is no crate")),
            Some(package) if !package.has_tests(root) => {
                Report::skip(format!("{name} has no tests yet"))
            }
            Some(_) => {
                let args = ["miri", "test", "--no-fail-fast", "--target-dir", "target/miri", "-p"];
                let task = nightly("cargo", &args).args([name, "--lib", "--", "--show-output"]);
                // Clocks are the machine's.
                let task = task
                    .variable("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance");
                tests(context, &task, Models::MayBeEmpty)
            }
        });
    }
    report
}

/// Whether nightly has the source of the standard library, without which Cargo would fetch it.
fn needs_source(root: &Path) -> Result<(), String> {
    let sysroot = nightly("rustc", &["--print", "sysroot"]).quiet_output(root)?;
    if Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir() {
        return Ok(());
    }
    Err("needs the component rust-src, which nightly does not have here".to_owned())
}

pub(crate) fn sanitize_address(context: &Context<'_>) -> Report {
    // Leaks are looked for in the stacks of threads, not of goroutines.
    sanitize(context, "address", "gosched_asan", "ASAN_OPTIONS", "detect_leaks=0")
}

pub(crate) fn sanitize_thread(context: &Context<'_>) -> Report {
    let list = context.workspace.root.join("xtask/tsan.supp");
    let options = format!("suppressions={}", list.display());
    sanitize(context, "thread", "gosched_tsan", "TSAN_OPTIONS", &options)
}

/// Runs tests under a sanitizer, with shared thread-locals, since it keeps its own there, and
/// without preemption, since it handles signals late.
fn sanitize(context: &Context<'_>, kind: &str, cfg: &str, variable: &str, options: &str) -> Report {
    if let Err(reason) = needs_source(&context.workspace.root) {
        return Report::skip(format!("the sanitizer {reason}"));
    }
    let mut report = Report::default();
    for plan::Sanitized { package, kind: tests_of, only, left_out } in plan::SANITIZED {
        if only.is_some_and(|only| only != kind) {
            continue;
        }
        let folder = format!("target/{kind}");
        let args = ["test", "--no-fail-fast", "-Zbuild-std", "--target", plan::SANITIZED_TARGET];
        let task = nightly("cargo", &args).args(["--target-dir", &folder, "-p", package]);
        let mut task = task.args(*tests_of).args(["--", "--show-output"]);
        for (name, reason) in *left_out {
            task = task.args(["--skip", name]);
            report.absorb(Report::skip(format!("{package} {name}: {reason}")));
        }
        let task = task
            .variable("RUSTFLAGS", &format!("-Zsanitizer={kind} --cfg {cfg}"))
            .variable("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .variable("GOSCHED", "tls=shared,asyncpreemptoff=1")
            .variable(variable, options);
        report.absorb(tests(context, &task, Models::MayBeEmpty));
    }
    report
}

pub(crate) fn doc(context: &Context<'_>) -> Report {
    // With private items, since the pages of private modules hold most links.
    let task = cargo(&["doc", "--workspace", "--lib", "--no-deps", "--keep-going"]);
    let task = task.args(["--document-private-items"]);
    let flags = "-D warnings -A rustdoc::private_intra_doc_links";
    check(context, &task.variable("RUSTDOCFLAGS", flags))
}

pub(crate) fn programs(context: &Context<'_>) -> Report {
    let base = ["run", "--release", "--quiet", "--"];
    let mut help = String::new();
    let task = cargo(&base).args(["--help"]);
    let mut report = watched(context, &task, |line| {
        help.push_str(line);
        help.push('\n');
        Shown::Yes
    });
    for program in plan::PROGRAMS {
        let listed = help.split_whitespace().any(|word| word == program.listed);
        report.absorb(if listed {
            check(context, &cargo(&base).args(program.args))
        } else {
            Report::skip(format!("gosched --help does not list {} yet", program.listed))
        });
    }
    report
}

pub(crate) fn go_tools(context: &Context<'_>) -> Report {
    match Task::new("go").args(["version"]).quiet_output(&context.workspace.root) {
        Ok(version) => {
            println!("{}", version.trim());
            Report::pass()
        }
        Err(reason) => Report::skip(format!(
            "Go is not installed ({reason}): tests that open our files with its tools skip as well"
        )),
    }
}

pub(crate) fn cross(context: &Context<'_>) -> Report {
    let root = &context.workspace.root;
    let rustc = Task::new("rustc").args(["--print", "target-libdir", "--target"]);
    let std = rustc.args([plan::CROSS_TARGET]).quiet_output(root);
    let present = |folder: &String| Path::new(folder.trim()).is_dir();
    if !std.as_ref().is_ok_and(present) {
        return Report::skip(format!("the standard library for {} is missing", plan::CROSS_TARGET));
    }
    let mut task = cargo(&["check", "--target", plan::CROSS_TARGET]);
    for name in plan::CROSS_CRATES {
        task = task.args(["-p", name]);
    }
    check(context, &task)
}

/// Builds are made once here: no state is kept for the next one, and no debug information that only
/// a debugger reads.
pub(crate) fn cargo(args: &[&str]) -> Task {
    let task = Task::new(workspace::cargo()).args(args);
    task.variable("CARGO_INCREMENTAL", "0").variable("CARGO_PROFILE_DEV_DEBUG", "limited")
}

/// Optimised, but not across crates: that is the benches' wish, and takes longer to build than the
/// tests take to run.
fn quick_release(args: &[&str]) -> Task {
    let task = cargo(args).variable("CARGO_PROFILE_RELEASE_LTO", "off");
    task.variable("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
}

/// A tool of the nightly toolchain, which only rustup's own programs on the path can pick.
fn nightly(program: &str, args: &[&str]) -> Task {
    let task = Task::new(program).args(["+nightly"]).args(args);
    task.variable("RUSTUP_AUTO_INSTALL", "0")
}

/// Runs a command that counts as one check.
fn check(context: &Context<'_>, task: &Task) -> Report {
    watched(context, task, |_| Shown::Yes)
}

/// Runs a command that counts as one check and hands on its output.
pub(crate) fn watched(
    context: &Context<'_>,
    task: &Task,
    on_line: impl FnMut(&str) -> Shown,
) -> Report {
    match ending(context, task, on_line) {
        None => Report::pass(),
        Some(failure) => Report::fail(failure),
    }
}

/// Runs a `cargo test` and counts its tests.
fn tests(context: &Context<'_>, task: &Task, models: Models) -> Report {
    let mut tally = Tally::new(models);
    let failure = ending(context, task, |line| tally.line(line));
    let mut report = tally.finish();
    match failure {
        // A failure that has been counted by name already explains the exit code.
        Some(text) if report.failures.is_empty() || !text.contains("exit status") => {
            report.failures.push(text);
        }
        _ => {}
    }
    if report.ran() == 0 && report.skips.is_empty() {
        report.failures.push(format!("no tests ran: {}", task.shown()));
    }
    report
}

/// Runs a command; `None` if it succeeded, else what went wrong.
fn ending(
    context: &Context<'_>,
    task: &Task,
    on_line: impl FnMut(&str) -> Shown,
) -> Option<String> {
    let shown = task.shown();
    match task.run(&context.workspace.root, context.deadline, on_line) {
        Err(error) => Some(format!("{shown}: cannot be started: {error}")),
        Ok(Ended::Exited(status)) if status.success() => None,
        Ok(Ended::Exited(status)) => Some(format!("{shown}: {status}")),
        Ok(Ended::TimedOut) => Some(format!("{shown}: ran past its time and was killed")),
        Ok(Ended::LeftProcesses(count)) => {
            Some(format!("{shown}: left {count} processes running, which were killed"))
        }
    }
}
