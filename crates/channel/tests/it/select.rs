//! Select.

use crate::support::{ALL, PAIRS, SHORT, go, ms, sleep};
use gosched_channel::{
    Receiver, RecvError, Select, SendError, Sender, after, bounded, never, select, select_biased,
    tick, unbounded,
};
use std::time::{Duration, Instant};

fn fail() -> u8 {
    panic!("no message")
}

#[test]
fn takes_what_is_ready() {
    for who in ALL {
        who.start(|| {
            let (s1, r1) = bounded(1);
            let (s2, r2) = bounded::<&str>(1);
            s1.send(1).unwrap();
            select! {
                recv(r1) -> message => assert_eq!(message, Ok(1)),
                recv(r2) -> _ => panic!(),
            }
            select! {
                recv(r1) -> _ => panic!(),
                send(s2, "two") -> sent => assert_eq!(sent, Ok(())),
                default => panic!(),
            }
            assert_eq!(r2.try_recv(), Ok("two"));
            drop(s1);
            select! {
                recv(r1) -> message => assert_eq!(message, Err(RecvError)),
                recv(r2) -> _ => panic!(),
            }
            drop(r2);
            select! {
                send(s2, "three") -> sent => assert_eq!(sent, Err(SendError("three"))),
                recv(never::<u8>()) -> _ => panic!(),
            }
        })
        .join();
    }
}

#[test]
fn waits_for_whoever_comes() {
    for (one, two) in PAIRS {
        for capacity in [Some(0), Some(1), None] {
            let (s1, r1) = capacity.map_or_else(unbounded, bounded);
            let (s2, r2) = capacity.map_or_else(unbounded, bounded);
            let (s3, r3) = bounded(0);
            let selector = one.start(move || {
                let mut sum = 0;
                for _ in 0..300 {
                    sum += select! {
                        recv(r1) -> n => n.unwrap(),
                        recv(r2) -> n => n.unwrap(),
                        send(s3, 100) -> sent => { sent.unwrap(); 0 }
                    };
                }
                sum
            });
            let other = two.start(move || {
                let mut sum = 0;
                for n in 0..100 {
                    s1.send(n).unwrap();
                    s2.send(n).unwrap();
                    sum += r3.recv().unwrap();
                }
                // With the ends, since closed channels are ready.
                (sum, s1, s2, r3)
            });
            assert_eq!(selector.join(), 2 * (0..100).sum::<i32>());
            assert_eq!(other.join().0, 10_000);
        }
    }
}

#[test]
fn selects_meet_selects() {
    for (one, two) in PAIRS {
        let (s1, r1) = bounded(0);
        let (s2, r2) = bounded(0);
        let sender = one.start(move || {
            (0..500).for_each(|n| {
                select! {
                    send(s1, n) -> sent => sent.unwrap(),
                    send(s2, n) -> sent => sent.unwrap(),
                }
            });
        });
        let receiver = two.start(move || {
            (0..500)
                .map(|_| {
                    select! {
                        recv(r1) -> n => n.unwrap(),
                        recv(r2) -> n => n.unwrap(),
                    }
                })
                .collect::<Vec<i32>>()
        });
        sender.join();
        assert_eq!(receiver.join(), (0..500).collect::<Vec<_>>());
    }
}

/// Each select begins where the last one ended, on the same stack, while the last one's commit may
/// still be at work.
#[test]
fn one_select_after_another() {
    for (one, two) in PAIRS {
        let (s, r) = bounded(0);
        let (_s2, r2) = bounded::<usize>(0);
        let count = if one == two { 20_000 } else { 2_000 };
        let sender = one.start(move || (0..count).for_each(|n| s.send(n).unwrap()));
        let receiver = two.start(move || {
            for n in 0..count {
                let mut select = Select::new();
                select.recv(&r);
                let received = match n % 3 {
                    0 => select.select().recv(&r),
                    1 => select_biased! {
                        recv(r) -> n => n,
                        recv(r2) -> n => n,
                        recv(r) -> n => n,
                        recv(never()) -> n => n,
                    },
                    _ => select! {
                        recv(r) -> n => n,
                        recv(r2) -> n => n,
                        recv(never()) -> n => n,
                    },
                };
                assert_eq!(received, Ok(n));
            }
        });
        sender.join();
        receiver.join();
    }
}

