//! The ordering that the revocation relies on without a fence, on this machine: a thread that /proc
//! shows asleep has its stores visible, and its next load comes after.
//!
//! The steps are those of the page of `ownership`; the threads here are as bare as can be.

#![cfg(all(not(loom), target_os = "linux"))]

use gosched_protocol::Ownership;
use std::fs::File;
use std::hint::spin_loop;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    compiler_fence,
};
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(2);

static WORD: Ownership = Ownership::new();
static IN_RUNTIME: AtomicBool = AtomicBool::new(false);
static LEAVES: AtomicU32 = AtomicU32::new(0);
/// Whether the revoker has the processor.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// How often the revoker has given it back.
static GIVEN_BACK: AtomicU64 = AtomicU64::new(0);
static ENTERED: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);

fn machine() {
    let (mut random, mut lost) = (1_u64, 0);
    // ORDERING: Relaxed throughout, as in the runtime: that is what is tested.
    while !STOP.load(Relaxed) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        IN_RUNTIME.store(true, Relaxed);
        compiler_fence(Acquire);
        if !WORD.is_undisturbed() && !WORD.keep() {
            // Lost: waits until the revoker has given it back.
            lost += 1;
            while GIVEN_BACK.load(Acquire) < lost || TAKEN.load(Acquire) {
                spin_loop();
            }
            WORD.regained();
        }
        ENTERED.store(ENTERED.load(Relaxed) + 1, Relaxed);
        maybe_sleep(random >> 60);
        assert!(!TAKEN.load(Relaxed), "inside the runtime without the processor");
        LEAVES.store(LEAVES.load(Relaxed).wrapping_add(1), Relaxed);
        compiler_fence(Release);
        IN_RUNTIME.store(false, Relaxed);
        maybe_sleep(random >> 58 & 15);
    }
}

/// Sleeps shortly three times in sixteen.
fn maybe_sleep(dice: u64) {
    if dice < 3 {
        std::thread::sleep(Duration::from_nanos(1));
    }
}

fn is_asleep(file: &File) -> bool {
    let mut text = [0; 160];
    let len = file.read_at(&mut text, 0).unwrap_or(0);
    len > 0 && !text.starts_with(b"running")
}

#[test]
fn a_sleeper_shows_its_stores_and_sees_the_request() {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(File::open("/proc/thread-self/syscall")).unwrap();
        machine();
    });
    let Ok(file) = told.recv().unwrap() else {
        STOP.store(true, Relaxed);
        thread.join().unwrap();
        return eprintln!("SKIPPED: /proc/thread-self/syscall can't be read here");
    };
    let (mut taken, mut withdrawn) = (0_u64, 0_u64);
    let start = Instant::now();
    // ORDERING: as in the runtime.
    while (start.elapsed() < LASTS || taken == 0 || withdrawn == 0) && !thread.is_finished() {
        let leaves = LEAVES.load(Acquire);
        if IN_RUNTIME.load(Acquire) || !WORD.request() {
            continue;
        }
        let asleep = is_asleep(&file);
        let unchanged = LEAVES.load(Acquire) == leaves && !IN_RUNTIME.load(Acquire);
        if !(asleep && unchanged) {
            WORD.withdraw();
            withdrawn += 1;
            continue;
        }
        if WORD.take() {
            TAKEN.store(true, Release);
            taken += 1;
            (0..100).for_each(|_| spin_loop());
            GIVEN_BACK.fetch_add(1, Release);
            TAKEN.store(false, Release);
        }
    }
    STOP.store(true, Relaxed);
    thread.join().unwrap();
    eprintln!("taken {taken}, withdrawn {withdrawn}, entered {}", ENTERED.load(Relaxed));
}
