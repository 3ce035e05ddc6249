use super::Args;
use clap::Parser;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

#[path = "../../../../testprogs/fuzz.rs"]
mod fuzz;

/// Words that are separated by line feeds.
fn parses(line: &[u8]) -> bool {
    let words = line.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    Args::try_parse_from(std::iter::once("gosched".into()).chain(words)).is_ok()
}

#[test]
fn command_lines_end_nothing() {
    let good: [&[u8]; 6] = [
        b"doctor",
        b"doctor\n--json",
        b"lab\n--quick",
        b"trace\nsummary\nfile",
        b"trace\nchrome\n--\n-file",
        b"serve",
    ];
    fuzz::run("arguments", 1_000, &good, parses);
}
