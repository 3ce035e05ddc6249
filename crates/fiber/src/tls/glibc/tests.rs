//! Tests that look into libc: the list of threads, and what a block is made of.

use super::Libc;
use crate::fiber::Fiber;
use crate::host;
use crate::stack::Class;
use crate::tls::{self, Kind};

fn libc() -> &'static Libc {
    tls::init(None, None);
    &tls::chosen().2
}

/// The control blocks between the ends, in libc's order. The rest of the list is libc's, whose
/// lock is private, and other tests' threads come and go there.
fn between(ends: super::template::Ends, list_offset: usize) -> Vec<usize> {
    let _held = super::list::LIST.lock();
    let word = |address: usize| {
        // SAFETY: a link of a node between the ends: nobody writes it without the lock (I1).
        unsafe { (address as *const usize).read_volatile() }
    };
    let mut all = Vec::new();
    let mut node = ends.first;
    loop {
        let next = word(node);
        assert_eq!(word(next + 8), node, "both directions agree");
        if next == ends.second {
            return all;
        }
        all.push(next - list_offset);
        assert!(all.len() < 100_000, "a ring without end");
        node = next;
    }
}

#[test]
fn our_blocks_are_in_libcs_list_between_the_ends() {
    let libc = libc();
    if tls::kind() != Kind::Template {
        println!("SKIPPED: blocks are not linked by us: {:?}", libc.defect);
        return;
    }
    let (_, ends) = libc.template.as_ref().expect("the kind says so");
    let offset = libc.symbols.list.expect("the template needs it").offset;
    let fibers: Vec<_> = (0..50).map(|_| Fiber::make(Class::SMALL).expect("memory")).collect();
    let ours: Vec<usize> = fibers.iter().filter_map(Fiber::block).map(|b| b.tcb()).collect();
    let all = between(*ends, offset);
    for tcb in &ours {
        assert_eq!(all.iter().filter(|it| *it == tcb).count(), 1);
    }
    // Every other one leaves; the rest stays reachable.
    let mut gone = Vec::new();
    for (i, fiber) in fibers.into_iter().enumerate() {
        if i % 2 == 0 {
            // SAFETY: nothing ever ran on it.
            gone.push(unsafe { fiber.destroy() }.expect("a template's block can be destroyed"));
        }
    }
    let all = between(*ends, offset);
    for (i, tcb) in ours.iter().enumerate() {
        assert_eq!(all.contains(tcb), i % 2 == 1);
    }
    assert!(tls::wait_for_walkers());
    for remains in gone {
        // SAFETY: the walkers have been waited for.
        unsafe { remains.release() };
    }
}

/// Word by word: a block that was made differs from a real thread's only where it must.
#[test]
fn a_made_block_is_like_a_threads() {
    let libc = libc();
    if tls::kind() != Kind::Template {
        println!("SKIPPED: {:?}", libc.defect);
        return;
    }
    let tcb_bytes = libc.sizes().expect("known, since there are blocks").0;
    let fibers = [0, 1].map(|_| Fiber::make(Class::SMALL).expect("memory"));
    let [a, b] = fibers.each_ref().map(|f| f.block().expect("a block").tcb());
    // SAFETY: inside the control blocks.
    let word = |tcb: usize, i: usize| unsafe { ((tcb + i * 8) as *const usize).read_volatile() };
    let differing = (0..tcb_bytes / 8).filter(|&i| {
        let (x, y) = (word(a, i), word(b, i));
        x != y && x.wrapping_sub(a) != y.wrapping_sub(b)
    });
    // The vector, two links, the number, the stack's start and size.
    assert!(differing.count() <= 6);
    let own = host::current_block();
    // SAFETY: the running thread's.
    let guard = unsafe { ((own + 0x28) as *const usize).read_volatile() };
    assert_eq!(word(a, 5), guard, "the stack protector's value");
}

/// Without the loader's table each end of a goroutine compares what libraries may have left. That is
/// slower, so it should not happen unnoticed.
#[test]
fn a_module_that_comes_later_would_be_seen() {
    let libc = libc();
    let Ok(blocks) = &libc.blocks else {
        println!("SKIPPED: {:?}", libc.defect);
        return;
    };
    assert!(blocks.modules.are_all_known(), "the loader's table is not as it is understood");
}
