//! Thread-locals of Rust's and of libc's.

use crate::pulse;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::thread::ThreadId;
use testprogs::random::Random;

std::thread_local! {
    static NUMBERS: RefCell<HashMap<u64, u64>> = RefCell::default();
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// What the numbers must come from, and who they belong to.
    static DICE: RefCell<(Random, Option<ThreadId>)> = RefCell::new((Random::new(1), None));
}

/// A map, a counter and random numbers that no other goroutine may touch.
pub(crate) fn maps(random: &mut Random) {
    let (before, me, seed) = (COUNT.get(), std::thread::current().id(), random.bits());
    DICE.with_borrow_mut(|(dice, owner)| {
        assert_eq!(*owner.get_or_insert(me), me, "another thread's thread-local");
        *dice = Random::new(seed);
    });
    let mut expected = Random::new(seed);
    let rounds = random.below(100);
    for i in 0..rounds {
        COUNT.set(COUNT.get() + 1);
        assert_eq!(COUNT.get(), before + i + 1);
        let number = DICE.with_borrow_mut(|(dice, _)| dice.bits());
        assert_eq!(number, expected.bits());
        NUMBERS.with_borrow_mut(|numbers| {
            numbers.insert(number % 64, number);
            pulse::compute(1, number);
            assert_eq!(numbers.get(&(number % 64)), Some(&number));
            assert!(numbers.iter().all(|(key, value)| value % 64 == *key));
        });
    }
    assert_eq!(std::thread::current().id(), me);
}

/// libc's `errno`.
pub(crate) fn errno(random: &mut Random) {
    for _ in 0..random.below(20) {
        let code = 1 + random.below(130) as i32;
        // SAFETY: this thread's.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: valid as long as the thread lives.
        unsafe { place.write(code) };
        pulse::compute(3, 1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(code));
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::close(-1) }, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
    }
}
