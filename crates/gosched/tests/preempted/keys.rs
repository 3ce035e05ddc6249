//! The rights of protection keys belong to the goroutine.

use crate::child::in_child;
use gosched::{go, run, runtime, thread};
use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn pkru() -> u32 {
    let value: u32;
    // SAFETY: called only where protection keys are to be had.
    unsafe { asm!("rdpkru", in("ecx") 0, out("eax") value, out("edx") _, options(nostack)) };
    value
}

fn set_pkru(value: u32) {
    // SAFETY: as above; only rights of a key that the test has made are changed.
    unsafe { asm!("wrpkru", in("ecx") 0, in("eax") value, in("edx") 0, options(nostack)) };
}

unsafe extern "C" {
    fn pkey_alloc(flags: u32, rights: u32) -> i32;
}

#[test]
fn rights_follow_the_goroutine() {
    in_child("procs=2,slice=100us", "keys::rights_follow_the_goroutine", || {
        const ACCESS_DISABLED: u32 = 1;
        // SAFETY: no memory is passed.
        let key = unsafe { pkey_alloc(0, ACCESS_DISABLED) };
        if key < 0 {
            let why = std::io::Error::last_os_error();
            return println!("SKIPPED: no protection keys here: {why}");
        }
        static STOP: AtomicBool = AtomicBool::new(false);
        let rights = 3_u32 << (2 * key);
        run(move || {
            let closed = pkru();
            let others: Vec<_> = (0..4)
                .map(|_| {
                    go(move || {
                        while !STOP.load(SeqCst) {
                            assert_eq!(pkru(), closed);
                            thread::yield_now();
                        }
                    })
                })
                .collect();
            set_pkru(closed & !rights);
            let before = runtime::preemptions().in_place;
            while runtime::preemptions().in_place < before + 100 {
                assert_eq!(pkru(), closed & !rights);
                (0..20_000).for_each(|_| std::hint::spin_loop());
                thread::yield_now();
                assert_eq!(pkru(), closed & !rights);
            }
            set_pkru(closed);
            STOP.store(true, SeqCst);
            others.into_iter().for_each(|o| o.join().unwrap());
        });
    });
}
