//! Pages of dead descriptors that were given back to the system.
//!
//! A collection looks through the dead descriptors that processors have given up. Where all of a page
//! are among them the page goes, and its descriptors leave the list: their links go with it. What is
//! left is a bit for each such page. A page is zeroes when it is used again, like one that was never
//! used, and whoever still looks at one of its descriptors finds a goroutine of no number. The names
//! beside them go as well.
//!
//! Locks: one of its own, a leaf.

use super::{CHUNK, CHUNK_BYTES, CHUNKS, TABLE, USED};
use crate::goroutine::{GRef, Goroutine};
use crate::scheduler::SCHEDULER;
use gosched_base::Lock;
use gosched_runq::List;
use std::ops::Range;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed},
};

const PAGE_BYTES: usize = 4096;
/// Descriptors in a page.
const PER_PAGE: usize = PAGE_BYTES / size_of::<Goroutine>();
const PAGES_OF_CHUNK: usize = CHUNK / PER_PAGE;
const PAGES: usize = CHUNKS * PAGES_OF_CHUNK;
/// Fewer dead descriptors are left alone.
const MANY: usize = 1024;
/// Those that stay at hand while the others are looked through.
const KEPT: usize = 64;

/// One bit a page, counted as descriptors are.
struct Bare {
    words: [u64; PAGES / 64],
    /// No word before this one has a bit.
    first: usize,
}

static BARE: Lock<Bare> = Lock::new(Bare { words: [0; PAGES / 64], first: 0 });
/// How many there are. Written under the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Bare {
    fn set(&mut self, page: usize) {
        self.words[page / 64] |= 1 << (page % 64);
        self.first = self.first.min(page / 64);
        // ORDERING: Relaxed; a hint, and under the lock.
        COUNT.fetch_add(1, Relaxed);
    }

    /// The lowest one: chunks without huge pages come first.
    fn take(&mut self) -> Option<usize> {
        let bit = |word: usize| self.words[word] != 0;
        let word = (self.first..self.words.len()).find(|word| bit(*word))?;
        let page = word * 64 + self.words[word].trailing_zeros() as usize;
        self.words[word] &= self.words[word] - 1;
        self.first = word;
        // ORDERING: Relaxed; as in `set`.
        COUNT.fetch_sub(1, Relaxed);
        Some(page)
    }
}

/// Whether there are any; a hint.
pub(super) fn are_some() -> bool {
    // ORDERING: Relaxed; a hint.
    COUNT.load(Relaxed) > 0
}

/// Dead descriptors of a page that was given back, if there is one.
pub(crate) fn take_page() -> Option<List<GRef>> {
    // ORDERING: Relaxed; who misses one takes descriptors that were never used.
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    let page = BARE.lock().take()?;
    let mut dead = List::new();
    for index in page * PER_PAGE..(page + 1) * PER_PAGE {
        // By the bit nobody has it.
        dead.push_back(dead_descriptor(index));
    }
    Some(dead)
}

/// The descriptor of this number, which is the caller's, dead whatever it was.
fn dead_descriptor(index: usize) -> GRef {
    // SAFETY: inside a chunk that is there, and zeroes are valid in every field.
    let g = unsafe { GRef::from_address(descriptor(index)) };
    g.status.never_used();
    g
}

/// Where the descriptor of this number is. It was taken before.
fn descriptor(index: usize) -> *mut Goroutine {
    // ORDERING: Acquire pairs with `install`.
    TABLE[index / CHUNK].load(Acquire).wrapping_add(index % CHUNK)
}

