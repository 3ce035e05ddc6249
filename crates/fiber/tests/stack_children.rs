//! What ends a process, or needs one of its own: overflows, faults, density, locked memory.
//!
//! The programs are in `testprogs/src/bin/stack_*.rs`.

use gosched_fiber::stack::{Class, GuardKind};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Set to run the density test with a million stacks, which takes 5 GiB.
const MILLION: &str = "GOSCHED_TEST_MILLION";

/// A child's output, decoded.
struct Child {
    output: Output,
}

impl Child {
    fn run(program: &str, arguments: &[&str]) -> Self {
        let output = Command::new(programs().join(program))
            .args(arguments)
            .env_remove("RUST_BACKTRACE")
            .output()
            .expect("the child starts");
        Self { output }
    }

    /// Runs a program with at most `kib` KiB of address space.
    fn run_limited(kib: usize, program: &str, arguments: &[&str]) -> Self {
        let script = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(programs().join(program)).args(arguments);
        Self { output: command.output().expect("the child starts") }
    }

    fn out(&self) -> &str {
        str::from_utf8(&self.output.stdout).expect("text")
    }

    fn err(&self) -> &str {
        str::from_utf8(&self.output.stderr).expect("text")
    }

    #[track_caller]
    fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.output.status.code(), Some(code), "{}", self.story());
        self
    }

    #[track_caller]
    fn expect_signal(&self, signal: i32) -> &Self {
        assert_eq!(self.output.status.signal(), Some(signal), "{}", self.story());
        self
    }

    #[track_caller]
    fn expect_out(&self, text: &str) -> &Self {
        assert_eq!(self.out(), text, "{}", self.story());
        self
    }

    /// The `key=value` lines.
    #[track_caller]
    fn figures(&self) -> HashMap<&str, usize> {
        self.expect_code(0);
        let pair = |line: &'_ str| -> Option<(usize, usize)> {
            let at = line.find('=')?;
            Some((at, line[at + 1..].parse().ok()?))
        };
        self.out().lines().filter_map(|l| pair(l).map(|(at, value)| (&l[..at], value))).collect()
    }

    fn story(&self) -> String {
        format!("{}\n-- out\n{}\n-- err\n{}", self.output.status, self.out(), self.err())
    }
}

/// Where the programs are, after having them built.
fn programs() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let test = env::current_exe().expect("known");
        let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/test");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "testprogs", "--bins"]);
        if profile.ends_with("release") {
            build.arg("--release");
        }
        build.arg("--target-dir").arg(profile.parent().expect("target/PROFILE"));
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().expect("cargo runs").success(), "the programs build");
        profile.to_owned()
    })
}

const NAMED: &str = "goroutine 7 \"name\" [running]:\n";

/// The report, but for the stack pointer, which must lie near the bounds.
#[track_caller]
fn expect_report(child: &Child, bytes: usize, tail: &str) {
    child.expect_code(2);
    let story = child.story();
    let mut lines = child.err().splitn(4, '\n');
    let limit = format!("runtime: goroutine stack exceeds {bytes}-byte limit");
    assert_eq!(lines.next(), Some(limit.as_str()), "{story}");
    let bounds = lines.next().and_then(|line| line.strip_prefix("runtime: sp=")).expect(&story);
    let (sp, bounds) = bounds.split_once(" stack=").expect(&story);
    let (low, high) =
        bounds.trim_matches(['[', ']']).split_once(", ").map(|(a, b)| (hex(a), hex(b))).unwrap();
    assert_eq!(high - low, bytes, "{story}");
    assert!((low - (2 << 20)..low + 8192).contains(&hex(sp)), "{story}");
    if let Some(announced) = child.out().lines().find(|line| line.starts_with('[')) {
        assert_eq!(announced, bounds, "{story}");
    }
    let advice = lines.next().expect(&story);
    assert!(advice.contains("Builder::stack_size, or GOSCHED=stack="), "{story}");
    assert_eq!(lines.next(), Some(format!("fatal error: stack overflow\n\n{tail}").as_str()));
}

fn hex(text: &str) -> usize {
    let digits = text.strip_prefix("0x").expect("0x in front");
    usize::from_str_radix(digits, 16).expect("a hexadecimal number")
}

