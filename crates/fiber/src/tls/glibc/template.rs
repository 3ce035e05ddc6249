//! The control block of a thread that never ran, learned from two that did.
//!
//! `struct pthread` is private and changes. Two dead threads, made alike on alike stacks, differ
//! word by word only in what is particular to each: equal words are constants, words at the same
//! distance from their own block are addresses in it. Anything else must be one of the few fields
//! known by name; else the layout is not understood and the caller falls back. Nothing here has a
//! hard-coded offset.
//!
//! Invariants
//! * I1. A template is made only when every word of the control block is understood.
//! * I2. `build` leaves a block that libc can't tell from one of its own: constants, addresses in
//!   itself, its vector of modules, its number, its stack's bounds, its neighbours in the list.

use super::dead_thread::{DeadThread, Task};
use super::symbols::{Rseq, Symbols};
use super::{Area, Defect, dead_thread};
use std::ffi::c_void;

/// The second word of every x86-64 control block is its vector of modules (the ABI's variant II:
/// `__tls_get_addr` reads it there).
const DTV_OFFSET: usize = 8;

/// One word of the control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// The same in every thread.
    Constant(usize),
    /// This far from the block's own address.
    Relative(isize),
    /// Written by `build` for each block, or left as it is.
    Particular,
}

/// How to make a control block.
#[derive(Debug)]
pub(super) struct Template {
    words: Box<[Word]>,
    tid: usize,
    list: usize,
    stack_start: usize,
    rseq: Option<Rseq>,
    resolver: Option<(isize, isize)>,
}

/// One of the two threads, and the memory that it was given as a stack.
#[derive(Clone, Copy)]
struct Sample {
    thread: DeadThread,
    stack: usize,
    stack_bytes: usize,
}

/// The two threads that the template was learned from; neighbours in libc's list for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// Address of the list node that comes first. Ours follow.
    pub(super) first: usize,
    /// Address of the node behind ours.
    #[cfg_attr(not(test), expect(dead_code, reason = "known to be there, and never written"))]
    pub(super) second: usize,
}

impl Template {
    /// Makes two dead threads and compares them.
    pub(super) fn learn(symbols: &Symbols, area: Area) -> Result<(Template, Ends), Defect> {
        let list = symbols.list.ok_or(Defect::MissingSymbol("_thread_db_pthread_list"))?.offset;
        let task = Task::Learn {
            tcb_bytes: area.tcb_bytes,
            below: area.below_tcb().min(4096),
            tid_expected: symbols.tid.map(|f| f.offset),
            call_tls_dtors: symbols.call_tls_dtors,
        };
        let stack_bytes = area.with_small_stack();
        let mut tries = 0;
        loop {
            let memory = super::super::map_for_ever(2 * stack_bytes)?;
            let make = |i: usize| {
                let stack = memory.wrapping_add(i * stack_bytes);
                dead_thread::make(area, stack, stack_bytes, task)
                    .map(|thread| Sample { thread, stack: stack as usize, stack_bytes })
                    .map_err(Defect::ThreadCreation)
            };
            let (a, b) = (make(0)?, make(1)?);
            // A thread created by somebody else in between stands between ours; try again.
            match neighbours(a.thread.tcb + list, b.thread.tcb + list) {
                Some(ends) => {
                    return Ok((Template::compare(symbols, area.tcb_bytes, list, a, b)?, ends));
                }
                None if tries < 16 => tries += 1,
                None => return Err(Defect::Layout("list of threads", list)),
            }
        }
    }

