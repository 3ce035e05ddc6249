//! Seeing that libc has nothing to take back when a goroutine ends.
//!
//! At a thread's end libc runs its destructors, and a goroutine also gives back its locale and its
//! loader's error. Most goroutines have none of these, and five calls that find nothing cost more
//! than all else at the end of a short life. So each is provoked once, on a thread that ends
//! afterwards, and seen where it lies: a word that changes, and changes back when libc is asked to
//! take it back. Where exactly one word does, that word says from then on whether there is
//! something; where not, libc is asked each time.
//!
//! The character tables are a thread's first act instead, and follow from the global locale: they
//! are compared with its own, which lie in a public structure (`struct __locale_struct`).
//!
//! Invariants
//! * I1. A word is only believed when it says "nothing": then the call that would have found
//!   nothing is left out. What libc keeps elsewhere besides is taken back by the same call, so it
//!   would have changed that word too.

use super::LC_GLOBAL_LOCALE;
use super::dead_thread::Snapshot;
use super::symbols::Plain;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A word of a block, and what it holds while there is nothing to take back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// From FS.
    offset: isize,
    idle: usize,
}

impl Word {
    /// Whether libc has something to take back.
    ///
    /// # Safety
    /// * `tcb` is a complete block; what runs on it is the caller.
    #[inline]
    unsafe fn is_set(word: Option<Word>, tcb: usize) -> bool {
        word.is_none_or(|word| {
            // SAFETY: a word of the block's static area, which only its own execution writes.
            unsafe { (tcb.wrapping_add_signed(word.offset) as *const usize).read() != word.idle }
        })
    }
}

/// Where libc's part of a block shows what a goroutine has left there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Untouched {
    destructors: Option<Word>,
    locale: Option<Word>,
    loader_error: Option<Word>,
    tables: Option<Tables>,
    /// `errno` and `h_errno`, from FS; found since `learn` was called.
    errors: Option<[isize; 2]>,
}

// SAFETY: both only tell an address.
unsafe extern "C" {
    safe fn __errno_location() -> *mut i32;
    safe fn __h_errno_location() -> *mut i32;
}

impl Untouched {
    /// Provokes and watches. The calling thread must be one that ends, has allocated before, and has
    /// `below` bytes of thread-locals below `tcb`.
    pub(super) fn learn(tcb: usize, below: usize, call_tls_dtors: Option<Plain>) -> Untouched {
        let locale = watch_locale(tcb, below);
        Untouched {
            destructors: call_tls_dtors.and_then(|call| watch_destructors(tcb, below, call)),
            locale,
            loader_error: watch_loader_error(tcb, below),
            tables: locale.and_then(|locale| Tables::check(tcb, locale.idle)),
            errors: Some(
                places_of_errors().map(|place| (place as usize).wrapping_sub(tcb) as isize),
            ),
        }
    }

    /// Where it is seen, from FS.
    pub(super) fn places(&self) -> Vec<isize> {
        let words = [self.destructors, self.locale, self.loader_error];
        words.iter().flatten().map(|word| word.offset).collect()
    }

    /// How many of the four can be seen.
    pub(super) fn count(&self) -> usize {
        let words = [self.destructors, self.locale, self.loader_error];
        words.iter().flatten().count() + usize::from(self.tables.is_some())
    }

    /// Whether there may be destructors of thread-locals to run.
    ///
    /// # Safety
    /// * `tcb` is a complete block; what runs on it is the caller.
    #[inline]
    pub(super) unsafe fn may_have_destructors(&self, tcb: usize) -> bool {
        // SAFETY: by the caller.
        unsafe { Word::is_set(self.destructors, tcb) }
    }

    /// Whether the block may have another locale than the global one.
    ///
    /// # Safety
    /// * As for [`may_have_destructors`](Untouched::may_have_destructors).
    #[inline]
    pub(super) unsafe fn may_have_locale(&self, tcb: usize) -> bool {
        // SAFETY: by the caller.
        unsafe { Word::is_set(self.locale, tcb) }
    }

    /// Whether the block may hold an error of the loader's.
    ///
    /// # Safety
    /// * As for [`may_have_destructors`](Untouched::may_have_destructors).
    #[inline]
    pub(super) unsafe fn may_have_loader_error(&self, tcb: usize) -> bool {
        // SAFETY: by the caller.
        unsafe { Word::is_set(self.loader_error, tcb) }
    }

    /// Makes `errno` and `h_errno` zero.
    ///
    /// # Safety
    /// * `tcb` is loaded.
    #[inline]
    pub(super) unsafe fn clear_errors(&self, tcb: usize) {
        let places = match self.errors {
            Some(offsets) => offsets.map(|offset| tcb.wrapping_add_signed(offset) as *mut i32),
            None => places_of_errors(),
        };
        for place in places {
            // SAFETY: the loaded block's own.
            unsafe { place.write(0) };
        }
    }

    /// Whether the block's character tables are the global locale's.
    ///
    /// # Safety
    /// * As for [`may_have_destructors`](Untouched::may_have_destructors), and the block's locale
    ///   is the global one.
    #[inline]
    pub(super) unsafe fn has_tables(&self, tcb: usize) -> bool {
        // SAFETY: by the caller.
        self.tables.is_some_and(|tables| unsafe { tables.are_current(tcb) })
    }
}

fn places_of_errors() -> [*mut i32; 2] {
    [__errno_location(), __h_errno_location()]
}

