//! Sending and receiving.

use crate::support::{PAIRS, SHORT, ms, sleep};
use gosched_channel::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError, after,
    at, bounded, never, tick, unbounded,
};
use std::time::{Duration, Instant};

#[test]
fn messages_arrive_in_order() {
    for (sender, receiver) in PAIRS {
        for capacity in [Some(0), Some(1), Some(3), Some(64), None] {
            let (s, r) = capacity.map_or_else(unbounded, bounded);
            let sender = sender.start(move || (0..1000).for_each(|n| s.send(n).unwrap()));
            let receiver = receiver.start(move || r.iter().collect::<Vec<_>>());
            sender.join();
            assert_eq!(receiver.join(), (0..1000).collect::<Vec<_>>(), "{capacity:?}");
        }
    }
}

#[test]
fn large_messages_cross_stacks() {
    for (sender, receiver) in PAIRS {
        for capacity in [Some(0), Some(1), None] {
            let (s, r) = capacity.map_or_else(unbounded, bounded);
            let sender = sender.start(move || (0..100_u64).for_each(|n| s.send([n; 40]).unwrap()));
            let receiver = receiver.start(move || r.iter().map(|m| m[7] + m[39]).sum::<u64>());
            sender.join();
            assert_eq!(receiver.join(), 99 * 100);
        }
    }
}

#[test]
fn a_receiver_waits() {
    for (one, two) in PAIRS {
        let (s, r) = bounded(0);
        let receiver = one.start(move || (r.recv(), r.recv()));
        let sender = two.start(move || {
            sleep(SHORT);
            s.send(7)
        });
        assert_eq!(sender.join(), Ok(()));
        assert_eq!(receiver.join(), (Ok(7), Err(RecvError)));
    }
}

#[test]
fn a_sender_waits() {
    for (one, two) in PAIRS {
        for capacity in [0, 2] {
            let (s, r) = bounded(capacity);
            let sender = one.start(move || (0..=capacity).map(|n| s.send(n)).collect::<Vec<_>>());
            let receiver = two.start(move || {
                sleep(SHORT);
                r.iter().collect::<Vec<_>>()
            });
            assert!(sender.join().iter().all(|sent| sent.is_ok()));
            assert_eq!(receiver.join(), (0..=capacity).collect::<Vec<_>>());
        }
    }
}

#[test]
fn waits_end_in_time() {
    for (who, _) in PAIRS {
        let waited = who.start(|| {
            let (s, r) = bounded(0);
            let start = Instant::now();
            assert_eq!(r.recv_timeout(ms(20)), Err(RecvTimeoutError::Timeout));
            assert_eq!(s.send_timeout(1, ms(20)), Err(SendTimeoutError::Timeout(1)));
            let (s, _r) = bounded(1);
            s.send(1).unwrap();
            assert_eq!(s.send_timeout(2, ms(20)), Err(SendTimeoutError::Timeout(2)));
            assert_eq!(s.send_deadline(2, start + ms(80)), Err(SendTimeoutError::Timeout(2)));
            start.elapsed()
        });
        assert!(waited.join() >= ms(80));
    }
}

#[test]
fn a_waiter_that_gave_up_is_forgotten() {
    for (one, two) in PAIRS {
        let (s, r) = bounded(0);
        let (gave_up, receiver_gave_up) = unbounded();
        let (tried, sender_tried) = unbounded();
        let receiver = one.start(move || {
            assert!(r.recv_timeout(ms(1)).is_err());
            gave_up.send(()).unwrap();
            sender_tried.recv().unwrap();
            r.recv()
        });
        let sender = two.start(move || {
            receiver_gave_up.recv().unwrap();
            assert_eq!(s.try_send(1), Err(TrySendError::Full(1)));
            tried.send(()).unwrap();
            s.send(2)
        });
        assert_eq!(receiver.join(), Ok(2));
        assert_eq!(sender.join(), Ok(()));
    }
}

#[test]
fn closing_wakes_all() {
    for (one, two) in PAIRS {
        let (s, r) = bounded::<u8>(0);
        let receivers: Vec<_> =
            (0..3).map(|_| r.clone()).map(|r| one.start(move || r.recv())).collect();
        sleep(SHORT);
        let closer = two.start(move || (s.close(), s.close()));
        assert_eq!(closer.join(), (true, false));
        receivers.into_iter().for_each(|r| assert_eq!(r.join(), Err(RecvError)));

        let (s, r) = bounded(0);
        let senders: Vec<_> = (0..3)
            .map(|n| (n, s.clone()))
            .map(|(n, s)| (n, one.start(move || s.send(n))))
            .collect();
        sleep(SHORT);
        two.start(move || drop(r)).join();
        senders.into_iter().for_each(|(n, s)| assert_eq!(s.join(), Err(SendError(n))));
    }
}

#[test]
fn closed_channels_are_drained() {
    let (s, r) = bounded(2);
    s.send(1).unwrap();
    s.send(2).unwrap();
    assert!(r.close());
    assert_eq!(s.try_send(3), Err(TrySendError::Disconnected(3)));
    assert_eq!(r.iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(r.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn the_last_end_counts() {
    let (s, r) = unbounded();
    let s2 = s.clone();
    drop(s);
    s2.send(1).unwrap();
    drop(s2);
    let r2 = r.clone();
    drop(r);
    assert_eq!(r2.recv(), Ok(1));
    assert_eq!(r2.recv(), Err(RecvError));
}

#[test]
fn clocks_strike() {
    for (who, _) in PAIRS {
        who.start(|| {
            let r = after(Duration::from_secs(3600));
            assert_eq!(r.try_recv(), Err(TryRecvError::Empty));
            assert!(r.is_empty());
            assert_eq!(r.recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));

            let start = Instant::now();
            let r = after(ms(20));
            while r.is_empty() {
                sleep(ms(1));
            }
            assert!(start.elapsed() >= ms(20));
            assert_eq!((r.len(), r.capacity()), (1, Some(1)));
            assert!(r.recv().unwrap() >= start + ms(20));
            assert_eq!(r.recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));

            let when = Instant::now();
            assert_eq!(at(when).recv(), Ok(when));
            assert_eq!(never::<u8>().recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));

            let start = Instant::now();
            let r = tick(ms(5));
            let ticks: Vec<_> = r.iter().take(4).map(|t| t - start).collect();
            assert!(ticks.windows(2).all(|w| w[1] - w[0] >= ms(5)), "{ticks:?}");
            assert!(start.elapsed() >= ms(20));
        })
        .join();
    }
}

#[test]
fn many_to_many() {
    for capacity in [0, 1, 7, 100] {
        let (s, r) = bounded(capacity);
        let senders: Vec<_> = (0..8)
            .map(|i| (i, s.clone()))
            .map(|(i, s)| PAIRS[i % 4].0.start(move || (0..500).for_each(|n| s.send(n).unwrap())))
            .collect();
        let receivers: Vec<_> = (0..8)
            .map(|i| (i, r.clone()))
            .map(|(i, r)| PAIRS[i % 4].1.start(move || r.iter().sum::<u32>()))
            .collect();
        drop((s, r));
        senders.into_iter().for_each(|s| s.join());
        let sum: u32 = receivers.into_iter().map(|r| r.join()).sum();
        assert_eq!(sum, 8 * (0..500).sum::<u32>());
    }
}
