//! Every operation, in every form, in every state of a channel, by goroutines and by threads.

use crate::support::{PAIRS, Running, Who, ms, sleep};
use gosched_channel::{
    Receiver, RecvTimeoutError, Select, SendTimeoutError, Sender, TryRecvError, TrySendError,
    bounded, never, select, unbounded,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// What an operation comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Out {
    /// Sent, or received this.
    Done(u8),
    /// The channel is closed (and, for a receive, empty).
    Closed,
    /// It would wait: it does, or says so.
    Waits,
}
use Out::{Closed, Done, Waits};

/// Who waits in the channel already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Nobody,
    Receives,
    Sends,
    SelectsReceive,
    SelectsSend,
}
use Other::{Nobody, Receives, SelectsReceive, SelectsSend, Sends};

struct Row {
    name: &'static str,
    capacity: Option<usize>,
    /// The messages 0, 1, ... are in it.
    held: u8,
    is_closed: bool,
    other: Other,
    send: Out,
    recv: Out,
}

/// What the operation sends, and what the other one sends.
const SENT: u8 = 50;
const OTHERS: u8 = 40;

const fn row(
    name: &'static str,
    capacity: Option<usize>,
    held: u8,
    is_closed: bool,
    other: Other,
    send: Out,
    recv: Out,
) -> Row {
    Row { name, capacity, held, is_closed, other, send, recv }
}

const CLOSED: bool = true;
const OPEN: bool = false;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                     cap      held                          send        recv
    row("no buffer",                       Some(0), 0, OPEN,   Nobody,         Waits,      Waits),
    row("no buffer, one receives",         Some(0), 0, OPEN,   Receives,       Done(SENT), Waits),
    row("no buffer, one sends",            Some(0), 0, OPEN,   Sends,          Waits,      Done(OTHERS)),
    row("no buffer, one selects receive",  Some(0), 0, OPEN,   SelectsReceive, Done(SENT), Waits),
    row("no buffer, one selects send",     Some(0), 0, OPEN,   SelectsSend,    Waits,      Done(OTHERS)),
    row("no buffer, closed",               Some(0), 0, CLOSED, Nobody,         Closed,     Closed),
    row("buffer, empty",                   Some(2), 0, OPEN,   Nobody,         Done(SENT), Waits),
    row("buffer, half full",               Some(2), 1, OPEN,   Nobody,         Done(SENT), Done(0)),
    row("buffer, full",                    Some(2), 2, OPEN,   Nobody,         Waits,      Done(0)),
    row("buffer, one receives",            Some(2), 0, OPEN,   Receives,       Done(SENT), Waits),
    row("buffer, one selects receive",     Some(2), 0, OPEN,   SelectsReceive, Done(SENT), Waits),
    row("buffer, full, one sends",         Some(2), 2, OPEN,   Sends,          Waits,      Done(0)),
    row("buffer, full, one selects send",  Some(2), 2, OPEN,   SelectsSend,    Waits,      Done(0)),
    row("buffer, empty, closed",           Some(2), 0, CLOSED, Nobody,         Closed,     Closed),
    row("buffer, half full, closed",       Some(2), 1, CLOSED, Nobody,         Closed,     Done(0)),
    row("buffer, full, closed",            Some(2), 2, CLOSED, Nobody,         Closed,     Done(0)),
    row("no bound, empty",                 None,    0, OPEN,   Nobody,         Done(SENT), Waits),
    row("no bound, holding",               None,    3, OPEN,   Nobody,         Done(SENT), Done(0)),
    row("no bound, one receives",          None,    0, OPEN,   Receives,       Done(SENT), Waits),
    row("no bound, one selects receive",   None,    0, OPEN,   SelectsReceive, Done(SENT), Waits),
    row("no bound, empty, closed",         None,    0, CLOSED, Nobody,         Closed,     Closed),
    row("no bound, holding, closed",       None,    3, CLOSED, Nobody,         Closed,     Done(0)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Try,
    Timeout,
    Macro,
    MacroDefault,
    MacroTimeout,
    Dynamic,
    DynamicTry,
    DynamicTimeout,
}

const FORMS: [Form; 9] = [
    Form::Plain,
    Form::Try,
    Form::Timeout,
    Form::Macro,
    Form::MacroDefault,
    Form::MacroTimeout,
    Form::Dynamic,
    Form::DynamicTry,
    Form::DynamicTimeout,
];

