use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::thread;

use super::bitmap::Bitmap;
use super::guard::parse_decimal;
use super::sys::PAGE;
use super::*;

const MIB: usize = 1 << 20;

/// Mappings allowed to a depot for which they do not matter.
const PLENTY: usize = 60_000;

fn write_at(address: usize) {
    // SAFETY: tests pass addresses inside stacks that they own.
    unsafe { ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(7) };
}

fn read_at(address: usize) -> u64 {
    // SAFETY: tests pass addresses inside stacks that they own.
    unsafe { ptr::with_exposed_provenance::<u64>(address).read_volatile() }
}

/// Whether the page at `address` is present, by the kernel's word.
fn is_present(address: usize) -> bool {
    let mut flag = 0;
    let page: *mut libc::c_void = ptr::with_exposed_provenance_mut(address & !(PAGE - 1));
    // SAFETY: `flag` has room for the one page asked about.
    assert_eq!(unsafe { libc::mincore(page, PAGE, &mut flag) }, 0);
    flag & 1 == 1
}

/// Whether the kernel can read at `address` on our behalf: tells guards without a fault.
fn is_readable(address: usize) -> bool {
    let (reader, writer) = std::io::pipe().unwrap();
    let byte: *const libc::c_void = ptr::with_exposed_provenance(address);
    // SAFETY: the kernel reads the byte and reports EFAULT where it may not.
    let count = unsafe { libc::write(writer.as_raw_fd(), byte, 1) };
    drop(reader);
    count == 1
}

#[test]
fn guards_end_at_the_limit_and_survive_a_trim() {
    static MARKED: Depot = Depot::restricted(GuardKind::Marker, 64 * MIB, PLENTY);
    static PROTECTED: Depot = Depot::restricted(GuardKind::Protect, 64 * MIB, PLENTY);
    let depots: &[&'static Depot] = match GuardKind::detect() {
        GuardKind::Marker => &[&MARKED, &PROTECTED],
        _ => &[&PROTECTED],
    };
    for depot in depots {
        for _ in 0..2 {
            let stack = depot.alloc(Class::DEFAULT).unwrap();
            assert!(is_readable(stack.limit()));
            assert!(is_readable(stack.top() - 1));
            assert!(!is_readable(stack.limit() - 1));
            assert!(!is_readable(stack.guard().start));
            depot.free(stack);
            assert_eq!(depot.trim(Class::DEFAULT, 0), 1);
        }
    }
    assert_eq!(MARKED.stats().guard_maps, 0);
}

#[test]
fn stacks_made_ready_together_have_guards_and_pages() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Marker, 128 * MIB, PLENTY);
    const COUNT: usize = 150;
    let top_bytes = PAGE + 1;
    let mut ahead = Ahead::of(&DEPOT, Class::DEFAULT, COUNT, top_bytes);
    let Some(first) = ahead.next() else {
        println!("SKIPPED: this kernel has no markers, or takes no ranges (Linux 6.14)");
        assert_eq!(DEPOT.stats().live, 0, "what was taken came back");
        return;
    };
    let mut all = vec![first];
    all.extend(std::iter::from_fn(|| ahead.next()));
    assert_eq!(all.len(), COUNT);
    for (stack, is_zeroed) in &all {
        assert!(!is_readable(stack.limit() - 1) && !is_readable(stack.guard().start));
        assert!(is_present(stack.top() - 1) && is_present(stack.top() - PAGE - 1));
        assert!(!is_present(stack.top() - 2 * PAGE - 1), "no more than was asked for");
        assert!(*is_zeroed && read_at(stack.top() - 8) == 0);
        write_at(stack.top() - 8);
    }
    let tops: std::collections::HashSet<_> = all.iter().map(|(stack, _)| stack.top()).collect();
    assert_eq!(tops.len(), COUNT, "each once");
    // Those whose pages went have their guards, and may have failed to lose their contents.
    all.into_iter().for_each(|(stack, _)| DEPOT.free(stack));
    assert_eq!(DEPOT.trim(Class::DEFAULT, 3), COUNT - 3);
    let mut again = Ahead::of(&DEPOT, Class::DEFAULT, 10, top_bytes);
    let (stack, is_zeroed) = again.next().expect("some are idle");
    assert!(!is_zeroed && !is_readable(stack.limit() - 1) && is_present(stack.top() - PAGE - 1));
    drop(again);
    assert_eq!(DEPOT.stats().live, 1, "the others came back");
    DEPOT.free(stack);
}

