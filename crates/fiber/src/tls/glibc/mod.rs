//! Thread-local blocks on glibc.
//!
//! Two ways to make one, both leaving a block that libc takes for a thread's:
//! [`template`] (about 2 us; private symbols, checked) and [`dead_thread`] (about 45 us; public
//! interfaces only). The rest of the folder is what a thread's life needs around it:
//! [`list`] its place in libc's list of threads, [`keys`] its pthread keys' destructors,
//! [`robust`] the mutexes it still holds, [`modules`] its way back to a fresh state, [`tcache`] its
//! malloc cache, [`untouched`] what it need not do, [`attributes`] its stack's bounds, [`setxid`] the signal that looks for threads.
//!
//! Needs glibc 2.34: before, `_dl_allocate_tls` takes no lock, and the keys' table is private.

#[cfg(not(target_feature = "crt-static"))]
mod attributes;
mod dead_thread;
mod keys;
mod list;
mod modules;
mod robust;
mod setxid;
mod symbols;
mod tcache;
mod template;
#[cfg(test)]
mod tests;
mod untouched;

use self::dead_thread::{DeadThread, Task};
use self::keys::Keys;
use self::modules::Modules;
use self::robust::Robust;
use self::symbols::{Plain, Symbols};
use self::template::{Ends, Template};
use self::untouched::{Untouched, forget_loader_error};
use super::{Block, Defect};
use crate::host::Access;
use std::ops::Range;

/// How registers are to be accessed: as asked.
pub(super) fn access(wanted: Option<Access>) -> Option<Access> {
    wanted
}

/// All that is known of this process's libc; made once.
#[derive(Debug)]
pub(super) struct Libc {
    symbols: Symbols,
    template: Option<(Template, Ends)>,
    defect: Option<Defect>,
    blocks: Result<ForBlocks, Defect>,
    keys: Option<Keys>,
    tcache: Option<isize>,
    untouched: Untouched,
    setxid_wrapped: bool,
}

/// Without these a goroutine can't have a block of its own.
#[derive(Debug)]
struct ForBlocks {
    call_tls_dtors: Plain,
    modules: Modules,
    robust: Robust,
    tid_offset: usize,
    area: Area,
}

impl ForBlocks {
    /// # Safety
    /// * As for `Libc::finish`; the block is the one at `tcb`.
    #[inline]
    unsafe fn finish_robust(&self, tcb: usize) {
        // SAFETY: by the caller.
        if unsafe { self.robust.are_held(tcb) } {
            // SAFETY: an aligned word of the block.
            let tid = unsafe { ((tcb + self.tid_offset) as *const u32).read() };
            // SAFETY: by the caller.
            unsafe { self.robust.give_up(tcb, tid) };
        }
    }
}

/// The static thread-local area of every block.
#[derive(Clone, Copy, Debug)]
struct Area {
    /// All of it, control block included.
    bytes: usize,
    align: usize,
    /// The control block.
    tcb_bytes: usize,
}

/// What libc allocates for a block in most programs, malloc's own word and rounding included.
const VECTOR_BYTES: usize = 480;
/// Below what makes malloc look for chunks to merge when it is given back (64 KiB).
const EXPECTED_MAX: usize = 60 << 10;

/// What a goroutine's stack must have below its block.
const STACK_MIN: usize = 16 << 10;

impl Area {
    /// Bytes of memory that hold such an area and a small stack.
    fn with_small_stack(self) -> usize {
        (self.bytes + self.align + 3 * STACK_MIN).next_multiple_of(64 << 10)
    }

    fn below_tcb(self) -> usize {
        self.bytes - self.tcb_bytes
    }
}