    fn compare(
        symbols: &Symbols,
        bytes: usize,
        list: usize,
        a: Sample,
        b: Sample,
    ) -> Result<Template, Defect> {
        let (stack_a, stack_b, stack_bytes) = (a.stack, b.stack, a.stack_bytes);
        let (a, b) = (a.thread, b.thread);
        let tid = a.tid_offset.ok_or(Defect::Layout("tid", 0))?;
        if symbols.tid.is_some_and(|f| f.offset != tid || f.bits != 32) {
            return Err(Defect::Layout("tid", tid));
        }
        let rseq = symbols.rseq;
        let in_rseq = |offset: usize| rseq.is_some_and(|rseq| rseq.holds(offset));
        let mut words = Vec::with_capacity(bytes / 8);
        let mut stack_start = None;
        for offset in (0..bytes).step_by(8) {
            let (x, y) = (word(a.tcb + offset), word(b.tcb + offset));
            let particular = offset == DTV_OFFSET
                || offset == tid & !7
                || (list..list + 16).contains(&offset)
                || in_rseq(offset);
            words.push(if x == stack_a && y == stack_b {
                stack_start = stack_start.or(Some(offset));
                Word::Particular
            } else if particular {
                Word::Particular
            } else if x == y {
                Word::Constant(x)
            } else if x.wrapping_sub(a.tcb) == y.wrapping_sub(b.tcb) {
                relative(x.wrapping_sub(a.tcb) as isize)
            } else {
                return Err(Defect::Layout("struct pthread", offset));
            });
        }
        let stack_start = stack_start.ok_or(Defect::Layout("stackblock", 0))?;
        if words[stack_start / 8 + 1] != Word::Constant(stack_bytes) {
            return Err(Defect::Layout("stackblock_size", stack_start + 8));
        }
        words[stack_start / 8 + 1] = Word::Particular;
        if [0, 16].iter().any(|o| words[o / 8] != Word::Relative(0)) {
            return Err(Defect::Layout("tcbhead_t", 0));
        }
        Ok(Template {
            words: words.into(),
            tid,
            list,
            stack_start,
            rseq,
            resolver: symbols.resolver_offset.and_then(|at| resolver(at, a.tcb, b.tcb)),
        })
    }

    /// Address of the list node in the block at `tcb`.
    pub(super) fn list_node(&self, tcb: usize) -> usize {
        tcb + self.list
    }

    /// Makes the block at `tcb`, all but its place in libc's list. Takes the loader's lock and
    /// allocates: not for code inside the runtime.
    ///
    /// # Safety
    /// * The static area's bytes below `tcb`, and the control block's from it, are zeroed memory of
    ///   the caller's, aligned as the static area wants it.
    /// * `stack` is what the block is to report as its stack.
    pub(super) unsafe fn build(
        &self,
        symbols: &Symbols,
        tcb: usize,
        tid: i32,
        stack: std::ops::Range<usize>,
    ) -> Result<(), Defect> {
        let allocate = symbols.allocate_tls.ok_or(Defect::MissingSymbol("_dl_allocate_tls"))?;
        // SAFETY: glibc's own call for a stack that the user supplies: memory for the area is
        // there, zeroed and aligned, by the caller.
        let got = unsafe { allocate(tcb as *mut c_void) };
        if got as usize != tcb {
            return Err(Defect::Memory(libc::ENOMEM));
        }
        for (i, w) in self.words.iter().enumerate() {
            match *w {
                Word::Constant(value) => put(tcb + i * 8, value),
                Word::Relative(distance) => put(tcb + i * 8, tcb.wrapping_add_signed(distance)),
                Word::Particular => {}
            }
        }
        put(tcb + self.stack_start, stack.start);
        put(tcb + self.stack_start + 8, stack.end - stack.start);
        // SAFETY: an aligned 32-bit field of the block.
        unsafe { ((tcb + self.tid) as *mut i32).write(tid) };
        if let Some(rseq) = self.rseq {
            // SAFETY: made just now, for no thread.
            unsafe { rseq.forget(tcb) };
        }
        if let Some((at, distance)) = self.resolver {
            put(tcb.wrapping_add_signed(at), tcb.wrapping_add_signed(distance));
        }
        Ok(())
    }
}

/// A pointer into the thread's own stack (its jump buffer for `pthread_exit`) would dangle in a
/// copy; null is what glibc itself tests for.
fn relative(distance: isize) -> Word {
    if distance < 0 { Word::Constant(0) } else { Word::Relative(distance) }
}

/// Two nodes that follow each other, in their order, if they do.
fn neighbours(a: usize, b: usize) -> Option<Ends> {
    [(a, b), (b, a)]
        .into_iter()
        .find(|&(first, second)| word(first) == second && word(second + 8) == first)
        .map(|(first, second)| Ends { first, second })
}

/// Where the resolver's pointer is and how far from the block it points, if both agree.
fn resolver(at: isize, a: usize, b: usize) -> Option<(isize, isize)> {
    let distance = |tcb: usize| word(tcb.wrapping_add_signed(at)).wrapping_sub(tcb) as isize;
    (distance(a) == distance(b)).then(|| (at, distance(a)))
}

fn word(address: usize) -> usize {
    // SAFETY: callers pass addresses of words in control blocks that are never freed.
    unsafe { (address as *const usize).read_volatile() }
}

fn put(address: usize, value: usize) {
    // SAFETY: callers pass addresses of words in the block being built.
    unsafe { (address as *mut usize).write(value) };
}