impl Form {
    /// Whether a wait has no end of its own.
    fn is_endless(self) -> bool {
        matches!(self, Form::Plain | Form::Macro | Form::Dynamic)
    }
}

fn sent<E>(result: Result<(), E>) -> Out {
    result.map_or(Closed, |()| Done(SENT))
}

fn received<E>(result: Result<u8, E>) -> Out {
    result.map_or(Closed, Done)
}

fn send(form: Form, s: &Sender<u8>) -> Out {
    match form {
        Form::Plain => sent(s.send(SENT)),
        Form::Try => match s.try_send(SENT) {
            Err(TrySendError::Full(SENT)) => Waits,
            other => sent(other),
        },
        Form::Timeout => match s.send_timeout(SENT, ms(1)) {
            Err(SendTimeoutError::Timeout(SENT)) => Waits,
            other => sent(other),
        },
        Form::Macro => select! {
            send(s, SENT) -> result => sent(result),
            recv(never::<u8>()) -> _ => unreachable!(),
        },
        Form::MacroDefault => select! {
            send(s, SENT) -> result => sent(result),
            default => Waits,
        },
        Form::MacroTimeout => select! {
            recv(never::<u8>()) -> _ => unreachable!(),
            send(s, SENT) -> result => sent(result),
            default(ms(1)) => Waits,
        },
        Form::Dynamic | Form::DynamicTry | Form::DynamicTimeout => {
            let mut select = Select::new();
            select.send(s);
            operate(form, &mut select).map_or(Waits, |operation| sent(operation.send(s, SENT)))
        }
    }
}

fn recv(form: Form, r: &Receiver<u8>) -> Out {
    match form {
        Form::Plain => received(r.recv()),
        Form::Try => match r.try_recv() {
            Err(TryRecvError::Empty) => Waits,
            other => received(other),
        },
        Form::Timeout => match r.recv_timeout(ms(1)) {
            Err(RecvTimeoutError::Timeout) => Waits,
            other => received(other),
        },
        Form::Macro => select! {
            recv(r) -> result => received(result),
            recv(never::<u8>()) -> _ => unreachable!(),
        },
        Form::MacroDefault => select! {
            recv(r) -> result => received(result),
            recv(never::<u8>()) -> _ => unreachable!(),
            default => Waits,
        },
        Form::MacroTimeout => select! {
            recv(r) -> result => received(result),
            default(ms(1)) => Waits,
        },
        Form::Dynamic | Form::DynamicTry | Form::DynamicTimeout => {
            let mut select = Select::new();
            select.recv(r);
            operate(form, &mut select).map_or(Waits, |operation| received(operation.recv(r)))
        }
    }
}

fn operate<'a>(
    form: Form,
    select: &mut Select<'a>,
) -> Option<gosched_channel::SelectedOperation<'a>> {
    match form {
        Form::DynamicTry => select.try_select().ok(),
        Form::DynamicTimeout => select.select_timeout(ms(1)).ok(),
        _ => Some(select.select()),
    }
}

/// A channel in the state of `row`, with who waits there.
fn set_up(row: &Row, who: Who) -> (Sender<u8>, Receiver<u8>, Option<Running<Out>>) {
    let (s, r) = row.capacity.map_or_else(unbounded, bounded);
    (0..row.held).for_each(|n| s.send(n).unwrap());
    if row.is_closed {
        assert!(s.close());
    }
    let (s2, r2) = (s.clone(), r.clone());
    let sends = |result: Result<(), _>| result.map_or(Closed, |()| Done(OTHERS));
    let other = match row.other {
        Nobody => None,
        Receives => Some(who.start(move || received(r2.recv()))),
        Sends => Some(who.start(move || sends(s2.send(OTHERS)))),
        SelectsReceive => Some(who.start(move || recv(Form::Macro, &r2))),
        SelectsSend => Some(who.start(move || {
            let result = select! {
                send(s2, OTHERS) -> result => result,
                recv(never::<u8>()) -> _ => unreachable!(),
            };
            sends(result)
        })),
    };
    if row.other != Nobody {
        wait_until_it_waits(row, &s, &r);
    }
    (s, r, other)
}

