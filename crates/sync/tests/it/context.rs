//! Contexts beyond the table: functions, sleeps, channels, joins, long chains, and many at once.

use crate::support::{ALL, SHORT, Who, go, ms};
use gosched_channel::{RecvCtxError, SendCtxError, bounded, select};
use gosched_sched::JoinCtxError;
use gosched_sync::context::{self, Context, ContextError};
use gosched_sync::{Arc, mpsc};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn done_is_one_channel_and_closed_with_the_error() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let selected = |ctx: &Context| {
        select! {
            recv(ctx.done()) -> message => Some(message.is_err()),
            default => None,
        }
    };
    assert_eq!(selected(&ctx), None);
    assert!(std::ptr::eq(ctx.done(), ctx.clone().done()));
    cancel.cancel();
    cancel.cancel_cause("too late to say so");
    assert_eq!(selected(&ctx), Some(true));
    assert_eq!(ctx.cause().unwrap().to_string(), "context canceled");
    let child = context::with_cancel(&ctx).0;
    assert_eq!(selected(&child), Some(true), "asked for after the end");
}

#[test]
fn a_wait_for_done_ends_in_goroutines_and_threads() {
    for who in ALL {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let waiter = who.start(move || {
            ctx.done().recv().unwrap_err();
            ctx.err()
        });
        gosched_sched::sleep(ms(1));
        drop(cancel);
        assert_eq!(waiter.join(), Some(ContextError::Canceled));
    }
}

#[test]
fn channels_joins_and_sleeps_give_up() {
    for who in ALL {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let (s, r) = bounded(0);
        let waiters = [
            who.start({
                let (ctx, s) = (ctx.clone(), s.clone());
                move || assert_eq!(s.send_ctx(&ctx, 1), Err(SendCtxError::Cancelled(1)))
            }),
            who.start({
                let ctx = ctx.clone();
                move || assert_eq!(ctx.sleep(HOUR), Err(ContextError::Canceled))
            }),
            who.start({
                let ctx = ctx.clone();
                let (let_go, told) = mpsc::channel();
                let endless = go(move || told.recv().unwrap_or(7));
                move || match endless.join_ctx(&ctx) {
                    Err(JoinCtxError::Cancelled(handle)) => {
                        drop(let_go);
                        assert_eq!(handle.join().unwrap(), 7);
                    }
                    other => panic!("{other:?}"),
                }
            }),
        ];
        gosched_sched::sleep(SHORT);
        cancel.cancel();
        waiters.into_iter().for_each(|w| w.join());

        let (_s2, empty) = bounded::<u32>(0);
        assert_eq!(empty.recv_ctx(&ctx), Err(RecvCtxError::Cancelled));
        let background = context::background();
        let partner = go(move || s.send(5));
        assert_eq!(r.recv_ctx(&background), Ok(5));
        partner.join().unwrap().unwrap();
        assert_eq!(r.recv_ctx(&background), Err(RecvCtxError::Disconnected));
        assert_eq!(go(|| 3).join_ctx(&background).unwrap(), 3);
        assert!(matches!(
            go(|| panic!("on purpose")).join_ctx(&context::with_cancel(&background).0),
            Err(JoinCtxError::<()>::Cancelled(_) | JoinCtxError::Panicked(_))
        ));
        assert_eq!(background.sleep(ms(1)), Ok(()));
    }
}

#[test]
fn functions_run_once_after_the_end_unless_they_are_stopped() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (say, told) = mpsc::channel();
    let after = |n: u32| {
        let say = say.clone();
        context::after_func(&ctx, move || say.send(n).unwrap())
    };
    let (one, two) = (after(1), after(2));
    assert!(two.stop() && !two.stop());
    cancel.cancel();
    assert_eq!(told.recv(), Ok(1));
    assert!(!one.stop());
    let three = after(3);
    assert_eq!(told.recv(), Ok(3), "at once");
    assert!(!three.stop());
    let never = context::after_func(&context::background(), || unreachable!());
    assert!(never.stop() && !never.stop());
    drop((say, never));
}

/// Its panic is that goroutine's.
#[test]
fn a_function_that_panics_harms_nobody() {
    let (ctx, cancel) = context::with_cancel(&context::background());
    let (say, told) = mpsc::channel::<()>();
    context::after_func(&ctx, move || {
        let _dropped = say;
        panic!("on purpose");
    });
    cancel.cancel();
    assert!(told.recv().is_err(), "it ran");
}

#[test]
fn no_deadline_passes_before_its_time() {
    let now = Instant::now();
    let (say, told) = mpsc::channel();
    let contexts: Vec<_> = [30, 10, 20]
        .map(|n| {
            let (ctx, cancel) = context::with_deadline(&context::background(), now + ms(n));
            let say = say.clone();
            context::after_func(&ctx, move || say.send(now.elapsed() >= ms(n)).unwrap());
            (ctx, cancel)
        })
        .into_iter()
        .collect();
    assert_eq!([told.recv(), told.recv(), told.recv()], [Ok(true); 3]);
    assert!(contexts.iter().all(|(ctx, _)| ctx.err() == Some(ContextError::DeadlineExceeded)));
}

/// A cancelled context leaves its parent: many can be made below one that lives long.
#[test]
fn ended_children_leave_their_parents() {
    let (parent, _cancel) = context::with_cancel(&context::background());
    let count = Arc::new(());
    for _ in 0..1000 {
        let (child, _cancel) = context::with_timeout(&parent, HOUR);
        let held = count.clone();
        let after = context::after_func(&child, move || drop(held));
        assert!(after.stop());
    }
    assert_eq!(Arc::strong_count(&count), 1);
}

/// Ending and dropping a chain of 100,000 needs no stack for each.
#[test]
fn a_long_chain_ends_and_goes() {
    let (top, cancel) = context::with_cancel(&context::background());
    let (mut ctx, mut cancels) = (top, Vec::new());
    for n in 0..100_000_u32 {
        let (child, cancel) = context::with_cancel(&ctx);
        ctx = context::with_value(&child, n);
        cancels.push(cancel);
    }
    assert_eq!(ctx.err(), None);
    cancel.cancel();
    assert_eq!(ctx.err(), Some(ContextError::Canceled));
    assert_eq!(ctx.value::<u32>(), Some(&99_999));
    go(move || drop((ctx, cancels))).join().unwrap();
}

/// One is cancelled while others derive from it and wait on it: all of them end.
#[test]
fn whoever_derives_while_it_ends_ends_too() {
    let ended = Arc::new(AtomicUsize::new(0));
    for round in 0..200 {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let others: Vec<_> = (0..6)
            .map(|n| {
                let (ctx, ended) = (ctx.clone(), ended.clone());
                (if (n + round) % 3 == 0 { Who::Thread } else { Who::Goroutine }).start(move || {
                    let (child, _cancel) = context::with_timeout(&ctx, HOUR);
                    let (grandchild, _cancel) = context::with_cancel(&child);
                    grandchild.done().recv().unwrap_err();
                    assert_eq!(grandchild.err(), Some(ContextError::Canceled));
                    assert_eq!(child.err(), Some(ContextError::Canceled));
                    ended.fetch_add(1, SeqCst);
                })
            })
            .collect();
        if round % 2 == 0 {
            gosched_sched::yield_now();
        }
        cancel.cancel();
        others.into_iter().for_each(|o| o.join());
    }
    assert_eq!(ended.load(SeqCst), 1200);
}