#[test]
fn a_select_does_not_meet_itself() {
    for who in ALL {
        who.start(|| {
            let (s, r) = bounded(0);
            let itself = select! {
                send(s, 1) -> _ => true,
                recv(r) -> _ => true,
                default(SHORT) => false,
            };
            assert!(!itself);
        })
        .join();
    }
}

#[test]
fn times_out() {
    for who in ALL {
        who.start(|| {
            let (_s, r) = unbounded::<u8>();
            let start = Instant::now();
            select! {
                recv(r) -> _ => panic!(),
                recv(never::<u8>()) -> _ => panic!(),
                default(ms(20)) => {}
            }
            select! {
                recv(r) -> _ => panic!(),
                recv(after(ms(20))) -> time => assert!(time.unwrap() >= start + ms(40)),
            }
            select! { default(ms(20)) => {} }
            assert!(start.elapsed() >= ms(60));
            assert_eq!(select! { default => 5 }, 5);
            let ticks = tick(ms(5));
            for _ in 0..3 {
                select! {
                    recv(ticks) -> time => assert!(time.is_ok()),
                    recv(r) -> _ => panic!(),
                    default(Duration::from_secs(3600)) => panic!(),
                }
            }
        })
        .join();
    }
}

#[test]
fn closing_wakes_selects() {
    for (one, two) in PAIRS {
        let (s1, r1) = bounded::<u8>(0);
        let (s2, r2) = bounded::<u8>(0);
        let selector = one.start(move || {
            select! {
                recv(r1) -> message => message.is_err(),
                send(s2, 1) -> _ => false,
            }
        });
        let closer = two.start(move || {
            sleep(SHORT);
            s1.close()
        });
        assert!(closer.join());
        assert!(selector.join());
        drop(r2);
    }
}

#[test]
fn the_message_is_made_only_if_it_is_sent() {
    let (s, r) = bounded(0);
    select! {
        send(s, fail()) -> _ => {}
        default => {}
    }
    let (full, _r) = bounded(1);
    full.send(String::new()).unwrap();
    let text = String::from("kept");
    let text = select! {
        send(full, text) -> _ => unreachable!(),
        recv(r) -> message => { message.unwrap(); unreachable!() }
        default => text,
    };
    assert_eq!(text, "kept");
    drop(s);
}

#[test]
fn bodies_may_use_the_ends() {
    let (s, r) = unbounded();
    s.send(1).unwrap();
    let mut r = r;
    for _ in 0..2 {
        select! {
            recv(r) -> message => if message.is_ok() { r = never(); },
            recv(never::<u8>()) -> _ => {}
            default => break,
        }
    }
    let (rs, mut option) = (&&r, Some(2));
    select! {
        recv(rs) -> _ => {}
        send(&s, option.take().unwrap()) -> sent => drop((sent, s)),
    }
    assert_eq!(option, None);
}

#[test]
fn control_flow_leaves_from_bodies() {
    fn find(r: &Receiver<u8>) -> Option<u8> {
        loop {
            select! {
                recv(r) -> message => match message {
                    Ok(7) => return Some(7),
                    Ok(_) => continue,
                    Err(_) => break,
                },
                recv(never::<u8>()) -> _ => (),
            }
        }
        None
    }
    let (s, r) = unbounded();
    [1, 2, 7].iter().for_each(|n| s.send(*n).unwrap());
    assert_eq!(find(&r), Some(7));
    drop(s);
    assert_eq!(find(&r), None);
}

#[test]
fn many_cases() {
    let ends: Vec<(Sender<usize>, Receiver<usize>)> = (0..10).map(|_| bounded(1)).collect();
    let r: Vec<_> = ends.iter().map(|(_, r)| r).collect();
    for (n, (s, _)) in ends.iter().enumerate() {
        s.send(n).unwrap();
        let received = select! {
            recv(r[0]) -> n => n, recv(r[1]) -> n => n, recv(r[2]) -> n => n,
            recv(r[3]) -> n => n, recv(r[4]) -> n => n, recv(r[5]) -> n => n,
            recv(r[6]) -> n => n, recv(r[7]) -> n => n, recv(r[8]) -> n => n,
            recv(r[9]) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
            recv(never()) -> n => n, recv(never()) -> n => n, recv(never()) -> n => n,
        };
        assert_eq!(received, Ok(n));
    }
}

