//! `gosched doctor`.

use crate::args::DoctorArgs;
use crate::outcome::{ended, print};
use gosched::doctor::{Report, examine};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let report = examine();
    let text = if args.json { format!("{}\n", as_json(&report)) } else { as_text(&report) };
    ended("doctor", print(text))
}

fn as_text(report: &Report) -> String {
    format!("{}\n\n{report}", gosched::runtime::version())
}

fn as_json(report: &Report) -> Value {
    let sections: Vec<Value> = report
        .sections
        .iter()
        .map(|section| {
            let facts: Vec<Value> = section
                .facts
                .iter()
                .map(|fact| json!({"name": fact.name, "found": fact.found, "advice": fact.advice}))
                .collect();
            json!({"title": section.title, "facts": facts})
        })
        .collect();
    json!({
        "version": gosched::runtime::version(),
        "gomaxprocs": report.gomaxprocs,
        "why": report.why,
        "default_gomaxprocs": report.default_gomaxprocs,
        "cpus": report.cpus,
        "quota": report.quota,
        "nodes": report.nodes,
        "advices": report.advices(),
        "sections": sections,
    })
}
