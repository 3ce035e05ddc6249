use super::{Entry, Heap, Hook, Kind};
use gosched_base::Rng;

/// What is in the heap, in the order in which it leaves.
fn drain(heap: &mut Heap, hooks: &[Hook]) -> Vec<(u64, usize)> {
    let mut order = Vec::new();
    while let Some(first) = heap.first() {
        let number = hooks.iter().position(|hook| std::ptr::eq(hook, first.hook()));
        order.push((first.when, number.expect("a hook of ours")));
        heap.pop();
    }
    order
}

fn hooks(count: usize) -> Vec<Hook> {
    (0..count).map(|_| Hook::new(Kind::Waiter)).collect()
}

/// Half of the entries know their place; some of these leave or move.
#[test]
fn entries_leave_in_order_whatever_happened_to_others() {
    let hooks = hooks(1000);
    let mut rng = Rng::new(7);
    let mut heap = Heap::new();
    let mut expected = Vec::new();
    for (number, hook) in hooks.iter().enumerate() {
        let when = 1000 + rng.next_u64() % 500;
        let stays = number % 2 == 0;
        let entry = if stays { Entry::that_stays(when, hook) } else { Entry::new(when, hook) };
        // SAFETY: the hooks outlive the heap.
        unsafe { heap.push(entry) };
        expected.push((when, number));
    }
    for (number, hook) in hooks.iter().enumerate().filter(|(number, _)| number % 2 == 1) {
        match number % 3 {
            0 => {
                heap.remove(hook);
                expected[number].0 = 0;
            }
            1 => {
                let earlier = 500 + rng.next_u64() % 1000;
                assert_eq!(heap.advance(hook, earlier), earlier < expected[number].0);
                expected[number].0 = expected[number].0.min(earlier);
            }
            _ => {}
        }
    }
    expected.retain(|(when, _)| *when != 0);
    expected.sort_unstable();
    let mut left = drain(&mut heap, &hooks);
    assert!(left.is_sorted_by_key(|(when, _)| *when));
    left.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn the_first_can_be_delayed() {
    let hooks = hooks(5);
    let mut heap = Heap::new();
    for (hook, when) in hooks.iter().zip([10, 20, 30, 40, 50]) {
        // SAFETY: the hooks outlive the heap.
        unsafe { heap.push(Entry::new(when, hook)) };
    }
    heap.delay_first(35);
    assert_eq!(drain(&mut heap, &hooks), [(20, 1), (30, 2), (35, 0), (40, 3), (50, 4)]);
}
