//! Destructors of pthread keys, run when a goroutine ends.
//!
//! glibc runs them in `start_thread`, which a goroutine never returns to. The values hang off the
//! control block in two levels of 32; the destructors are in the process-wide key table. Order and
//! number of rounds are POSIX's and glibc's: up to four, until no value is left. What is left then
//! is forgotten, since the block's next user must not find it.

use super::symbols::Symbols;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// PTHREAD_DESTRUCTOR_ITERATIONS.
pub(super) const ROUNDS: usize = 4;
/// PTHREAD_KEY_2NDLEVEL_SIZE and the number of second levels (1,024 keys in all).
const LEVEL: usize = 32;

/// `struct pthread_key_data`: a value is valid while the key's sequence number is the same.
#[derive(Debug)]
#[repr(C)]
struct Value {
    sequence: usize,
    data: *mut c_void,
}

/// Where the pieces are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// Offset of the array of second-level pointers in the control block.
    specific: usize,
    /// Offset of the byte that is 1 once a key was set.
    used: usize,
    /// Address of `__pthread_keys`: sequence number and destructor of each.
    table: usize,
}

impl Keys {
    pub(super) fn new(symbols: &Symbols, specific_used: Option<usize>) -> Option<Keys> {
        Some(Keys {
            specific: symbols.specific?.offset,
            used: specific_used?,
            table: symbols.pthread_keys?,
        })
    }

    /// Whether a key was set since the block was made or [`forget`](Keys::forget) was called.
    ///
    /// # Safety
    /// * `tcb` is the running thread's or goroutine's own block.
    #[inline]
    pub(super) unsafe fn are_set(&self, tcb: usize) -> bool {
        // SAFETY: a byte of the block; only its own execution writes it.
        unsafe { self.flag(tcb).read_volatile() != 0 }
    }

    /// Where [`are_set`](Keys::are_set) looks, from FS.
    pub(super) fn place(&self) -> isize {
        self.used as isize
    }

    fn flag(&self, tcb: usize) -> *mut u8 {
        (tcb + self.used) as *mut u8
    }

    /// Runs the destructors of all values once. User code.
    ///
    /// # Safety
    /// * `tcb` is the running thread's or goroutine's own block, and it ends.
    pub(super) unsafe fn run_round(&self, tcb: usize) {
        // SAFETY: as in `are_set`. Cleared first: a destructor may set a key again.
        unsafe { self.flag(tcb).write_volatile(0) };
        for level in 0..LEVEL {
            // SAFETY: by the caller.
            let Some(values) = (unsafe { self.values(tcb, level) }) else { continue };
            for i in 0..LEVEL {
                // SAFETY: by the caller; a second level has 32 values.
                unsafe { self.run_one(values.wrapping_add(i), level * LEVEL + i) };
            }
        }
    }

    /// # Safety
    /// * As for [`run_round`](Keys::run_round); `value` is the block's for the key of that number.
    unsafe fn run_one(&self, value: *mut Value, key: usize) {
        // SAFETY: only this block's execution uses it.
        let Value { sequence, data } = unsafe { value.read() };
        if data.is_null() {
            return;
        }
        // SAFETY: as above; the sequence number may stay without a value.
        unsafe { value.write(Value { sequence, data: std::ptr::null_mut() }) };
        let [now, destructor] = self.table_entry(key);
        if now == sequence && destructor != 0 {
            // SAFETY: a key's destructor is such a function; the sequence numbers say that the
            // key is the one that the value was set under.
            let destructor: extern "C" fn(*mut c_void) = unsafe { std::mem::transmute(destructor) };
            destructor(data);
        }
    }

    /// Sequence number and destructor of a key. Other threads may create and delete keys.
    fn table_entry(&self, key: usize) -> [usize; 2] {
        let entry = (self.table as *mut [usize; 2]).wrapping_add(key).cast::<usize>();
        [0, 1].map(|word| {
            // SAFETY: an aligned word of a table of 1,024 pairs that is never freed.
            let word = unsafe { AtomicUsize::from_ptr(entry.wrapping_add(word)) };
            // ORDERING: Relaxed, as libc reads it: whoever deletes a key that is in use has to
            // see to the order himself.
            word.load(Relaxed)
        })
    }

    /// Clears all values that are left and frees what libc allocated for keys above the first 32.
    ///
    /// # Safety
    /// * As for [`run_round`](Keys::run_round), which has been called often enough.
    pub(super) unsafe fn forget(&self, tcb: usize) {
        // SAFETY: by the caller.
        if let Some(values) = unsafe { self.values(tcb, 0) } {
            // SAFETY: the first level lies in the control block; 32 values, which are plain words.
            unsafe { values.write_bytes(0, LEVEL) };
        }
        for level in 1..LEVEL {
            // SAFETY: by the caller.
            let Some(values) = (unsafe { self.values(tcb, level) }) else { continue };
            // SAFETY: one of the block's pointers. Nulled: libc allocates anew when it must.
            unsafe { self.level(tcb, level).write(std::ptr::null_mut()) };
            // SAFETY: libc got it from calloc for this block alone.
            unsafe { libc::free(values.cast()) };
        }
        // SAFETY: as in `are_set`.
        unsafe { self.flag(tcb).write_volatile(0) };
    }

    fn level(&self, tcb: usize, level: usize) -> *mut *mut Value {
        (tcb + self.specific + level * size_of::<usize>()) as *mut *mut Value
    }

    /// # Safety
    /// * `tcb` is the running thread's or goroutine's own block, `level` below 32.
    unsafe fn values(&self, tcb: usize, level: usize) -> Option<*mut Value> {
        // SAFETY: one of the block's 32 second-level pointers.
        let values = unsafe { self.level(tcb, level).read() };
        (!values.is_null()).then_some(values)
    }
}
