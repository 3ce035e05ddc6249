use super::Descriptor;

/// I2: an event that the kernel still holds for a file that is gone finds nobody.
#[test]
fn an_event_of_an_earlier_registration_is_stale() {
    let first = Descriptor::take().unwrap();
    let word = first.event_word();
    // SAFETY: from `event_word`.
    assert!(unsafe { Descriptor::of_event(word) }.is_some_and(|d| std::ptr::eq(d, first)));
    first.give();
    // SAFETY: as above.
    assert!(unsafe { Descriptor::of_event(word) }.is_none());
}

#[test]
fn one_that_is_taken_again_is_not_ready() {
    let first = Descriptor::take().unwrap();
    assert!(first.read.make_ready().is_none());
    first.give();
    // Other tests take some too; in the end this one comes again, or fresh ones do.
    for _ in 0..8 {
        let again = Descriptor::take().unwrap();
        assert!(!again.read.take());
    }
}

#[test]
fn each_is_taken_once() {
    let taken: Vec<_> = (0..2000).map(|_| Descriptor::take().unwrap()).collect();
    let mut addresses: Vec<_> = taken.iter().map(|d| std::ptr::from_ref(*d).addr()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), taken.len());
    taken.into_iter().for_each(Descriptor::give);
}
