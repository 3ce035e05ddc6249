//! State of the CPU and of the kernel's threads that must not go from one goroutine to another. The
//! first argument is the kind. Prints `key=value` lines, or `SKIPPED: ` and a reason.

use gosched::{go, run, runtime, thread};
use std::arch::asm;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use testprogs::filter;
use testprogs::random::Random;
use testprogs::registers::{FLAG_AC, FLAGS_ANY, Held};
use testprogs::signals::{Surroundings, install, install_past_libc, send, thread_id};

/// Longer than a slice of 100 us.
const ROUNDS: u64 = 200_000;
/// How many of what the kind is about are to be seen, at least.
const ENOUGH: u64 = 300;

fn main() {
    let kind = std::env::args().nth(1).expect("a kind");
    if kind == "one-stack" {
        // No alternate stacks: handlers run on the goroutines' own.
        filter::refuse(&[libc::SYS_sigaltstack], libc::EPERM);
    }
    gosched::Config::new().slice(Duration::from_micros(100)).start().expect("it is the first");
    run(move || match kind.as_str() {
        "registers" | "one-stack" => registers(FLAGS_ANY),
        "alignment" => registers(FLAG_AC),
        "initial" => initial(),
        "handlers" => handlers(|handler| install_past_libc(libc::SIGUSR1, handler)),
        "handlers-nodefer" => {
            handlers(|handler| {
                install(libc::SIGUSR1, handler, libc::SA_NODEFER | libc::SA_RESTART)
            });
        }
        "pkru" => pkru(),
        other => panic!("no kind {other}"),
    });
}

fn print(key: &str, value: impl std::fmt::Display) {
    println!("{key}={value}");
}

/// Whether enough code has been stopped since `before`. In the end a run fails by being killed.
fn is_enough(before: u64) -> bool {
    runtime::preemptions().in_place >= before + ENOUGH
}

/// All registers at once, in hogs.
fn registers(flags: u64) {
    let before = runtime::preemptions().in_place;
    let hogs: Vec<_> = (0..6)
        .map(|i| {
            go(move || {
                let (mut random, mut wrong) = (Random::new(i), 0);
                while !is_enough(before) {
                    let kept = Held::random(&mut random, flags);
                    let mut held = kept.clone();
                    at_offset(i, || held.keep(ROUNDS));
                    wrong += u64::from(held != kept);
                }
                wrong
            })
        })
        .collect();
    print("wrong", hogs.into_iter().map(|hog| hog.join().expect("no panic")).sum::<u64>());
    print("preemptions", runtime::preemptions().in_place - before);
}

/// Runs `f` with the stack pointer at one of the four places in a cache line that it may have.
fn at_offset(which: u64, f: impl FnOnce()) {
    fn below<const BYTES: usize>(f: impl FnOnce()) {
        let room = [0_u8; BYTES];
        black_box(&room);
        f();
        black_box(&room);
    }
    match which % 4 {
        0 => below::<64>(f),
        1 => below::<80>(f),
        2 => below::<96>(f),
        _ => below::<112>(f),
    }
}

/// What a goroutine that waits finds in the registers when it goes on where a hog was stopped.
fn initial() {
    let before = runtime::preemptions().in_place;
    let (mut dirty, mut looks) = (0, 0);
    let hogs: Vec<_> = (0..3)
        .map(|i| {
            go(move || {
                let mut random = Random::new(i);
                while !is_enough(before) {
                    Held::random(&mut random, FLAGS_ANY).keep(ROUNDS);
                }
            })
        })
        .collect();
    while !is_enough(before) {
        thread::sleep(Duration::from_micros(200));
        looks += 1;
        dirty += u64::from(!is_initial());
    }
    hogs.into_iter().for_each(|hog| hog.join().expect("no panic"));
    print("looks", looks);
    print("dirty", dirty);
    print("preemptions", runtime::preemptions().in_place - before);
}

/// As a thread starts: an empty x87 stack, default rounding, no flag set.
fn is_initial() -> bool {
    let (mut environment, mut mxcsr, flags, mut two) = ([0_u32; 7], 0_u32, 0_u64, 0_u64);
    let flags_now: u64;
    // SAFETY: stores 28 bytes, and masks exceptions, which are masked.
    unsafe { asm!("fnstenv [{0}]", "fldcw [{0}]", in(reg) &mut environment) };
    // SAFETY: stores four bytes.
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut mxcsr) };
    // SAFETY: the stack is as before.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags_now) };
    // SAFETY: needs two free places of the x87 stack, without which the result is no number.
    unsafe { asm!("fld1", "fld1", "faddp", "fistp qword ptr [{}]", in(reg) &mut two) };
    const TAGS: usize = 2;
    const CONTROL: usize = 0;
    const DF_AC: u64 = 0x4_0400;
    environment[TAGS] & 0xffff == 0xffff
        && environment[CONTROL] & 0xffff == 0x037f
        && mxcsr & !0x3f == 0x1f80
        && flags_now & DF_AC == flags
        && two == 2
}

