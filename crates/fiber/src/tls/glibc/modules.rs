//! The thread-locals of loaded modules, to bring a used block back to its first state.
//!
//! Every module but libc and the loader is brought back: a shared library with Rust code in it
//! keeps "destroyed" marks and the dead goroutine's values in its thread-locals as well as the
//! executable does. libc's part keeps its malloc cache.
//!
//! The first state is copied from a *pristine* block, that of a dead thread which never touched a
//! thread-local. It is in libc's list, so `dlopen` initialises it together with all others. Two
//! parts are told apart:
//!
//! ```text
//!   | surplus: libraries loaded later | known: loaded before `look` (libc's part left out) | tcb
//! ```
//!
//! Invariants
//! * I1. The known part of the pristine block never changes, so copying it needs no lock.
//! * I2. The surplus is only compared. A difference says that the goroutine used a library which
//!   came later, or that `dlopen` is at work this very moment: such a block is not reused as it is.
//! * I3. What a block owns outside the static area is found through its own vector of modules.
//!
//! While no module with thread-locals has come since `look`, there is nothing to compare: the loader
//! enters one into its table before it touches any block, and the entry that the next one gets is
//! known. That is a word which is always in the cache, instead of 26 lines of each block which are not
//! (1.7 KB of surplus; a million woken goroutines end 0.3 us earlier each).
//!
//! Rejected
//! * Copying from the modules' own images: `dlclose` unmaps them, unseen.
//! * Asking the loader how many modules there are: its lock can be held by stopped code.

use super::symbols::Slots;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of every block, by their distance below FS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    below_fs: usize,
    bytes: usize,
}

/// The known part is what lies beside libc's and the loader's places.
const SPANS: usize = 3;

/// What a fresh block looks like.
#[derive(Debug)]
pub(super) struct Modules {
    pristine: usize,
    known: [Span; SPANS],
    surplus: Span,
    /// Some known module has its thread-locals outside the static area.
    dynamic: bool,
    /// The generation of the pristine block's vector: which modules it knows.
    generation: usize,
    /// Address of the word that is 0 while no module has come, if it is known.
    newcomer: Option<usize>,
}

/// What a walk through the modules needs and finds.
struct Walk {
    pristine: usize,
    static_bytes: usize,
    libc_at: usize,
    loader_at: usize,
    /// How far below FS the known modules reach.
    reach: usize,
    /// libc's and the loader's places.
    foreign: [Span; 2],
    dynamic: bool,
    /// How many modules with thread-locals there are, and their highest number.
    count: usize,
    highest: usize,
}

impl Modules {
    /// `pristine` is the block of a dead thread that touched no thread-local; below it lie
    /// `static_bytes` of thread-locals.
    pub(super) fn look(pristine: usize, static_bytes: usize, slots: Option<Slots>) -> Modules {
        let mut walk = Walk {
            pristine,
            static_bytes,
            libc_at: address_of(c"gnu_get_libc_version"),
            loader_at: address_of(c"__tls_get_addr"),
            reach: 0,
            foreign: [Span::default(); 2],
            dynamic: false,
            count: 0,
            highest: 0,
        };
        // SAFETY: the callback takes `Walk`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) };
        // SAFETY: a complete block on which nothing runs.
        let generation = unsafe { Vector::of(pristine) }.generation();
        Modules {
            pristine,
            known: beside(walk.reach, walk.foreign),
            surplus: Span { below_fs: static_bytes, bytes: static_bytes - walk.reach },
            dynamic: walk.dynamic,
            generation,
            // A number that is free below the highest would be given away first.
            newcomer: slots
                .filter(|_| walk.count == walk.highest && !walk.dynamic)
                .and_then(|slots| slots.next_generation(walk.count)),
        }
    }

    /// Whether no module with thread-locals has come since `look`, as far as the caller can have used
    /// it. False if that can't be told.
    #[inline]
    pub(super) fn are_all_known(&self) -> bool {
        self.newcomer.is_some_and(|address| {
            // SAFETY: an aligned word of a table of the loader's, which is never freed.
            let generation = unsafe { AtomicUsize::from_ptr(address as *mut usize) };
            // ORDERING: Relaxed; code that uses a module runs after `dlopen` has returned, and by
            // the same order its use of a block comes before the block's restoring.
            generation.load(Relaxed) == 0
        })
    }

