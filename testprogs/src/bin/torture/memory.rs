//! Memory that one goroutine allocates and another one frees.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use testprogs::random::Random;

/// Words that all follow from the first.
struct Block(Vec<u64>);

impl Block {
    fn new(random: &mut Random) -> Block {
        let words = match random.below(16) {
            0 => 20_000,
            1..4 => 2_000,
            _ => 100,
        };
        let (first, count) = (random.bits(), 1 + random.below(words));
        Block((0..count).map(|i| first.wrapping_add(i)).collect())
    }

    fn check(&self) {
        let first = self.0[0];
        let right = self.0.iter().zip(0..).all(|(word, i)| *word == first.wrapping_add(i));
        assert!(right, "a block of {} words has changed", self.0.len());
    }
}

static BOARD: [Mutex<Option<Block>>; 128] = [const { Mutex::new(None) }; 128];

fn swap(place: usize, block: Option<Block>) -> Option<Block> {
    let mut held = BOARD[place].lock().expect("nobody panics with it");
    std::mem::replace(&mut held, block)
}

/// Puts blocks where others find them, and checks and frees those that lay there.
pub(crate) fn exchange(random: &mut Random) {
    for _ in 0..random.below(40) {
        let place = random.below(BOARD.len() as u64) as usize;
        let mut block = Block::new(random);
        if random.below(4) == 0 {
            // Moves to another size.
            let (next, more) = (block.0[0].wrapping_add(block.0.len() as u64), random.below(3_000));
            block.0.extend((0..more).map(|i| next.wrapping_add(i)));
            block.check();
        }
        if let Some(found) = swap(place, Some(block)) {
            found.check();
        }
    }
}

/// All blocks that are left.
pub(crate) fn check_all() {
    let left = (0..BOARD.len()).filter_map(|place| swap(place, None));
    assert!(left.inspect(Block::check).count() > 0, "nobody exchanged blocks");
}

/// Many small allocations of a goroutine's own.
pub(crate) fn collections(random: &mut Random) {
    let numbers: Vec<_> = (0..random.below(300)).map(|_| random.bits()).collect();
    let tree: BTreeMap<_, _> = numbers.iter().map(|n| (*n, n.to_string())).collect();
    let map: HashMap<_, _> = numbers.iter().map(|n| (n.to_string(), *n)).collect();
    for (number, text) in &tree {
        assert_eq!(map.get(text), Some(number));
    }
    assert!(tree.keys().zip(tree.keys().skip(1)).all(|(a, b)| a < b));
    assert_eq!(tree.len(), map.len());
}