#[test]
fn a_list_of_a_hundred() {
    for (one, two) in PAIRS {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..100).map(|_| bounded(0)).unzip();
        let selector = one.start(move || {
            let mut select = Select::new();
            receivers.iter().for_each(|r| {
                select.recv(r);
            });
            (0..100)
                .map(|_| {
                    let operation = select.select();
                    let index = operation.index();
                    operation.recv(&receivers[index]).unwrap()
                })
                .sum::<usize>()
        });
        let sender = two.start(move || {
            senders.iter().enumerate().rev().for_each(|(n, s)| s.send(n).unwrap());
        });
        sender.join();
        assert_eq!(selector.join(), 99 * 50);
    }
}

#[test]
fn ready_does_nothing() {
    for (one, two) in PAIRS {
        for capacity in [0, 1] {
            let (s, r) = bounded(capacity);
            let (begins, watcher_begins) = bounded(0);
            let watcher = one.start(move || {
                let mut select = Select::new();
                let index = select.recv(&r);
                assert!(select.try_ready().is_err());
                assert!(select.ready_timeout(ms(1)).is_err());
                begins.send(()).unwrap();
                assert_eq!(select.ready(), index);
                r.recv()
            });
            let sender = two.start(move || {
                watcher_begins.recv().unwrap();
                sleep(SHORT);
                s.send(3)
            });
            assert_eq!(sender.join(), Ok(()));
            assert_eq!(watcher.join(), Ok(3));

            let (s, r) = bounded(capacity);
            (0..capacity).for_each(|n| s.send(n).unwrap());
            let watcher = one.start(move || {
                let mut select = Select::new();
                let index = select.send(&s);
                assert_eq!(
                    select.ready_deadline(Instant::now() + Duration::from_secs(3600)),
                    Ok(index)
                );
                s.send(9)
            });
            let receiver = two.start(move || {
                sleep(SHORT);
                r.iter().last()
            });
            assert_eq!(watcher.join(), Ok(()));
            assert_eq!(receiver.join(), Some(9));
        }
    }
}

#[test]
fn an_operation_that_is_dropped_goes_to_somebody_else() {
    for (one, two) in PAIRS {
        for capacity in [0, 1] {
            // A receive.
            let (s, r) = bounded(capacity);
            let sender = one.start(move || s.send(5));
            sleep(SHORT);
            let dropper = two.start(move || {
                let mut select = Select::new();
                select.recv(&r);
                let operation = select.select();
                let drop_it = std::panic::AssertUnwindSafe(move || drop(operation));
                assert!(std::panic::catch_unwind(drop_it).is_err());
                drop(select);
                r.recv()
            });
            assert_eq!(dropper.join(), Ok(5));
            assert_eq!(sender.join(), Ok(()));

            // A send, whose message can't be made.
            let (s, r) = bounded::<u8>(capacity);
            let receiver = one.start(move || r.recv());
            sleep(SHORT);
            let dropper = two.start(move || {
                let broken = std::panic::AssertUnwindSafe(|| {
                    select! {
                        send(s, fail()) -> _ => {}
                        recv(never::<u8>()) -> _ => {}
                    }
                });
                assert!(std::panic::catch_unwind(broken).is_err());
                s.send(6)
            });
            assert_eq!(receiver.join(), Ok(6));
            assert_eq!(dropper.join(), Ok(()));
        }
    }
}

#[test]
fn a_parked_select_whose_message_fails_releases_its_partner() {
    for (one, two) in PAIRS {
        let (s, r) = bounded::<u8>(0);
        let s2 = s.clone();
        let selector = one.start(move || {
            let broken = std::panic::AssertUnwindSafe(|| {
                select! {
                    send(s, fail()) -> _ => {}
                    recv(never::<u8>()) -> _ => {}
                }
            });
            std::panic::catch_unwind(broken).is_err()
        });
        sleep(SHORT);
        let receiver = two.start(move || r.recv());
        assert!(selector.join());
        s2.send(8).unwrap();
        assert_eq!(receiver.join(), Ok(8));
    }
}