impl Libc {
    /// Looks at libc. With `use_template` false blocks are dead threads.
    pub(super) fn look(use_template: bool) -> Libc {
        let symbols = Symbols::look_up(crate::host::current_block());
        let learned = learn_from_one(&symbols);
        let blocks =
            learned.as_ref().map_err(Clone::clone).and_then(|one| for_blocks(&symbols, one));
        let template = match &blocks {
            Err(defect) => Err(defect.clone()),
            Ok(_) if !use_template => Err(Defect::NotAsked),
            Ok(blocks) => usable(&symbols, blocks.area),
        };
        let (template, defect) = match template {
            Ok(made) => (Some(made), None),
            Err(defect) => (None, Some(defect)),
        };
        let learned = learned.unwrap_or_default();
        Libc {
            keys: Keys::new(&symbols, learned.specific_used),
            symbols,
            template,
            defect,
            blocks,
            tcache: learned.tcache,
            untouched: learned.untouched,
            setxid_wrapped: setxid::wrap(),
        }
    }

    pub(super) fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Whether goroutines can have blocks of their own, of whatever kind.
    pub(super) fn can_have_blocks(&self) -> bool {
        self.blocks.is_ok()
    }

    /// Whether blocks are made from the template; else why not.
    pub(super) fn template_defect(&self) -> Option<&Defect> {
        self.defect.as_ref()
    }

    /// Whether set*id calls find machines that carry goroutines.
    pub(super) fn setxid_is_wrapped(&self) -> bool {
        self.setxid_wrapped
    }

    /// Whether destructors of pthread keys run at a goroutine's end.
    pub(super) fn has_key_destructors(&self) -> bool {
        self.keys.is_some()
    }

    /// Where `finish` and the pool look at every block, from FS. What lies right above the control
    /// block is the fiber's head.
    pub(super) fn looks_at_end(&self) -> Vec<isize> {
        let Ok(blocks) = &self.blocks else { return Vec::new() };
        let mut places = self.untouched.places();
        places.push(blocks.robust.place());
        places.extend(self.keys.map(|keys| keys.place()));
        places.push(blocks.area.tcb_bytes as isize);
        places
    }

    /// How many of the four things that most goroutines leave untouched are seen to be so.
    pub(super) fn untouched(&self) -> usize {
        self.untouched.count()
    }

    /// Whether a block's malloc cache can be emptied.
    pub(super) fn has_tcache(&self) -> bool {
        self.tcache.is_some()
    }

    /// Bytes of a control block and of the whole static area, if known.
    pub(super) fn sizes(&self) -> Option<(usize, usize)> {
        let area = self.blocks.as_ref().ok()?.area;
        Some((area.tcb_bytes, area.bytes))
    }

    /// How many bytes at the top of a block's memory must be zero, if known.
    pub(super) fn block_bytes(&self) -> Option<usize> {
        let area = self.blocks.as_ref().ok()?.area;
        Some(area.bytes + area.align.max(64))
    }

    /// Lets malloc's heap of this thread grow for `count` blocks at once. libc allocates a vector of
    /// modules for each, and such a heap grows by single pages otherwise: an `mprotect` for each,
    /// which keeps everybody else from the process's mappings (a sixth of what a million blocks cost).
    pub(super) fn expect(&self, count: usize) {
        if self.template.is_none() {
            return;
        }
        let bytes = (count * VECTOR_BYTES).min(EXPECTED_MAX);
        // SAFETY: any size may be asked for.
        let memory = unsafe { libc::malloc(bytes) };
        // SAFETY: allocated just now. What lies at the heap's end stays there for the next ones.
        unsafe { libc::free(std::hint::black_box(memory)) };
    }

    /// Makes a block at the top of `memory`; the stack below is what it reports.
    ///
    /// # Safety
    /// * `memory` is writable, its top (`block_bytes`) zeroed, the caller's, and stays until
    ///   `destroy` has returned (for a dead thread's: for ever).
    pub(super) unsafe fn make(&self, memory: Range<usize>, tid: i32) -> Result<Block, Defect> {
        let blocks = self.blocks.as_ref().map_err(Clone::clone)?;
        if memory.end - memory.start < blocks.area.bytes + blocks.area.align + STACK_MIN {
            return Err(Defect::Layout("static area, too large for the stack", blocks.area.bytes));
        }
        match &self.template {
            // SAFETY: by the caller; it is large enough.
            Some((template, ends)) => unsafe {
                self.make_from_template(template, *ends, blocks.area, memory, tid)
            },
            None => self.make_from_thread(blocks, memory, tid),
        }
    }

