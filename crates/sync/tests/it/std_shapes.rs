//! Every stable method and trait of std's types, up to 1.95, in one text that is compiled and run twice:
//! for std's types, which says that the text is right, and for ours.

/// The text, for the types of `$sync`. Signatures are written out where coercions could hide a
/// difference.
macro_rules! text_of {
    ($name:ident, $($sync:tt)*) => {
        mod $name {
            use std::any::Any;
            use std::error::Error;
            use std::fmt::{Debug, Display};
            use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
            use std::thread;
            use std::time::Duration;
            use $($sync)*::mpsc::{
                self, Receiver, RecvError, RecvTimeoutError, SendError, Sender, SyncSender,
                TryRecvError, TrySendError,
            };
            use $($sync)*::{
                Arc, Barrier, BarrierWaitResult, Condvar, LazyLock, LockResult, Mutex, MutexGuard,
                Once, OnceLock, OnceState, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
                TryLockError, TryLockResult, WaitTimeoutResult,
            };

            const SOON: Duration = Duration::from_millis(1);

            fn panics(f: impl FnOnce()) -> Box<dyn Any + Send> {
                catch_unwind(AssertUnwindSafe(f)).unwrap_err()
            }

            fn traits<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}

            #[test]
            fn a_mutex() {
                traits::<Mutex<u32>>();
                fn shared<T: Sync + Debug + Display>(_: &T) {}
                static IN_STATIC: Mutex<Vec<u32>> = Mutex::new(Vec::new());
                IN_STATIC.lock().unwrap().push(1);
                let mut lock: Mutex<u32> = Mutex::from(6);
                assert_eq!(*Mutex::<u32>::default().lock().unwrap(), 0);
                let guard: MutexGuard<'_, u32> = lock.lock().unwrap();
                shared(&guard);
                let busy: TryLockResult<MutexGuard<'_, u32>> = lock.try_lock();
                assert!(matches!(busy, Err(TryLockError::WouldBlock)));
                assert_eq!(busy.unwrap_err().to_string(), "try_lock failed because the operation would block");
                // std's Mutex has quotes there, its RwLock has none.
                assert!(format!("{lock:?}").contains("<locked>"));
                drop(guard);
                *lock.get_mut().unwrap() += 1;
                assert_eq!(format!("{lock:?}"), "Mutex { data: 7, poisoned: false, .. }");
                let _payload = panics(|| {
                    let _guard = lock.lock();
                    panic!("on purpose");
                });
                assert!(lock.is_poisoned());
                let error: PoisonError<MutexGuard<'_, u32>> = lock.lock().unwrap_err();
                assert_eq!((**error.get_ref(), *error.into_inner()), (7, 7));
                assert!(matches!(lock.try_lock(), Err(TryLockError::Poisoned(_))));
                assert!(lock.get_mut().is_err());
                lock.clear_poison();
                assert!(!lock.is_poisoned());
                let inner: LockResult<u32> = lock.into_inner();
                assert_eq!(inner.unwrap(), 7);
                let unsized_data: &Mutex<[u32]> = &Mutex::new([1, 2]);
                unsized_data.lock().unwrap()[0] = 3;
                assert_eq!(*unsized_data.lock().unwrap(), [3, 2]);
            }

            /// A guard for readers may stand for one of a shorter lifetime.
            fn covariant<'a>(_: RwLockReadGuard<'_, &'a u32>, _: &'a u32) {}

            #[test]
            fn a_lock_for_readers_and_writers() {
                traits::<RwLock<u32>>();
                static IN_STATIC: RwLock<Vec<u32>> = RwLock::new(Vec::new());
                IN_STATIC.write().unwrap().push(1);
                let mut lock: RwLock<u32> = RwLock::from(6);
                assert_eq!(*RwLock::<u32>::default().read().unwrap(), 0);
                let one: RwLockReadGuard<'_, u32> = lock.read().unwrap();
                let two = lock.try_read().unwrap();
                assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
                assert_eq!(format!("{one} {two:?} {lock:?}"), "6 6 RwLock { data: 6, poisoned: false, .. }");
                drop((one, two));
                let mut all: RwLockWriteGuard<'_, u32> = lock.write().unwrap();
                assert!(matches!(lock.try_read(), Err(TryLockError::WouldBlock)));
                assert_eq!(format!("{all} {all:?} {lock:?}"), "6 6 RwLock { data: <locked>, poisoned: false, .. }");
                *all = 7;
                let shared: RwLockReadGuard<'_, u32> = RwLockWriteGuard::downgrade(all);
                assert_eq!((*shared, *lock.try_read().unwrap()), (7, 7));
                drop(shared);
                drop(lock.try_write().unwrap());
                let _payload = panics(|| {
                    let _guard = lock.write();
                    panic!("on purpose");
                });
                assert!(lock.is_poisoned() && lock.read().is_err() && lock.write().is_err());
                assert!(lock.get_mut().is_err());
                lock.clear_poison();
                *lock.get_mut().unwrap() += 1;
                assert_eq!(lock.into_inner().unwrap(), 8);
                let (long, lock) = (5, RwLock::new(&0));
                *lock.write().unwrap() = &long;
                {
                    let short = 6;
                    covariant(lock.read().unwrap(), &short);
                }
                assert_eq!(**lock.read().unwrap(), 5);
            }

            #[test]
            fn a_condition() {
                traits::<Condvar>();
                static IN_STATIC: Condvar = Condvar::new();
                IN_STATIC.notify_one();
                let shared = Arc::new((Mutex::new(0), Condvar::default()));
                assert_eq!(format!("{:?}", shared.1), "Condvar { .. }");
                let teller = thread::spawn({
                    let shared = shared.clone();
                    move || {
                        for _ in 0..3 {
                            *shared.0.lock().unwrap() += 1;
                            shared.1.notify_all();
                        }
                        *shared.0.lock().unwrap() += 1;
                        shared.1.notify_one();
                    }
                });
                let (lock, bell) = &*shared;
                let mut told = lock.lock().unwrap();
                while *told == 0 {
                    told = bell.wait(told).unwrap();
                }
                let told = bell.wait_while(told, |told| *told < 4).unwrap();
                teller.join().unwrap();
                let (told, late): (MutexGuard<'_, i32>, WaitTimeoutResult) =
                    bell.wait_timeout(told, SOON).unwrap();
                assert!(late.timed_out());
                let (told, late) = bell.wait_timeout_while(told, SOON, |told| *told < 9).unwrap();
                assert!(late.timed_out());
                let (told, late) = bell.wait_timeout_while(told, SOON, |told| *told < 4).unwrap();
                assert!(!late.timed_out() && late == late.clone());
                #[allow(deprecated, reason = "std still has it")]
                let (told, was_told) = bell.wait_timeout_ms(told, 1).unwrap();
                assert_eq!((*told, was_told), (4, false));
            }

            #[test]
            fn a_barrier() {
                traits::<Barrier>();
                static TWO: Barrier = Barrier::new(2);
                let other = thread::spawn(|| TWO.wait());
                let (a, b): (BarrierWaitResult, _) = (TWO.wait(), other.join().unwrap());
                assert!(a.is_leader() != b.is_leader());
                assert_eq!(format!("{TWO:?}"), "Barrier { .. }");
                assert!(format!("{a:?}").starts_with("BarrierWaitResult { is_leader: "));
            }

            #[test]
            fn a_once() {
                traits::<Once>();
                static ONCE: Once = Once::new();
                let _payload = panics(|| ONCE.call_once(|| panic!("on purpose")));
                let _payload = panics(|| ONCE.call_once(|| ()));
                let _payload = panics(|| ONCE.wait());
                assert!(!ONCE.is_completed());
                let waits = thread::spawn(|| ONCE.wait_force());
                let mut was_poisoned = false;
                ONCE.call_once_force(|state: &OnceState| {
                    was_poisoned = state.is_poisoned();
                    assert_eq!(format!("{state:?}"), "OnceState { poisoned: true }");
                });
                ONCE.wait();
                waits.join().unwrap();
                assert!(was_poisoned && ONCE.is_completed());
                assert_eq!(format!("{ONCE:?}"), "Once { .. }");
            }

            #[test]
            fn a_value_that_is_written_once() {
                traits::<OnceLock<u32>>();
                static ONCE: OnceLock<u32> = OnceLock::new();
                assert_eq!((ONCE.get(), format!("{ONCE:?}")), (None, "OnceLock(<uninit>)".into()));
                let waits = thread::spawn(|| *ONCE.wait());
                assert_eq!((ONCE.set(1), ONCE.set(2)), (Ok(()), Err(2)));
                assert_eq!((ONCE.get_or_init(|| unreachable!()), waits.join().unwrap()), (&1, 1));
                assert_eq!(format!("{ONCE:?}"), "OnceLock(1)");
                let mut cell = OnceLock::from(3);
                assert_eq!(cell.clone(), cell);
                *cell.get_mut().unwrap() += 1;
                assert_eq!((cell.take(), cell.take(), cell.get_mut()), (Some(4), None, None));
                assert_eq!((cell == OnceLock::default(), cell.into_inner()), (true, None));
                // What it holds may end before it does.
                let cell = OnceLock::new();
                {
                    let short = String::new();
                    cell.set(&short).unwrap();
                }
            }

            #[test]
            fn a_value_that_is_made_when_it_is_wanted() {
                traits::<LazyLock<u32>>();
                static LAZY: LazyLock<u32> = LazyLock::new(|| 6);
                assert_eq!((LazyLock::get(&LAZY), format!("{LAZY:?}")), (None, "LazyLock(<uninit>)".into()));
                assert_eq!((LazyLock::force(&LAZY), LazyLock::get(&LAZY), *LAZY), (&6, Some(&6), 6));
                assert_eq!(format!("{LAZY:?}"), "LazyLock(6)");
                let mut lazy = LazyLock::new(|| String::from("a"));
                assert_eq!(LazyLock::get_mut(&mut lazy), None);
                LazyLock::force_mut(&mut lazy).push('b');
                lazy.push('c');
                LazyLock::get_mut(&mut lazy).unwrap().push('d');
                assert_eq!(*lazy, "abcd");
                assert_eq!(*LazyLock::<u32>::default(), 0);
                let mut bad = LazyLock::new(|| -> u32 { panic!("on purpose") });
                let _payload = panics(|| drop(LazyLock::force(&bad).to_string()));
                let payload = panics(|| drop(bad.to_string()));
                let words = payload.downcast_ref::<&str>().copied();
                assert_eq!(words, Some("LazyLock instance has previously been poisoned"));
                let _payload = panics(|| *LazyLock::force_mut(&mut bad) = 1);
            }

            #[test]
            fn channels_of_one_receiver() {
                fn is_error<E: Error + Clone + PartialEq + Copy>(_: E) {}
                is_error(RecvError);
                is_error(TryRecvError::from(RecvError));
                is_error(RecvTimeoutError::from(RecvError));
                let (tx, rx): (Sender<u32>, Receiver<u32>) = mpsc::channel();
                fn sends<T: Send + Sync + Clone + Debug>(_: &T) {}
                sends(&tx);
                assert_eq!((rx.try_recv(), rx.recv_timeout(SOON)), (Err(TryRecvError::Empty), Err(RecvTimeoutError::Timeout)));
                (0..6).for_each(|n| tx.send(n).unwrap());
                assert_eq!((rx.recv(), rx.try_recv(), rx.recv_timeout(SOON)), (Ok(0), Ok(1), Ok(2)));
                assert_eq!(rx.try_iter().take(1).collect::<Vec<_>>(), [3]);
                assert_eq!(rx.iter().next(), Some(4));
                assert_eq!((&rx).into_iter().next(), Some(5));
                drop(tx.clone());
                drop(tx);
                assert_eq!((rx.recv(), rx.try_recv()), (Err(RecvError), Err(TryRecvError::Disconnected)));
                assert_eq!((rx.recv_timeout(SOON), rx.into_iter().next()), (Err(RecvTimeoutError::Disconnected), None));
                let (tx, rx): (SyncSender<u32>, Receiver<u32>) = mpsc::sync_channel(1);
                sends(&tx);
                assert!(format!("{tx:?} {rx:?}").contains("Receiver"));
                tx.send(1).unwrap();
                assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
                drop(rx);
                assert_eq!((tx.try_send(3), tx.send(4)), (Err(TrySendError::Disconnected(3)), Err(SendError(4))));
                assert_eq!(TrySendError::from(SendError(5)), TrySendError::Disconnected(5));
                assert_eq!(SendError(5).to_string(), "sending on a closed channel");
            }
        }
    };
}

text_of!(of_std, std::sync);
text_of!(ours, gosched_sync);
