//! Holds many stacks with one touched page each and prints what they cost, as `key=value` lines.
//!
//! The first argument is the number of stacks.

use std::env;
use std::fs;
use std::ptr;
use std::time::{Duration, Instant};

use gosched_fiber::stack::{self, Class};

fn main() {
    let count: usize = env::args().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    let mut stacks = Vec::with_capacity(count);
    stacks.resize_with(1, || stack::alloc(Class::DEFAULT).expect("a stack"));
    let before = Memory::now();

    let (start, cpu) = (Instant::now(), cpu_time());
    for _ in 1..count {
        let stack = stack::alloc(Class::DEFAULT).expect("a stack");
        touch(stack.top() - 8);
        stacks.push(stack);
    }
    print("make_ns", start.elapsed().as_nanos() as usize / count);
    print("make_cpu_us", (cpu_time() - cpu).as_micros() as usize);
    let full = Memory::now();
    print("rss_bytes_each", 1024 * full.rss_kib.saturating_sub(before.rss_kib) / count);
    print("page_table_bytes_each", 1024 * (full.page_table_kib - before.page_table_kib) / count);
    print("maps", maps());
    print("reserved_mib", stack::stats().reserved_bytes >> 20);

    let start = Instant::now();
    stacks.drain(..).for_each(stack::free);
    print("free_ns", start.elapsed().as_nanos() as usize / count);
    let cpu = cpu_time();
    let trimmed = stack::trim(Class::DEFAULT, 0);
    print("trim_cpu_us", (cpu_time() - cpu).as_micros() as usize);
    print("trimmed", trimmed);
    let trimmed = Memory::now();
    print("rss_kib_left", trimmed.rss_kib.saturating_sub(before.rss_kib));
    print("maps_after", maps());
}

/// What the kernel says this process uses.
struct Memory {
    rss_kib: usize,
    page_table_kib: usize,
}

impl Memory {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("readable");
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
            line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
        };
        // Without the code, which is loaded when it is first run.
        Self { rss_kib: field("RssAnon:"), page_table_kib: field("VmPTE:") }
    }
}

/// What this thread has computed, in the kernel too; not what it waited for a CPU.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time, which is ours.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn maps() -> usize {
    fs::read_to_string("/proc/self/maps").expect("readable").lines().count()
}

fn touch(address: usize) {
    // SAFETY: the top word of a stack that we own.
    unsafe { ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(1) };
}

fn print(key: &str, value: usize) {
    println!("{key}={value}");
}