    /// # Safety
    /// * As for `make`.
    unsafe fn make_from_template(
        &self,
        template: &Template,
        ends: Ends,
        area: Area,
        memory: Range<usize>,
        tid: i32,
    ) -> Result<Block, Defect> {
        let tcb = (memory.end - area.tcb_bytes) & !(area.align.max(64) - 1);
        let bottom = tcb - area.below_tcb();
        let node = template.list_node(tcb);
        // Linked first: a `dlopen` at this moment initialises the block or lets `build` do it.
        // The other way round it may do neither.
        // SAFETY: zeroed memory for a block, which is not linked yet. Walkers find a thread
        // without number, whom they can't signal.
        unsafe { list::link(ends, node) };
        // SAFETY: the area fits below `memory.end` and is the caller's, zeroed.
        let built = unsafe { template.build(&self.symbols, tcb, tid, memory.start..memory.end) };
        if let Err(defect) = built {
            // SAFETY: linked above; the memory stays until no walker is left.
            unsafe { list::unlink(node) };
            self.wait_for_walkers_or_a_second();
            return Err(defect);
        }
        Ok(Block { tcb, stack_top: bottom & !63 })
    }

    /// On an error the memory is as it was.
    fn make_from_thread(
        &self,
        blocks: &ForBlocks,
        memory: Range<usize>,
        tid: i32,
    ) -> Result<Block, Defect> {
        let task = Task::Die { tid_offset: blocks.tid_offset };
        let bytes = memory.end - memory.start;
        let made = dead_thread::make(blocks.area, memory.start as *mut u8, bytes, task)
            .map_err(Defect::ThreadCreation)?;
        // SAFETY: where the dead thread's number was; the kernel has cleared it.
        unsafe { ((made.tcb + blocks.tid_offset) as *mut i32).write(tid) };
        if let Some(rseq) = self.symbols.rseq {
            // SAFETY: its thread has ended.
            unsafe { rseq.forget(made.tcb) };
        }
        // libc gives a thread its thread-locals before it puts it into the list; a `dlopen` in
        // between missed it.
        // SAFETY: nothing runs on the block.
        unsafe { blocks.modules.scrub(made.tcb) };
        // The thread's frames are dead: the stack begins below its thread-locals.
        let bottom = made.tcb - blocks.area.below_tcb();
        Ok(Block { tcb: made.tcb, stack_top: bottom.min(made.stack_used) & !63 })
    }

    /// What libc does first on a new thread, on the loaded block: takes up the global locale's
    /// character tables, which may be others than when the block was made.
    ///
    /// # Safety
    /// * `block` is loaded, and was made or finished.
    #[inline]
    pub(super) unsafe fn begin(&self, block: Block) {
        // SAFETY: by the caller; `finish` has left the global locale.
        if unsafe { self.untouched.has_tables(block.tcb) } {
            return;
        }
        if let Some(ctype_init) = self.symbols.ctype_init {
            // SAFETY: libc's own call; it writes three words of the loaded block.
            unsafe { ctype_init() };
        }
    }

    /// Runs the destructors of the loaded block, user code included, and resets what libc keeps.
    ///
    /// # Safety
    /// * `block` is loaded, and what ran on it has ended.
    #[inline]
    pub(super) unsafe fn finish(&self, block: Block) {
        if let Ok(blocks) = &self.blocks {
            // SAFETY: by the caller.
            if unsafe { self.untouched.may_have_destructors(block.tcb) } {
                // SAFETY: glibc's own call at a thread's end.
                unsafe { (blocks.call_tls_dtors)() };
            }
            // SAFETY: by the caller.
            unsafe { self.finish_keys(block, blocks.call_tls_dtors) };
            // SAFETY: by the caller.
            unsafe { blocks.finish_robust(block.tcb) };
        }
        // SAFETY: by the caller.
        if unsafe { self.untouched.may_have_locale(block.tcb) } {
            reset_locale();
        }
        // Errors that libc keeps for a thread are nobody else's.
        // SAFETY: by the caller.
        if unsafe { self.untouched.may_have_loader_error(block.tcb) } {
            forget_loader_error();
        }
        // SAFETY: by the caller.
        unsafe { self.untouched.clear_errors(block.tcb) };
    }

