//! What libc keeps for a thread.

use crate::carry::{Carriers, coroutine, hop};
use crate::mode::Mode;
use crate::step::Step;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

pub(crate) const STEPS: &[Step] = &[
    Step::inside("character classes and number formats", characters_and_numbers),
    Step::inside("errno across a move", errno_across_a_move),
    Step::inside("static buffers of libc", static_buffers),
    Step::outside("errno and dlerror are reset on reuse", errors_are_reset),
    Step::inside("floating-point environment", floating_point_environment),
    Step::inside("locale of a thread", locale_of_a_thread),
    Step::outside("locale is reset on reuse", locale_is_reset),
    Step::outside("setlocale reaches fibers made before", setlocale_reaches_fibers),
    Step::inside("pthread_self is stable", self_is_stable),
    Step::inside("pthread keys", keys),
    Step::outside("pthread key destructors", key_destructors),
    Step::outside("pthread key set again in its destructor", key_set_again),
    Step::outside("thread-local first used in a key destructor", first_used_in_key_destructor)
        .except(&[(Mode::Threads, "libc never runs destructors that are registered that late")]),
    Step::inside("recursive mutex", recursive_mutex),
    Step::inside("error-checking mutex", error_checking_mutex),
    Step::inside("robust mutex", robust_mutex),
    Step::inside("stdio lock across a move", stdio_lock),
    Step::outside("stack bounds of the thread", stack_bounds),
    Step::inside("malloc here, free there", malloc_and_free),
    Step::inside("malloc_trim and mallinfo2", malloc_trim),
    Step::inside("user database", user_database),
    Step::inside("local time", local_time),
];

fn text(p: *const c_char) -> String {
    assert!(!p.is_null());
    // SAFETY: callers pass what libc returned as a string.
    unsafe { CStr::from_ptr(p) }.to_str().unwrap().to_owned()
}

fn characters_and_numbers() {
    for _ in 0..2 {
        // SAFETY: an ASCII character.
        assert_ne!(unsafe { libc::isalpha(i32::from(b'a')) }, 0);
        // SAFETY: an ASCII character.
        assert_eq!(unsafe { libc::toupper(i32::from(b'q')) }, i32::from(b'Q'));
        // SAFETY: a terminated string.
        assert_eq!(unsafe { libc::strtod(c"-1.5e3".as_ptr(), null_mut()) }, -1500.0);
        // SAFETY: a terminated string.
        assert_eq!(unsafe { libc::strtol(c"0x7f".as_ptr(), null_mut(), 16) }, 127);
        let mut buffer = [0; 64];
        let format = c"%.3f %s %05d %zu".as_ptr();
        let (bytes, word) = (buffer.len(), c"word".as_ptr());
        // SAFETY: the arguments are what the format says, and the buffer has that many bytes.
        unsafe { libc::snprintf(buffer.as_mut_ptr(), bytes, format, 2.5_f64, word, 42, 7_usize) };
        assert_eq!(text(buffer.as_ptr()), "2.500 word 00042 7");
        hop();
    }
}

fn errno_across_a_move() {
    let error = std::fs::File::open("/nonexistent").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    set_errno(77);
    for _ in 0..3 {
        hop();
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(77));
    }
}

#[inline(never)]
fn set_errno(value: c_int) {
    // SAFETY: the caller's own errno.
    unsafe { *libc::__errno_location() = value };
}

unsafe extern "C" {
    fn inet_ntoa(address: libc::in_addr) -> *const c_char;
}

/// Some functions return memory that belongs to the thread.
fn static_buffers() {
    // SAFETY: takes a value.
    let address = unsafe { inet_ntoa(libc::in_addr { s_addr: 0x0100_007f }) };
    // SAFETY: takes a value.
    let message = unsafe { libc::strerror(9999) };
    // SAFETY: a terminated name; there is no such library.
    assert!(unsafe { libc::dlopen(c"/nonexistent.so".as_ptr(), libc::RTLD_NOW) }.is_null());
    hop();
    assert_eq!(text(address), "127.0.0.1");
    assert!(text(message).contains("9999"));
    // SAFETY: no arguments.
    assert!(text(unsafe { libc::dlerror() }).contains("/nonexistent.so"));
}

unsafe extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