#[test]
fn stacks_with_other_guards_are_not_made_ready_together() {
    static PROTECTED: Depot = Depot::restricted(GuardKind::Protect, 64 * MIB, PLENTY);
    static CHECKED: Depot = Depot::restricted(GuardKind::Canary, 64 * MIB, PLENTY);
    for depot in [&PROTECTED, &CHECKED] {
        assert!(Ahead::of(depot, Class::SMALL, 20, 2 * PAGE).next().is_none());
        assert_eq!(depot.stats().live, 0);
        let stack = depot.alloc(Class::SMALL).unwrap();
        depot.free(stack);
    }
    assert!(Ahead::of(&PROTECTED, Class::for_bytes(100 * MIB).unwrap(), 2, 1).next().is_none());
}

#[test]
fn arenas_are_opened_by_ever_larger_chunks() {
    let bytes = |class: Class, open: usize| {
        super::arena::chunk_slots(class, (open / class.stride()) as u32) as usize * class.stride()
    };
    assert_eq!(bytes(Class::SMALL, 0), 16 * MIB);
    assert_eq!(bytes(Class::SMALL, 32 * MIB), 16 * MIB);
    assert_eq!(bytes(Class::SMALL, 400 * MIB), 100 * MIB);
    assert_eq!(bytes(Class::SMALL, 60 << 30), 1 << 30);
    assert_eq!(super::arena::chunk_slots(Class::MIB_64, 0), 1);
}

#[test]
fn classes_serve_the_smallest_fit() {
    let cases = [
        (0, Class::SMALL),
        (64 << 10, Class::SMALL),
        ((64 << 10) + 1, Class::DEFAULT),
        (192 << 10, Class::DEFAULT),
        (Class::DEFAULT.usable_bytes() + 1, Class::MIB_1),
        (8 * MIB, Class::MIB_8),
        (64 * MIB, Class::MIB_64),
    ];
    for (bytes, class) in cases {
        assert_eq!(Class::for_bytes(bytes), Some(class), "{bytes} bytes");
    }
    assert_eq!(Class::for_bytes(100 * MIB).map(Class::usable_bytes), Some(128 * MIB));
    assert_eq!(Class::for_bytes(64 << 30).map(Class::usable_bytes), Some(64 << 30));
    assert_eq!(Class::for_bytes((64 << 30) + 1), None);
}

#[test]
fn every_class_gives_a_writable_stack_with_a_guard_below() {
    for class in Class::all() {
        let stack = alloc(class).unwrap();
        assert_eq!(stack.top() - stack.limit(), class.usable_bytes());
        assert_eq!(stack.guard().end, stack.limit());
        assert!(stack.top().is_multiple_of(PAGE));
        write_at(stack.top() - 8);
        write_at(stack.limit());
        free(stack);
    }
}

#[test]
fn the_stack_freed_last_is_taken_first() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Protect, 64 * MIB, PLENTY);
    let (a, b) = (DEPOT.alloc(Class::SMALL).unwrap(), DEPOT.alloc(Class::SMALL).unwrap());
    let (a_top, b_top) = (a.top(), b.top());
    DEPOT.free(a);
    DEPOT.free(b);
    let (first, second) = (DEPOT.alloc(Class::SMALL).unwrap(), DEPOT.alloc(Class::SMALL).unwrap());
    assert_eq!((first.top(), second.top()), (b_top, a_top));
    DEPOT.free(first);
    DEPOT.free(second);
}

