//! What is loaded in the process, and where its call-frame information lies.
//!
//! Noted ahead, since asking takes the loader's lock. A table that was published is never changed or
//! freed: a handler may use it. There is a new one each time that libraries were loaded, which is
//! rarely. The information of the program itself, libc and the loader is used where it lies; that of
//! others, which may be unloaded at any time, is copied.

use framehop::x86_64::UnwinderX86_64;
use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder};
use std::ffi::{CStr, c_int, c_void};
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

pub(crate) type Unwinds = UnwinderX86_64<Information, MustNotAllocateDuringUnwind>;

/// A module's call-frame information.
pub(crate) enum Information {
    /// Where it lies, in a module that stays.
    Mapped(&'static [u8]),
    Copied(Box<[u8]>),
}

impl Default for Information {
    fn default() -> Information {
        Information::Mapped(&[])
    }
}

impl Deref for Information {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Information::Mapped(bytes) => bytes,
            Information::Copied(bytes) => bytes,
        }
    }
}

/// A file that is mapped into the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where.
    pub range: Range<usize>,
    /// What is added to the addresses in the file.
    pub bias: usize,
    /// The file.
    pub path: PathBuf,
}

/// All that is loaded.
pub(crate) struct Table {
    pub(crate) unwinder: Unwinds,
    mappings: Vec<Mapping>,
    /// How often the loader had loaded and unloaded something.
    version: [u64; 2],
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// The table that was published last. Signal-safe.
pub(crate) fn table() -> Option<&'static Table> {
    // ORDERING: Acquire pairs with `prepare`.
    let table = TABLE.load(Acquire);
    // SAFETY: null or a table, which is never freed.
    unsafe { table.as_ref() }
}

/// Where signal handlers return to: the address that libc gives the kernel with each of them. 0 until
/// it is known.
static RESTORER: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub(crate) fn restorer() -> usize {
    // ORDERING: Relaxed; a number.
    RESTORER.load(Relaxed)
}

/// Asks the kernel what libc has told it.
fn find_restorer() {
    /// The kernel's form of an action.
    #[derive(Default)]
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    if restorer() != 0 {
        return;
    }
    for signal in 1..libc::SIGRTMIN() {
        let mut action = Action::default();
        let (new, bytes) = (std::ptr::null::<Action>(), size_of::<u64>());
        // SAFETY: asks only, into a place of the kernel's form.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, &raw mut action, bytes) };
        if action.restorer != 0 {
            // ORDERING: Relaxed; a number.
            return RESTORER.store(action.restorer, Relaxed);
        }
    }
}

/// Whether there is a table.
#[must_use]
pub fn is_prepared() -> bool {
    table().is_some()
}

/// What is mapped, as of the last [`prepare`].
#[must_use]
pub fn mappings() -> &'static [Mapping] {
    table().map_or(&[], |table| &table.mappings)
}

/// Notes what is loaded, if that has changed. Allocates and takes the loader's lock: neither in
/// handlers nor inside the runtime.
///
/// ```
/// gosched_unwind::prepare();
/// assert!(gosched_unwind::is_prepared());
/// ```
pub fn prepare() {
    crate::reserve(2);
    find_restorer();
    loop {
        let mut version = [0; 2];
        // SAFETY: the callback takes the place that is passed.
        unsafe { libc::dl_iterate_phdr(Some(note_version), (&raw mut version).cast()) };
        // ORDERING: Acquire pairs with the exchange below: the table is read.
        let old = TABLE.load(Acquire);
        // SAFETY: null or a table, which is never freed once it is there.
        if unsafe { old.as_ref() }.is_some_and(|table| table.version == version) {
            return;
        }
        let mut new = Box::new(Table { unwinder: Unwinds::new(), mappings: Vec::new(), version });
        // SAFETY: as above.
        unsafe { libc::dl_iterate_phdr(Some(note_module), (&raw mut *new).cast()) };
        let new = Box::into_raw(new);
        // ORDERING: Release pairs with `table`. Relaxed: the next round looks again.
        if TABLE.compare_exchange(old, new, Release, Relaxed).is_ok() {
            return;
        }
        // Somebody else was first, perhaps with what was loaded before.
        // SAFETY: made above, and nobody has seen it.
        drop(unsafe { Box::from_raw(new) });
    }
}