/// How often the handler ran, and ended elsewhere than it began.
static RUNS: AtomicU64 = AtomicU64::new(0);
static MOVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handle(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let before = Surroundings::now();
    Held::random(&mut Random::new(1), FLAGS_ANY).keep(ROUNDS);
    MOVED.fetch_add(u64::from(Surroundings::now() != before), Relaxed);
    RUNS.fetch_add(1, Relaxed);
}

/// Handlers that compute for longer than a slice, on the goroutines' stacks.
fn handlers(install: impl FnOnce(testprogs::signals::Handler)) {
    install(handle);
    let plain_mask = surroundings_locked().mask;
    let before = runtime::preemptions();
    let over = std::sync::Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..6)
        .map(|_| {
            let over = over.clone();
            go(move || {
                while !over.load(Relaxed) {
                    send(thread_id(), libc::SIGUSR1);
                    Held::random(&mut Random::new(2), FLAGS_ANY).keep(ROUNDS);
                }
            })
        })
        .collect();
    // Others that could run: the slice ends in handlers as well. In the end a run fails by being
    // killed.
    let is_enough = || {
        let now = runtime::preemptions();
        RUNS.load(Relaxed) >= ENOUGH
            && now.in_place > before.in_place
            && now.in_user_handler > before.in_user_handler
    };
    while !is_enough() {
        thread::sleep(Duration::from_micros(300));
    }
    over.store(true, Relaxed);
    hogs.into_iter().for_each(|hog| hog.join().expect("no panic"));
    let after = runtime::preemptions();
    print("runs", RUNS.load(Relaxed));
    print("moved", MOVED.load(Relaxed));
    print("preemptions", after.in_place - before.in_place);
    print("refused", after.in_user_handler - before.in_user_handler);
    look_at_threads(plain_mask);
}

/// Each thread that runs goroutines has an alternate stack for itself, and blocks what it did.
fn look_at_threads(plain_mask: u64) {
    let seen: Vec<_> = (0..50).map(|_| go(surroundings_locked)).collect();
    let seen: Vec<_> = seen.into_iter().map(|g| g.join().expect("no panic")).collect();
    let mut owners = HashMap::new();
    let shared = seen.iter().filter(|s| *owners.entry(s.stack).or_insert(s.thread) != s.thread);
    print("shared_stacks", shared.count());
    print("other_masks", seen.iter().filter(|s| s.mask != plain_mask).count());
    print("threads", owners.len());
}

fn surroundings_locked() -> Surroundings {
    runtime::lock_os_thread();
    let seen = Surroundings::now();
    // Somebody else has the other threads meanwhile.
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(300) {
        thread::yield_now();
    }
    runtime::unlock_os_thread();
    seen
}

/// Protection keys: a hog's own, and everybody else's.
fn pkru() {
    // SAFETY: no memory is passed.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
    if key < 0 {
        return println!("SKIPPED: no protection keys ({})", std::io::Error::last_os_error());
    }
    let normal = read_pkru();
    let mine = normal ^ 2 << (2 * key);
    let before = runtime::preemptions().in_place;
    let hogs: Vec<_> = (0..2)
        .map(|_| {
            go(move || {
                let mut wrong = 0;
                while !is_enough(before) {
                    write_pkru(mine);
                    Held::random(&mut Random::new(3), FLAGS_ANY).keep(ROUNDS);
                    wrong += u64::from(read_pkru() != mine);
                    write_pkru(normal);
                }
                wrong
            })
        })
        .collect();
    let mut leaked = 0_u64;
    while !is_enough(before) {
        thread::sleep(Duration::from_micros(200));
        leaked += u64::from(read_pkru() != normal);
    }
    print("wrong", hogs.into_iter().map(|hog| hog.join().expect("no panic")).sum::<u64>());
    print("leaked", leaked);
}

fn read_pkru() -> u32 {
    let value: u32;
    // SAFETY: `pkru` has seen that the kernel has protection keys.
    unsafe { asm!("rdpkru", in("ecx") 0, out("eax") value, out("edx") _) };
    value
}

fn write_pkru(value: u32) {
    // SAFETY: as above; no memory has the key.
    unsafe { asm!("wrpkru", in("ecx") 0, in("eax") value, in("edx") 0) };
}
