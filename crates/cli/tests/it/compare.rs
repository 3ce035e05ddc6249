//! A small run of `gosched compare`.

use crate::gosched::gosched;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn every_contender_does_every_kind_of_job() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare");
    let folder = out.to_str().expect("the target folder is UTF-8");
    let run = gosched(["compare", "--quick", "--jobs", "20", "--json", "--out", folder]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let results: Value = serde_json::from_str(&run.stdout).expect("--json prints JSON");
    let list = |name: &str| results[name].as_array().expect(name).clone();
    assert_eq!(list("failures"), [Value::Null; 0]);
    assert_eq!(list("findings").len(), 3);
    let cases = list("outcomes").into_iter().map(|outcome| {
        assert_eq!(outcome["latency_ns"].as_array().map(Vec::len), Some(20), "{outcome}");
        assert!(outcome["peak_rss_bytes"].as_u64() > Some(0), "{outcome}");
        let name = |of: &str| outcome["case"][of].as_str().unwrap_or("?").to_owned();
        format!("{} {}", name("work"), name("contender"))
    });
    let mut contenders = vec!["goroutines", "threads", "pool"];
    contenders.extend(cfg!(feature = "tokio").then_some("eventloop"));
    let expected = ["cpu", "io", "mixed"]
        .into_iter()
        .flat_map(|work| contenders.iter().map(move |who| format!("{work} {who}")));
    assert_eq!(cases.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let written = fs::read_to_string(out.join("compare.json")).expect("compare.json is written");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("it is JSON"), results);
    assert!(fs::read_to_string(out.join("compare.html")).expect("the page").contains("<svg "));
    assert!(run.stderr.contains("threads with io") && run.stderr.contains("compare.html"));
}
