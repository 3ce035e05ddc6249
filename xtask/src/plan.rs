//! What CI covers: the tables to edit when a crate, a program or a test crate is added.
//!
//! Most things need no entry: every crate of the workspace is tested in debug mode, and every
//! `tests/loom_*.rs` is found by its name.

use std::time::Duration;

/// The longest that a whole `cargo xtask ci` may take; steps after it fail without being run.
pub(crate) const TOTAL: Duration = minutes(80);

/// Folders of crates whose tests run in release mode as well, because the optimiser changes what
/// they show: assembly, thread-locals, orderings, timing.
pub(crate) const RELEASE_CRATES: &[&str] = &[
    "crates/fiber",
    "crates/sched",
    "crates/channel",
    "crates/sync",
    "crates/gosched",
    "testprogs",
];

/// How long the torture test runs in each mode.
pub(crate) const TORTURE_SECS: &str = "60";

/// Packages whose unit tests run under Miri: those that it understands and that have unsafe code or
/// orderings.
pub(crate) const MIRI_CRATES: &[&str] = &["gosched-base", "gosched-runq", "gosched-protocol"];

/// A package with the tests of it that run under a sanitizer, which `cargo xtask sanitize` builds.
pub(crate) struct Sanitized {
    pub(crate) package: &'static str,
    /// Which of the package's tests are built.
    pub(crate) kind: &'static [&'static str],
    /// The only sanitizer that they are for.
    pub(crate) only: Option<&'static str>,
    /// Tests that a sanitizer can't run, each for the reason beside it.
    pub(crate) left_out: &'static [(&'static str, &'static str)],
}

/// The target whose sanitizers are used: with one named, build scripts go without.
pub(crate) const SANITIZED_TARGET: &str = "x86_64-unknown-linux-gnu";

/// What runs under AddressSanitizer and ThreadSanitizer.
pub(crate) const SANITIZED: &[Sanitized] = &[
    Sanitized {
        package: "gosched-fiber",
        kind: &["--lib", "sanitizer"],
        only: Some("address"),
        left_out: &[],
    },
    Sanitized { package: "gosched-channel", kind: &["--test", "it"], only: None, left_out: &[] },
    Sanitized { package: "gosched-sync", kind: &["--test", "it"], only: None, left_out: &[] },
    Sanitized { package: "gosched-net", kind: &["--lib"], only: None, left_out: &[] },
];

/// Packages that must compile for aarch64 already.
pub(crate) const CROSS_CRATES: &[&str] = &[
    "gosched-base",
    "gosched-poll",
    "gosched-protocol",
    "gosched-runq",
    "gosched-topology",
    "gosched-trace-format",
];

/// The target that `cross` checks.
pub(crate) const CROSS_TARGET: &str = "aarch64-unknown-linux-gnu";

/// A crate with a workspace of its own, or a folder of such crates.
pub(crate) struct ExtraCrate {
    /// The folder, from the root of the repository.
    pub(crate) folder: &'static str,
    /// What CI does with it.
    pub(crate) treatment: Treatment,
}

/// What CI does with a crate outside the workspace.
pub(crate) enum Treatment {
    /// `cargo test` with these further arguments.
    Test(&'static [&'static str]),
    /// Not run, for this reason.
    Leave(&'static str),
}

/// Every `Cargo.toml` that is no member of the workspace. CI fails for one that is missing here.
pub(crate) const EXTRA_CRATES: &[ExtraCrate] = &[
    ExtraCrate {
        folder: "bench/peers",
        treatment: Treatment::Leave("other runtimes, built only when a comparison is made"),
    },
    ExtraCrate { folder: "ecosystem", treatment: Treatment::Test(&[]) },
];

/// A run of the command `gosched` that must end with exit code 0.
pub(crate) struct Program {
    /// The word that `gosched --help` lists once the program exists.
    pub(crate) listed: &'static str,
    /// What follows `cargo run --release --`.
    pub(crate) args: &'static [&'static str],
}

/// The programs that CI runs, the one that the README shows first.
pub(crate) const PROGRAMS: &[Program] = &[
    Program { listed: "lab", args: &["lab", "--quick"] },
    Program { listed: "compare", args: &["compare", "--quick"] },
    Program { listed: "doctor", args: &["doctor"] },
];

/// A test that makes inputs for a parser; CI runs it like any other, with few of them.
pub(crate) struct Fuzzed {
    pub(crate) name: &'static str,
    /// What is parsed.
    pub(crate) what: &'static str,
    pub(crate) package: &'static str,
    /// Which of the package's tests are built.
    pub(crate) kind: &'static [&'static str],
    /// The test's path.
    pub(crate) test: &'static str,
}

/// What `cargo xtask fuzz` runs.
pub(crate) const FUZZED: &[Fuzzed] = &[
    Fuzzed {
        name: "trace",
        what: "execution traces, and the order of their events",
        package: "gosched-trace-format",
        kind: &["--lib"],
        test: "order::tests::damaged_files_end_nothing",
    },
    Fuzzed {
        name: "http",
        what: "heads of requests",
        package: "gosched-http",
        kind: &["--lib"],
        test: "head::tests::damaged_heads_end_nothing",
    },
    Fuzzed {
        name: "chunked",
        what: "chunked bodies",
        package: "gosched-http",
        kind: &["--lib"],
        test: "chunked::tests::damaged_bodies_are_read_alike_in_any_pieces",
    },
    Fuzzed {
        name: "machine",
        what: "the kernel's files about cgroups, CPUs and nodes",
        package: "gosched-topology",
        kind: &["--test", "it"],
        test: "damaged::damaged_files_end_nothing",
    },
    Fuzzed {
        name: "lists",
        what: "lists of CPUs",
        package: "gosched-topology",
        kind: &["--test", "it"],
        test: "damaged::damaged_lists_end_nothing",
    },
    Fuzzed {
        name: "settings",
        what: "the variable GOSCHED",
        package: "gosched-sched",
        kind: &["--lib"],
        test: "config::tests::settings_end_nothing",
    },
    Fuzzed {
        name: "arguments",
        what: "command lines of `gosched`",
        package: "gosched-cli",
        kind: &["--bin", "gosched"],
        test: "args::tests::command_lines_end_nothing",
    },
];

/// A time limit in minutes.
pub(crate) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}
