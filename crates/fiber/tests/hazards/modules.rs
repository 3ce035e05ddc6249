//! Thread-locals of shared libraries: loaded late, reused, unloaded.

use crate::harness::{ALL, BLOCKS, Mode, coroutine, in_each, moved, on_thread, skip};
use gosched_fiber::{Coroutine, suspend};
use std::ffi::{CStr, CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// How a library's code reaches its thread-locals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    /// At a fixed distance from FS: libc must initialise every thread's block at once.
    Initial,
    /// Through the block's vector, allocated at the first use.
    Dynamic,
}

const SOURCE: &str = "
__thread int x = 42;
__thread int zero;
__thread char large[256];
int get(void) { return x + zero + large[7]; }
void put(int v) { x = v; zero = v; large[7] = 1; }
";

/// A loaded library with a thread-local that starts as 42.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    handle: usize,
    get: extern "C" fn() -> i32,
    put: extern "C" fn(i32),
}

impl Library {
    /// Compiles and loads it; `None`, said loudly, without a C compiler.
    pub(crate) fn load(model: Model) -> Option<Library> {
        let path = compile(model)?;
        let path = CString::new(path.into_os_string().into_encoded_bytes()).expect("no zero byte");
        // SAFETY: a terminated string; the library has no constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "dlopen: {:?}", last_error());
        let get = symbol(handle, c"get");
        let put = symbol(handle, c"put");
        Some(Library {
            handle: handle as usize,
            // SAFETY: the library's function has this type.
            get: unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(get) },
            // SAFETY: as above.
            put: unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(i32)>(put) },
        })
    }

    pub(crate) fn get(self) -> i32 {
        (self.get)()
    }

    pub(crate) fn put(self, value: i32) {
        (self.put)(value);
    }

    pub(crate) fn unload(self) {
        // SAFETY: from `dlopen`; its functions are not called again.
        assert_eq!(unsafe { libc::dlclose(self.handle as *mut c_void) }, 0);
    }
}

fn last_error() -> CString {
    // SAFETY: no preconditions.
    let text = unsafe { libc::dlerror() };
    // SAFETY: called after a failure, so there is a string, this thread's until its next call.
    unsafe { CStr::from_ptr(text) }.to_owned()
}

fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a live handle and a terminated string.
    let p = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!p.is_null());
    p
}

/// The library's path, compiled once in a process.
fn compile(model: Model) -> Option<PathBuf> {
    static DONE: Mutex<[Option<PathBuf>; 2]> = Mutex::new([None, None]);
    let mut done = DONE.lock().expect("no panic while compiling");
    let path = &mut done[model as usize];
    if path.is_none() {
        *path = compile_now(model);
    }
    path.clone()
}

fn compile_now(model: Model) -> Option<PathBuf> {
    let flag = match model {
        Model::Initial => "-ftls-model=initial-exec",
        Model::Dynamic => "-ftls-model=global-dynamic",
    };
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tls-{model:?}.so"));
    // Other processes may do the same: each compiles its own file and puts it in the place.
    let own = library.with_extension(std::process::id().to_string());
    let source = own.with_extension(format!("{model:?}-{}.c", std::process::id()));
    std::fs::write(&source, SOURCE).expect("a writable target folder");
    let mut cc = Command::new("cc");
    let done = cc.args(["-shared", "-fPIC", "-O1", flag, "-o"]).args([&own, &source]).status();
    std::fs::remove_file(&source).expect("written above");
    match done {
        Ok(status) => assert!(status.success(), "cc failed"),
        Err(error) => {
            skip(&format!("no C compiler: {error}"));
            return None;
        }
    }
    std::fs::rename(&own, &library).expect("compiled above");
    Some(library)
}

/// Coroutines that wait, and then expect the library's thread-local as it starts.
fn waiting(count: usize, library: &'static std::sync::OnceLock<Library>) -> Vec<Coroutine> {
    let mut all: Vec<_> = (0..count)
        .map(|i| {
            coroutine(move || {
                suspend();
                let library = library.get().expect("loaded");
                assert_eq!(library.get(), 42, "coroutine {i}, made before dlopen");
                library.put(i as i32);
                suspend();
                assert_eq!(library.get(), 2 * i as i32 + 1, "coroutine {i}, after a move");
            })
        })
        .collect();
    all.iter_mut().for_each(|c| assert!(!c.resume()));
    all
}

fn late_library(model: Model) {
    static LIBRARY: std::sync::OnceLock<Library> = std::sync::OnceLock::new();
    // Idle blocks must be initialised too.
    let mut idle: Vec<_> = (0..20).map(|_| coroutine(|| ())).collect();
    idle.iter_mut().for_each(|c| assert!(c.resume()));
    let mut before = waiting(100, &LIBRARY);
    let Some(library) = Library::load(model) else { return };
    LIBRARY.set(library).ok().expect("set once");
    before.iter_mut().for_each(|c| assert!(!c.resume()));
    on_thread(move || before.iter_mut().for_each(|c| assert!(c.resume())));
    for i in 0..300 {
        moved(move || {
            assert_eq!(library.get(), 42, "coroutine {i}, made after dlopen");
            library.put(7);
        });
    }
    library.unload();
    for _ in 0..50 {
        moved(|| ());
    }
}

#[test]
fn a_late_library_with_fixed_thread_locals_is_initialised() {
    in_each(ALL, "modules::a_late_library_with_fixed_thread_locals_is_initialised", |_: Mode| {
        late_library(Model::Initial);
    });
}

#[test]
fn a_late_library_with_dynamic_thread_locals_is_initialised() {
    in_each(ALL, "modules::a_late_library_with_dynamic_thread_locals_is_initialised", |_| {
        late_library(Model::Dynamic);
    });
}

/// One library takes the place of another in every block: neither's values may be the other's.
#[test]
fn libraries_that_follow_each_other_start_fresh() {
    in_each(BLOCKS, "modules::libraries_that_follow_each_other_start_fresh", |_| {
        for model in [Model::Initial, Model::Dynamic, Model::Initial] {
            let Some(library) = Library::load(model) else { return };
            for _ in 0..100 {
                moved(move || {
                    assert_eq!(library.get(), 42, "{model:?}");
                    library.put(9);
                });
            }
            library.unload();
            for _ in 0..20 {
                moved(|| ());
            }
        }
    });
}
