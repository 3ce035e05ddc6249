//! Programs of `testprogs`, run with a time limit.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// Longer than any of them takes on a machine that is slow, busy and stalled; a hang ends with it.
const SECONDS: &str = "400";

/// What a program has printed, and how it has ended.
pub(crate) struct Ended(Output);

/// Runs `program` with `GOSCHED=settings`.
pub(crate) fn run(settings: &str, program: &str, arguments: &[&str]) -> Ended {
    Ended(command(settings, program, arguments).output().expect("the child starts"))
}

/// Starts it, for tests that do something to it while it runs. Its standard input ends with
/// [`Ended::of`].
pub(crate) fn start(settings: &str, program: &str, arguments: &[&str]) -> Child {
    let mut command = command(settings, program, arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the child starts")
}

fn command(settings: &str, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg(SECONDS).arg(programs().join(program)).args(arguments);
    command.env("GOSCHED", settings).env_remove("GOMAXPROCS");
    command
}

/// Runs another program, with the same limit of time.
#[allow(dead_code, reason = "shared with tests that run none")]
pub(crate) fn run_other(program: &Path, arguments: &[&Path]) -> Ended {
    let mut command = Command::new("timeout");
    command.arg(SECONDS).arg(program).args(arguments).env_remove("GOMAXPROCS");
    Ended(command.output().expect("it starts"))
}

impl Ended {
    pub(crate) fn of(child: Child) -> Ended {
        Ended(child.wait_with_output().expect("the child ends"))
    }

    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) {
        assert_eq!(self.0.status.code(), Some(code), "{}", self.story());
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    fn story(&self) -> String {
        format!("{}\n{}\n{}", self.0.status, self.out(), self.err())
    }

    /// Prints why the child could not do its work here, if so.
    pub(crate) fn is_skipped(&self) -> bool {
        let out = self.out();
        let reason = out.lines().find(|line| line.starts_with("SKIPPED: "));
        reason.inspect(|reason| eprintln!("{reason}")).is_some()
    }

    /// The value of `key` in a child that ended well.
    #[track_caller]
    pub(crate) fn value(&self, key: &str) -> String {
        self.expect_code(0);
        let out = self.out();
        let value = out.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {key} in\n{}", self.story())).into()
    }

    #[track_caller]
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.value(key).parse().unwrap_or_else(|_| panic!("{key} in\n{}", self.story()))
    }
}

/// Where the programs are, after having those built that this test wants.
fn programs() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| build(crate::PROGRAMS))
}

/// The shared library `embedded`, after having it built.
#[allow(dead_code, reason = "shared with tests that need none")]
pub(crate) fn library() -> PathBuf {
    build(&["--example", "embedded"]).join("examples/libembedded.so")
}

/// Builds those of `testprogs`; the folder of this test's profile.
fn build(which: &[&str]) -> PathBuf {
    let test = env::current_exe().expect("known");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/test");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "testprogs"]).args(which);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.arg("--target-dir").arg(profile.parent().expect("target/PROFILE"));
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().expect("cargo runs").success(), "the programs build");
    profile.to_owned()
}