/// # Safety
/// * Called by `dl_iterate_phdr` with a `[u64; 2]`.
unsafe extern "C" fn note_version(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    // SAFETY: by the caller.
    unsafe { data.cast::<[u64; 2]>().write([info.dlpi_adds, info.dlpi_subs]) };
    1
}

/// # Safety
/// * Called by `dl_iterate_phdr` with a `Table`.
unsafe extern "C" fn note_module(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid record.
    let info = unsafe { &*info };
    // SAFETY: by the caller.
    let table = unsafe { &mut *data.cast::<Table>() };
    table.add(info);
    0
}

impl Table {
    fn add(&mut self, info: &libc::dl_phdr_info) {
        // SAFETY: the record's own table of headers.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let bias = info.dlpi_addr as usize;
        let loads = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        let start = loads().map(|h| h.p_vaddr).min().unwrap_or(0) as usize;
        let end = loads().map(|h| h.p_vaddr + h.p_memsz).max().unwrap_or(0) as usize;
        let range = bias + start..bias + end;
        if range.is_empty() {
            return;
        }
        let name = match info.dlpi_name.is_null() {
            true => c"",
            // SAFETY: a terminated string for as long as the module is loaded.
            false => unsafe { CStr::from_ptr(info.dlpi_name) },
        };
        let path = match name.to_str() {
            Ok("") => std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
            Ok(name) => PathBuf::from(name),
            Err(_) => PathBuf::new(),
        };
        let stays =
            is_permanent(name.to_bytes()) || range.contains(&(prepare as *const () as usize));
        let section = headers
            .iter()
            .find(|h| h.p_type == libc::PT_GNU_EH_FRAME)
            .and_then(|h| frame_information(bias, h, headers));
        if let Some(found) = section {
            let lasting = |range: &Range<usize>| {
                // SAFETY: readable parts of a module that is loaded: this runs under the loader's lock.
                let bytes: &'static [u8] =
                    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) };
                if stays { Information::Mapped(bytes) } else { Information::Copied(bytes.into()) }
            };
            let in_file = |r: &Range<usize>| (r.start - bias) as u64..(r.end - bias) as u64;
            let sections = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: Some(start as u64..end as u64),
                eh_frame_svma: Some(in_file(&found.frames)),
                eh_frame: Some(lasting(&found.frames)),
                eh_frame_hdr_svma: Some(in_file(&found.header)),
                eh_frame_hdr: Some(lasting(&found.header)),
                ..ExplicitModuleSectionInfo::default()
            };
            let range = range.start as u64..range.end as u64;
            self.unwinder.add_module(Module::new(String::new(), range, bias as u64, sections));
        }
        self.mappings.push(Mapping { range, bias, path });
    }
}

/// Whether a module of this name is there as long as the process: the program, the kernel's, libc, the
/// loader.
fn is_permanent(name: &[u8]) -> bool {
    let file = name.rsplit(|b| *b == b'/').next().unwrap_or(name);
    const NAMES: [&[u8]; 3] = [b"libc.so", b"ld-linux", b"linux-vdso"];
    name.is_empty() || NAMES.iter().any(|n| file.starts_with(n))
}

struct FrameInformation {
    header: Range<usize>,
    frames: Range<usize>,
}

/// Where `.eh_frame_hdr` and `.eh_frame` lie.
fn frame_information(
    bias: usize,
    header: &libc::Elf64_Phdr,
    headers: &[libc::Elf64_Phdr],
) -> Option<FrameInformation> {
    /// Version 1; the address of `.eh_frame` as a signed word of 32 bits relative to itself.
    const EXPECTED: [u8; 2] = [1, 0x1b];
    let start = bias + header.p_vaddr as usize;
    // SAFETY: the header that the module says it has, of eight bytes at least.
    let bytes = unsafe { (start as *const [u8; 8]).read() };
    if bytes[..2] != EXPECTED {
        return None;
    }
    let offset = i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    let frames = (start + 4).wrapping_add_signed(offset as isize);
    let end = headers
        .iter()
        .filter(|h| h.p_type == libc::PT_LOAD)
        .map(|h| bias + h.p_vaddr as usize..bias + (h.p_vaddr + h.p_filesz) as usize)
        .find(|segment| segment.contains(&frames))?
        .end;
    let header = start..start + header.p_memsz as usize;
    Some(FrameInformation { header, frames: frames..end })
}
