//! Functions of libc's, some of which call back.

use crate::pulse;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, c_int, c_void};
use testprogs::random::Random;

extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: an element of an array of such.
    let a = unsafe { a.cast::<u64>().read() };
    // SAFETY: as above.
    let b = unsafe { b.cast::<u64>().read() };
    pulse::beat();
    match a.cmp(&b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

/// libc sorts and searches, and compares by ours.
pub(crate) fn qsort(random: &mut Random) {
    let mut numbers: Vec<_> = (0..1 + random.below(500)).map(|_| random.below(10_000)).collect();
    let mut expected = numbers.clone();
    expected.sort_unstable();
    let wanted = numbers[0];
    let (array, count, size) = (numbers.as_mut_ptr().cast(), numbers.len(), size_of::<u64>());
    // SAFETY: an array of that many elements of that size, whose type `compare` knows.
    unsafe { libc::qsort(array, count, size, Some(compare)) };
    assert_eq!(numbers, expected);
    let key = (&raw const wanted).cast();
    // SAFETY: as above, sorted.
    let found = unsafe { libc::bsearch(key, array, count, size, Some(compare)) };
    assert!(!found.is_null());
    // SAFETY: an element of the array.
    assert_eq!(unsafe { found.cast::<u64>().read() }, wanted);
}

/// What the callback saw.
#[derive(Default)]
struct Modules {
    count: u32,
    has_libc: bool,
    rounds: u64,
}

/// # Safety
/// * Called by `dl_iterate_phdr`, with a `Modules`.
unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: what `modules` passed.
    let modules = unsafe { &mut *data.cast::<Modules>() };
    // SAFETY: the loader passes a valid record.
    let name = unsafe { (*info).dlpi_name };
    // SAFETY: a terminated string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    modules.count += 1;
    modules.has_libc |= name.contains("libc.so");
    pulse::compute(modules.rounds, 1);
    0
}

/// Computes in the callback, under the loader's lock.
pub(crate) fn modules(random: &mut Random) {
    let mut modules = Modules { rounds: random.below(8), ..Modules::default() };
    // SAFETY: the callback takes a `Modules`.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut modules).cast()) };
    assert!(modules.has_libc && modules.count >= 3);
}

/// Functions with state of their own: time zones, the environment, locale, random numbers.
pub(crate) fn others(random: &mut Random) {
    for _ in 0..random.below(30) {
        let number = random.below(1 << 40) as f64 / 1024.0;
        let text = CString::new(format!("{number}")).expect("no zero in it");
        // SAFETY: a terminated string.
        assert_eq!(unsafe { libc::strtod(text.as_ptr(), std::ptr::null_mut()) }, number);
        let mut buffer = [0_u8; 64];
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: as much room as it says, and the one argument that the format names.
        let length = unsafe { libc::snprintf(start, room, c"%.6f".as_ptr(), number) };
        let printed = str::from_utf8(&buffer[..length as usize]).expect("digits");
        assert_eq!(printed, format!("{number:.6}"));
        let seconds = random.below(1 << 32) as i64;
        // SAFETY: all zeroes is a value of this type.
        let mut date: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both are ours.
        assert!(!unsafe { libc::gmtime_r(&seconds, &mut date) }.is_null());
        // SAFETY: as above.
        assert_eq!(unsafe { libc::timegm(&mut date) }, seconds);
    }
}
