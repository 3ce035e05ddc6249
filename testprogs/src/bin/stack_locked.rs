//! Uses stacks under `mlockall`: `future` before the first one is made, `current` after it.
//!
//! Prints `key=value` lines, or `skipped` if this process may not lock memory. What is resident is
//! counted in the mappings of the stacks alone: the process's figure is an estimate, and takes in
//! code that is loaded meanwhile.

use std::env;
use std::fs;
use std::ops::Range;
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
    let mut stacks: Vec<_> = (1..COUNT).map(|_| make()).collect();
    stacks.push(first);
    let bounds = bounds(&stacks);
    let full = resident_kib(&bounds);
    println!("resident_kib={full}");
    println!("guarded={}", stacks.iter().filter(|stack| is_guarded(stack)).count());
    println!("guard_maps={}", stack::stats().guard_maps);
    stacks.into_iter().for_each(stack::free);
    println!("trimmed={}", stack::trim(Class::DEFAULT, 0));
    println!("resident_kib_trimmed={}", resident_kib(&bounds));
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

/// From the lowest guard to the highest top.
fn bounds(stacks: &[Stack]) -> Range<usize> {
    let low = stacks.iter().map(|stack| stack.guard().start).min();
    let high = stacks.iter().map(Stack::top).max();
    low.expect("a stack")..high.expect("a stack")
}

/// What is resident in the mappings that `bounds` meets, as the kernel finds it in its tables.
fn resident_kib(bounds: &Range<usize>) -> usize {
    let text = fs::read_to_string("/proc/self/smaps").expect("readable");
    let (mut meets, mut sum) = (false, 0);
    for line in text.lines() {
        if let Some(mapping) = mapping(line) {
            meets = mapping.start < bounds.end && bounds.start < mapping.end;
        } else if let Some(kib) = line.strip_prefix("Rss:").filter(|_| meets) {
            sum += kib.trim_end_matches("kB").trim().parse::<usize>().expect("a number");
        }
    }
    sum
}

/// The addresses at the head of a mapping's lines.
fn mapping(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    Some(address(start)?..address(end)?)
}
