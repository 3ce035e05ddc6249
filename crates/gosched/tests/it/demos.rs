//! The example that counts words, against the program that counts words.

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../examples/pipeline.rs"]
mod example;

use example::{Totals, count_all};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn pipeline_counts_what_wc_counts() {
    let counted = gosched::run(|| count_all(sources())).expect("sources can be read");
    assert_eq!(counted, wc(&sources()));
    assert!(counted.files > 100 && counted.words > 10_000, "{counted}");
    // From a plain thread too.
    assert_eq!(count_all(sources()).expect("sources can be read"), counted);
}

/// Blanks of every kind, bytes that are no text, no newline at the end, an empty file.
#[test]
fn pipeline_counts_what_is_no_text_as_wc_does() {
    let folder = std::env::temp_dir().join(format!("gosched-pipeline-{}", std::process::id()));
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
    let counted = gosched::run({
        let folder = folder.clone();
        || count_all(folder)
    });
    let expected = wc(&folder);
    fs::remove_dir_all(&folder).expect("the folder");
    assert_eq!(counted.expect("the files can be read"), expected);
}

/// What `wc` says of each file.
fn wc(folder: &Path) -> Totals {
    let script = "find \"$1\" -type f -exec sh -c 'wc -lwc < \"$1\"' sh {} \\;";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(folder).env("LC_ALL", "C");
    let text = String::from_utf8(command.output().expect("a shell").stdout).expect("numbers");
    text.lines().fold(Totals::default(), |sum, line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [lines, words, bytes] = numbers[..] else { panic!("wc said {line:?}") };
        sum + Totals { files: 1, lines, words, bytes }
    })
}

#[test]
fn pipeline_says_what_it_cannot_read() {
    let missing = sources().join("there is no such folder");
    let error = gosched::run(|| count_all(missing)).expect_err("it is missing");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