#[test]
fn fair_among_the_ready() {
    const ROUNDS: usize = 10_000;
    for who in ALL {
        let counts = who
            .start(|| {
                let (s1, r1) = unbounded();
                let (s2, r2) = unbounded();
                (0..ROUNDS).for_each(|_| {
                    s1.send(()).unwrap();
                    s2.send(()).unwrap();
                });
                let mut counts = [0; 2];
                for _ in 0..ROUNDS {
                    select! {
                        recv(r1) -> _ => counts[0] += 1,
                        recv(r2) -> _ => counts[1] += 1,
                    }
                }
                counts
            })
            .join();
        assert!((ROUNDS * 45 / 100..=ROUNDS * 55 / 100).contains(&counts[0]), "{counts:?}");
    }
}

#[test]
fn fair_among_goroutines_that_select_once() {
    let (s1, r1) = unbounded();
    let (s2, r2) = unbounded();
    (0..2000).for_each(|_| {
        s1.send(1).unwrap();
        s2.send(0).unwrap();
    });
    let firsts: u32 = (0..2000)
        .map(|_| {
            let (r1, r2) = (r1.clone(), r2.clone());
            go(move || select! { recv(r1) -> n => n, recv(r2) -> n => n }.unwrap())
        })
        .map(|g| g.join().unwrap())
        .sum();
    assert!((850..=1150).contains(&firsts), "{firsts}");
}

/// Places and indices differ once an operation was removed, and the order that a select leaves behind
/// is the next one's beginning.
#[test]
fn fair_after_a_removal() {
    const ROUNDS: usize = 10_000;
    let ends: Vec<_> = (0..4).map(|_| unbounded()).collect();
    for (s, _) in &ends {
        (0..2 * ROUNDS).for_each(|_| s.send(()).unwrap());
    }
    let mut select = Select::new();
    let indices: Vec<_> = ends[..3].iter().map(|(_, r)| select.recv(r)).collect();
    let first = select.select();
    let chosen = first.index();
    first.recv(&ends[chosen].1).unwrap();
    select.remove(indices[0]);
    let last = select.recv(&ends[3].1);
    let mut select = select.clone();
    let mut counts = [0; 4];
    for _ in 0..ROUNDS {
        let operation = select.select();
        let index = operation.index();
        assert!((1..=last).contains(&index));
        counts[index] += 1;
        operation.recv(&ends[index].1).unwrap();
    }
    for count in &counts[1..] {
        assert!((ROUNDS * 30 / 100..=ROUNDS * 37 / 100).contains(count), "{counts:?}");
    }
}

/// Several cases of one channel share its lock, also while another one has it now and then.
#[test]
fn a_channel_several_times_beside_others() {
    const EACH: u32 = 2000;
    for capacity in [0, 1] {
        let (s, r) = bounded(capacity);
        let (s2, r2) = bounded(capacity);
        let feed = |s: Sender<u32>| go(move || (1..=EACH).for_each(|n| s.send(n).unwrap()));
        let feeders = [feed(s), feed(s2)];
        let (mut sum, mut ends) = (0, 0);
        let (mut first, mut second) = (r, r2);
        while ends < 2 {
            let (got, from) = select! {
                recv(first) -> n => (n, 1),
                recv(second) -> n => (n, 2),
                recv(first) -> n => (n, 1),
                recv(second) -> n => (n, 2),
            };
            match (got, from) {
                (Ok(n), _) => sum += n,
                (Err(_), from) => {
                    ends += 1;
                    *(if from == 1 { &mut first } else { &mut second }) = never();
                }
            }
        }
        assert_eq!(sum, EACH * (EACH + 1));
        feeders.into_iter().for_each(|feeder| feeder.join().unwrap());
    }
}

#[test]
fn biased_takes_the_first() {
    let (s1, r1) = unbounded();
    let (s2, r2) = unbounded();
    for n in 0..100 {
        s1.send(n).unwrap();
        s2.send(n).unwrap();
    }
    for _ in 0..100 {
        select_biased! {
            recv(r2) -> n => assert!(n.is_ok()),
            recv(r1) -> _ => panic!(),
        }
    }
    assert_eq!((r1.len(), r2.len()), (100, 0));
}