#[test]
fn slots_are_found_by_address_and_nothing_else_is() {
    let stack = alloc(Class::DEFAULT).unwrap();
    let cases = [
        (stack.top() - 1, Some(false)),
        (stack.limit(), Some(false)),
        (stack.limit() - 1, Some(true)),
        (stack.guard().start, Some(true)),
        (&raw const stack as usize, None),
        (0, None),
        (usize::MAX, None),
    ];
    for (address, in_guard) in cases {
        let found = slot_of(address);
        assert_eq!(found.as_ref().map(SlotInfo::in_guard), in_guard, "{address:#x}");
        if let Some(slot) = found {
            assert_eq!((slot.limit(), slot.top()), (stack.limit(), stack.top()));
            assert_eq!((slot.guard(), slot.class()), (stack.guard(), stack.class()));
        }
    }
    free(stack);
}

#[test]
fn a_full_arena_is_followed_by_another() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Canary, MIB, PLENTY);
    let stacks: Vec<_> = (0..20).map(|_| DEPOT.alloc(Class::DEFAULT).unwrap()).collect();
    let mut tops: Vec<_> = stacks.iter().map(Stack::top).collect();
    tops.sort_unstable();
    tops.dedup();
    assert_eq!(tops.len(), 20);
    assert_eq!(DEPOT.stats().live, 20);
    assert_eq!(DEPOT.stats().reserved_bytes, 20 * Class::DEFAULT.stride());
    stacks.into_iter().for_each(|stack| DEPOT.free(stack));
    assert_eq!(DEPOT.stats().live, 0);
    assert_eq!(DEPOT.stats().idle_hot, 20);
}

#[test]
fn a_cache_is_bounded_and_returns_everything() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Canary, 64 * MIB, PLENTY);
    let mut cache = Cache::of(&DEPOT);
    let stacks: Vec<_> = (0..100).map(|_| cache.alloc(Class::DEFAULT).unwrap()).collect();
    let last = stacks.last().unwrap().top();
    for stack in stacks {
        cache.free(stack);
        assert!(cache.len(Class::DEFAULT) <= 32);
    }
    assert_eq!(DEPOT.stats().idle_hot, 100 - cache.len(Class::DEFAULT));
    let hottest = cache.alloc(Class::DEFAULT).unwrap();
    assert_eq!(hottest.top(), last);
    cache.free(hottest);
    drop(cache);
    assert_eq!(
        DEPOT.stats(),
        Stats { idle_hot: 100, reserved_bytes: 64 * MIB, ..Stats::default() }
    );
}

#[test]
fn a_refill_keeps_the_hottest_on_top() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Canary, 64 * MIB, PLENTY);
    let stacks: Vec<_> = (0..20).map(|_| DEPOT.alloc(Class::SMALL).unwrap()).collect();
    let tops: Vec<_> = stacks.iter().map(Stack::top).collect();
    stacks.into_iter().for_each(|stack| DEPOT.free(stack));
    let mut cache = Cache::of(&DEPOT);
    for top in tops.iter().rev() {
        let stack = cache.alloc(Class::SMALL).unwrap();
        assert_eq!(stack.top(), *top);
        // Leaked on purpose: giving it back would change the order.
        let _ = stack;
    }
}

#[test]
fn trim_drops_pages_keeps_the_hottest_and_the_slots_stay_usable() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Protect, 64 * MIB, PLENTY);
    let mut stacks: Vec<_> = (0..64).map(|_| DEPOT.alloc(Class::SMALL).unwrap()).collect();
    stacks.iter().for_each(|stack| write_at(stack.top() - 8));
    let tops: Vec<_> = stacks.iter().map(Stack::top).collect();
    // Every second one first, so that neighbours lie apart in the list.
    let kept_live = stacks.remove(10);
    let (odd, even): (Vec<_>, Vec<_>) =
        stacks.into_iter().enumerate().partition(|(index, _)| index % 2 == 1);
    odd.into_iter().chain(even).for_each(|(_, stack)| DEPOT.free(stack));

    assert_eq!(DEPOT.trim(Class::SMALL, 3), 60);

    let present = tops.iter().filter(|top| is_present(**top - 8)).count();
    assert_eq!(present, 4, "three kept hot, one live");
    assert_eq!(read_at(kept_live.top() - 8), 7);
    let stats = DEPOT.stats();
    assert_eq!((stats.live, stats.idle_hot, stats.idle_cold), (1, 3, 60));
    let again: Vec<_> = (0..63).map(|_| DEPOT.alloc(Class::SMALL).unwrap()).collect();
    again.iter().for_each(|stack| write_at(stack.limit()));
    let stats = DEPOT.stats();
    assert_eq!((stats.live, stats.idle_hot, stats.idle_cold), (64, 0, 0));
    again.into_iter().for_each(|stack| DEPOT.free(stack));
    DEPOT.free(kept_live);
}

