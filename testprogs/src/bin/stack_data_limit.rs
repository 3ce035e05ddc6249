//! Stacks until the limit of a program's data (`ulimit -d`) is reached, which is drawn close when there
//! are many: an arena is then opened by less than it would be.

use gosched_fiber::stack::{Class, Stack, alloc, free};

const MANY: usize = 3_000;
const ROOM: u64 = 24 << 20;

fn main() {
    let mut stacks: Vec<Stack> = Vec::with_capacity(4 * MANY);
    stacks.extend((0..MANY).map(|_| alloc(Class::SMALL).expect("no limit yet")));
    let before = data_bytes();
    let most = before + ROOM;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) }, 0);
    let error = loop {
        match alloc(Class::SMALL) {
            Ok(stack) => stacks.push(stack),
            Err(error) => break error,
        }
    };
    println!("opened_mib={}", (data_bytes() - before) >> 20);
    println!("error: {error}");
    stacks.into_iter().for_each(free);
}

/// What the kernel counts of this process against that limit.
fn data_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).expect("a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}
