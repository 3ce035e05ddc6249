//! Tests of magazines by themselves; that tasks use them is tested where goroutines run.

use super::{Blocks, DEPOT_MAX, DEPOTS, KEPT_MAX, Magazine, ROUNDS, Size, Stack, allocate};
use gosched_base::Lock;
use std::alloc::Layout;
use std::collections::HashSet;
use std::ptr::NonNull;

const SIZE: Size = Size::Large;

fn depot() -> &'static Lock<Stack> {
    &DEPOTS[SIZE as usize]
}

/// Magazines that are kept, and blocks in the loaded one.
fn left_in(blocks: &Blocks) -> usize {
    let own = &blocks.0[SIZE as usize];
    own.kept.count + own.loaded.count
}

fn give(blocks: &mut Blocks, block: NonNull<u8>) -> bool {
    // SAFETY: from `allocate` or `take`, and not used any more.
    match unsafe { blocks.give(block, SIZE) } {
        None => true,
        Some(surplus) => {
            surplus.free();
            false
        }
    }
}

#[test]
fn a_task_gets_the_smallest_block_that_it_fits_into() {
    let of = |bytes, align| Size::of(Layout::from_size_align(bytes, align).expect("a layout"));
    assert_eq!([of(40, 8), of(56, 16)], [Some(Size::Small); 2]);
    assert_eq!([of(57, 1), of(120, 16)], [Some(Size::Large); 2]);
    assert_eq!([of(121, 1), of(32, 32)], [None; 2]);
    assert!(Size::ALL.iter().all(|size| Size::of(size.layout()) == Some(*size)));
}

/// One test, since the depot is one.
#[test]
fn blocks_come_back_once_and_surplus_goes() {
    let mut giver = Blocks::EMPTY;
    let mut taker = Blocks::EMPTY;
    assert!(giver.take(SIZE).is_none());
    let local = (1 + KEPT_MAX) * ROUNDS;
    let all = local + DEPOT_MAX * ROUNDS;
    let mut given = HashSet::new();
    for _ in 0..all {
        let block = allocate(SIZE.layout());
        given.insert(block);
        assert!(give(&mut giver, block));
    }
    assert_eq!(depot().lock().count, DEPOT_MAX);
    // One more pushes out a magazine.
    assert!(!give(&mut giver, allocate(SIZE.layout())));
    assert_eq!(depot().lock().count, DEPOT_MAX);
    // Another processor gets what is in the depot, each block once.
    let mut taken = HashSet::new();
    while let Some(block) = taker.take(SIZE) {
        assert!(taken.insert(block), "twice");
    }
    assert_eq!((taken.len(), depot().lock().count), (DEPOT_MAX * ROUNDS, 0));
    assert!(taken.is_subset(&given));
    for block in taken {
        assert!(give(&mut taker, block));
    }
    // Everything goes when the world is stopped, magazines that are not full as well.
    let last = giver.take(SIZE).expect("it has a thousand");
    giver.flush();
    taker.flush();
    assert_eq!(left_in(&giver) + left_in(&taker), 0);
    assert!(depot().lock().count > DEPOT_MAX, "what is flushed is not refused");
    super::give_back();
    assert_eq!(depot().lock().count, 0);
    assert!(taker.take(SIZE).is_none() && giver.take(SIZE).is_none());
    // New ones are kept whatever there is, and none is lost.
    for _ in 0..2 {
        let mut new = Magazine::EMPTY;
        // SAFETY: with the size's layout, and nobody's.
        (0..3).for_each(|_| unsafe { new.push(allocate(SIZE.layout())) });
        giver.load(new, SIZE);
    }
    assert_eq!(
        std::iter::from_fn(|| giver.take(SIZE).map(|block| give(&mut taker, block))).count(),
        6
    );
    give(&mut taker, last);
    taker.flush();
    super::give_back();
}