#[test]
fn released_pages_read_as_zero_and_the_top_stays() {
    let stack = alloc(Class::DEFAULT).unwrap();
    let deep = stack.top() - 5 * PAGE;
    write_at(deep);
    write_at(stack.top() - 8);
    // SAFETY: nobody runs on the stack.
    unsafe { release_pages(&stack, PAGE) };
    assert!(!is_present(deep));
    assert_eq!(read_at(stack.top() - 8), 7);
    // SAFETY: nobody runs on the stack.
    unsafe { release_pages(&stack, usize::MAX - PAGE) };
    assert_eq!(read_at(stack.top() - 8), 7);
    free(stack);
}

#[test]
fn a_dedicated_stack_gives_its_pages_back_when_freed() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Marker, 64 * MIB, PLENTY);
    if GuardKind::detect() != GuardKind::Marker {
        DEPOT.choose_guard(GuardKind::Protect);
    }
    let class = Class::for_bytes(100 * MIB).unwrap();
    let stack = DEPOT.alloc(class).unwrap();
    let top = stack.top();
    write_at(top - 8);
    DEPOT.free(stack);
    assert!(!is_present(top - 8));
    let again = DEPOT.alloc(class).unwrap();
    assert_eq!(again.top(), top, "the mapping is reused");
    DEPOT.free(again);
}

#[test]
fn protected_guards_stop_at_the_limit_of_mappings_and_name_the_sysctl() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Protect, 64 * MIB, 160);
    let mut stacks = Vec::new();
    let error = loop {
        match DEPOT.alloc(Class::SMALL) {
            Ok(stack) => stacks.push(stack),
            Err(error) => break error,
        }
    };
    assert_eq!(stacks.len(), 75, "two mappings each, a sixteenth left for others");
    assert_eq!(error, StackError::MapLimit { limit: 160, needed: 320 });
    let text = error.to_string();
    assert!(text.contains("vm.max_map_count") && text.contains("320"), "{text}");
    assert_eq!(DEPOT.stats().live, 75, "the slot without a guard went back");
    // A stack that has its guard can be used again.
    DEPOT.free(stacks.pop().unwrap());
    stacks.push(DEPOT.alloc(Class::SMALL).unwrap());
    stacks.into_iter().for_each(|stack| DEPOT.free(stack));
}

#[test]
fn a_canary_is_intact_until_written_and_survives_a_trim() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Canary, 64 * MIB, PLENTY);
    let stack = DEPOT.alloc(Class::SMALL).unwrap();
    let limit = stack.limit();
    write_at(limit);
    DEPOT.free(stack);
    assert_eq!(DEPOT.trim(Class::SMALL, 0), 1);
    let stack = DEPOT.alloc(Class::SMALL).unwrap();
    assert_eq!(stack.limit(), limit);
    // SAFETY: `alloc` wrote the canary; the stack is ours.
    assert!(unsafe { guard::canary_intact(limit) });
    write_at(limit - 8);
    // SAFETY: as above.
    assert!(!unsafe { guard::canary_intact(limit) });
    // Not freed: that would end the process, which a child process tests.
    let _ = stack;
}