#[test]
fn an_overflow_is_reported_and_ends_the_process() {
    let dumped = format!("{NAMED}\tdump\n");
    let cases = [
        ("one-of-many", Class::DEFAULT.usable_bytes(), NAMED),
        ("anonymous", Class::DEFAULT.usable_bytes(), ""),
        ("dump", Class::DEFAULT.usable_bytes(), dumped.as_str()),
        ("bad-hook", Class::DEFAULT.usable_bytes(), NAMED),
        ("grown", 64 << 10, NAMED),
        ("own-alternate-stack", 64 << 10, ""),
        ("loader-lock", 64 << 10, NAMED),
        ("allocator-lock", 64 << 10, NAMED),
    ];
    for (mode, bytes, tail) in cases {
        eprintln!("mode {mode}");
        expect_report(&Child::run("stack_overflow", &[mode]), bytes, tail);
    }
}

#[test]
fn of_many_overflows_at_once_one_is_reported() {
    for _ in 0..20 {
        expect_report(&Child::run("stack_overflow", &["two-at-once"]), 64 << 10, "");
    }
}

#[test]
fn a_threads_own_overflow_goes_to_the_standard_library() {
    let child = Child::run("stack_overflow", &["plain-thread"]);
    child.expect_signal(libc::SIGABRT);
    assert!(child.err().contains("has overflowed its stack"), "{}", child.story());
}

#[test]
fn an_unguarded_stack_that_overran_ends_the_process_when_given_back() {
    for mode in ["canary", "canary-in-cache"] {
        let child = Child::run("stack_overflow", &[mode]);
        child.expect_code(2).expect_out("");
        assert!(child.err().ends_with("fatal error: stack overflow\n"), "{}", child.story());
    }
}

/// A frame of 60,000 bytes of which only the far end is written.
const BIG_FRAME: &str = r"
__attribute__((noinline)) int big_frame(int x) {
    volatile char frame[60000];
    frame[0] = (char)x;
    return frame[0];
}
";

#[test]
fn a_c_frame_without_probes_is_caught() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (directory.join("big_frame.c"), directory.join("big_frame.so"));
    fs::write(&source, BIG_FRAME).expect("writable");
    let flags = ["-shared", "-fPIC", "-O1", "-fno-stack-clash-protection", "-o"];
    let compiled = Command::new("cc").args(flags).arg(&library).arg(&source).status();
    match compiled {
        Ok(status) => assert!(status.success(), "the C file compiles"),
        Err(error) => return eprintln!("SKIPPED: no C compiler `cc`: {error}"),
    }
    let child = Child::run("stack_overflow", &["c-frame", library.to_str().expect("text")]);
    expect_report(&child, 64 << 10, NAMED);
}

/// What the user's handler prints.
fn told(address: &str, segv_blocked: bool, usr1_blocked: bool) -> String {
    format!(
        "user handler, signal 11, context true\n{address}\nsegv blocked {segv_blocked}\nusr1 \
         blocked {usr1_blocked}\n"
    )
}

#[test]
fn a_foreign_fault_reaches_the_handler_that_was_there() {
    let cases = [
        ("before", told("address 0x40", true, false)),
        ("before-sent", told("sent", true, false)),
        ("sent-with-address", told("sent", true, false)),
        ("before-nodefer", told("address 0x40", false, false)),
        ("before-masking", told("address 0x40", true, true)),
        ("before-plain", "plain handler, signal 11\n".into()),
        ("after", told("address 0x40", true, false)),
    ];
    for (mode, out) in cases {
        eprintln!("mode {mode}");
        Child::run("stack_foreign", &[mode]).expect_code(42).expect_out(&out);
    }
    for mode in ["stray", "unmapped"] {
        let child = Child::run("stack_foreign", &[mode]);
        child.expect_code(42);
        assert!(child.out().starts_with("user handler, signal 11"), "{}", child.story());
        assert_eq!(child.err(), "");
    }
}

#[test]
fn without_a_handler_a_fault_kills_with_its_own_signal() {
    let cases = [
        ("default", libc::SIGSEGV, ""),
        ("default-sent", libc::SIGSEGV, ""),
        ("default-bus", libc::SIGBUS, ""),
        ("std", libc::SIGSEGV, ""),
        ("before-once", libc::SIGSEGV, "called once\n"),
        ("ignored-fault", libc::SIGSEGV, ""),
    ];
    for (mode, signal, out) in cases {
        eprintln!("mode {mode}");
        let child = Child::run("stack_foreign", &[mode]);
        child.expect_signal(signal).expect_out(out);
        assert_eq!(child.err(), "");
    }
}