    /// Whether the block at `tcb` holds more than [`restore`](Modules::restore) can bring back.
    ///
    /// # Safety
    /// * `tcb` is a complete block on which nothing runs.
    #[inline]
    pub(super) unsafe fn is_beyond_restore(&self, tcb: usize) -> bool {
        if self.are_all_known() {
            return false;
        }
        // SAFETY: by the caller.
        let vector = unsafe { Vector::of(tcb) };
        if (self.dynamic || vector.generation() != self.generation) && vector.owns_memory() {
            return true;
        }
        !self.is_same(tcb, self.surplus)
    }

    /// Whether both blocks hold the same in `span`.
    fn is_same(&self, tcb: usize, span: Span) -> bool {
        let (ours, first) = ((tcb - span.below_fs) as *const c_void, self.at(span).cast());
        // SAFETY: inside the static areas of two complete blocks. `dlopen` may write there at the
        // same time; any answer is then right (I2).
        unsafe { libc::memcmp(ours, first, span.bytes) == 0 }
    }

    fn at(&self, span: Span) -> *const u8 {
        (self.pristine - span.below_fs) as *const u8
    }

    /// Brings the known modules' thread-locals in the block at `tcb` back to their first values.
    ///
    /// # Safety
    /// * Nothing runs on that block, or what runs touches no thread-local meanwhile.
    /// * Its destructors have run.
    #[inline]
    pub(super) unsafe fn restore(&self, tcb: usize) {
        // A copy of nothing would cost as much as one of a line.
        for span in self.known.into_iter().filter(|span| span.bytes > 0) {
            // SAFETY: the same place in two complete blocks, which don't overlap.
            unsafe { self.copy(tcb, span) };
        }
    }

    /// # Safety
    /// * As for [`restore`](Modules::restore); the span lies in the static area.
    unsafe fn copy(&self, tcb: usize, span: Span) {
        let to = (tcb - span.below_fs) as *mut u8;
        // SAFETY: by the caller.
        unsafe { to.copy_from_nonoverlapping(self.at(span), span.bytes) };
    }

    /// Brings back what [`restore`](Modules::restore) can't, where a block can't be destroyed:
    /// frees what it owns outside the static area, and makes its surplus the pristine block's.
    /// Takes the loader's lock: not inside the runtime.
    ///
    /// # Safety
    /// * Nothing runs on that block, and its destructors have run.
    pub(super) unsafe fn scrub(&self, tcb: usize) {
        // SAFETY: by the caller.
        unsafe { Vector::of(tcb) }.free_memory();
        loop {
            // A `dlopen` that wrote to one of the two blocks before has ended after this, and has
            // written to the other. One that begins later initialises both.
            wait_for_loader();
            if self.is_same(tcb, self.surplus) {
                return;
            }
            // SAFETY: by the caller; nobody relies on what is there.
            unsafe { self.copy(tcb, self.surplus) };
        }
    }
}

/// Returns when every `dlopen` and `dlclose` that was in progress has ended.
fn wait_for_loader() {
    // SAFETY: asks for the executable itself, which takes and gives back the loader's lock.
    let itself = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
    if !itself.is_null() {
        // SAFETY: from `dlopen` just now.
        unsafe { libc::dlclose(itself) };
    }
}

/// What is left of `reach` bytes below FS beside two other spans.
fn beside(reach: usize, mut foreign: [Span; 2]) -> [Span; SPANS] {
    foreign.sort_by_key(|span| span.below_fs);
    let mut known = [Span::default(); SPANS];
    let mut from = 0;
    for (i, span) in foreign.into_iter().enumerate().filter(|(_, span)| span.bytes > 0) {
        let upper_end = span.below_fs - span.bytes;
        known[i] = Span { below_fs: upper_end, bytes: upper_end - from };
        from = span.below_fs;
    }
    known[SPANS - 1] = Span { below_fs: reach, bytes: reach - from };
    known
}

