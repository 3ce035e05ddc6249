//! Child programs: how they are built, run and looked at.

use std::collections::HashMap;
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A child that is about to run, under a time limit.
pub(crate) struct Child {
    command: Command,
}

/// What became of it.
pub(crate) struct Ended {
    output: Output,
}

impl Child {
    /// `program` of `testprogs`, with neither backtraces nor settings of the environment's.
    pub(crate) fn new(program: &str, arguments: &[&str]) -> Child {
        Child::at(&programs().join(program), arguments)
    }

    pub(crate) fn at(program: &Path, arguments: &[&str]) -> Child {
        // Longer than any of them takes on a busy machine; `timeout` then kills it with 137.
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "300"]).arg(program).args(arguments);
        for variable in ["RUST_BACKTRACE", "GOSCHED", "GOMAXPROCS"] {
            command.env_remove(variable);
        }
        Child { command }
    }

    /// As [`new`](Child::new), from a build with `panic = "abort"`.
    pub(crate) fn aborting(program: &str, arguments: &[&str]) -> Child {
        Child::at(&programs_that_abort(program), arguments)
    }

    /// As [`new`](Child::new), from a build that records what the scheduler does, and in which
    /// allocations and forgotten wakes can be planted.
    pub(crate) fn planted(program: &str, arguments: &[&str]) -> Child {
        Child::at(&planted_programs().join(program), arguments)
    }

    pub(crate) fn env(mut self, key: &str, value: &str) -> Child {
        self.command.env(key, value);
        self
    }

    pub(crate) fn procs(self, procs: usize) -> Child {
        self.env("GOMAXPROCS", &procs.to_string())
    }

    /// For tests that talk to it.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    pub(crate) fn run(mut self) -> Ended {
        Ended { output: self.command.output().expect("the child starts") }
    }
}

impl Ended {
    pub(crate) fn out(&self) -> &str {
        str::from_utf8(&self.output.stdout).expect("text")
    }

    pub(crate) fn err(&self) -> &str {
        str::from_utf8(&self.output.stderr).expect("text")
    }

    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) -> &Ended {
        assert_eq!(self.output.status.code(), Some(code), "{}", self.story());
        self
    }

    /// `timeout` dies of the signal that its child died of.
    #[track_caller]
    pub(crate) fn expect_signal(&self, signal: i32) -> &Ended {
        assert_eq!(self.output.status.signal(), Some(signal), "{}", self.story());
        self
    }

    #[track_caller]
    pub(crate) fn expect_out(&self, text: &str) -> &Ended {
        assert_eq!(self.out(), text, "{}", self.story());
        self
    }

    #[track_caller]
    pub(crate) fn expect_err(&self, text: &str) -> &Ended {
        assert_eq!(self.err(), text, "{}", self.story());
        self
    }

    /// Each of `parts` in standard error, in this order.
    #[track_caller]
    pub(crate) fn expect_err_parts(&self, parts: &[&str]) -> &Ended {
        let mut rest = self.err();
        for part in parts {
            let at = rest.find(part);
            assert!(at.is_some(), "{part:?} is missing\n{}", self.story());
            rest = &rest[at.map_or(0, |at| at + part.len())..];
        }
        self
    }

    /// The `key=value` lines of a child that ended well.
    #[track_caller]
    pub(crate) fn figures(&self) -> Figures<'_> {
        self.expect_code(0);
        let pairs = self.out().lines().filter_map(|line| line.split_once('='));
        let pairs = pairs.filter_map(|(key, value)| Some((key, value.parse().ok()?)));
        Figures { figures: pairs.collect(), ended: self }
    }

    pub(crate) fn has_ended_well(&self) -> bool {
        self.output.status.success()
    }

    pub(crate) fn story(&self) -> String {
        format!("{}\n-- out\n{}\n-- err\n{}", self.output.status, self.out(), self.err())
    }
}

/// Numbers that a child printed.
pub(crate) struct Figures<'a> {
    figures: HashMap<&'a str, u64>,
    ended: &'a Ended,
}

impl Figures<'_> {
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, u64)> {
        self.figures.iter().map(|(key, value)| (*key, *value))
    }

    #[track_caller]
    pub(crate) fn get(&self, key: &str) -> u64 {
        match self.figures.get(key) {
            Some(value) => *value,
            None => panic!("no figure {key}\n{}", self.ended.story()),
        }
    }

    #[track_caller]
    pub(crate) fn expect(&self, key: &str, value: u64) {
        assert_eq!(self.get(key), value, "{key}\n{}", self.ended.story());
    }

    #[track_caller]
    pub(crate) fn expect_some(&self, key: &str) {
        assert!(self.get(key) > 0, "{key} never happened\n{}", self.ended.story());
    }

    #[track_caller]
    pub(crate) fn expect_at_least(&self, key: &str, bound: u64) {
        assert!(self.get(key) >= bound, "{key} is below {bound}\n{}", self.ended.story());
    }

    #[track_caller]
    pub(crate) fn expect_at_most(&self, key: &str, bound: u64) {
        assert!(self.get(key) <= bound, "{key} is above {bound}\n{}", self.ended.story());
    }
}

/// Where the programs are, after having them built.
fn programs() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| build(&["--bins"], "", |_| ()))
}

/// Where the programs of the features `history` and `plant` are, after having them built. Programs
/// of other builds must not have their names.
fn planted_programs() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let what = ["--bin", "sched_history", "--bin", "sched_alloc_planted"];
    DIRECTORY.get_or_init(|| {
        build(&what, "", |build| {
            build.args(["--features", "history,plant"]);
        })
    })
}

/// `program` with `panic = "abort"`, in a target directory of its own, since nothing in it is like
/// the other builds'.
fn programs_that_abort(program: &str) -> PathBuf {
    let profile = if profile().ends_with("release") { "RELEASE" } else { "DEV" };
    let set_up = |build: &mut Command| {
        build.env(format!("CARGO_PROFILE_{profile}_PANIC"), "abort").arg("--no-default-features");
    };
    build(&["--bin", program], "panic-abort", set_up).join(program)
}

/// The directory of the profile with which this test was built.
pub(crate) fn profile() -> PathBuf {
    let test = env::current_exe().expect("known");
    test.ancestors().nth(2).expect("target/PROFILE/deps/test").to_owned()
}

/// Builds programs as this test was built, and what differs. Returns where they are.
fn build(what: &[&str], subdirectory: &str, set_up: impl FnOnce(&mut Command)) -> PathBuf {
    let profile = profile();
    let target = profile.parent().expect("target/PROFILE").join(subdirectory);
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "testprogs"]).args(what);
    build.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    set_up(&mut build);
    assert!(build.status().expect("cargo runs").success(), "the programs build");
    target.join(profile.file_name().expect("target/PROFILE"))
}
