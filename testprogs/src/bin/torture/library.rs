//! Libraries that are loaded and given back.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use testprogs::random::Random;

/// One that the process has already, most likely, and one that really comes and goes.
const LIBRARIES: [&CStr; 2] = [c"libm.so.6", c"libBrokenLocale.so.1"];

pub(crate) fn load(random: &mut Random) {
    let name = LIBRARIES[random.below(2) as usize];
    let library = Library::open(name);
    if name == LIBRARIES[0] {
        let half = library.symbol(c"ldexp");
        // SAFETY: ldexp's type.
        let half: extern "C" fn(f64, i32) -> f64 = unsafe { transmute(half) };
        let number = random.below(1 << 50) as f64;
        assert_eq!(half(number, -1), number / 2.0);
    } else {
        library.symbol(c"__ctype_get_mb_cur_max");
    }
}

struct Library(*mut c_void);

impl Library {
    fn open(name: &CStr) -> Library {
        // SAFETY: libraries whose constructors do nothing that could harm.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "{name:?} is part of glibc");
        Library(library)
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: an open library and a terminated name.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?} is in it");
        symbol
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: open, and nothing of it is used any more.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }
}