fn errors_are_reset(carriers: &Carriers) {
    for _ in 0..20 {
        carriers.run(|| {
            // SAFETY: the caller's own errno.
            assert_eq!(unsafe { *libc::__errno_location() }, 0);
            // SAFETY: the caller's own.
            assert_eq!(unsafe { *__h_errno_location() }, 0);
            // SAFETY: no arguments.
            assert!(unsafe { libc::dlerror() }.is_null(), "another's error");
            hop();
            set_errno(77);
            // SAFETY: the caller's own.
            unsafe { *__h_errno_location() = 77 };
            // SAFETY: a terminated name; there is no such library.
            assert!(unsafe { libc::dlopen(c"/none.so".as_ptr(), libc::RTLD_NOW) }.is_null());
        });
    }
}

unsafe extern "C" {
    fn fesetround(rounding: c_int) -> c_int;
    fn fegetround() -> c_int;
}

/// `fenv.h` on x86.
const FE_TONEAREST: c_int = 0;
const FE_UPWARD: c_int = 0x800;

fn floating_point_environment() {
    // SAFETY: no arguments.
    assert_eq!(unsafe { fegetround() }, FE_TONEAREST, "another's rounding mode");
    // SAFETY: no operation below depends on the mode but the one that is checked.
    assert_eq!(unsafe { fesetround(FE_UPWARD) }, 0);
    hop();
    // SAFETY: no arguments.
    assert_eq!(unsafe { fegetround() }, FE_UPWARD);
    // SAFETY: back to what Rust expects.
    assert_eq!(unsafe { fesetround(FE_TONEAREST) }, 0);
    hop();
    // SAFETY: no arguments.
    assert_eq!(unsafe { fegetround() }, FE_TONEAREST);
}

unsafe extern "C" {
    fn iswalpha(character: u32) -> c_int;
}

/// `locale.h`: `((locale_t) -1L)`.
const GLOBAL: libc::locale_t = -1_isize as libc::locale_t;
const E_ACUTE: u32 = 0xe9;

fn utf8_locale() -> libc::locale_t {
    // SAFETY: a terminated name; glibc has this locale built in.
    let locale = unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C.UTF-8".as_ptr(), null_mut()) };
    assert!(!locale.is_null());
    locale
}

fn current_locale() -> libc::locale_t {
    // SAFETY: a null argument only asks.
    unsafe { libc::uselocale(null_mut()) }
}

fn locale_of_a_thread() {
    assert_eq!(current_locale(), GLOBAL);
    // SAFETY: takes a value.
    assert_eq!(unsafe { iswalpha(E_ACUTE) }, 0, "the global locale is C");
    let locale = utf8_locale();
    // SAFETY: just made.
    unsafe { libc::uselocale(locale) };
    for _ in 0..3 {
        hop();
        assert_eq!(current_locale(), locale);
        // SAFETY: takes a value.
        assert_ne!(unsafe { iswalpha(E_ACUTE) }, 0);
    }
    // SAFETY: the global locale always exists.
    unsafe { libc::uselocale(GLOBAL) };
    // SAFETY: made above, and used no more.
    unsafe { libc::freelocale(locale) };
}

fn locale_is_reset(carriers: &Carriers) {
    // Never freed: coroutines end with it in use.
    let locale = utf8_locale() as usize;
    for _ in 0..50 {
        carriers.run(move || {
            assert_eq!(current_locale(), GLOBAL);
            // SAFETY: takes a value.
            assert_eq!(unsafe { iswalpha(E_ACUTE) }, 0);
            // SAFETY: an ASCII character.
            assert_ne!(unsafe { libc::isalpha(i32::from(b'a')) }, 0);
            // SAFETY: a locale that is never freed.
            unsafe { libc::uselocale(locale as libc::locale_t) };
            hop();
        });
    }
}

unsafe extern "C" {
    fn __ctype_b_loc() -> *mut *const u16;
}

/// Where the calling thread looks characters up.
fn character_table() -> usize {
    // SAFETY: the caller's own.
    unsafe { *__ctype_b_loc() as usize }
}

/// A new thread has the global locale's tables, also if the locale was set after the program's
/// start, as programs do first thing in `main`.
fn setlocale_reaches_fibers(carriers: &Carriers) {
    for locale in [c"C.UTF-8", c"C"] {
        // SAFETY: a terminated name; no other thread uses the locale meanwhile.
        assert!(!unsafe { libc::setlocale(libc::LC_ALL, locale.as_ptr()) }.is_null());
        let expected = thread::spawn(character_table).join().unwrap();
        carriers.drive(
            (0..4)
                .map(|_| {
                    coroutine(move || {
                        assert_eq!(character_table(), expected);
                        hop();
                        assert_eq!(character_table(), expected);
                    })
                })
                .collect(),
        );
    }
}