fn wait_until_it_waits(row: &Row, s: &Sender<u8>, r: &Receiver<u8>) {
    if row.capacity != Some(0) {
        // Nothing shows it, and nothing depends on it.
        return sleep(ms(2));
    }
    let mut select = Select::new();
    match row.other {
        Receives | SelectsReceive => select.send(s),
        _ => select.recv(r),
    };
    select.ready();
}

/// One cell: the operation, then who waited, then what is left.
fn check(row: &'static Row, is_send: bool, form: Form, (one, two): (Who, Who)) {
    let cell = || format!("{}, send {is_send}, {form:?}, {one:?} and {two:?}", row.name);
    let expected = if is_send { row.send } else { row.recv };
    let (s, r, other) = set_up(row, two);
    check_ready(row, &s, &r);

    let is_over = Arc::new(AtomicBool::new(false));
    let operation = one.start({
        let (s, r, is_over) = (s.clone(), r.clone(), is_over.clone());
        move || {
            let out = if is_send { send(form, &s) } else { recv(form, &r) };
            is_over.store(true, SeqCst);
            out
        }
    });
    if expected == Waits && form.is_endless() {
        sleep(ms(3));
        assert!(!is_over.load(SeqCst), "{}", cell());
        s.close();
        let out = operation.join();
        assert_eq!(out, Closed, "{}", cell());
    } else {
        assert_eq!(operation.join(), expected, "{}", cell());
    }

    let met = matches!(expected, Done(_));
    let others = match row.other {
        Receives | SelectsReceive if met => Done(SENT),
        Sends | SelectsSend if met => Done(OTHERS),
        _ => Closed,
    };
    if let Some(other) = other {
        if others == Closed {
            s.close();
        }
        assert_eq!(other.join(), others, "the other: {}", cell());
    }
    check_rest(row, is_send, met, &s, &r, &cell());
}

fn check_ready(row: &Row, s: &Sender<u8>, r: &Receiver<u8>) {
    let mut sends = Select::new();
    sends.send(s);
    assert_eq!(sends.try_ready().is_ok(), row.send != Waits, "{}", row.name);
    let mut receives = Select::new();
    receives.recv(r);
    assert_eq!(receives.try_ready().is_ok(), row.recv != Waits, "{}", row.name);
    assert_eq!((s.len(), r.len()), (row.held.into(), row.held.into()), "{}", row.name);
    assert_eq!(r.is_full(), row.capacity == Some(row.held.into()), "{}", row.name);
    assert_eq!((s.capacity(), r.capacity()), (row.capacity, row.capacity));
}

/// Each message that should still be there is, once, in order.
fn check_rest(row: &Row, is_send: bool, met: bool, s: &Sender<u8>, r: &Receiver<u8>, cell: &str) {
    let mut rest: Vec<u8> = (0..row.held).collect();
    if met && !is_send && row.held > 0 {
        rest.remove(0);
        if matches!(row.other, Sends | SelectsSend) {
            rest.push(OTHERS);
        }
    }
    if met && is_send && row.other == Nobody {
        rest.push(SENT);
    }
    s.close();
    assert_eq!(r.iter().collect::<Vec<_>>(), rest, "what is left: {cell}");
}

fn check_all(pair: (Who, Who)) {
    for row in TABLE {
        for form in FORMS {
            check(row, true, form, pair);
            check(row, false, form, pair);
        }
    }
}

#[test]
fn goroutine_and_goroutine() {
    check_all(PAIRS[0]);
}

#[test]
fn goroutine_and_thread() {
    check_all(PAIRS[1]);
}

#[test]
fn thread_and_goroutine() {
    check_all(PAIRS[2]);
}

#[test]
fn thread_and_thread() {
    check_all(PAIRS[3]);
}

#[test]
fn a_channel_that_is_never_ready() {
    for (who, _) in PAIRS {
        who.start(|| {
            let r = never();
            for form in FORMS.into_iter().filter(|form| !form.is_endless()) {
                assert_eq!(recv(form, &r), Waits, "{form:?}");
            }
            assert!(!r.close());
            assert_eq!((r.len(), r.is_empty(), r.is_full()), (0, true, true));
            assert_eq!(r.capacity(), Some(0));
        })
        .join();
    }
}
