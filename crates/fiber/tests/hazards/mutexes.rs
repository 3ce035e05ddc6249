//! Locks whose owner is a thread's number: shared between processes, recursive, robust.

use crate::harness::{ALL, BLOCKS, Mode, coroutine, in_each, moved};
use gosched_fiber::suspend;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// A mutex in memory that can be mapped by several processes.
#[derive(Clone, Copy)]
struct Shared(*mut libc::pthread_mutex_t);

// SAFETY: a process-shared mutex is for all threads of all processes.
unsafe impl Send for Shared {}

const BYTES: usize = 4096;

impl Shared {
    fn map(memory: &OwnedFd) -> Shared {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let fd = memory.as_raw_fd();
        // SAFETY: a new mapping of a file of that size.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, fd, 0) };
        assert_ne!(p, libc::MAP_FAILED);
        Shared(p.cast())
    }

    /// Makes the mutex, of `kind`, robust or not.
    fn init(self, kind: libc::c_int, robust: libc::c_int) {
        // SAFETY: an all-zero attribute object is only storage for the call below.
        let mut attributes: libc::pthread_mutexattr_t = unsafe { std::mem::zeroed() };
        // SAFETY: initialises the storage.
        assert_eq!(unsafe { libc::pthread_mutexattr_init(&mut attributes) }, 0);
        let shared = libc::PTHREAD_PROCESS_SHARED;
        // SAFETY: the attributes are initialised.
        assert_eq!(unsafe { libc::pthread_mutexattr_setpshared(&mut attributes, shared) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_mutexattr_settype(&mut attributes, kind) }, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_mutexattr_setrobust(&mut attributes, robust) }, 0);
        // SAFETY: memory for a mutex that nobody uses yet.
        assert_eq!(unsafe { libc::pthread_mutex_init(self.0, &attributes) }, 0);
    }

    fn lock(self) -> i32 {
        // SAFETY: an initialised mutex in memory that stays mapped.
        unsafe { libc::pthread_mutex_lock(self.0) }
    }

    fn try_lock(self) -> i32 {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_trylock(self.0) }
    }

    fn unlock(self) -> i32 {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_unlock(self.0) }
    }

    fn make_consistent(self) -> i32 {
        // SAFETY: as above; robust.
        unsafe { libc::pthread_mutex_consistent(self.0) }
    }
}

fn memory() -> OwnedFd {
    // SAFETY: a terminated name. Not closed on exec: the child is to have it.
    let fd = unsafe { libc::memfd_create(c"mutex".as_ptr(), 0) };
    assert!(fd >= 0);
    // SAFETY: just made, ours alone.
    let memory = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::ftruncate(memory.as_raw_fd(), BYTES as i64) }, 0);
    memory
}

const PEER: &str = "GOSCHED_TEST_PEER";