fn self_is_stable() {
    // SAFETY: no arguments.
    let myself = unsafe { libc::pthread_self() };
    hop();
    // SAFETY: no arguments.
    assert_eq!(unsafe { libc::pthread_self() }, myself);
    let other = thread::spawn(|| {
        // SAFETY: no arguments.
        unsafe { libc::pthread_self() }
    });
    assert_ne!(other.join().unwrap(), myself);
}

fn make_key(destructor: Option<unsafe extern "C" fn(*mut c_void)>) -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: writes a key; the destructor is right for what the step stores under it.
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, destructor) }, 0);
    key
}

fn set_key(key: libc::pthread_key_t, value: usize) {
    // SAFETY: the key exists; values are numbers.
    assert_eq!(unsafe { libc::pthread_setspecific(key, value as *const c_void) }, 0);
}

fn get_key(key: libc::pthread_key_t) -> usize {
    // SAFETY: the key exists.
    unsafe { libc::pthread_getspecific(key) as usize }
}

/// More than fit into a control block itself.
const KEYS: usize = 40;

fn keys() {
    let keys: Vec<_> = (0..KEYS).map(|_| make_key(None)).collect();
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(get_key(*key), 0);
        set_key(*key, i + 1);
    }
    hop();
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(get_key(*key), i + 1);
    }
    let other = keys[0];
    assert_eq!(thread::spawn(move || get_key(other)).join().unwrap(), 0);
    for key in keys {
        // SAFETY: made above, and used no more.
        assert_eq!(unsafe { libc::pthread_key_delete(key) }, 0);
    }
}

static KEY_DROPS: AtomicUsize = AtomicUsize::new(0);
static KEY_SUM: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn drop_value(value: *mut c_void) {
    KEY_DROPS.fetch_add(1, SeqCst);
    KEY_SUM.fetch_add(value as usize, SeqCst);
}

fn key_destructors(carriers: &Carriers) {
    let keys: Vec<_> = (0..KEYS).map(|_| make_key(Some(drop_value))).collect();
    for round in 1..=20 {
        let keys = keys.clone();
        carriers.run(move || {
            for (i, key) in keys.iter().enumerate() {
                assert_eq!(get_key(*key), 0, "another's value");
                set_key(*key, i + 1);
                if i % 10 == 0 {
                    hop();
                }
            }
            set_key(keys[3], 0);
        });
        assert_eq!(KEY_DROPS.load(SeqCst), round * (KEYS - 1));
        assert_eq!(KEY_SUM.load(SeqCst), round * (KEYS * (KEYS + 1) / 2 - 4));
    }
    for key in keys {
        // SAFETY: made above, and used no more.
        assert_eq!(unsafe { libc::pthread_key_delete(key) }, 0);
    }
}

static AGAIN: AtomicUsize = AtomicUsize::new(0);
static AGAIN_DROPS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn set_again(value: *mut c_void) {
    AGAIN_DROPS.fetch_add(1, SeqCst);
    if value as usize > 1 {
        set_key(AGAIN.load(SeqCst) as libc::pthread_key_t, value as usize - 1);
    }
}

fn key_set_again(carriers: &Carriers) {
    let key = make_key(Some(set_again));
    AGAIN.store(key as usize, SeqCst);
    carriers.run(move || (set_key(key, 3), hop()).1);
    assert_eq!(AGAIN_DROPS.load(SeqCst), 3);
    // POSIX gives up after four rounds, and the next one to use the block sees nothing of it.
    carriers.run(move || (set_key(key, 100), hop()).1);
    assert_eq!(AGAIN_DROPS.load(SeqCst), 3 + 4);
    carriers.run(move || assert_eq!(get_key(key), 0));
    assert_eq!(AGAIN_DROPS.load(SeqCst), 3 + 4);
}

static LATE_DROPS: AtomicUsize = AtomicUsize::new(0);

/// Owns memory, so that a second drop is found out.
struct Late(Box<AtomicUsize>);

impl Drop for Late {
    fn drop(&mut self) {
        assert_eq!(self.0.fetch_add(1, SeqCst), 0, "dropped again");
        LATE_DROPS.fetch_add(1, SeqCst);
    }
}

unsafe extern "C" fn use_late(_: *mut c_void) {
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    LATE.set(Some(Late(Box::new(AtomicUsize::new(0)))));
}

