//! Programs as users write them.

use gosched::channel::{RecvCtxError, bounded};
use gosched::context::{self, Context};
use gosched::go;
use gosched::sync::{Arc, Group, Mutex, RwLock, Semaphore, WaitGroup};
use std::io;
use std::time::Duration;

fn fetch(ctx: &Context, url: &str) -> io::Result<()> {
    if url.is_empty() {
        return Err(io::Error::other("no url"));
    }
    ctx.done().recv().expect_err("it only closes");
    Ok(())
}

fn fetch_all(urls: Vec<String>) -> io::Result<()> {
    let (ctx, _cancel) = context::with_timeout(&context::background(), Duration::from_secs(60));
    let group = Group::new(&ctx);
    for url in urls {
        group.go(move |ctx| fetch(ctx, &url));
    }
    group.wait()
}

#[gosched::test(timeout = "300s")]
fn the_first_error_cancels_the_rest() {
    let error = fetch_all(vec!["a".into(), "b".into(), String::new()]).unwrap_err();
    assert_eq!(error.to_string(), "no url");
}

#[gosched::test(timeout = "300s")]
fn a_receive_ends_with_its_context() {
    fn next(ctx: &Context, rx: &gosched::channel::Receiver<u32>) -> Result<u32, RecvCtxError> {
        rx.recv_ctx(ctx)
    }
    let (tx, rx) = bounded(1);
    let (ctx, cancel) = context::with_cancel(&context::background());
    tx.send(1).unwrap();
    assert_eq!(next(&ctx, &rx), Ok(1));
    cancel.cancel();
    assert_eq!(next(&ctx, &rx), Err(RecvCtxError::Cancelled));
}

/// A program written for std: only the path of its imports has changed.
#[gosched::test(timeout = "300s")]
fn a_program_of_std() {
    use gosched::{sync, thread};

    let shared = sync::Arc::new((sync::Mutex::new(Vec::new()), sync::Condvar::new()));
    let workers: Vec<_> = (0..4)
        .map(|n| {
            let shared = sync::Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.lock().unwrap().push(n);
                shared.1.notify_one();
            })
        })
        .collect();
    let full = shared.1.wait_while(shared.0.lock().unwrap(), |list| list.len() < 4).unwrap();
    assert_eq!(full.iter().sum::<i32>(), 6);
    drop(full);
    workers.into_iter().for_each(|w| w.join().unwrap());
}

/// Nothing waits inside a lock for what only others can do, at 10,000 goroutines.
#[gosched::test(timeout = "300s")]
fn ten_thousand_at_one_lock() {
    static TWO: Semaphore = Semaphore::new(2);
    let all = WaitGroup::new();
    let shared = Arc::new((Mutex::new(0), RwLock::new(0)));
    for n in 0..10_000 {
        let shared = shared.clone();
        all.go(move || {
            *shared.0.lock().unwrap() += 1;
            if n % 10 == 0 {
                *shared.1.write().unwrap() += 1;
            } else {
                drop(shared.1.read().unwrap());
            }
            drop(TWO.acquire());
        });
    }
    all.wait();
    assert_eq!((*shared.0.lock().unwrap(), *shared.1.read().unwrap()), (10_000, 1000));
    go(|| ()).join().unwrap();
}
