//! A program that uses all of the runtime while the system lets it down: `fault KIND [WHAT]`.
//!
//! * `plain`: nothing is wrong.
//! * `without WHAT`: a system call, or all that an old kernel lacks, fails from the start on.
//! * `lost WHAT`: the same, from the middle on.
//! * `start WHAT`: what the runtime can't start without fails.
//! * `interrupted`: a timer's signal comes all the time, and restarts no call.
//! * `urgent`: other processes send SIGURG all the time.
//! * `clocks`: no call may wait by a clock that can be set.
//! * `full`: there are no descriptors left.
//! * `processes`: the user may have no more threads.
//! * `memory`: address space runs out while goroutines are made.
//! * `stackless`: there is no memory for the only stack that is waited for.
//! * `little-stack`: threads have 64 KiB.
//! * `foreign`: threads of C call in.
//! * `attached`: goes on until standard input ends.
//!
//! Prints `key=value` lines, or `SKIPPED: ` and a reason.

mod foreign;
mod limits;
mod missing;
mod signals;
mod work;

use gosched::run;
use std::env;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use work::{Doses, print};

fn main() {
    let kind = env::args().nth(1).expect("a kind");
    let what = env::args().nth(2).unwrap_or_default();
    match kind.as_str() {
        "plain" => work::all(&Doses::ALL),
        "without" => missing::from_the_start(&what),
        "lost" => missing::from_the_middle(&what),
        "start" => missing::at_the_start(&what),
        "interrupted" => signals::interrupted(),
        "urgent" => signals::urgent(),
        "flood" => signals::flood(&what),
        "clocks" => missing::clocks(),
        "full" => limits::files(),
        "processes" => limits::processes(),
        "memory" => limits::memory(),
        "stackless" => run(limits::stackless),
        "little-stack" => limits::little_stack(),
        "foreign" => foreign::call_in(),
        "attached" => attached(),
        other => panic!("no kind {other}"),
    }
}

/// Works until standard input ends, so that something can be done to the process meanwhile.
fn attached() {
    static OVER: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        std::io::stdin().read_to_end(&mut Vec::new()).expect("it ends");
        OVER.store(true, SeqCst);
    });
    let mut passes = 0;
    println!("ready=1");
    while !OVER.load(SeqCst) {
        work::quietly(&Doses::ALL);
        passes += 1;
    }
    print("passes", passes);
}