fn first_used_in_key_destructor(carriers: &Carriers) {
    let key = make_key(Some(use_late));
    for round in 1..=20 {
        carriers.run(move || (set_key(key, 1), hop()).1);
        assert_eq!(LATE_DROPS.load(SeqCst), round);
    }
}

/// A mutex of POSIX at a fixed address.
struct Mutex(Box<std::cell::UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a mutex is made to be used by several threads.
unsafe impl Sync for Mutex {}

impl Mutex {
    fn new(kind: c_int, robust: c_int) -> Mutex {
        // SAFETY: storage for the calls below.
        let mut attributes: libc::pthread_mutexattr_t = unsafe { std::mem::zeroed() };
        // SAFETY: initialises the storage.
        assert_eq!(unsafe { libc::pthread_mutexattr_init(&mut attributes) }, 0);
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::pthread_mutexattr_settype(&mut attributes, kind) }, 0);
        // SAFETY: initialised.
        assert_eq!(unsafe { libc::pthread_mutexattr_setrobust(&mut attributes, robust) }, 0);
        // SAFETY: storage for the call below.
        let mutex = Mutex(Box::new(unsafe { std::mem::zeroed() }));
        // SAFETY: initialises the storage.
        assert_eq!(unsafe { libc::pthread_mutex_init(mutex.0.get(), &attributes) }, 0);
        mutex
    }

    fn lock(&self) -> c_int {
        // SAFETY: initialised.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    fn unlock(&self) -> c_int {
        // SAFETY: initialised; errors are what is tested.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) }
    }

    fn try_lock(&self) -> c_int {
        // SAFETY: initialised.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) }
    }

    fn try_lock_elsewhere(&self) -> c_int {
        thread::scope(|scope| scope.spawn(|| self.try_lock()).join().unwrap())
    }
}

fn recursive_mutex() {
    let mutex = Mutex::new(libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_STALLED);
    assert_eq!(mutex.lock(), 0);
    hop();
    assert_eq!(mutex.lock(), 0);
    assert_eq!(mutex.try_lock_elsewhere(), libc::EBUSY);
    hop();
    assert_eq!((mutex.unlock(), mutex.unlock()), (0, 0));
    assert_eq!(mutex.unlock(), libc::EPERM);
    assert_eq!(mutex.try_lock_elsewhere(), 0);
}

fn error_checking_mutex() {
    let mutex = Mutex::new(libc::PTHREAD_MUTEX_ERRORCHECK, libc::PTHREAD_MUTEX_STALLED);
    assert_eq!(mutex.lock(), 0);
    hop();
    assert_eq!(mutex.lock(), libc::EDEADLK);
    let elsewhere = thread::scope(|scope| scope.spawn(|| mutex.unlock()).join().unwrap());
    assert_eq!(elsewhere, libc::EPERM);
    hop();
    assert_eq!(mutex.unlock(), 0);
    assert_eq!(mutex.unlock(), libc::EPERM);
}

fn robust_mutex() {
    let (a, b) = (
        Mutex::new(libc::PTHREAD_MUTEX_NORMAL, libc::PTHREAD_MUTEX_ROBUST),
        Mutex::new(libc::PTHREAD_MUTEX_RECURSIVE, libc::PTHREAD_MUTEX_ROBUST),
    );
    assert_eq!((a.lock(), b.lock()), (0, 0));
    hop();
    assert_eq!(b.lock(), 0);
    assert_eq!(a.try_lock_elsewhere(), libc::EBUSY);
    hop();
    assert_eq!((a.unlock(), b.unlock(), b.unlock()), (0, 0, 0));
}

unsafe extern "C" {
    fn flockfile(file: *mut libc::FILE);
    fn ftrylockfile(file: *mut libc::FILE) -> c_int;
    fn funlockfile(file: *mut libc::FILE);
}

fn stdio_lock() {
    // SAFETY: terminated strings.
    let file = unsafe { libc::fopen(c"/dev/null".as_ptr(), c"w".as_ptr()) };
    assert!(!file.is_null());
    // SAFETY: an open file.
    unsafe { flockfile(file) };
    hop();
    let address = file as usize;
    let elsewhere = thread::spawn(move || {
        // SAFETY: an open file.
        unsafe { ftrylockfile(address as *mut libc::FILE) }
    });
    assert_ne!(elsewhere.join().unwrap(), 0, "another thread got the lock");
    // SAFETY: an open file whose lock this thread holds, and may take again.
    assert!(unsafe { libc::fprintf(file, c"%d\n".as_ptr(), 5) } > 0);
    hop();
    // SAFETY: locked above.
    unsafe { funlockfile(file) };
    // SAFETY: open, and used no more.
    assert_eq!(unsafe { libc::fclose(file) }, 0);
}

