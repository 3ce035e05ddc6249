//! A constructor that waits for another goroutine, as the first thing that a program does: it holds
//! the loader's lock, which every new thread of std's needs. The other goroutine gets on only if the
//! monitor, whose thread has hardly begun, gets on without that lock. Prints `key=value` lines, or
//! `SKIPPED: ` and a reason; hangs if it is wrong.

use gosched::{go, runtime};
use std::env;
use std::ffi::CString;
use std::fs;
use std::io::{Read, Write, pipe};
use std::process::Command;

const SOURCE: &str = r#"
#include <stdlib.h>
__attribute__((constructor)) static void begin(void) {
    void (*f)(void) = (void (*)(void))strtoul(getenv("HAZARD_CONSTRUCTOR"), 0, 10);
    f();
}
"#;

fn main() {
    let folder = env::temp_dir().join(format!("gosched-hazard-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (source, library) = (folder.join("begin.c"), folder.join("libbegin.so"));
    fs::write(&source, SOURCE).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    if !cc.status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no C compiler `cc`");
    }
    let function = (constructor as *const ()).addr().to_string();
    // SAFETY: there is no other thread yet.
    unsafe { env::set_var("HAZARD_CONSTRUCTOR", function) };
    // SAFETY: as above.
    unsafe { env::set_var("HAZARD_LIBRARY", library) };
    stay_on_one_cpu();
    load();
}

/// New threads have to wait for it then, the monitor's among them.
fn stay_on_one_cpu() {
    // SAFETY: all zeroes is the empty set.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: no memory is passed.
    let cpu = unsafe { libc::sched_getcpu() };
    // SAFETY: a set of ours.
    unsafe { libc::CPU_SET(cpu as usize, &mut cpus) };
    // SAFETY: reads the set, whose size is stated.
    unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &cpus) };
}

/// On the main thread, which becomes a machine without a new thread.
#[gosched::main]
fn load() {
    let library = env::var_os("HAZARD_LIBRARY").expect("set above").into_encoded_bytes();
    let library = CString::new(library).expect("no zero in it");
    // SAFETY: a terminated path; the constructor is the one below.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "the library can be loaded");
    println!("forced={}", runtime::preemptions().forced);
    let folder = env::temp_dir().join(format!("gosched-hazard-{}", std::process::id()));
    let _ = fs::remove_dir_all(folder);
}

extern "C" fn constructor() {
    let (mut reader, mut writer) = pipe().expect("a pipe");
    let _writes = go(move || writer.write_all(&[7]).expect("there is room"));
    let mut byte = [0];
    reader.read_exact(&mut byte).expect("a byte comes");
    println!("byte={}", byte[0]);
}
