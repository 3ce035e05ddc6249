//! `gosched demo`: each demo shows what it says, here with little to do.

use crate::gosched::{gosched, gosched_with};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What a demo printed as JSON.
struct Story(Value);

impl Story {
    #[track_caller]
    fn of(words: &[&str]) -> Story {
        let run = gosched([&["demo"], words, &["--quick", "--json"]].concat());
        assert_eq!(run.code, Some(0), "{words:?}: {}", run.stderr);
        let story: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(story["demo"], words[0]);
        // Whether the effect shows depends on what else runs here; that it is spoken of does not.
        let findings = story["findings"].as_array().expect("findings");
        let is_said =
            |finding: &Value| finding["text"].as_str().is_some_and(|text| text.len() > 20);
        assert!(!findings.is_empty() && findings.iter().all(is_said), "{story}");
        Story(story)
    }

    /// As often as it takes to see something that needs the threads of this process to run at the
    /// same time, or one of them not to be held up by the kernel.
    #[track_caller]
    fn until(words: &[&str], is_seen: impl Fn(&Story) -> bool) -> Story {
        loop {
            let story = Story::of(words);
            if is_seen(&story) {
                return story;
            }
        }
    }

    #[track_caller]
    fn row(&self, case: &str) -> &Value {
        let row = self.0["rows"].as_array().into_iter().flatten().find(|row| row["case"] == case);
        row.unwrap_or_else(|| panic!("no case {case:?} in {}", self.0))
    }

    #[track_caller]
    fn figure(&self, case: &str, name: &str) -> u64 {
        let value = self.row(case)["figures"][name].as_u64();
        value.unwrap_or_else(|| panic!("no figure {name:?} of {case:?} in {}", self.0))
    }

    fn figures(&self, cases: &[&str], name: &str) -> Vec<u64> {
        cases.iter().map(|case| self.figure(case, name)).collect()
    }

    fn notes(&self, case: &str) -> String {
        let notes = self.row(case)["notes"].as_array().into_iter().flatten();
        notes.filter_map(Value::as_str).map(|line| format!("{line}\n")).collect()
    }

    fn is_shown(&self, finding: usize) -> bool {
        self.0["findings"][finding]["shown"] == true
    }
}

#[test]
fn the_list_has_all() {
    let text = gosched(["demo", "--list"]);
    assert_eq!(text.code, Some(0));
    let json = gosched(["demo", "--list", "--json"]).stdout;
    let demos: Vec<Value> = serde_json::from_str(&json).expect("JSON");
    let names: Vec<_> = demos.iter().filter_map(|demo| demo["name"].as_str()).collect();
    for name in [
        "worker-pool",
        "order",
        "starve",
        "ffi",
        "maxprocs",
        "lock-thread",
        "stealing",
        "parallelism",
        "race",
        "false-sharing",
        "leak",
        "deep-stack",
        "million",
        "pipeline",
    ] {
        assert!(names.contains(&name), "{name}");
        assert!(text.stdout.lines().any(|line| line.starts_with(name)), "{name}: {}", text.stdout);
    }
    assert_eq!(names.len(), 14);
}

