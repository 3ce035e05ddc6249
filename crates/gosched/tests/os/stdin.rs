//! Standard input: a pipe, a terminal, a file.
//!
//! A process has one, so each test runs itself again as a child, which prints `child: ...` lines.

use gosched::io::stdin;
use gosched::{go, runtime, thread};
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

const CHILD: &str = "GOSCHED_TEST_CHILD";

/// The test of this name as a child that reads from `input`, and what it says.
fn child(test: &str, input: impl Into<Stdio>) -> (Child, Said) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("stdin::{test}"), "--exact", "--nocapture"]);
    command.env(CHILD, test).env("GOMAXPROCS", "1");
    let mut child = command.stdin(input).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, Said(out.lines()))
}

/// What a child says, less what the test harness says.
struct Said(Lines<BufReader<ChildStdout>>);

impl Said {
    #[track_caller]
    fn expect(&mut self, text: &str) {
        // The harness has begun the line with the test's name.
        let said = self
            .0
            .find_map(|line| line.unwrap().split_once("child: ").map(|(_, said)| said.to_owned()));
        assert_eq!(said.as_deref(), Some(text));
    }

    /// The child ends well.
    #[track_caller]
    fn expect_end(self, mut child: Child) {
        self.0.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// With one processor: it says that another goroutine gets on, so the reader has given it away.
fn say_when_others_run() {
    let before = runtime::counters().declared_hand_offs;
    go(move || {
        // The reader has waited in a declared call, not in one that the monitor had to notice.
        while runtime::counters().declared_hand_offs == before {
            thread::yield_now();
        }
        println!("child: others run");
    });
}

#[gosched::test(timeout = "300s")]
fn lines_of_a_pipe() {
    if is_child() {
        for _ in 0..3 {
            say_when_others_run();
            let mut line = String::new();
            assert!(stdin().read_line(&mut line).unwrap() > 0);
            println!("child: {line:?}");
        }
        assert_eq!(stdin().lines().map(Result::unwrap).collect::<Vec<_>>(), ["four", "five"]);
        assert_eq!(stdin().read(&mut [0; 8]).unwrap(), 0, "the end is the end");
        println!("child: end {}", stdin().is_terminal());
        return;
    }
    let (mut child, mut said) = child("lines_of_a_pipe", Stdio::piped());
    let mut input = child.stdin.take().unwrap();
    for line in ["one\n", "two\n", "three\n"] {
        // It waits, and its processor works, before there is anything to read.
        said.expect("others run");
        input.write_all(line.as_bytes()).unwrap();
        said.expect(&format!("{line:?}"));
    }
    input.write_all(b"four\nfive").unwrap();
    drop(input);
    said.expect("end false");
    said.expect_end(child);
}

/// More than a pipe holds, for one reader; then each line for one of many.
#[gosched::test(timeout = "300s")]
fn all_of_a_pipe() {
    const LINES: usize = 20_000;
    if is_child() {
        let mut first = [0; 6];
        stdin().read_exact(&mut first).unwrap();
        assert_eq!(&first, b"begin\n");
        let readers = [(); 4].map(|()| {
            go(|| {
                let mut numbers = Vec::new();
                let mut line = String::new();
                while numbers.len() < LINES / 8 && stdin().read_line(&mut line).unwrap() > 0 {
                    numbers.push(line.trim().parse::<usize>().unwrap());
                    line.clear();
                }
                numbers
            })
        });
        let mut numbers: Vec<_> = readers.into_iter().flat_map(|r| r.join().unwrap()).collect();
        let mut rest = String::new();
        stdin().lock().read_to_string(&mut rest).unwrap();
        numbers.extend(rest.lines().map(|line| line.parse::<usize>().unwrap()));
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..LINES));
        println!("child: all");
        return;
    }
    let (mut child, mut said) = child("all_of_a_pipe", Stdio::piped());
    let mut input = child.stdin.take().unwrap();
    let numbers: String = (0..LINES).map(|number| format!("{number}\n")).collect();
    input.write_all(b"begin\n").unwrap();
    input.write_all(numbers.as_bytes()).unwrap();
    drop(input);
    said.expect("all");
    said.expect_end(child);
}

fn is_nonblocking(file: &impl AsRawFd) -> bool {
    // SAFETY: no memory is passed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    assert!(flags >= 0);
    flags & libc::O_NONBLOCK != 0
}

/// A pseudo-terminal: the side of whoever types, and the side of the program.
fn terminal() -> (File, File) {
    let (mut typist, mut program) = (-1, -1);
    let (none, no_size) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: two descriptors are written; the name, settings and size are left out.
    let done =
        unsafe { libc::openpty(&mut typist, &mut program, none, std::ptr::null_mut(), no_size) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: just opened for this.
    let open = |fd| File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    (open(typist), open(program))
}

#[gosched::test(timeout = "300s")]
fn lines_of_a_terminal() {
    if is_child() {
        assert!(stdin().is_terminal());
        for _ in 0..2 {
            say_when_others_run();
            let mut line = String::new();
            assert!(stdin().read_line(&mut line).unwrap() > 0);
            println!("child: {line:?}");
        }
        say_when_others_run();
        let mut line = String::new();
        assert_eq!(stdin().read_line(&mut line).unwrap(), 0);
        println!("child: end");
        return;
    }
    let (mut typist, program) = terminal();
    let shared = program.try_clone().unwrap();
    let (child, mut said) = child("lines_of_a_terminal", program);
    // A line is there when it is whole, and what was taken back is not.
    for (typed, line) in [("one\n", "one\n"), ("twin\x7f\x7fo\n", "two\n")] {
        said.expect("others run");
        assert!(!is_nonblocking(&shared), "the terminal is as it was for others that use it");
        typist.write_all(typed.as_bytes()).unwrap();
        said.expect(&format!("{line:?}"));
    }
    said.expect("others run");
    typist.write_all(b"\x04").unwrap();
    said.expect("end");
    said.expect_end(child);
    assert!(!is_nonblocking(&shared));
}

#[gosched::test(timeout = "300s")]
fn records_of_a_file() {
    if is_child() {
        let mut input = stdin().lock();
        let mut record = Vec::new();
        assert_eq!(input.read_until(b'\0', &mut record).unwrap(), 5);
        assert_eq!(record, b"\xfffoo\0");
        assert_eq!(input.fill_buf().unwrap(), b"bar\n");
        input.consume(1);
        // Whoever else wants to read waits for the guard.
        let other = go(|| std::io::read_to_string(stdin()).unwrap());
        thread::yield_now();
        assert_eq!(input.read(&mut [0; 1]).unwrap(), 1);
        drop(input);
        assert_eq!(other.join().unwrap(), "r\n");
        println!("child: end {}", stdin().is_terminal());
        return;
    }
    let path = std::env::temp_dir().join(format!("gosched-stdin-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(b"\xfffoo\0bar\n").unwrap();
    file.rewind().unwrap();
    let (child, mut said) = child("records_of_a_file", file);
    said.expect("end false");
    said.expect_end(child);
}
