//! Robust mutexes that a goroutine still holds when it ends.
//!
//! For a thread the kernel walks the list of them (`set_robust_list(2)`) and marks each "owner
//! died". It doesn't know goroutines. Left alone, the list would reach the block's next user, whose
//! first robust lock writes into a mutex that may be gone. So the same is done here.
//!
//! When a process dies nobody walks the lists of its goroutines: what they hold stays locked.

use gosched_base::os;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// `struct robust_list_head` of the kernel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Head {
    /// The first entry; the head's own address when there is none. Bit 0 says that the mutex
    /// inherits priority.
    first: usize,
    /// From an entry to its futex.
    futex_offset: isize,
    /// The entry being locked or unlocked, else 0.
    pending: usize,
}

/// Where a block keeps its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Robust {
    offset: usize,
}

/// A bound as the kernel's, against rings.
const ENTRIES_MAX: usize = 2048;

const FUTEX_WAITERS: u32 = 0x8000_0000;
const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;

impl Robust {
    /// Where the calling thread, whose block is at `tcb`, has registered its list.
    pub(super) fn of_caller(tcb: usize, tcb_bytes: usize) -> Option<usize> {
        let (mut head, mut bytes) = (0_usize, 0_usize);
        let args = [0, &raw mut head as usize, &raw mut bytes as usize, 0, 0, 0];
        // SAFETY: the kernel writes two words, which are ours.
        unsafe { os::syscall(libc::SYS_get_robust_list, args) }.ok()?;
        let offset = head.checked_sub(tcb)?;
        (offset + size_of::<Head>() <= tcb_bytes && bytes == size_of::<Head>()).then_some(offset)
    }

    pub(super) fn at(offset: usize) -> Robust {
        Robust { offset }
    }

    /// From FS.
    pub(super) fn place(self) -> isize {
        self.offset as isize
    }

    fn head(self, tcb: usize) -> *mut Head {
        (tcb + self.offset) as *mut Head
    }

    /// Whether the block at `tcb` holds robust mutexes.
    ///
    /// # Safety
    /// * `tcb` is the running goroutine's own block.
    #[inline]
    pub(super) unsafe fn are_held(self, tcb: usize) -> bool {
        let head = self.head(tcb);
        // SAFETY: by the caller; only the block's own execution writes it.
        unsafe { head.read().first != head as usize }
    }

    /// Marks all that the block holds as left by a dead owner, and forgets it.
    ///
    /// # Safety
    /// * As for [`are_held`](Robust::are_held); the goroutine has nothing left to do.
    /// * `tid` is the block's number.
    #[cold]
    pub(super) unsafe fn give_up(self, tcb: usize, tid: u32) {
        let at = self.head(tcb);
        // SAFETY: by the caller.
        let head = unsafe { at.read() };
        let mut entry = head.first & !1;
        for _ in 0..ENTRIES_MAX {
            if entry == at as usize {
                break;
            }
            // SAFETY: an entry is in a mutex that this goroutine holds, so that it is there.
            let next = unsafe { (entry as *const usize).read() } & !1;
            leave(entry.wrapping_add_signed(head.futex_offset), tid);
            entry = next;
        }
        let empty = Head { first: at as usize, pending: 0, ..head };
        // SAFETY: by the caller.
        unsafe { at.write(empty) };
    }
}

/// Marks one futex, as the kernel's `handle_futex_death` does.
fn leave(futex: usize, tid: u32) {
    // SAFETY: the futex of a mutex that this goroutine holds.
    let word = unsafe { AtomicU32::from_ptr(futex as *mut u32) };
    let left =
        |now: u32| (now & FUTEX_TID_MASK == tid).then_some(now & FUTEX_WAITERS | FUTEX_OWNER_DIED);
    // ORDERING: Release, so that the next owner, who acquires, sees what was written under the
    // lock; Relaxed for the look before.
    let before = word.fetch_update(std::sync::atomic::Ordering::Release, Relaxed, left);
    if before.is_ok_and(|now| now & FUTEX_WAITERS != 0) {
        // Not private: waiters may be in another process, and private ones use the same word.
        for flags in [0, libc::FUTEX_PRIVATE_FLAG] {
            let op = (libc::FUTEX_WAKE | flags) as usize;
            // SAFETY: a wake reads nothing through the address.
            let _ = unsafe { os::syscall(libc::SYS_futex, [futex, op, 1, 0, 0, 0]) };
        }
    }
}