/// In the process that was started by `with_peer`: the memory they share.
fn as_peer() -> Option<Shared> {
    let fd = std::env::var(PEER).ok()?.parse().expect("a descriptor");
    // SAFETY: inherited for this purpose, and used once.
    Some(Shared::map(&unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Runs the same test in another process that shares `memory`; the test takes `as_peer`'s branch.
fn with_peer(memory: &OwnedFd, test: &str) {
    let exe = std::env::current_exe().expect("the path of this program");
    let output = Command::new(exe)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(PEER, memory.as_raw_fd().to_string())
        .output()
        .expect("a child process");
    assert!(output.status.success(), "the peer: {output:?}");
}

const RECURSIVE: &str = "mutexes::a_recursive_mutex_keeps_another_process_out";

#[test]
fn a_recursive_mutex_keeps_another_process_out() {
    in_each(ALL, RECURSIVE, |_: Mode| {
        if let Some(mutex) = as_peer() {
            // Made in the same order in both processes: the same index of a block.
            return moved(move || assert_eq!(mutex.try_lock(), libc::EBUSY));
        }
        let memory = memory();
        let mutex = Shared::map(&memory);
        mutex.init(libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_STALLED);
        let mut holder = coroutine(move || {
            assert_eq!((mutex.lock(), mutex.lock()), (0, 0));
            suspend();
            assert_eq!((mutex.unlock(), mutex.unlock()), (0, 0));
        });
        assert!(!holder.resume());
        moved(move || assert_eq!(mutex.try_lock(), libc::EBUSY, "another coroutine"));
        assert_eq!(mutex.try_lock(), libc::EBUSY, "the thread that carries");
        with_peer(&memory, RECURSIVE);
        assert!(holder.resume());
        moved(move || assert_eq!((mutex.try_lock(), mutex.unlock()), (0, 0)));
    });
}

#[test]
fn an_errorcheck_mutex_knows_its_owner_after_a_move() {
    in_each(ALL, "mutexes::an_errorcheck_mutex_knows_its_owner_after_a_move", |_| {
        let memory = memory();
        let mutex = Shared::map(&memory);
        mutex.init(libc::PTHREAD_MUTEX_ERRORCHECK, libc::PTHREAD_MUTEX_STALLED);
        let mut holder = coroutine(move || {
            assert_eq!(mutex.lock(), 0);
            suspend();
            assert_eq!(mutex.lock(), libc::EDEADLK);
            assert_eq!(mutex.unlock(), 0);
        });
        assert!(!holder.resume());
        assert_eq!(mutex.unlock(), libc::EPERM);
        crate::harness::on_thread(move || assert!(holder.resume()));
    });
}

#[test]
fn a_robust_mutex_locks_and_unlocks() {
    in_each(ALL, "mutexes::a_robust_mutex_locks_and_unlocks", |_| {
        let memory = memory();
        let mutex = Shared::map(&memory);
        mutex.init(libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_ROBUST);
        moved(move || {
            for _ in 0..3 {
                assert_eq!(mutex.lock(), 0);
                suspend_nothing();
                assert_eq!(mutex.unlock(), 0);
            }
        });
        assert_eq!((mutex.lock(), mutex.unlock()), (0, 0));
    });
}

fn suspend_nothing() {
    std::hint::black_box(());
}

/// A coroutine that ends with a robust mutex locked leaves it to the next as a thread does, and
/// the block's next user finds no trace of it, even if the mutex is gone by then.
#[test]
fn a_robust_mutex_tells_that_its_owner_ended() {
    in_each(ALL, "mutexes::a_robust_mutex_tells_that_its_owner_ended", |_| {
        for _ in 0..10 {
            let memory = memory();
            let mutex = Shared::map(&memory);
            mutex.init(libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_ROBUST);
            moved(move || assert_eq!(mutex.lock(), 0));
            moved(move || {
                assert_eq!(mutex.lock(), libc::EOWNERDEAD);
                assert_eq!((mutex.make_consistent(), mutex.unlock()), (0, 0));
            });
            moved(move || assert_eq!(mutex.lock(), 0));
            // SAFETY: mapped by `Shared::map`; nobody uses the mutex again.
            assert_eq!(unsafe { libc::munmap(mutex.0.cast(), BYTES) }, 0);
        }
    });
}

const OWNER_DEAD: &str = "mutexes::owner_death_by_process_exit_is_not_seen";

/// What does not work, and is documented: when a *process* dies, the kernel looks only at the
/// locks of the threads it knows. A robust mutex held by a coroutine then stays locked.
#[test]
fn owner_death_by_process_exit_is_not_seen() {
    in_each(BLOCKS, OWNER_DEAD, |_| {
        if let Some(mutex) = as_peer() {
            // Left locked for good: the coroutine is dropped.
            let mut holder = coroutine(move || {
                assert_eq!(mutex.lock(), 0);
                suspend();
            });
            assert!(!holder.resume());
            return;
        }
        let memory = memory();
        let mutex = Shared::map(&memory);
        mutex.init(libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_ROBUST);
        with_peer(&memory, OWNER_DEAD);
        assert_eq!(mutex.try_lock(), libc::EBUSY);
    });
}
