//! What users of crossbeam-channel and of std's mpsc rely on.

use crate::support::{ALL, PAIRS, SHORT, sleep};
use gosched_channel::{
    Receiver, RecvError, RecvTimeoutError, Select, SelectTimeoutError, SendError, SendTimeoutError,
    Sender, TryRecvError, TrySelectError, TrySendError, bounded, never, unbounded,
};
use std::error::Error;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;

const CAPACITIES: [Option<usize>; 4] = [Some(0), Some(1), Some(100), None];

fn channel<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
    capacity.map_or_else(unbounded, bounded)
}

#[test]
fn types_promise_what_they_do() {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn shared<T: Send + Sync>() {}
    fn error<T: Error + Send + Sync + 'static>() {}
    all::<Sender<u8>>();
    all::<Receiver<std::cell::Cell<u8>>>();
    shared::<Select<'static>>();
    error::<SendError<u8>>();
    error::<TrySendError<u8>>();
    error::<SendTimeoutError<u8>>();
    error::<RecvError>();
    error::<TrySelectError>();
    static NEVER: Receiver<u8> = never();
    assert!(NEVER.is_empty());
}

#[test]
fn words() {
    let (s, r) = bounded::<u8>(0);
    assert_eq!(format!("{s:?} {r:?}"), "Sender { .. } Receiver { .. }");
    assert_eq!(format!("{:?}", r.iter()), "Iter { .. }");
    assert_eq!(format!("{:?}", SendError(1)), "SendError(..)");
    assert_eq!(SendError(1).to_string(), "sending on a disconnected channel");
    assert_eq!(format!("{:?}", TrySendError::Full(1)), "Full(..)");
    assert_eq!(TrySendError::Full(1).to_string(), "sending on a full channel");
    assert_eq!(RecvError.to_string(), "receiving on an empty and disconnected channel");
    assert_eq!(TryRecvError::Empty.to_string(), "receiving on an empty channel");
    assert_eq!(RecvTimeoutError::Timeout.to_string(), "timed out waiting on receive operation");
    assert_eq!(SelectTimeoutError.to_string(), "timed out waiting on select");
    assert!(TrySendError::from(SendError(1)).is_disconnected());
    assert!(SendTimeoutError::from(SendError(1)).is_disconnected());
    assert!(TryRecvError::from(RecvError).is_disconnected());
    assert!(RecvTimeoutError::from(RecvError).is_disconnected());
    assert_eq!(SendTimeoutError::Timeout(3).into_inner(), 3);
}

#[test]
fn messages_left_behind_are_dropped_once() {
    for capacity in CAPACITIES {
        for receiver_first in [false, true] {
            let message = Arc::new(());
            let (s, r) = channel(capacity);
            // Enough for several blocks.
            while Arc::strong_count(&message) < 100 && s.try_send(message.clone()).is_ok() {}
            if receiver_first {
                drop(r);
                // At once, not with the last sender.
                assert_eq!(Arc::strong_count(&message), 1);
                assert!(s.send(message.clone()).is_err());
            } else {
                drop(s);
                drop(r);
            }
            assert_eq!(Arc::strong_count(&message), 1, "{capacity:?}");
        }
    }
}

/// No lock of the channel's is held while it drops.
#[test]
fn a_drop_may_use_the_channel() {
    struct Sends(Option<Sender<Sends>>);
    impl Drop for Sends {
        fn drop(&mut self) {
            if let Some(s) = self.0.take() {
                assert!(s.try_send(Sends(None)).is_err());
                assert!(s.len() <= 2);
            }
        }
    }
    for capacity in [Some(2), None] {
        for who in ALL {
            who.start(move || {
                let (s, r) = channel(capacity);
                assert!(s.send(Sends(Some(s.clone()))).is_ok());
                assert!(s.send(Sends(Some(s.clone()))).is_ok());
                drop(r);
            })
            .join();
        }
    }
}

#[test]
fn a_channel_goes_through_itself() {
    let (s, r) = bounded::<Option<Box<dyn std::any::Any + Send>>>(1);
    s.send(Some(Box::new((s.clone(), r.clone())))).unwrap();
    let message = r.recv().unwrap().unwrap();
    let (s2, _) = message
        .downcast_ref::<(Sender<Option<Box<dyn std::any::Any + Send>>>, Receiver<_>)>()
        .map(|(s, r): &(_, Receiver<Option<Box<dyn std::any::Any + Send>>>)| (s, r))
        .unwrap();
    assert!(s2.same_channel(&s));
}

