//! A hint for those whose goroutines seem to do nothing: `main` has returned before they ran.
//!
//! As in Go the process ends with `main`, and nobody else is waited for. That surprises once; so on
//! a terminal, or with `GOSCHED=hints=1`, one line says what happened and what to do.

use crate::scheduler::SCHEDULER;
use crate::slab;
use gosched_protocol::Status;
use std::io::{IsTerminal, Write, stderr};

/// Says how many goroutines could have run and did not, if there are any. When `main` has returned,
/// by its goroutine, outside the runtime.
pub(crate) fn hint() {
    let is_wanted = SCHEDULER.settled.get().and_then(|settled| settled.hints);
    let count = count_runnable();
    if count == 0 || !is_wanted.unwrap_or_else(|| stderr().is_terminal()) {
        return;
    }
    // Nobody may be there to read it, and that is no reason to fail.
    let _ = writeln!(
        stderr(),
        "gosched: main has returned, and the process ends with it, while {count} goroutine{} had \
         still to run; wait for them: `join` what `go` returns, or use `thread::scope` or \
         `sync::WaitGroup` (GOSCHED=hints=0 silences this)",
        if count == 1 { "" } else { "s" },
    );
}

fn count_runnable() -> usize {
    let mut count = 0;
    slab::for_each(|g| count += usize::from(g.status.get() == Status::Runnable));
    count
}
