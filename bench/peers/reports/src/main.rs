//! What was reported about similar runtimes, tried on them: `peers-reports` runs every case in a
//! process of its own and prints what became of it; `peers-reports CASE PEER` runs one.
//!
//! A case ends well if it prints `ok` and exits with 0. One that has not ended after [`PATIENCE`] is
//! called a hang: all of them take a few seconds at most where they end.

mod alone;
mod on_gosched;
mod on_may;
mod on_tokio;
mod system;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Case, peer, and what to run.
type Case = (&'static str, &'static str, fn());

const CASES: &[Case] = &[
    ("loop", "tokio", on_tokio::endless_loop),
    ("loop", "may", on_may::endless_loop),
    ("loop", "gosched", on_gosched::endless_loop),
    ("blocked", "tokio", on_tokio::blocked),
    ("blocked", "may", on_may::blocked),
    ("blocked", "gosched", on_gosched::blocked),
    ("std-mutex", "tokio", on_tokio::std_mutex),
    ("std-mutex", "may", on_may::std_mutex),
    ("std-mutex", "gosched", on_gosched::std_mutex),
    ("exit", "tokio", on_tokio::exit),
    ("exit", "may", on_may::exit),
    ("exit", "gosched", on_gosched::exit),
    ("endless-sleep", "tokio", on_tokio::endless_sleep),
    ("endless-sleep", "may", on_may::endless_sleep),
    ("endless-sleep", "gosched", on_gosched::endless_sleep),
    ("parked-100k", "may", on_may::parked),
    ("parked-100k", "gosched", on_gosched::parked),
    ("thread-local", "may", on_may::thread_local),
    ("thread-local", "gosched", on_gosched::thread_local),
    ("errno", "may", on_may::errno),
    ("errno", "gosched", on_gosched::errno),
    ("overflow", "tokio", on_tokio::overflow),
    ("overflow", "may", on_may::overflow),
    ("overflow", "corosensei", alone::corosensei_overflow),
    ("overflow", "gosched", on_gosched::overflow),
    ("lock-and-join", "rayon", alone::rayon_lock),
    ("lock-and-join", "gosched", on_gosched::lock_and_join),
    ("fork", "tokio", on_tokio::fork),
    ("fork", "may", on_may::fork),
    ("fork", "gosched", on_gosched::fork),
    ("no-memory", "may", on_may::no_memory),
    ("no-memory", "gosched", on_gosched::no_memory),
    ("no-threads", "tokio", on_tokio::no_threads),
    ("no-threads", "gosched", on_gosched::no_threads),
    ("cancel-poisons", "may", on_may::cancel_poisons),
    ("caught-unwind", "corosensei", alone::corosensei_unwind),
];

/// Longer than any case takes that ends.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [case, peer] = wanted.as_slice() {
        let found = CASES.iter().find(|(c, p, _)| c == case && p == peer);
        let Some((_, _, run)) = found else {
            eprintln!("no case {case} of {peer}");
            return ExitCode::from(2);
        };
        run();
        println!("ok");
        return ExitCode::SUCCESS;
    }
    for (case, peer, _) in CASES {
        if wanted.first().is_none_or(|only| only == case || only == peer) {
            println!("{case:15} {peer:10} {}", in_a_process(case, peer));
        }
    }
    ExitCode::SUCCESS
}

/// What becomes of the case.
fn in_a_process(case: &str, peer: &str) -> String {
    let this = std::env::current_exe().expect("known");
    let mut command = Command::new(this);
    // Standard input stays open: the case `exit` reads from it.
    command.args([case, peer]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let (how, has_ended) = wait(&mut child);
    if !has_ended {
        return how;
    }
    let (out, err) = (out.join().expect("read"), err.join().expect("read"));
    let said = err.lines().find(|line| !line.trim().is_empty() && !line.starts_with("note:"));
    let is_ok = how == "exit status: 0" && out.lines().any(|line| line == "ok");
    let figures = out.lines().filter(|line| line.contains('=')).collect::<Vec<_>>().join(" ");
    let verdict = if is_ok { "ok".into() } else { format!("FAILS: {how}") };
    format!("{verdict} {figures} {}", said.map(|line| format!("[{line}]")).unwrap_or_default())
}

fn reader<R: Read + Send + 'static>(from: Option<R>) -> std::thread::JoinHandle<String> {
    let mut from = from.expect("piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child) -> (String, bool) {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().expect("a child") {
            let how = status.signal().map_or_else(|| status.to_string(), |s| format!("signal {s}"));
            return (how, true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    (format!("HANGS (killed after {PATIENCE:?})"), false)
}
