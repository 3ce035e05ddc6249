use std::thread;

use crate::stack::{self, Class, slot_of};

use super::handler::overflowed;
use super::report::{identity_text, overflow_text};
use super::writer::Text;
use super::*;

#[test]
fn an_overflow_is_a_fault_in_the_guard_with_the_stack_pointer_near() {
    let stack = stack::alloc(Class::DEFAULT).unwrap();
    let guard = stack.guard();
    let cases = [
        ("push just below the limit", guard.end - 8, guard.end, true),
        ("a call deep in the guard", guard.end - 60_000, guard.end - 60_000, true),
        ("a large frame, its far end untouched", guard.end - 8, guard.start - 40_000, true),
        ("a stray pointer from far above", guard.start, stack.top() + (1 << 20), false),
        ("a stray pointer from another stack", guard.start, &raw const guard as usize, false),
        ("a fault in the usable part", stack.limit(), stack.limit(), false),
        ("nowhere near a slot", 0, guard.end, false),
    ];
    for (what, address, sp, expected) in cases {
        assert_eq!(overflowed(address, sp).is_some(), expected, "{what}");
    }
    stack::free(stack);
}

#[test]
fn the_report_is_in_gos_words() {
    let stack = stack::alloc(Class::SMALL).unwrap();
    let slot = slot_of(stack.limit() - 8).unwrap();
    let text = overflow_text(&slot, 0xc0de);
    assert_eq!(
        str::from_utf8(text.as_bytes()).unwrap(),
        format!(
            "runtime: goroutine stack exceeds 65536-byte limit\nruntime: sp=0xc0de \
             stack=[{:#x}, {:#x}]\nruntime: where so much is needed: \
             thread::Builder::stack_size, or GOSCHED=stack=1M\nfatal error: stack overflow\n\n",
            stack.limit(),
            stack.top(),
        )
    );
    stack::free(stack);
}

#[test]
fn goroutines_are_named_and_foreign_text_cannot_forge_lines() {
    let cases: [(Option<&'static [u8]>, &str); 3] = [
        (None, "goroutine 18446744073709551615 [running]:\n"),
        (Some(b"worker"), "goroutine 18446744073709551615 \"worker\" [running]:\n"),
        (Some(b"a\"\nb"), "goroutine 18446744073709551615 \"a??b\" [running]:\n"),
    ];
    for (name, expected) in cases {
        let text = identity_text(Identity { id: u64::MAX, name });
        assert_eq!(str::from_utf8(text.as_bytes()).unwrap(), expected);
    }
    let long: &'static [u8] = &[b'x'; 4_000];
    let text = identity_text(Identity { id: 1, name: Some(long) });
    assert!(text.as_bytes().ends_with(b"x\" [running]:\n"));
}

#[test]
fn numbers_have_no_leading_zeroes() {
    let mut text = Text::new();
    text.decimal(0).text(" ").decimal(10).text(" ").hex(0).text(" ").hex(usize::MAX);
    assert_eq!(text.as_bytes(), b"0 10 0x0 0xffffffffffffffff");
}

fn installed() -> (usize, usize) {
    // SAFETY: all zeroes is a value of this type.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: only asks; `stack` is valid for a write of its type.
    assert_eq!(unsafe { libc::sigaltstack(std::ptr::null(), &mut stack) }, 0);
    (stack.ss_sp.addr(), stack.ss_size)
}

#[test]
fn an_alternate_stack_is_large_and_the_one_before_comes_back() {
    thread::spawn(|| {
        let before = installed();
        let stack = alternate_stack_install().unwrap();
        let usable = stack.usable();
        assert_eq!(installed(), (usable.start, usable.len()));
        assert!(usable.len() >= 64 << 10);
        drop(stack);
        assert_eq!(installed(), before);
    })
    .join()
    .unwrap();
}