/// A block's pointers into the character tables, and where the global locale has its own.
#[derive(Clone, Copy, Debug)]
struct Tables {
    /// From FS: `__ctype_b`, `__ctype_tolower`, `__ctype_toupper`.
    own: [isize; 3],
    /// Address of the same in the global locale.
    global: usize,
}

/// `bits/types/__locale_t.h`: where the three pointers lie in a locale, behind the thirteen
/// categories' data.
const TABLES_IN_LOCALE: usize = 13 * size_of::<usize>();

// SAFETY: all three only tell an address.
unsafe extern "C" {
    safe fn __ctype_b_loc() -> *mut c_void;
    safe fn __ctype_tolower_loc() -> *mut c_void;
    safe fn __ctype_toupper_loc() -> *mut c_void;
}

impl Tables {
    /// Where both are, if they agree on this thread, whose locale is the global one at `global`.
    fn check(tcb: usize, global: usize) -> Option<Tables> {
        let places = [__ctype_b_loc(), __ctype_tolower_loc(), __ctype_toupper_loc()];
        let own = places.map(|place| (place as usize).wrapping_sub(tcb) as isize);
        let tables = Tables { own, global: global + TABLES_IN_LOCALE };
        // SAFETY: this thread's own block.
        unsafe { tables.are_current(tcb) }.then_some(tables)
    }

    /// # Safety
    /// * As for [`Untouched::has_tables`].
    #[inline]
    unsafe fn are_current(self, tcb: usize) -> bool {
        (0..3).all(|i| {
            let theirs = (self.global + i * size_of::<usize>()) as *mut usize;
            // SAFETY: an aligned word of the global locale, which always exists.
            let theirs = unsafe { AtomicUsize::from_ptr(theirs) };
            let own = tcb.wrapping_add_signed(self.own[i]) as *const usize;
            // ORDERING: Relaxed, as libc reads it for a new thread; whoever calls `setlocale` has to
            // see to it that no other thread runs meanwhile.
            // SAFETY: a word of the block's static area, which only its own execution writes.
            theirs.load(Relaxed) == unsafe { own.read() }
        })
    }
}

/// The only word below `tcb` that `provoke` changes to what `fits` and `take_back` changes back, if
/// there is just one. In a frame of its own, of three snapshots: the thread's stack is small.
#[inline(never)]
fn watch(
    tcb: usize,
    below: usize,
    provoke: impl FnOnce() -> bool,
    take_back: impl FnOnce(),
    fits: impl Fn(usize) -> bool,
) -> Option<Word> {
    let from = tcb - below;
    let before = Snapshot::take(from, below);
    let is_provoked = provoke();
    let meanwhile = Snapshot::take(from, below);
    take_back();
    let after = Snapshot::take(from, below);
    let mut places = (0..below / 8).map(|i| i * 8).filter(|&i| {
        let (was, is) = (before.word(i), meanwhile.word(i));
        was != is && fits(is) && was == after.word(i)
    });
    let place = places.next().filter(|_| places.next().is_none() && is_provoked)?;
    Some(Word { offset: place as isize - below as isize, idle: before.word(place) })
}

unsafe extern "C" {
    fn __cxa_thread_atexit_impl(
        destructor: extern "C" fn(*mut c_void),
        object: *mut c_void,
        module: *mut c_void,
    ) -> c_int;
    /// The name by which a module calls itself to the C++ ABI.
    static __dso_handle: c_char;
}

fn watch_destructors(tcb: usize, below: usize, call_tls_dtors: Plain) -> Option<Word> {
    extern "C" fn nothing(_: *mut c_void) {}
    let register = || {
        let module = (&raw const __dso_handle).cast_mut().cast();
        // SAFETY: a destructor that does nothing, of this module.
        unsafe { __cxa_thread_atexit_impl(nothing, std::ptr::null_mut(), module) == 0 }
    };
    // The first one makes libc remember the module for good.
    let is_registered = register();
    // SAFETY: runs what was registered on this thread, which has registered no other.
    unsafe { call_tls_dtors() };
    // SAFETY: as above.
    let run = || unsafe { call_tls_dtors() };
    watch(tcb, below, || register() && is_registered, run, |_| true)
}

/// The word that holds the locale itself; with it the tables may change.
fn watch_locale(tcb: usize, below: usize) -> Option<Word> {
    // SAFETY: a terminated name, no base.
    let other = unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C".as_ptr(), std::ptr::null_mut()) };
    if other.is_null() {
        return None;
    }
    // SAFETY: a locale of ours, or the global one, which always exists.
    let take_up = |locale| unsafe { libc::uselocale(locale) };
    let word = watch(
        tcb,
        below,
        || take_up(other) == LC_GLOBAL_LOCALE,
        || {
            take_up(LC_GLOBAL_LOCALE);
        },
        |word| word == other as usize,
    );
    // SAFETY: from `newlocale`, and in use no more.
    unsafe { libc::freelocale(other) };
    word
}

/// Makes libc forget the loaded block's error of the loader.
pub(super) fn forget_loader_error() {
    // The first call tells it, the second lets it go.
    for _ in 0..2 {
        // SAFETY: no arguments.
        unsafe { libc::dlerror() };
    }
}

fn watch_loader_error(tcb: usize, below: usize) -> Option<Word> {
    forget_loader_error();
    let fail = || {
        let name = c"gosched: no library has this symbol";
        // SAFETY: a terminated name.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).is_null() }
    };
    watch(tcb, below, fail, forget_loader_error, |_| true)
}