fn address_of(name: &CStr) -> usize {
    // SAFETY: a terminated string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// # Safety
/// * Called by `dl_iterate_phdr` with a `Walk`.
unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `look` passes a Walk that nobody else uses.
    let walk = unsafe { &mut *data.cast::<Walk>() };
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    // SAFETY: the record's own table of headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    if let Some(tls) = headers.iter().find(|h| h.p_type == libc::PT_TLS) {
        walk.count += 1;
        walk.highest = walk.highest.max(info.dlpi_tls_modid);
        let base = info.dlpi_addr as usize;
        let holds = |at: usize| headers.iter().any(|h| loaded_range(base, h).contains(&at));
        // SAFETY: `look` was given a complete block.
        let place = unsafe { Vector::of(walk.pristine) }.place_of(info.dlpi_tls_modid);
        let span =
            Span { below_fs: walk.pristine.wrapping_sub(place), bytes: tls.p_memsz as usize };
        walk.add(span, [holds(walk.libc_at), holds(walk.loader_at)]);
    }
    0
}

fn loaded_range(base: usize, h: &libc::Elf64_Phdr) -> Range<usize> {
    let start = base.wrapping_add(h.p_vaddr as usize);
    if h.p_type == libc::PT_LOAD { start..start.wrapping_add(h.p_memsz as usize) } else { 0..0 }
}

impl Walk {
    fn add(&mut self, span: Span, is_foreign: [bool; 2]) {
        if !(1..=self.static_bytes).contains(&span.below_fs) {
            self.dynamic = true;
            return;
        }
        self.reach = self.reach.max(span.below_fs);
        if let Some(which) = is_foreign.iter().position(|it| *it) {
            self.foreign[which] = span;
        }
    }
}

/// A block's vector of modules (the ABI's dynamic thread vector): a length, a generation, then
/// `{ place, memory to free }` for each module number from 1.
struct Vector {
    entries: *mut [usize; 2],
}

/// The place of a module that was not used yet in this block.
const UNALLOCATED: usize = usize::MAX;

impl Vector {
    /// # Safety
    /// * `tcb` is a complete block on which nothing runs.
    unsafe fn of(tcb: usize) -> Vector {
        // SAFETY: the second word of every control block (x86-64 ABI, variant II).
        Vector { entries: unsafe { ((tcb + 8) as *const *mut [usize; 2]).read() } }
    }

    fn entry(&self, module: usize) -> [usize; 2] {
        // SAFETY: callers stay within the vector's length.
        unsafe { self.entries.wrapping_add(module).read() }
    }

    fn len(&self) -> usize {
        // SAFETY: the entry before the first holds the length.
        unsafe { self.entries.wrapping_sub(1).read()[0] }
    }

    fn generation(&self) -> usize {
        self.entry(0)[0]
    }

    fn place_of(&self, module: usize) -> usize {
        if (1..=self.len()).contains(&module) { self.entry(module)[0] } else { 0 }
    }

    fn owns_memory(&self) -> bool {
        (1..=self.len()).any(|module| self.entry(module)[1] != 0)
    }

    /// Frees what libc allocated for modules outside the static area, as it does itself when one
    /// of them is closed.
    fn free_memory(&self) {
        for module in 1..=self.len() {
            let [_, memory] = self.entry(module);
            if memory != 0 {
                // SAFETY: within the vector's length; nothing runs on the block.
                unsafe { self.entries.wrapping_add(module).write([UNALLOCATED, 0]) };
                // SAFETY: libc got it from malloc for this block alone.
                unsafe { libc::free(memory as *mut c_void) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, beside};

    #[test]
    fn known_spans_leave_out_what_is_libcs() {
        let span = |below_fs, bytes| Span { below_fs, bytes };
        let none = Span::default();
        assert_eq!(beside(100, [none, none]), [none, none, span(100, 100)]);
        assert_eq!(beside(100, [span(60, 20), none]), [none, span(40, 40), span(100, 40)]);
        assert_eq!(
            beside(100, [span(90, 10), span(50, 30)]),
            [span(20, 20), span(80, 30), span(100, 10)]
        );
        assert_eq!(beside(100, [span(100, 100), none]), [none, span(0, 0), span(100, 0)]);
    }
}
