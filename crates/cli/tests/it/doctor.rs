//! `gosched doctor`.

use crate::gosched::{gosched, gosched_with};
use serde_json::Value;

fn json(variables: &[(&str, &str)]) -> Value {
    let run = gosched_with(["doctor", "--json"], variables);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// The facts of this name.
fn found<'a>(report: &'a Value, name: &str) -> Vec<&'a str> {
    let sections = report["sections"].as_array().expect("sections").iter();
    let facts = sections.flat_map(|section| section["facts"].as_array().expect("facts"));
    facts
        .filter(|fact| fact["name"] == name)
        .map(|fact| fact["found"].as_str().expect("text"))
        .collect()
}

#[test]
fn prints_what_was_found_and_chosen() {
    let run = gosched(["doctor"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stderr, "");
    for part in [
        "GOMAXPROCS is 3: the variable GOMAXPROCS says so.\n",
        "\nCPUs\n",
        "\nChoices\n",
        "  kernel  ",
        "  libc  ",
        "  FSGSBASE  ",
        "  guard  ",
        "  membarrier  ",
        "  rseq  ",
        "  NUMA nodes  ",
        "  CPU quota  ",
        "  huge pages  ",
        "  RLIMIT_NOFILE  ",
        "  __call_tls_dtors  ",
    ] {
        assert!(run.stdout.contains(part), "{part:?}: {}", run.stdout);
    }
}

#[test]
fn json_has_the_numbers() {
    let report = json(&[("GOMAXPROCS", "3")]);
    assert_eq!(report["gomaxprocs"], 3);
    assert!(report["cpus"].as_u64().is_some_and(|n| n > 0));
    assert!(report["nodes"].as_u64().is_some_and(|n| n > 0));
    assert!(report["quota"].is_null() || report["quota"].is_f64());
    let advices = report["sections"].as_array().expect("sections").iter();
    let advices = advices.flat_map(|section| section["facts"].as_array().expect("facts"));
    let advices = advices.filter(|fact| fact["advice"].is_string()).count();
    assert_eq!(report["advices"], advices);
    // What it comes to without the variable.
    let usual = json(&[]);
    assert_eq!(usual["gomaxprocs"], usual["default_gomaxprocs"]);
    assert!(usual["why"].as_str().expect("text").contains("affinity mask"));
}

#[test]
fn choices_of_the_operator_are_shown() {
    let report = json(&[("GOSCHED", "asyncpreemptoff=1,slice=5ms,stack=1m,procs=2")]);
    assert_eq!(report["gomaxprocs"], 2);
    assert_eq!(found(&report, "stops computing code"), ["no"]);
    assert_eq!(found(&report, "time slice"), ["5000 us"]);
    assert!(report["advices"].as_u64().is_some_and(|n| n > 0));
    let report = json(&[("GOSCHED", "containermaxprocs=0")]);
    assert_eq!(found(&report, "CPU quota"), ["not looked at"]);
}

/// A made-up machine of four nodes, in a container with a quota.
#[test]
fn another_machine() {
    let tree = crate::tree::Tree::new();
    tree.nodes(4, 2).cgroups("0::/a\n", &[crate::tree::TWO]).max("/a", "250000 100000");
    let root = format!("root={}", tree.folder().to_str().expect("text"));
    let report = json(&[("GOSCHED", &root)]);
    assert_eq!(report["gomaxprocs"], 3);
    assert_eq!((&report["cpus"], &report["nodes"]), (&8.into(), &4.into()));
    assert_eq!(report["quota"], 2.5);
    assert_eq!(found(&report, "a cgroup"), ["/sys/fs/cgroup/a: 2.50 CPUs"]);
    assert_eq!(found(&report, "a node").len(), 4);
    let why = report["why"].as_str().expect("text");
    assert!(why.contains("the strictest quota is 2.50 CPUs, rounded up"), "{why}");
}
