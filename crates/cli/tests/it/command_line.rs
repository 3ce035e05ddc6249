//! Help, version, and command lines that are wrong.

use crate::gosched::gosched;

/// A wrong command line ends with 2, prints no results, and says what is wrong.
#[track_caller]
fn wrong(args: &[&str], says: &[&str]) {
    let run = gosched(args);
    assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{args:?}");
    for words in says {
        assert!(run.stderr.contains(words), "{args:?} should say {words:?}: {}", run.stderr);
    }
}

#[test]
fn help_lists_the_commands() {
    let run = gosched(["--help"]);
    assert_eq!(run.code, Some(0));
    for command in ["lab", "demo", "serve", "doctor", "trace", "bench", "completions", "man"] {
        assert!(run.stdout.contains(&format!("\n  {command} ")), "{}", run.stdout);
    }
}

#[test]
fn help_of_lab_lists_its_options() {
    let run = gosched(["lab", "--help"]);
    assert_eq!(run.code, Some(0));
    for option in ["--quick", "--goroutines", "--work", "--procs", "--out", "--json"] {
        assert!(run.stdout.contains(option), "{option}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("--cell"), "{}", run.stdout);
}

#[test]
fn jobs_out_of_range() {
    wrong(&["compare", "--jobs", "0"], &["'0'", "--jobs <N>", "1..=100000"]);
    wrong(&["compare", "--pool", "no"], &["'no'", "--pool <N>"]);
    wrong(&["compare", "--case", "{}"], &["not a case", "missing field"]);
}

#[test]
fn help_of_serve_lists_its_options() {
    let run = gosched(["serve", "--help"]);
    assert_eq!(run.code, Some(0));
    for option in ["--addr", "--cpu-limit", "--queue", "--max-goroutines", "--grace"] {
        assert!(run.stdout.contains(option), "{option}: {}", run.stdout);
    }
}

/// One for each way to be wrong, over all commands.
#[test]
fn ten_wrong_command_lines_and_what_helps() {
    wrong(&["demos"], &["unrecognized subcommand 'demos'", "similar", "'demo'"]);
    wrong(&["demo"], &["Usage: gosched demo", "--list"]);
    wrong(&["demo", "starv"], &["'starv'", "[possible values: ", "similar value", "'starve'"]);
    wrong(&["demo", "pipeline"], &["works on a folder: gosched demo pipeline DIR"]);
    wrong(&["demo", "order", "src"], &["`order` takes no folder", "'src'"]);
    wrong(&["demo", "order", "--size", "0"], &["--size of `order` is the goroutines: 1 to 100000"]);
    wrong(&["demo", "order", "--list"], &["cannot be used with", "Usage: gosched demo"]);
    wrong(&["bench", "spawn-join"], &["'spawn-join'", "similar value", "'spawn_join'"]);
    wrong(&["bench", "spawn_join", "twice"], &["what is \"twice\"?", "key=value"]);
    wrong(&["completions", "bsh"], &["'bsh'", "[possible values: bash, ", "'bash'"]);
    wrong(&["trace", "sumary", "t"], &["unrecognized subcommand 'sumary'", "'summary'"]);
    wrong(&["trace", "check"], &["required", "<FILE>", "Usage: gosched trace check <FILE>"]);
    wrong(&["serve", "--adr", "127.0.0.1:0"], &["unexpected argument '--adr'", "'--addr'"]);
    wrong(&["man", "lab"], &["unexpected argument 'lab'", "Usage: gosched man"]);
    wrong(&["doctor", "--jsno"], &["unexpected argument '--jsno'", "'--json'"]);
}

#[test]
fn bench_runs_the_benches() {
    let list = gosched(["bench", "list"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    assert!(list.stdout.lines().any(|line| line == "spawn_join"), "{}", list.stdout);
    let run = gosched(["bench", "spawn_join", "--n", "100", "--procs", "2"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let line: serde_json::Value = serde_json::from_str(&run.stdout).expect("one line of JSON");
    assert_eq!((line["bench"].as_str(), line["procs"].as_u64()), (Some("spawn_join"), Some(2)));
}

#[test]
fn completions_know_the_commands() {
    for (shell, words) in [
        ("bash", "complete -F _gosched"),
        ("zsh", "#compdef gosched"),
        ("fish", "complete -c gosched"),
    ] {
        let run = gosched(["completions", shell]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains(words), "{shell}: {}", run.stdout);
        // fish has no list of what an argument can be.
        assert!(shell == "fish" || run.stdout.contains("deep-stack"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let run = gosched(["man"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for words in [".TH gosched 1", ".SH NAME", ".SH SYNOPSIS", "gosched\\-demo(1)"] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    let folder = std::env::temp_dir().join(format!("gosched-man-{}", std::process::id()));
    let run = gosched(["man".as_ref(), "--out".as_ref(), folder.as_os_str()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for page in ["gosched.1", "gosched-lab.1", "gosched-trace-summary.1"] {
        let text = std::fs::read_to_string(folder.join(page)).expect("the page is there");
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn a_queue_without_a_limit() {
    wrong(&["serve", "--queue", "1"], &["required", "--cpu-limit <N>"]);
    wrong(&["serve", "--cpu-limit", "0"], &["'0'", "--cpu-limit <N>"]);
}

#[test]
fn version() {
    let run = gosched(["--version"]);
    assert_eq!(run.code, Some(0));
    assert_eq!(run.stdout, concat!("gosched ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn no_command_shows_the_help() {
    wrong(&[], &["Usage: gosched", "lab"]);
}

#[test]
fn an_unknown_command() {
    wrong(&["labs"], &["unrecognized subcommand 'labs'", "similar", "'lab'"]);
}

#[test]
fn an_unknown_option() {
    wrong(&["lab", "--quik"], &["unexpected argument '--quik'", "'--quick'"]);
}

#[test]
fn an_argument_too_many() {
    wrong(&["lab", "all"], &["unexpected argument 'all'", "Usage: gosched lab"]);
}

#[test]
fn goroutines_out_of_range() {
    wrong(&["lab", "--goroutines", "0"], &["'0'", "--goroutines <N>", "1..=1000000"]);
    wrong(&["lab", "--goroutines", "many"], &["'many'", "--goroutines <N>", "invalid digit"]);
    wrong(&["lab", "--goroutines", "1000001"], &["1..=1000000"]);
    wrong(&["lab", "--goroutines"], &["a value is required", "--goroutines <N>"]);
}

#[test]
fn work_out_of_range() {
    wrong(&["lab", "--work", "0"], &["'0'", "--work <MS>", "1..=10000"]);
    wrong(&["lab", "--work", "2.5"], &["'2.5'", "--work <MS>"]);
}

#[test]
fn processors_out_of_range() {
    wrong(&["lab", "--procs", "0"], &["'0'", "--procs <LIST>", "1..=1024"]);
    wrong(&["lab", "--procs", "1,two"], &["'two'", "--procs <LIST>"]);
    wrong(&["lab", "--procs", "1,,2"], &["--procs <LIST>"]);
    wrong(&["lab", "--procs", "1025"], &["1..=1024"]);
}

#[test]
fn an_empty_folder() {
    wrong(&["lab", "--out", ""], &["a value is required", "--out <DIR>"]);
}

#[test]
fn a_cell_that_is_none() {
    wrong(&["lab", "--cell", "{}"], &["not a cell", "missing field"]);
}

#[test]
fn a_cell_of_no_variant_fails() {
    let cell = r#"{"variant":"none","procs":1,"goroutines":1,"work_ns":1,"rounds":1}"#;
    let run = gosched(["lab", "--cell", cell]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there is no variant `none`"), "{}", run.stderr);
}