/// How far below the reported end of the stack the first frame of a step may be: the control
/// block, the static thread-locals and a few frames.
const ABOVE_FIRST_FRAME: usize = 16 << 10;

fn stack_bounds(carriers: &Carriers) {
    carriers.drive(vec![coroutine(check_stack_bounds), coroutine(check_stack_bounds)]);
}

fn check_stack_bounds() {
    for _ in 0..2 {
        let local = 0_u8;
        let here = (&raw const local).addr();
        let (start, bytes) = reported_stack();
        assert!((start..start + bytes).contains(&here), "{here:#x} in {start:#x}+{bytes:#x}");
        assert!(start + bytes - here < ABOVE_FIRST_FRAME, "{here:#x} in {start:#x}+{bytes:#x}");
        let bounds = gosched_fiber::stack::bounds().unwrap();
        assert_eq!(start, bounds.limit);
        hop();
    }
}

fn reported_stack() -> (usize, usize) {
    // SAFETY: storage for the call below.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: the calling thread exists.
    let got = unsafe { libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) };
    assert_eq!(got, 0);
    let (mut start, mut bytes) = (null_mut(), 0);
    // SAFETY: initialised.
    assert_eq!(unsafe { libc::pthread_attr_getstack(&attributes, &mut start, &mut bytes) }, 0);
    // SAFETY: initialised, and used no more.
    assert_eq!(unsafe { libc::pthread_attr_destroy(&mut attributes) }, 0);
    (start.addr(), bytes)
}

fn malloc_and_free() {
    let blocks: Vec<Vec<u8>> = (0..2000).map(|i| vec![i as u8; 1 << (i % 12)]).collect();
    hop();
    assert!(blocks.iter().enumerate().all(|(i, block)| block[0] == i as u8));
    let (here, there): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|b| b.len() % 32 == 0);
    drop(here);
    let there = thread::spawn(move || (0..2000).map(|i| vec![there.len() as u8; i]).collect());
    hop();
    let made: Vec<Vec<u8>> = there.join().unwrap();
    drop(made);
}

fn malloc_trim() {
    let blocks: Vec<_> = (0..100).map(|_| vec![1_u8; 10_000]).collect();
    // SAFETY: no obligations.
    let info = unsafe { libc::mallinfo2() };
    assert!(info.uordblks >= 1_000_000, "{}", info.uordblks);
    hop();
    drop(blocks);
    // SAFETY: no obligations.
    unsafe { libc::malloc_trim(0) };
    hop();
    // SAFETY: no obligations.
    assert!(unsafe { libc::mallinfo2() }.uordblks > 0);
}

fn user_database() {
    for _ in 0..2 {
        // SAFETY: storage for the call below.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let (mut buffer, mut found) = ([0; 4096], null_mut());
        let (at, bytes) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the entry's strings go to the buffer, which lives as long.
        assert_eq!(unsafe { libc::getpwuid_r(0, &mut entry, at, bytes, &mut found) }, 0);
        assert!(!found.is_null());
        hop();
        assert_eq!(text(entry.pw_name), "root");
        // SAFETY: takes a value; the entry belongs to libc.
        let entry = unsafe { libc::getgrgid(0).as_ref() };
        assert_eq!(text(entry.unwrap().gr_name), "root");
    }
}

fn local_time() {
    // SAFETY: storage for the call below.
    let mut time: libc::tm = unsafe { std::mem::zeroed() };
    let noon = 1_000_000_000;
    // SAFETY: fills the storage.
    assert!(!unsafe { libc::gmtime_r(&noon, &mut time) }.is_null());
    hop();
    let mut buffer = [0; 64];
    let format = c"%Y-%m-%d %H:%M:%S %A".as_ptr();
    // SAFETY: the buffer has that many bytes.
    let bytes = unsafe { libc::strftime(buffer.as_mut_ptr(), buffer.len(), format, &time) };
    assert_eq!(&text(buffer.as_ptr())[..bytes], "2001-09-09 01:46:40 Sunday");
    // SAFETY: fills the storage.
    assert!(!unsafe { libc::localtime_r(&noon, &mut time) }.is_null());
    hop();
    // SAFETY: a broken-down time as localtime made it.
    assert_eq!(unsafe { libc::mktime(&mut time) }, noon);
}