#[test]
fn a_sender_that_panics_disconnects() {
    for (one, two) in PAIRS {
        let (s, r) = bounded::<u8>(0);
        let receiver = one.start(move || r.recv());
        let sender = two.start(move || {
            let panics = AssertUnwindSafe(move || {
                let _s = s;
                std::panic::resume_unwind(Box::new(()));
            });
            catch_unwind(panics).is_err()
        });
        assert!(sender.join());
        assert_eq!(receiver.join(), Err(RecvError));
    }
}

#[test]
fn a_message_whose_drop_panics_stops_nothing() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::resume_unwind(Box::new(()));
            }
        }
    }
    let (s, r) = bounded(1);
    assert!(s.try_send(Panics).is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(r.recv()))).is_err());
    assert!(s.try_send(Panics).is_ok());
    assert!(r.len() == 1 && s.is_full());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(r.try_recv()))).is_err());
}

#[test]
fn messages_of_any_shape() {
    #[repr(align(128))]
    #[derive(Debug, PartialEq)]
    struct Aligned(u8);
    for (one, two) in PAIRS {
        for capacity in CAPACITIES {
            let (s, r) = channel(capacity);
            let (s2, r2) = channel(capacity);
            let sender = one.start(move || {
                for n in 0..100 {
                    s.send(Aligned(n)).unwrap();
                    s2.send(()).unwrap();
                }
            });
            let receiver = two.start(move || {
                for n in 0..100 {
                    let message = r.recv().unwrap();
                    assert_eq!(std::ptr::from_ref(&message).addr() % 128, 0);
                    assert_eq!(message, Aligned(n));
                    r2.recv().unwrap();
                }
            });
            sender.join();
            receiver.join();
        }
    }
}

#[test]
fn iterators_end_with_the_channel() {
    for (one, two) in PAIRS {
        let (s, r) = bounded(0);
        let sender = one.start(move || (0..4).for_each(|n| s.send(n).unwrap()));
        let receiver = two.start(move || {
            let mut sum = 0;
            for n in &r {
                sum += n;
            }
            let mut rest = r.into_iter();
            (sum, rest.next(), rest.next())
        });
        sender.join();
        assert_eq!(receiver.join(), (6, None, None));
    }
}

#[test]
fn one_receiver_of_many_gets_each() {
    for (one, two) in PAIRS {
        let (s, r) = unbounded();
        let receivers: Vec<_> = (0..4)
            .map(|_| r.clone())
            .map(|r| one.start(move || r.iter().collect::<Vec<u32>>()))
            .collect();
        drop(r);
        two.start(move || (0..1000).for_each(|n| s.send(n).unwrap())).join();
        let parts: Vec<_> = receivers.into_iter().map(|r| r.join()).collect();
        assert!(parts.iter().all(|part| part.is_sorted()));
        let mut all = parts.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }
}

#[test]
fn a_request_with_its_answer() {
    for (one, two) in PAIRS {
        let (requests, r) = bounded::<(u32, Sender<u32>)>(0);
        let server = one.start(move || {
            for (n, answer) in r {
                // The one who asked may have gone.
                let _ = answer.send(n * 2);
            }
        });
        let client = two.start(move || {
            let ask = |n| {
                let (s, r) = bounded(1);
                requests.send((n, s)).unwrap();
                r
            };
            drop(ask(1));
            ask(4).recv()
        });
        assert_eq!(client.join(), Ok(8));
        server.join();
    }
}

#[test]
fn operations_complete_only_with_their_end() {
    let (s, r) = unbounded();
    let (_s2, r2) = unbounded::<u8>();
    s.send(1).unwrap();
    let mut select = Select::new();
    select.recv(&r);
    select.recv(&r2);
    let operation = select.select();
    let wrong = catch_unwind(AssertUnwindSafe(|| operation.recv(&r2)));
    assert!(wrong.is_err());
    // It was not taken.
    assert_eq!(r.recv(), Ok(1));
    assert!(catch_unwind(|| Select::new().select()).is_err());
    let removed = catch_unwind(AssertUnwindSafe(|| select.remove(7)));
    assert!(removed.is_err());
    select.remove(0);
    s.send(2).unwrap();
    assert!(select.try_ready().is_err());
}

#[test]
fn closing_from_either_end() {
    for (one, two) in PAIRS {
        let (s, r) = bounded(1);
        s.send(1).unwrap();
        let sender = one.start(move || (s.send(2), s.send(3)));
        sleep(SHORT);
        let receiver = two.start(move || {
            let first_to_close = r.close();
            (first_to_close, r.close(), r.iter().collect::<Vec<_>>())
        });
        let (first, second, rest) = receiver.join();
        assert!(first && !second);
        let sent = sender.join();
        assert_eq!(sent.1, Err(SendError(3)));
        // It waited, or had not come yet.
        assert_eq!((sent.0, rest), (Err(SendError(2)), vec![1]));
    }
}
