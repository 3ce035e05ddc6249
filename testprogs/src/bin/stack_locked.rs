//! Uses stacks under `mlockall`: `future` before the first one is made, `current` after it.
//!
//! Prints `key=value` lines, or `skipped` if this process may not lock memory.

use std::env;
use std::fs;
use std::os::fd::AsRawFd;
use std::ptr;

use gosched_fiber::stack::{self, Class, Stack};

const COUNT: usize = 100;

fn main() {
    let mode = env::args().nth(1).expect("a mode");
    let first = match mode.as_str() {
        "future" => lock_memory(libc::MCL_FUTURE).then(make),
        "current" => {
            let first = make();
            lock_memory(libc::MCL_CURRENT).then_some(first)
        }
        other => panic!("no mode {other}"),
    };
    let Some(first) = first else { return println!("skipped") };
    let before = rss_kib();
    let mut stacks: Vec<_> = (1..COUNT).map(|_| make()).collect();
    stacks.push(first);
    println!("rss_kib_used={}", rss_kib().saturating_sub(before));
    println!("guarded={}", stacks.iter().filter(|stack| is_guarded(stack)).count());
    println!("guard_maps={}", stack::stats().guard_maps);
    let full = rss_kib();
    stacks.into_iter().for_each(stack::free);
    println!("trimmed={}", stack::trim(Class::DEFAULT, 0));
    println!("rss_kib_freed={}", full.saturating_sub(rss_kib()));
    let again = make();
    println!("guarded_again={}", usize::from(is_guarded(&again)));
    stack::free(again);
}

fn lock_memory(flags: libc::c_int) -> bool {
    // SAFETY: changes where pages live, not what they hold.
    unsafe { libc::mlockall(flags) == 0 }
}

/// A stack with one page in use.
fn make() -> Stack {
    let stack = stack::alloc(Class::DEFAULT).expect("a stack");
    let top = ptr::with_exposed_provenance_mut::<u64>(stack.top() - 8);
    // SAFETY: the top word of a stack that we own.
    unsafe { top.write_volatile(1) };
    stack
}

/// Whether the kernel may not read just below the limit, and may just above.
fn is_guarded(stack: &Stack) -> bool {
    is_readable(stack.limit()) && !is_readable(stack.limit() - 1)
}

fn is_readable(address: usize) -> bool {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let byte: *const libc::c_void = ptr::with_exposed_provenance(address);
    // SAFETY: the kernel reads the byte and reports EFAULT where it may not.
    let count = unsafe { libc::write(writer.as_raw_fd(), byte, 1) };
    drop(reader);
    count == 1
}

fn rss_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a field");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}
