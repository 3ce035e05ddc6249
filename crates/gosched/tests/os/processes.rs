use gosched::go;
use gosched::process::{Command, Stdio};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;

#[gosched::test(timeout = "300s")]
fn output_has_both_streams_however_long() {
    let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 3";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 200_000));
}

#[gosched::test(timeout = "300s")]
fn talking_to_a_child() {
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut buffer = [0; 5];
    for _ in 0..100 {
        input.write_all(b"hello").unwrap();
        output.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"hello");
    }
    assert!(child.try_wait().unwrap().is_none());
    drop(input);
    assert_eq!(output.read(&mut buffer).unwrap(), 0);
    assert!(child.wait().unwrap().success());
    assert!(child.wait().unwrap().success(), "and once more");
}

/// Children with more to read than a pipe holds, piped into each other.
#[gosched::test(timeout = "300s")]
fn one_childs_output_is_anothers_input() {
    let script = "head -c 1000000 /dev/zero";
    let mut first = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let from_first = first.stdout.take().unwrap();
    let second = Command::new("wc").arg("-c").stdin(from_first).output().unwrap();
    assert_eq!(String::from_utf8(second.stdout).unwrap().trim(), "1000000");
    assert!(first.wait().unwrap().success());
}

/// Sixty goroutines wait for children, and no thread waits with them.
#[gosched::test(timeout = "300s")]
fn waiting_costs_no_thread() {
    const CHILDREN: usize = 60;
    let mut inputs = Vec::new();
    let waits: Vec<_> = (0..CHILDREN)
        .map(|_| {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            inputs.push(child.stdin.take().unwrap());
            go(move || child.wait().unwrap())
        })
        .collect();
    // Until all wait.
    loop {
        let mut dump = String::new();
        gosched::runtime::dump(&mut dump).unwrap();
        if dump.matches("[IO wait").count() >= CHILDREN {
            break;
        }
        gosched::thread::yield_now();
    }
    let machines = gosched::runtime::counters().machines;
    assert!(machines < CHILDREN as u64 / 2, "{machines} threads");
    drop(inputs);
    for wait in waits {
        assert!(wait.join().unwrap().success());
    }
}

#[gosched::test(timeout = "300s")]
fn a_child_that_is_killed() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    // Its input stays open, so that only the signal ends it.
    let _input = child.stdin.take();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert!(Command::new("/no/such/program").spawn().is_err());
}