#[test]
fn handlers_that_return_and_signals_that_are_ignored_let_the_program_go_on() {
    let repaired = Child::run("stack_foreign", &["before-repairing"]);
    repaired.expect_code(0).expect_out("repaired\nstill alive\n");
    Child::run("stack_foreign", &["ignored-sent"]).expect_code(0).expect_out("still alive\n");
}

#[test]
fn a_later_handler_that_passes_on_gets_the_report() {
    let child = Child::run("stack_foreign", &["after-chaining"]);
    child.expect_out("chaining\n");
    expect_report(&child, 64 << 10, "");
}

fn density(count: usize) {
    let child = Child::run("stack_density", &[&count.to_string()]);
    let figures = child.figures();
    println!("{count} stacks: {figures:?}");
    let story = child.story();
    assert!(figures["rss_bytes_each"] <= 4096 + 64, "{story}");
    // A page of table maps 2 MiB.
    let table = Class::DEFAULT.stride() / 512;
    assert!(figures["page_table_bytes_each"] <= table + 128, "{story}");
    assert!(figures["maps"] < 200, "{story}");
    assert_eq!(figures["trimmed"], count, "{story}");
    assert!(figures["rss_kib_left"] * 1024 < count * 512, "{story}");
    // Measured: less than half, nearly all of it the kernel freeing pages. What grows faster than
    // the number of stacks is far above.
    assert!(figures["trim_cpu_us"] < 20 * figures["make_cpu_us"], "{story}");
}

/// Whether guards cost no mappings here. Says so loudly if they do.
fn has_markers() -> bool {
    let has = GuardKind::detect() == GuardKind::Marker;
    if !has {
        eprintln!("SKIPPED: this kernel has no guard markers (Linux 6.13)");
    }
    has
}

#[test]
fn a_hundred_thousand_stacks_cost_a_page_each_and_few_mappings() {
    if has_markers() {
        density(100_000);
    }
}

#[test]
fn a_million_stacks_cost_a_page_each_and_few_mappings() {
    if env::var_os(MILLION).is_none() {
        return eprintln!("SKIPPED: set {MILLION}=1 to run with a million stacks");
    }
    if has_markers() {
        density(1_000_000);
    }
}

#[test]
fn little_address_space_means_smaller_arenas() {
    let count = (750 << 20) / Class::DEFAULT.stride();
    let child = Child::run_limited(2 << 20, "stack_density", &[&count.to_string()]);
    let figures = child.figures();
    assert_eq!(figures["trimmed"], count, "{}", child.story());
    assert!(figures["reserved_mib"] < 1_024, "{}", child.story());
}

/// An arena is opened by ever larger chunks; where there is no room for one a smaller one will do.
#[test]
fn near_the_limit_of_data_an_arena_is_opened_by_less() {
    let child = Child::run("stack_data_limit", &[]);
    let figures = child.figures();
    assert!((16..=24).contains(&figures["opened_mib"]), "{}", child.story());
    assert!(child.out().contains("error: "), "{}", child.story());
}

#[test]
fn without_markers_the_limit_of_mappings_ends_in_an_error_with_room_to_spare() {
    let child = Child::run("stack_map_limit", &[]);
    child.expect_code(0);
    let figures = child.figures();
    let limit: usize = fs::read_to_string("/proc/sys/vm/max_map_count")
        .expect("readable")
        .trim()
        .parse()
        .expect("a number");
    assert!(figures["maps"] > limit / 2 && figures["maps"] < limit, "{}", child.story());
    assert!(figures["stacks"] > limit / 3, "{}", child.story());
    let error = child.out().lines().find(|line| line.starts_with("error: ")).expect("an error");
    assert!(error.contains(&format!("sysctl -w vm.max_map_count={}", 2 * limit)), "{error}");
    assert!(child.out().ends_with("a thread ran\n"), "{}", child.story());
}

#[test]
fn locked_memory_is_neither_filled_nor_left_unguarded() {
    for mode in ["future", "current"] {
        let child = Child::run("stack_locked", &[mode]);
        if child.out() == "skipped\n" {
            eprintln!("SKIPPED: this process may not lock memory ({mode})");
            continue;
        }
        let figures = child.figures();
        let story = child.story();
        assert!((400..2_048).contains(&figures["resident_kib"]), "{mode}: {story}");
        assert_eq!(figures["guarded"], 100, "{mode}: {story}");
        assert_eq!(figures["trimmed"], 100, "{mode}: {story}");
        assert!(
            figures["resident_kib_trimmed"] + 400 <= figures["resident_kib"],
            "{mode}: {story}"
        );
        assert_eq!(figures["guarded_again"], 1, "{mode}: {story}");
    }
}