/// Gives the memory of dead descriptors back, where whole pages of them are. Not inside the runtime.
pub(crate) fn give_back() {
    let dead = SCHEDULER.take_free_beyond(KEPT);
    if dead.len() < MANY {
        return SCHEDULER.give_free(dead);
    }
    let mut dead = dead.into_list();
    for index in take_rest_of_chunk() {
        dead.push_back(dead_descriptor(index));
    }
    let numbers = Numbers::new();
    // ORDERING: Relaxed; each of `dead` was taken before.
    let mut counts = vec![0; USED.load(Relaxed).div_ceil(PER_PAGE)];
    let (mut counted, mut rest) = (List::new(), List::new());
    while let Some(g) = dead.pop_front() {
        counts[numbers.page_of(g)] += 1;
        counted.push_back(g);
    }
    while let Some(g) = counted.pop_front() {
        // Those of whole pages are in no list any more.
        if counts[numbers.page_of(g)] < PER_PAGE {
            rest.push_back(g);
        }
    }
    let len = rest.len();
    SCHEDULER.give_free(rest.take(len));
    let mut page = 0;
    while page < counts.len() {
        let is_whole = |page: &usize| counts.get(*page) == Some(&PER_PAGE);
        let end_of_chunk = (page / PAGES_OF_CHUNK + 1) * PAGES_OF_CHUNK;
        let run = (page..end_of_chunk).take_while(is_whole).count();
        if run > 0 {
            give_back_pages(page..page + run);
        }
        page += run.max(1);
    }
}

/// The descriptors of the newest chunk that were never taken: taken by the caller. Of a huge page all
/// was made present when the first of them was.
fn take_rest_of_chunk() -> Range<usize> {
    // ORDERING: Relaxed; as in `fresh`.
    let used = USED.load(Relaxed);
    let end = used.next_multiple_of(CHUNK);
    // Whoever takes the first of a chunk maps it.
    if used <= CHUNK || descriptor(used - 1).is_null() {
        return 0..0;
    }
    // ORDERING: Relaxed for both; as in `fresh`. Failing, somebody has just taken one.
    match USED.compare_exchange(used, end, Relaxed, Relaxed) {
        Ok(_) => used..end,
        Err(_) => 0..0,
    }
}

/// All descriptors of `pages`, which lie in one chunk, are dead, and the caller's.
fn give_back_pages(pages: Range<usize>) {
    let (start, bytes) = (descriptor(pages.start * PER_PAGE), pages.len() * PAGE_BYTES);
    if drop_pages(start.cast(), bytes) {
        // Afterwards: whoever reads a name that is gone finds another number when it looks again.
        drop_pages(start.cast::<u8>().wrapping_add(CHUNK * size_of::<Goroutine>()), bytes);
        let mut bare = BARE.lock();
        pages.for_each(|page| bare.set(page));
        return;
    }
    // All stays as it was.
    let mut dead = List::new();
    for index in pages.start * PER_PAGE..pages.end * PER_PAGE {
        dead.push_back(dead_descriptor(index));
    }
    let len = dead.len();
    SCHEDULER.give_free(dead.take(len));
}

/// False if the system's pages are larger.
fn drop_pages(start: *mut u8, bytes: usize) -> bool {
    // SAFETY: the pages lie in one chunk, and nobody relies on what is there.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) == 0 }
}

/// Tells descriptors' numbers from their addresses.
struct Numbers {
    /// Chunks by address, which are multiples of their size.
    chunks: Vec<(usize, usize)>,
}

impl Numbers {
    fn new() -> Numbers {
        // ORDERING: Acquire pairs with `install`.
        let chunks = TABLE.iter().map(|chunk| chunk.load(Acquire).addr() / CHUNK_BYTES);
        let mut chunks: Vec<_> = chunks.enumerate().map(|(number, at)| (at, number)).collect();
        chunks.retain(|(at, _)| *at != 0);
        chunks.sort_unstable();
        Numbers { chunks }
    }

    fn page_of(&self, g: GRef) -> usize {
        let at = g.as_ptr().addr();
        let found = self.chunks.binary_search_by_key(&(at / CHUNK_BYTES), |(at, _)| *at);
        // Its chunk is older than the table that was read.
        let chunk = found.map_or(0, |found| self.chunks[found].1);
        (chunk * CHUNK + at % CHUNK_BYTES / size_of::<Goroutine>()) / PER_PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::Bare;

    #[test]
    fn the_lowest_page_comes_first_and_each_once() {
        let mut bare = Box::new(Bare { words: [0; super::PAGES / 64], first: 0 });
        let pages = [700, 3, 64, 65, 129, super::PAGES - 1];
        pages.iter().for_each(|page| bare.set(*page));
        let taken: Vec<_> = std::iter::from_fn(|| bare.take()).collect();
        assert_eq!(taken, [3, 64, 65, 129, 700, super::PAGES - 1]);
        bare.set(5);
        assert_eq!([bare.take(), bare.take()], [Some(5), None]);
    }
}
