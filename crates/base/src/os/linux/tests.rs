use super::{gettid, is_thread};
use std::thread;

#[test]
#[cfg_attr(miri, ignore = "Miri has no kernel")]
fn a_thread_is_there_until_it_ends() {
    let tid = thread::spawn(|| {
        assert!(is_thread(gettid()));
        gettid()
    });
    // `join` waits for the kernel's word that the thread has let go of its memory, which comes a
    // little before the thread's number goes.
    let tid = tid.join().expect("no panic");
    while is_thread(tid) {
        thread::yield_now();
    }
}

/// What is refused is no answer: whoever takes it for the thread's end frees a stack that is used.
#[test]
#[cfg_attr(miri, ignore = "Miri has no kernel")]
fn a_thread_that_may_not_be_signalled_is_there_all_the_same() {
    thread::spawn(|| {
        refuse_here(libc::SYS_tgkill);
        assert!(is_thread(gettid()));
        let tid = thread::spawn(gettid).join().expect("no panic");
        while is_thread(tid) {
            thread::yield_now();
        }
    })
    .join()
    .expect("no panic");
}

/// From here on the call fails in this thread, and in threads that it makes.
fn refuse_here(call: i64) {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, the call's number at offset 0
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let op = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut filter = [
        op(LOAD, 0, 0),
        op(IF_EQUAL, 1, call as u32),
        op(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        op(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the kernel copies the program.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