    /// Destructors of keys may use thread-locals for the first time. glibc then lets those leak;
    /// here the next user of the block would run their destructors, so they run now.
    ///
    /// # Safety
    /// * As for `finish`.
    #[inline]
    unsafe fn finish_keys(&self, block: Block, call_tls_dtors: Plain) {
        let Some(keys) = &self.keys else { return };
        // SAFETY: by the caller.
        if unsafe { keys.are_set(block.tcb) } {
            // SAFETY: by the caller.
            unsafe { run_rounds(keys, block.tcb, call_tls_dtors) };
        }
    }

    fn wait_for_walkers_or_a_second(&self) {
        if !self.wait_for_walkers() {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }

    /// Returns when no walk through libc's list is left that may have seen a block destroyed
    /// before; false if that can't be arranged.
    #[must_use]
    pub(super) fn wait_for_walkers(&self) -> bool {
        self.blocks.as_ref().is_ok_and(|blocks| list::wait_for_walkers(blocks.area))
    }

    /// Whether `block` can't be used again after [`restore`](Libc::restore).
    ///
    /// # Safety
    /// * `block` is complete, and nothing runs on it.
    #[inline]
    pub(super) unsafe fn is_beyond_restore(&self, block: Block) -> bool {
        let Ok(blocks) = &self.blocks else { return false };
        // SAFETY: by the caller.
        unsafe { blocks.modules.is_beyond_restore(block.tcb) }
    }

    /// Brings the thread-locals of `block` back to their first values.
    ///
    /// # Safety
    /// * `finish` was called on it, and no thread-local of it is used meanwhile.
    #[inline]
    pub(super) unsafe fn restore(&self, block: Block) {
        if let Ok(blocks) = &self.blocks {
            // SAFETY: by the caller.
            unsafe { blocks.modules.restore(block.tcb) };
        }
    }

    /// As `restore`, for a block that can neither be restored as it is nor destroyed. Takes the
    /// loader's lock.
    ///
    /// # Safety
    /// * As for `restore`.
    pub(super) unsafe fn scrub(&self, block: Block) {
        if let Ok(blocks) = &self.blocks {
            // SAFETY: by the caller.
            unsafe { blocks.modules.scrub(block.tcb) };
            // SAFETY: by the caller.
            unsafe { blocks.modules.restore(block.tcb) };
        }
    }

    /// Frees what the block owns and takes it out of libc's list; true if the memory may be reused
    /// after the caller's grace period, false if it must stay as it is.
    ///
    /// # Safety
    /// * Nothing runs on `block`, `finish` was called, and it is not used again.
    #[must_use]
    pub(super) unsafe fn destroy(&self, block: Block) -> bool {
        if let Some(tcache) = self.tcache {
            // SAFETY: by the caller.
            unsafe { tcache::drain(block.tcb, tcache) };
        }
        let (Some((template, _)), Some(deallocate)) = (&self.template, self.symbols.deallocate_tls)
        else {
            return false;
        };
        // SAFETY: `make` linked it, and the caller gives it up once.
        unsafe { list::unlink(template.list_node(block.tcb)) };
        // SAFETY: frees the vector and the modules' heap blocks, not the block itself.
        unsafe { deallocate(block.tcb as *mut _, false) };
        true
    }
}

/// # Safety
/// * As for `Libc::finish`; the block is the one at `tcb`.
#[cold]
unsafe fn run_rounds(keys: &Keys, tcb: usize, call_tls_dtors: Plain) {
    for _ in 0..keys::ROUNDS {
        // SAFETY: by the caller.
        unsafe { keys.run_round(tcb) };
        // SAFETY: as in `finish`.
        unsafe { call_tls_dtors() };
        // SAFETY: by the caller.
        if !unsafe { keys.are_set(tcb) } {
            break;
        }
    }
    // SAFETY: by the caller; four rounds are enough by POSIX.
    unsafe { keys.forget(tcb) };
}

/// `locale.h`: `((locale_t) -1L)`.
const LC_GLOBAL_LOCALE: libc::locale_t = -1_isize as libc::locale_t;

/// A goroutine that called `uselocale` must not leave its locale to the block's next user.
#[inline]
fn reset_locale() {
    // SAFETY: a null argument only asks.
    let current = unsafe { libc::uselocale(std::ptr::null_mut()) };
    if current != LC_GLOBAL_LOCALE {
        // SAFETY: the global locale always exists.
        unsafe { libc::uselocale(LC_GLOBAL_LOCALE) };
    }
}

fn usable(symbols: &Symbols, area: Area) -> Result<(Template, Ends), Defect> {
    if symbols.allocate_tls.is_none() {
        return Err(Defect::MissingSymbol("_dl_allocate_tls"));
    }
    if symbols.deallocate_tls.is_none() {
        return Err(Defect::MissingSymbol("_dl_deallocate_tls"));
    }
    // A signal may have changed one of the threads while it was looked at.
    Template::learn(symbols, area).or_else(|_| Template::learn(symbols, area))
}

/// What blocks of either kind need of libc. `one` is a dead thread that learned.
fn for_blocks(symbols: &Symbols, one: &DeadThread) -> Result<ForBlocks, Defect> {
    let area = area(symbols)?;
    let call_tls_dtors = symbols.call_tls_dtors.ok_or(Defect::MissingSymbol("__call_tls_dtors"))?;
    if symbols.pthread_keys.is_none() {
        // Exported from 2.34 on; before, `_dl_allocate_tls` races with `dlopen`.
        return Err(Defect::MissingSymbol("__pthread_keys"));
    }
    let tid_offset = one.tid_offset.ok_or(Defect::Layout("tid", 0))?;
    if !crate::host::can_load_blocks(area.below_tcb()) {
        return Err(Defect::Layout("thread-locals of this library, not in the static area", 0));
    }
    // Not `one`, whose thread has called malloc, which may keep thread-locals in the executable.
    let pristine = a_dead_thread(area, Task::Die { tid_offset })?;
    if let Some(rseq) = symbols.rseq {
        // SAFETY: its thread has ended.
        unsafe { rseq.forget(pristine.tcb) };
    }
    let modules = Modules::look(pristine.tcb, area.below_tcb(), symbols.slots);
    let robust = one.robust.map(Robust::at).ok_or(Defect::Layout("robust_head", 0))?;
    Ok(ForBlocks { call_tls_dtors, modules, robust, tid_offset, area })
}

fn area(symbols: &Symbols) -> Result<Area, Defect> {
    let tcb_bytes =
        symbols.sizeof_pthread.ok_or(Defect::MissingSymbol("_thread_db_sizeof_pthread"))?;
    let (bytes, align) =
        symbols.static_area.ok_or(Defect::MissingSymbol("_dl_get_tls_static_info"))?;
    if tcb_bytes % 8 != 0 || !(1024..=4096).contains(&tcb_bytes) || bytes <= tcb_bytes {
        return Err(Defect::Layout("sizeof(struct pthread)", tcb_bytes));
    }
    Ok(Area { bytes, align, tcb_bytes })
}

/// What a template would have told about the fields that have no table.
fn learn_from_one(symbols: &Symbols) -> Result<DeadThread, Defect> {
    let area = area(symbols)?;
    let below = area.below_tcb().min(4096);
    let tid_expected = symbols.tid.filter(|f| f.bits == 32).map(|f| f.offset);
    let call_tls_dtors = symbols.call_tls_dtors;
    let tcb_bytes = area.tcb_bytes;
    a_dead_thread(area, Task::Learn { tcb_bytes, below, tid_expected, call_tls_dtors })
}

fn a_dead_thread(area: Area, task: Task) -> Result<DeadThread, Defect> {
    let bytes = area.with_small_stack();
    let memory = super::map_for_ever(bytes)?;
    dead_thread::make(area, memory, bytes, task).map_err(Defect::ThreadCreation)
}