#[test]
fn a_demo_says_what_it_does_what_came_out_and_why() {
    let run = gosched(["demo", "order", "--size", "50"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut rest = run.stdout.as_str();
    for part in [
        "order: ",
        "Look at",
        "out of order",
        "wrong  order assumed",
        "50",
        "right  each waits for the one before",
        "right  results put where they belong",
        "What it shows\n  * ",
    ] {
        let at = rest.find(part);
        assert!(at.is_some(), "{part:?} is missing: {}", run.stdout);
        rest = &rest[at.map_or(0, |at| at + part.len())..];
    }
}

#[test]
fn worker_pool_says_the_lines_and_ends_with_one_goroutine() {
    let run = gosched(["demo", "worker-pool", "--quick"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut rest = run.stdout.as_str();
    // In this order; those between them come when they come.
    for line in [
        "=== Go Scheduler Configuration ===\n",
        "GOMAXPROCS: 3\n",
        "NumCPU: ",
        "=== Scheduler Behavior Demo ===\n",
        "GOMAXPROCS: 3\n",
        "Initial goroutines: 1\n",
        "Starting pool: workers=6 GOMAXPROCS=3 NumCPU=",
        "Shutting down worker pool...\n",
        "All workers finished\n",
        "Total results collected: 20\n",
        "Final goroutines: 1\n",
        "=== Work Stealing Demo ===\n",
        "Completed uneven workload in ",
        "(Work stealing balances load across Ps)\n",
        "=== Demo Complete ===\n",
        "Shutdown timeout, cancelling...\n",
    ] {
        let at = rest.find(line);
        assert!(at.is_some(), "{line:?} is missing: {}", run.stdout);
        rest = &rest[at.map_or(0, |at| at + line.len())..];
    }
    let starting = |text: &str| run.stdout.lines().filter(|line| line.starts_with(text)).count();
    assert_eq!(starting("Result: job="), 5, "{}", run.stdout);
    assert!(starting("Monitor: total_goroutines=") > 0, "{}", run.stdout);
    assert!(run.stdout.contains(" pool_stats=goroutines=6 completed="), "{}", run.stdout);
}

#[test]
fn worker_pool_leaves_nobody_but_the_forgotten_monitor() {
    let story = Story::of(&["worker-pool"]);
    let cases = ["shut down in time", "shut down too late", "monitor forgotten"];
    assert_eq!(story.figures(&cases, "results"), [20, 0, 1]);
    assert_eq!(story.figures(&cases, "goroutines_before"), [1, 1, 1]);
    assert_eq!(story.figures(&cases, "goroutines_after"), [1, 1, 2]);
    assert_eq!(story.figures(&cases, "refused"), [1, 0, 0]);
    assert_eq!(story.figures(&cases, "late"), [0, 1, 0]);
    assert!((0..3).all(|finding| story.is_shown(finding)));
}

#[test]
fn order_is_kept_by_the_cures() {
    let story = Story::of(&["order"]);
    let cures = ["each waits for the one before", "results put where they belong"];
    assert_eq!(story.figures(&cures, "out_of_order"), [0, 0]);
    assert_eq!(story.figures(&cures, "goroutines"), [100, 100]);
    let seen = story.figure("order assumed", "out_of_order");
    assert_eq!(story.is_shown(0), seen > 0);
    assert!(story.notes("order assumed").split_whitespace().count() > 20);
}

#[test]
fn starve_starves_with_preemption_off_alone() {
    let cases = ["preemption off", "explicit yield", "preemption on"];
    // A loop that a page fault holds up for long loses its processor.
    let story = Story::until(&["starve"], |story| story.figures(&cases, "held_up") == [0, 0, 0]);
    assert_eq!(story.figures(&cases, "other_ran_beside"), [0, 1, 1]);
    assert_eq!(story.figures(&cases[..2], "stopped"), [0, 0]);
    assert!(story.figure(cases[2], "stopped") > 0);
    assert!((0..3).all(|finding| story.is_shown(finding)));
}

#[test]
fn ffi_has_three_ways_to_the_same() {
    let story = Story::of(&["ffi"]);
    let cases = ["bare", "blocking(f)", "Limiter, four at once"];
    assert_eq!(story.figures(&cases, "calls"), [20, 20, 20]);
    // Nobody said that these would block.
    assert_eq!(story.figure("bare", "declared_hand_offs"), 0);
}

#[test]
fn maxprocs_follows_the_quota_of_a_container() {
    let story = Story::of(&["maxprocs"]);
    let cpus = std::thread::available_parallelism().expect("known").get() as u64;
    let cases = ["the host's CPUs", "the container's quota"];
    assert_eq!(story.figures(&cases, "gomaxprocs"), [64, cpus.max(2)]);
    assert!(story.notes(cases[1]).contains("quota is"), "{}", story.notes(cases[1]));
}

#[test]
fn lock_thread_shows_what_a_forgotten_unlock_costs() {
    let story = Story::of(&["lock-thread"]);
    let cases = ["unlock forgotten", "unlocked"];
    assert_eq!(story.figures(&cases, "goroutines"), [20, 20]);
    assert_eq!(story.figures(&cases, "moved_while_locked"), [0, 0]);
    assert_eq!(story.figure(cases[0], "different_threads"), 20);
    assert!(story.figure(cases[1], "different_threads") < 20);
}

#[test]
fn stealing_moves_goroutines_and_can_be_switched_off() {
    let cases = ["stealing off", "stealing on"];
    // A creator whose thread stood still for a time slice has lost its processor to another one.
    let created_on_all = |story: &Story, case| {
        story.notes(case).lines().filter(|line| !line.contains("created 0,")).count() == 3
    };
    let story = Story::until(&["stealing"], |story| {
        story.figure("stealing on", "steals") > 0
            && cases.iter().all(|case| created_on_all(story, case))
    });
    assert_eq!(story.figure(cases[0], "steals"), 0);
    // Three processors: 40 on one, 4 on each of the others, and who creates them.
    assert_eq!(story.figures(&cases, "goroutines"), [51, 51]);
    assert!(story.figure(cases[1], "ran_elsewhere") > 0);
}

#[test]
fn parallelism_comes_to_the_same_by_more_and_more() {
    let story = Story::of(&["parallelism"]);
    let cases = ["one goroutine", "one for each processor", "a thousand", "one for each number"];
    assert_eq!(story.figures(&cases, "goroutines"), [1, 3, 1_000, 20_000]);
    assert_eq!(story.figures(&cases, "sum"), [199_990_000; 4]);
}

#[test]
fn race_loses_steps_and_the_cures_do_not() {
    let story = Story::of(&["race"]);
    let total = ["total: load, then store", "total: one atomic step", "total: under a mutex"];
    let purse = ["purse: check, then take", "purse: check and take at once"];
    assert_eq!(story.figures(&total, "right"), [800; 3]);
    assert_eq!(story.figures(&total[1..], "came_out"), [800; 2]);
    assert!(story.figure(total[0], "came_out") < 800);
    assert_eq!(story.figures(&purse, "right"), [400; 2]);
    assert_eq!(story.figure(purse[1], "came_out"), 400);
    assert!(story.figure(purse[0], "came_out") > 400);
}

#[test]
fn false_sharing_is_a_matter_of_addresses() {
    let story = Story::of(&["false-sharing"]);
    let cases = ["in one line", "CachePadded"];
    assert_eq!(story.figures(&cases, "counted"), [200_000; 2]);
    assert_eq!(story.figure(cases[0], "bytes_apart"), 8);
    assert!(story.figure(cases[1], "bytes_apart") >= 64);
}

#[test]
fn leak_leaves_goroutines_where_it_says_so() {
    let story = Story::of(&["leak"]);
    let cases = [
        "no room, and the other end is held",
        "the other end is dropped",
        "room for every answer",
        "a context that ends",
    ];
    assert_eq!(story.figures(&cases, "left"), [9, 0, 0, 0]);
    assert!(story.notes(cases[0]).contains(" [chan send"), "{}", story.notes(cases[0]));
}

#[test]
fn deep_stack_ends_with_a_report_or_gets_there() {
    let story = Story::of(&["deep-stack"]);
    let cases = ["the default stack", "Builder::stack_size", "a stack of its own on the heap"];
    assert_eq!(story.figures(&cases, "died"), [1, 0, 0]);
    assert_eq!(story.figures(&cases[1..], "depth"), [4_096; 2]);
    let report = story.notes(cases[0]);
    assert!(report.contains("fatal error: stack overflow"), "{report}");
}

#[test]
fn million_wait_on_a_few_threads() {
    let story = Story::of(&["million"]);
    let goroutines = story.figure("goroutines", "count");
    let has_room = story.notes("goroutines").is_empty();
    assert!(goroutines == 10_000 || !has_room && goroutines > 0, "{goroutines}");
    assert!(story.figure("threads of the system", "count") > 0);
    assert_eq!(
        story.figure("threads of the system", "machines"),
        story.figure("threads of the system", "count"),
    );
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What `wc` says of each file: lines, words, bytes, files.
fn wc(folder: &Path) -> [u64; 4] {
    let script = "find \"$1\" -type f -exec sh -c 'wc -lwc < \"$1\"' sh {} \\;";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(folder).env("LC_ALL", "C");
    let text = String::from_utf8(command.output().expect("a shell").stdout).expect("numbers");
    text.lines().fold([0; 4], |sum, line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [lines, words, bytes] = numbers[..] else { panic!("wc said {line:?}") };
        [sum[0] + lines, sum[1] + words, sum[2] + bytes, sum[3] + 1]
    })
}

#[track_caller]
fn counts_as_wc(folder: &Path) -> [u64; 4] {
    let story = Story::of(&["pipeline", folder.to_str().expect("text")]);
    let expected = wc(folder);
    for case in ["one file after the other", "a goroutine for each file", "stages with bounds"] {
        let counted = ["lines", "words", "bytes", "files"].map(|name| story.figure(case, name));
        assert_eq!(counted, expected, "{case}");
    }
    expected
}

#[test]
fn pipeline_counts_what_wc_counts() {
    let [_, words, _, files] = counts_as_wc(&sources());
    assert!(files > 100 && words > 10_000, "{files} files, {words} words");
}

/// Blanks of every kind, bytes that are no text, no newline at the end, an empty file.
#[test]
fn pipeline_counts_what_is_no_text_as_wc_does() {
    let folder = env::temp_dir().join(format!("gosched-pipeline-{}", std::process::id()));
    fs::create_dir_all(folder.join("below/further")).expect("a folder");
    let files: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("blanks", b" \t\r\n\x0b\x0c \n\n"),
        ("bytes", b"one\xff two\xe2\x80\x94three \xe2\x80\x94 \x01 \x00end\n"),
        ("below/open", b"no newline at the end "),
        ("below/further/long", &[b'x'; 100_000]),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file");
    }
    counts_as_wc(&folder);
    fs::remove_dir_all(&folder).expect("the folder");
}

#[test]
fn pipeline_says_what_it_cannot_read() {
    let run = gosched(["demo", "pipeline", "/there/is/no/such/folder"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("can't read /there/is/no/such/folder: No such"), "{}", run.stderr);
}

/// What the caller's environment says reaches the cases, unless they need something else.
#[test]
fn cases_run_with_the_settings_of_the_environment() {
    let words = ["demo", "stealing", "--quick", "--json"];
    let run = gosched_with(words, &[("GOSCHED", "procs=1")]);
    let story = Story(serde_json::from_str(&run.stdout).expect("JSON"));
    assert_eq!(story.figures(&["stealing off", "stealing on"], "gomaxprocs"), [1, 1]);
    assert!(!story.is_shown(0), "with one processor there is nobody to steal from");
}

/// The pages that name demos and settings, with their text.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_dir(root.join("docs/guide")).expect("the guide");
    let chapters = guide.map(|entry| entry.expect("a chapter").path());
    let pages = chapters.chain([root.join("README.md"), root.join("HACKING.md")]);
    pages.map(|page| (page.clone(), fs::read_to_string(page).expect("text"))).collect()
}

#[test]
fn the_guide_names_demos_that_exist() {
    let list = gosched(["demo", "--list"]).stdout;
    let mut named = 0;
    for (page, text) in pages() {
        for rest in text.split("`gosched demo ").skip(1) {
            let name = rest.split(['`', ' ']).next().unwrap_or_default();
            let is_listed = list.lines().any(|line| line.split(' ').next() == Some(name));
            assert!(is_listed || name == "NAME", "{}: no demo {name:?}", page.display());
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn the_guide_names_settings_that_exist_and_all_of_them() {
    let run = gosched_with(["doctor", "--json"], &[("GOSCHED", "nonsense=1")]);
    let (_, known) = run.stderr.split_once("known are ").expect("a warning");
    let known: Vec<&str> = known.trim().split(", ").collect();
    let all = pages().into_iter().map(|(_, text)| text).collect::<String>();
    for rest in all.split("GOSCHED=").skip(1) {
        let settings = rest.split(['`', ' ', '\n']).next().unwrap_or_default();
        for key in settings.split(',').filter_map(|setting| setting.split('=').next()) {
            assert!(known.contains(&key) || key == "key", "no setting {key:?}");
        }
    }
    let (_, tuning) = all.split_once("All settings are keys").expect("the list");
    let (list, _) = tuning.split_once('\n').expect("a line");
    // Two are for the project's own tests.
    for key in known.iter().filter(|key| !["chaos", "root"].contains(key)) {
        assert!(list.contains(&format!("`{key}`")), "the guide does not name {key}");
    }
}
