//! A stranger's path: a new project, a path dependency, the README's example, and the first
//! mistakes, each answered by a message that says what to do.

use crate::child::{Child, profile};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

const README: &str = include_str!("../../../../README.md");

/// Mistakes, each a whole program.
const MISTAKES: [(&str, &str); 5] = [
    (
        "forgets",
        r#"
        #[gosched::main]
        fn main() {
            gosched::go(|| println!("hello"));
        }
        "#,
    ),
    (
        "deadlock",
        r#"
        #[gosched::main]
        fn main() {
            let (results, answers) = gosched::channel::bounded(0);
            gosched::go(move || results.send(1).unwrap()).join().unwrap();
            println!("{}", answers.recv().unwrap());
        }
        "#,
    ),
    (
        "overflow",
        r#"
        fn depth(n: u64) -> u64 {
            if n == 0 { 0 } else { 1 + std::hint::black_box(depth(n - 1)) }
        }

        #[gosched::main]
        fn main() {
            println!("{}", gosched::go(|| depth(100_000_000)).join().unwrap());
        }
        "#,
    ),
    (
        "panics",
        r#"
        #[gosched::main]
        fn main() {
            let text = "4 2";
            println!("{}", gosched::go(move || text.parse::<u32>().unwrap()).join().unwrap());
        }
        "#,
    ),
    (
        "blocks",
        r#"
        fn main() {
            let (requests, requested) = gosched::channel::bounded::<u32>(0);
            let worker = std::thread::spawn(move || requested.recv().unwrap());
            gosched::run(move || {
                gosched::go(move || requests.send(7).unwrap()).join().unwrap();
                println!("{}", worker.join().unwrap());
            });
        }
        "#,
    ),
];

/// The text of the README's first block of that language.
fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("it ends").0
}

/// Makes the project, builds it once, and says where its programs are.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let gosched = Path::new(env!("CARGO_MANIFEST_DIR"));
        let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stranger");
        let bin = project.join("src/bin");
        fs::create_dir_all(&bin).expect("a folder");
        // As `cargo new` and `cargo add --path` leave it; and the tests' own versions of crates.
        let manifest = format!(
            "[package]\nname = \"stranger\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\ngosched = {{ path = {:?} }}\n",
            gosched.display().to_string(),
        );
        fs::write(project.join("Cargo.toml"), manifest).expect("the manifest");
        fs::copy(gosched.join("../../Cargo.lock"), project.join("Cargo.lock")).expect("the lock");
        fs::write(project.join("src/main.rs"), block("rust")).expect("the example");
        for (name, text) in MISTAKES {
            fs::write(bin.join(format!("{name}.rs")), text).expect("a program");
        }
        // Where the crates that are not ours have been built already.
        let target = profile().parent().expect("target/PROFILE").to_owned();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--target-dir"]).arg(&target).current_dir(&project);
        assert!(build.status().expect("cargo runs").success(), "the project builds");
        target.join("debug")
    })
}

fn program(name: &str) -> Child {
    Child::at(&programs().join(name), &[])
}

#[test]
fn the_readmes_example_prints_what_it_promises() {
    assert!(block("rust").lines().count() <= 15, "it is to be short");
    program("stranger").run().expect_code(0).expect_out(block("text")).expect_err("");
}

#[test]
fn a_forgotten_join_is_hinted_at() {
    loop {
        let ended = program("forgets").procs(1).env("GOSCHED", "hints=1").run();
        ended.expect_code(0);
        // Unless the kernel held `main` up for so long that the other one had its turn.
        if ended.out().is_empty() {
            ended.expect_err_parts(&["1 goroutine had still to run", "`join` what `go` returns"]);
            return;
        }
    }
}

#[test]
fn a_deadlock_says_who_waits_for_what_and_what_to_look_for() {
    program("deadlock").run().expect_code(2).expect_err_parts(&[
        "fatal error: all goroutines are asleep - deadlock!",
        "goroutine 1 \"main\" [join]:\n",
        " [chan send]:\n",
        "\ndeadlock::main::main::{{closure}}(...)\n",
        "\ncreated by src/bin/deadlock.rs:5:",
        "look for an end of a channel that is still held",
    ]);
}

#[test]
fn an_overflow_says_whose_and_how_to_get_more() {
    program("overflow").run().expect_code(2).expect_err_parts(&[
        "goroutine stack exceeds ",
        "thread::Builder::stack_size, or GOSCHED=stack=1M",
        "fatal error: stack overflow",
        "created by src/bin/overflow.rs:",
    ]);
}

#[test]
fn a_panic_says_in_which_goroutine_and_where() {
    program("panics").run().expect_code(101).expect_err_parts(&[
        "goroutine 2 [running]:\n",
        "panicked at src/bin/panics.rs:5:",
        "InvalidDigit",
        "note: run with `RUST_BACKTRACE=1`",
        "goroutine 1 \"main\" [running]:\n",
    ]);
}

/// A plain thread that waits for a goroutine, and a goroutine that joins that thread: both wait
/// without harm to anybody.
#[test]
fn plain_threads_and_goroutines_wait_for_each_other() {
    for procs in [1, 2] {
        program("blocks").procs(procs).run().expect_code(0).expect_out("7\n").expect_err("");
    }
}