#[test]
fn many_threads_never_share_a_stack() {
    static DEPOT: Depot = Depot::restricted(GuardKind::Canary, 64 * MIB, PLENTY);
    let threads: Vec<_> = (0..4_u64)
        .map(|number| {
            thread::spawn(move || {
                let mut cache = Cache::of(&DEPOT);
                let mark = |stack: &Stack, value: u64| {
                    // SAFETY: the top word of a stack that this thread owns.
                    unsafe {
                        ptr::with_exposed_provenance_mut::<u64>(stack.top() - 8)
                            .write_volatile(value)
                    };
                };
                for round in 0..2_000 {
                    let held: Vec<_> = (0..round % 50)
                        .map(|_| cache.alloc(Class::SMALL).unwrap())
                        .inspect(|stack| mark(stack, number))
                        .collect();
                    for stack in held {
                        assert_eq!(read_at(stack.top() - 8), number);
                        cache.free(stack);
                    }
                    if round % 100 == 0 {
                        DEPOT.trim(Class::SMALL, 8);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(DEPOT.stats().live, 0);
}

#[test]
fn runs_of_bits_are_found_across_words() {
    static WORDS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    let map = Bitmap::new(&WORDS);
    [0, 1, 5, 62, 63, 64, 65, 191].into_iter().for_each(|bit| map.set(bit));
    let mut from = 0;
    let runs: Vec<_> = std::iter::from_fn(|| {
        let run = map.take_run(from)?;
        from = run.end;
        Some(run)
    })
    .collect();
    assert_eq!(runs, [0..2, 5..6, 62..66, 191..192]);
    assert_eq!(map.take_run(0), None, "runs are cleared as they are taken");
}

#[test]
fn decimals_are_read_up_to_the_first_other_byte() {
    assert_eq!(parse_decimal(b"65530\n"), Some(65_530));
    assert_eq!(parse_decimal(b"0"), Some(0));
    assert_eq!(parse_decimal(b"x"), None);
    assert_eq!(parse_decimal(b""), None);
    assert_eq!(parse_decimal(b"99999999999999999999999"), None);
}

/// What code has left behind goes, what it stands on stays.
#[test]
fn pages_below_suspended_code_are_given_back() {
    let stack = alloc(Class::DEFAULT).unwrap();
    // Whatever it was used for before may have been deeper.
    // SAFETY: no code is on that stack.
    unsafe { release_below(stack.top() - 8) };
    for page in 1..=20 {
        write_at(stack.top() - page * PAGE);
        write_at(stack.top() - page * PAGE + PAGE - 8);
    }
    // The red zone reaches into the next page.
    let sp = stack.top() - PAGE - 64;
    assert_eq!(resident_below(sp), 18 * PAGE);
    // SAFETY: no code is on that stack.
    unsafe { release_below(sp) };
    assert_eq!(resident_below(sp), 0);
    assert!(!is_present(stack.top() - 2 * PAGE - 8));
    assert_eq!(read_at(stack.top() - PAGE - 8), 7);
    assert_eq!(read_at(stack.top() - 2 * PAGE), 7);
    let local = 0;
    assert_eq!(resident_below((&raw const local).addr()), 0, "no slot");
    free(stack);
}

/// More ranges than go in one call, and one that the kernel refuses there because it is locked.
#[test]
fn pages_of_many_ranges_go_at_once() {
    let count = 2 * sys::RANGES_AT_ONCE + 10;
    let at = sys::map(2 * count * PAGE, sys::Access::ReadWrite).expect("memory");
    sys::forbid_huge_pages(at..at + 2 * count * PAGE);
    let ranges: Vec<_> = (0..count).map(|i| at + 2 * i * PAGE..at + (2 * i + 1) * PAGE).collect();
    (0..2 * count).for_each(|page| write_at(at + page * PAGE));
    let locked: *const libc::c_void = ptr::with_exposed_provenance(ranges[70].start);
    // SAFETY: no contents change.
    let is_locked = unsafe { libc::mlock(locked, PAGE) } == 0;
    // SAFETY: ours, and read below only to see that it is gone.
    unsafe { sys::drop_pages_of(&ranges) };
    for range in &ranges {
        assert_eq!(read_at(range.start), 0, "locked: {is_locked}");
        assert_eq!(read_at(range.end), 7, "what lies between stays");
    }
    // SAFETY: ours, and not used below.
    unsafe { sys::unmap(at..at + 2 * count * PAGE) };
}
