//! glibc's private symbols, looked up by name and version; each may be missing.
//!
//! `_thread_db_*` are the tables that glibc keeps for debuggers: `[bits, count, offset]` of a
//! field. They serve here as a check of what is learned otherwise, and for the list and the keys.

use std::ffi::{CStr, c_void};

/// `_dl_allocate_tls(tcb) -> tcb`: gives a block its vector of modules and their images.
pub(super) type AllocateTls = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// `_dl_deallocate_tls(tcb, free_tcb)`: frees the vector and the blocks it owns.
pub(super) type DeallocateTls = unsafe extern "C" fn(*mut c_void, bool);
/// A function without arguments.
pub(super) type Plain = unsafe extern "C" fn();
type StaticInfo = unsafe extern "C" fn(*mut usize, *mut usize);

/// What was found in this process's libc.
#[derive(Clone, Copy, Debug)]
pub(in crate::tls) struct Symbols {
    pub(super) allocate_tls: Option<AllocateTls>,
    pub(super) deallocate_tls: Option<DeallocateTls>,
    /// Runs the thread-local destructors of the loaded block (Rust's and C++'s).
    pub(super) call_tls_dtors: Option<Plain>,
    /// Points the loaded block's character tables at the current locale.
    pub(super) ctype_init: Option<Plain>,
    /// Size and alignment of the static thread-local area, control block included.
    pub(super) static_area: Option<(usize, usize)>,
    /// Where a block keeps the pointer to its resolver state, relative to FS.
    pub(super) resolver_offset: Option<isize>,
    /// Address of the table of pthread keys: `[(sequence, destructor); 1024]`.
    pub(super) pthread_keys: Option<usize>,
    /// sizeof(struct pthread).
    pub(super) sizeof_pthread: Option<usize>,
    pub(super) tid: Option<Field>,
    pub(super) list: Option<Field>,
    pub(super) specific: Option<Field>,
    pub(super) slots: Option<Slots>,
    /// Where the area for restartable sequences is (public, glibc 2.35).
    pub(super) rseq: Option<Rseq>,
}

/// A field as the debuggers' tables describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) bits: u32,
    pub(super) offset: usize,
}

impl Symbols {
    /// Looks everything up. `fs` is the calling thread's FS.
    pub(super) fn look_up(fs: usize) -> Symbols {
        Symbols {
            // SAFETY: the symbol is this function in every glibc from 2.31 to 2.42.
            allocate_tls: private(c"_dl_allocate_tls").map(|p| unsafe { std::mem::transmute(p) }),
            deallocate_tls: private(c"_dl_deallocate_tls")
                // SAFETY: as above.
                .map(|p| unsafe { std::mem::transmute(p) }),
            // SAFETY: as above.
            call_tls_dtors: private(c"__call_tls_dtors").map(|p| unsafe { std::mem::transmute(p) }),
            // SAFETY: as above.
            ctype_init: private(c"__ctype_init").map(|p| unsafe { std::mem::transmute(p) }),
            static_area: static_area(),
            resolver_offset: private(c"__resp").map(|p| p as isize - fs as isize),
            pthread_keys: private(c"__pthread_keys").map(|p| p as usize),
            sizeof_pthread: size(c"_thread_db_sizeof_pthread"),
            tid: field(c"_thread_db_pthread_tid"),
            list: field(c"_thread_db_pthread_list"),
            specific: field(c"_thread_db_pthread_specific"),
            slots: Slots::look_up(),
            rseq: Rseq::look_up(),
        }
    }
}

impl Symbols {
    pub(in crate::tls) fn has_rseq(&self) -> bool {
        self.rseq.is_some()
    }

    /// What was looked up, and whether it was found.
    pub(in crate::tls) fn list(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("_dl_allocate_tls", self.allocate_tls.is_some()),
            ("_dl_deallocate_tls", self.deallocate_tls.is_some()),
            ("__call_tls_dtors", self.call_tls_dtors.is_some()),
            ("__ctype_init", self.ctype_init.is_some()),
            ("__resp", self.resolver_offset.is_some()),
            ("__pthread_keys", self.pthread_keys.is_some()),
            ("_dl_get_tls_static_info", self.static_area.is_some()),
            ("_thread_db tables", self.has_tables()),
        ]
    }

    fn has_tables(&self) -> bool {
        let fields = [self.tid, self.list, self.specific];
        self.sizeof_pthread.is_some() && fields.iter().all(Option::is_some)
    }
}

fn private(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: both strings are terminated; a missing symbol gives null.
    let p = unsafe { libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), c"GLIBC_PRIVATE".as_ptr()) };
    (!p.is_null()).then_some(p)
}

fn size(name: &CStr) -> Option<usize> {
    let p = private(name)?.cast::<u32>();
    // SAFETY: `_thread_db_sizeof_*` symbols are read-only words.
    Some(unsafe { p.read_unaligned() } as usize)
}

