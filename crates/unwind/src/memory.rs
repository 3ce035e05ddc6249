//! Reading stacks that others may write, or that may not be there.
//!
//! Inside a slot of ours every word is mapped for ever. Anything else (a thread's own stack, an
//! alternate stack, a foreign coroutine's) is asked of the kernel, which says when nothing is there.

use gosched_fiber::stack;
use std::ops::Range;

/// Words copied from a foreign stack at a time.
const WINDOW: usize = 128;
const WORD: usize = size_of::<u64>();

/// A copy of a piece of foreign memory. Lives in the scratch, since handlers have little stack.
#[derive(Debug)]
pub(crate) struct Window {
    words: [u64; WINDOW],
    start: usize,
    count: usize,
}

impl Window {
    pub(crate) const fn empty() -> Window {
        Window { words: [0; WINDOW], start: 0, count: 0 }
    }
}

/// The memory in which a walk may read.
pub(crate) struct Memory<'a> {
    slot: Range<usize>,
    window: &'a mut Window,
}

impl<'a> Memory<'a> {
    /// For a walk that begins with this stack pointer.
    pub(crate) fn around(sp: usize, window: &'a mut Window) -> Memory<'a> {
        let slot = stack::slot_of(sp).filter(|slot| !slot.in_guard());
        window.count = 0;
        // A slot that a stack pointer was in is open, and stays so.
        Memory { slot: slot.map_or(0..0, |slot| slot.limit()..slot.top()), window }
    }

    /// The word at `address`; `None` where none can be read.
    #[inline]
    pub(crate) fn read(&mut self, address: usize) -> Option<u64> {
        if !address.is_multiple_of(WORD) {
            return None;
        }
        if self.slot.contains(&address) {
            // SAFETY: an aligned word of a slot, which is mapped for ever. Its owner may write it at
            // the same time; what is read then is used as a number only.
            return Some(unsafe { (address as *const u64).read_volatile() });
        }
        self.read_foreign(address)
    }

    fn read_foreign(&mut self, address: usize) -> Option<u64> {
        let index = |window: &Window| {
            let index = address.checked_sub(window.start)? / WORD;
            (index < window.count).then_some(index)
        };
        if index(self.window).is_none() {
            self.copy(address);
        }
        index(self.window).map(|index| self.window.words[index])
    }

    #[cold]
    fn copy(&mut self, address: usize) {
        let local =
            libc::iovec { iov_base: self.window.words.as_mut_ptr().cast(), iov_len: WINDOW * WORD };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: WINDOW * WORD };
        // The kernel copies up to the first page that is not there, or page by page.
        let copied = copy_in(&local, &remote).or_else(|| {
            let to_page_end = 4096 - address % 4096;
            let remote = libc::iovec { iov_len: to_page_end.min(WINDOW * WORD), ..remote };
            copy_in(&local, &remote)
        });
        self.window.start = address;
        self.window.count = copied.unwrap_or(0) / WORD;
    }
}

/// How many bytes could be copied.
fn copy_in(local: &libc::iovec, remote: &libc::iovec) -> Option<usize> {
    // SAFETY: reads and writes a word of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    let pid = gosched_base::os::getpid();
    // SAFETY: the kernel writes into `local`, which is ours, and checks what it reads.
    let copied = unsafe { libc::process_vm_readv(pid, local, 1, remote, 1, 0) };
    // SAFETY: as above.
    unsafe { errno.write(before) };
    usize::try_from(copied).ok().filter(|n| *n > 0)
}
