//! What is read from, and changed in, an interrupted context.

use super::Interrupted;
use std::ffi::c_void;

/// Code that ends with a system call.
static CODE: [u8; 6] = [0x90, 0x90, 0x0f, 0x05, 0x90, 0x90];

/// A context with `pc` at `CODE[at]`.
fn context(at: usize, rax: i64) -> libc::ucontext_t {
    // SAFETY: all-zero is a valid context.
    let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = CODE[at..].as_ptr().addr() as i64;
    context.uc_mcontext.gregs[libc::REG_RAX as usize] = rax;
    context
}

fn interrupted(context: &mut libc::ucontext_t) -> Interrupted<'_> {
    // SAFETY: a context, which the result borrows.
    unsafe { Interrupted::new((&raw mut *context).cast::<c_void>()) }
}

fn registers(context: &libc::ucontext_t) -> (i64, i64) {
    let of = |register: i32| context.uc_mcontext.gregs[register as usize];
    (of(libc::REG_RIP), of(libc::REG_RAX))
}

#[test]
fn a_restart_becomes_an_error() {
    let mut context = context(2, libc::SYS_restart_syscall);
    let (pc, _) = registers(&context);
    assert!(interrupted(&mut context).forget_restart());
    assert_eq!(registers(&context), (pc + 2, i64::from(-libc::EINTR)));
    // Once only: it is behind the call now.
    assert!(!interrupted(&mut context).forget_restart());
}

#[test]
fn a_call_that_is_made_again_and_other_code_stay_as_they_are() {
    for (at, rax) in [(2, libc::SYS_read), (0, libc::SYS_restart_syscall), (4, 219)] {
        let mut context = context(at, rax);
        let before = registers(&context);
        assert!(!interrupted(&mut context).forget_restart());
        assert_eq!(registers(&context), before);
    }
}

#[test]
fn at_and_just_behind_a_call_is_in_it() {
    for (at, expected) in [(0, false), (2, true), (4, true), (1, false)] {
        let mut context = context(at, 0);
        assert_eq!(interrupted(&mut context).is_in_syscall(), expected, "at {at}");
    }
}

/// What lies before the first byte of a page may be nothing.
#[test]
fn at_the_start_of_a_page_nothing_before_it_is_read() {
    const PAGE: usize = 4096;
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let pages = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, access, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    // SAFETY: the first page of a mapping of ours, not used any more.
    assert_eq!(unsafe { libc::munmap(pages, PAGE) }, 0);
    let mut context = context(0, 0);
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = (pages.addr() + PAGE) as i64;
    assert!(!interrupted(&mut context).is_in_syscall());
    // SAFETY: the rest of it.
    assert_eq!(unsafe { libc::munmap(pages.wrapping_byte_add(PAGE), PAGE) }, 0);
}