fn field(name: &CStr) -> Option<Field> {
    let p = private(name)?.cast::<[u32; 3]>();
    // SAFETY: the `_thread_db_*` symbols of fields are three read-only words.
    let [bits, _count, offset] = unsafe { p.read_unaligned() };
    Some(Field { bits, offset: offset as usize })
}

fn static_area() -> Option<(usize, usize)> {
    let p = private(c"_dl_get_tls_static_info")?;
    // SAFETY: this signature in every glibc from 2.1 on.
    let get: StaticInfo = unsafe { std::mem::transmute(p) };
    let (mut size, mut align) = (0, 0);
    // SAFETY: writes two words, which are ours.
    unsafe { get(&mut size, &mut align) };
    (size > 0 && align.is_power_of_two()).then_some((size, align))
}

/// The loader's table of modules with thread-locals, as debuggers read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// Address of the first part's entries, by module number.
    entries: usize,
    len: usize,
    entry_bytes: usize,
    generation: usize,
    map: usize,
    number_in_map: usize,
}

impl Slots {
    fn look_up() -> Option<Slots> {
        let offset = |name| field(name).filter(|f| f.bits == 64).map(|f| f.offset);
        let global = private(c"_rtld_global")? as usize;
        let list = word(global + offset(c"_thread_db_rtld_global__dl_tls_dtv_slotinfo_list")?);
        // An array that is the structure's last member has no width of its own.
        let entries = field(c"_thread_db_dtv_slotinfo_list_slotinfo")?.offset;
        if list == 0 {
            return None;
        }
        Some(Slots {
            entries: list + entries,
            len: word(list + offset(c"_thread_db_dtv_slotinfo_list_len")?),
            entry_bytes: size(c"_thread_db_sizeof_dtv_slotinfo").filter(|bytes| *bytes == 16)?,
            generation: offset(c"_thread_db_dtv_slotinfo_gen")?,
            map: offset(c"_thread_db_dtv_slotinfo_map")?,
            number_in_map: offset(c"_thread_db_link_map_l_tls_modid")?,
        })
    }

    /// Address of the generation in the entry that the next module will get which is loaded with
    /// thread-locals: 0 until then, and never again. `None` unless the entries before are those of
    /// modules 1 to `count`.
    pub(super) fn next_generation(&self, count: usize) -> Option<usize> {
        if count + 1 >= self.len {
            return None;
        }
        let entry = |number: usize| self.entries + number * self.entry_bytes;
        let is_known = |number: usize| {
            let map = word(entry(number) + self.map);
            map != 0 && word(map + self.number_in_map) == number
        };
        let next = entry(count + 1);
        let is_free = word(next + self.map) == 0 && word(next + self.generation) == 0;
        ((1..=count).all(is_known) && is_free).then_some(next + self.generation)
    }
}

fn word(address: usize) -> usize {
    // SAFETY: callers pass words of the loader's tables, by the tables that it has for debuggers; they
    // are never freed, nor are the maps of modules that can't be unloaded.
    unsafe { (address as *const usize).read_volatile() }
}

/// The area of each thread that the kernel writes to while that thread runs. In the control block up
/// to glibc 2.40, from 2.41 on among the thread-locals, behind those of the modules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rseq {
    /// From FS.
    offset: isize,
    bytes: usize,
}

/// The smallest area there ever was, and its alignment.
const RSEQ_MIN: usize = 32;

impl Rseq {
    fn look_up() -> Option<Rseq> {
        let offset = public(c"__rseq_offset")?.cast::<isize>();
        let bytes = public(c"__rseq_size")?.cast::<u32>();
        // SAFETY: a public constant of type ptrdiff_t.
        let offset = unsafe { offset.read() };
        // SAFETY: a public constant of type unsigned int.
        let bytes = unsafe { bytes.read() } as usize;
        Some(Rseq { offset, bytes: bytes.next_multiple_of(4).max(RSEQ_MIN) })
    }

    /// Whether a byte of the control block is one of it.
    pub(super) fn holds(self, offset: usize) -> bool {
        let begin = usize::try_from(self.offset);
        begin.is_ok_and(|begin| (begin..begin + self.bytes).contains(&offset))
    }

    /// Makes the area that of a thread which has not registered: all of it zero, but for
    /// `cpu_id = -1`, by which libc knows to ask the kernel instead. So no two blocks differ there
    /// that were used otherwise alike.
    ///
    /// # Safety
    /// * The block at `tcb` is complete, and no thread has its area registered any more.
    pub(super) unsafe fn forget(self, tcb: usize) {
        const CPU_ID: usize = 1;
        const CPU_ID_UNINITIALIZED: u32 = u32::MAX;
        let area = tcb.wrapping_add_signed(self.offset) as *mut u32;
        // SAFETY: by the caller; aligned to 32 in every block.
        unsafe { area.write_bytes(0, self.bytes / 4) };
        // SAFETY: its second word.
        unsafe { area.wrapping_add(CPU_ID).write(CPU_ID_UNINITIALIZED) };
    }
}

fn public(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a terminated string; a missing symbol gives null.
    let p = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!p.is_null()).then_some(p)
}
