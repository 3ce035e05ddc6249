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
        let name = format!("CARGO_PROFILE_{}_PANIC", profile_name(&profile()));
        let set_up = |build: &mut Command| {
            build.env(name, "abort");
        };
        Child::at(&build_apart(program, "panic-abort", set_up), arguments)
    }

    /// As [`new`](Child::new), from a build with allocations planted in the runtime.
    pub(crate) fn planted(program: &str, arguments: &[&str]) -> Child {
        let set_up = |build: &mut Command| {
            build.args(["--features", "plant"]);
        };
        Child::at(&build_apart(program, "plant", set_up), arguments)
    }

    /// As [`new`](Child::new), from a build that records what the scheduler does, and in which wakes
    /// can be planted to be forgotten.
    pub(crate) fn recorded(program: &str, arguments: &[&str]) -> Child {
        let set_up = |build: &mut Command| {
            build.args(["--features", "history,plant"]);
        };
        Child::at(&build_apart(program, "history", set_up), arguments)
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
    pub(crate) fn expect_at_most(&self, key: &str, bound: u64) {
        assert!(self.get(key) <= bound, "{key} is above {bound}\n{}", self.ended.story());
    }
}

/// Where the programs are, after having them built.
fn programs() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let profile = profile();
        let mut build = build(&["--bins"]);
        build.arg("--target-dir").arg(profile.parent().expect("target/PROFILE"));
        assert!(build.status().expect("cargo runs").success(), "the programs build");
        profile
    })
}

/// One program, built differently from the others, in a target directory of its own.
fn build_apart(program: &str, directory: &str, set_up: impl FnOnce(&mut Command)) -> PathBuf {
    let profile = profile();
    let name = profile.file_name().expect("target/PROFILE").to_owned();
    let target = profile.parent().expect("target/PROFILE").join(directory);
    let mut build = build(&["--bin", program]);
    build.arg("--target-dir").arg(&target);
    set_up(&mut build);
    assert!(build.status().expect("cargo runs").success(), "the program builds");
    target.join(name).join(program)
}

/// The directory of the profile with which this test was built.
pub(crate) fn profile() -> PathBuf {
    let test = env::current_exe().expect("known");
    test.ancestors().nth(2).expect("target/PROFILE/deps/test").to_owned()
}

fn profile_name(profile: &Path) -> &'static str {
    if profile.ends_with("release") { "RELEASE" } else { "DEV" }
}

/// `cargo build` of the programs in that profile.
fn build(what: &[&str]) -> Command {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "testprogs"]).args(what);
    if profile().ends_with("release") {
        build.arg("--release");
    }
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    build
}
