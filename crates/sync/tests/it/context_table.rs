//! What each kind of context says after each event, as data: every cell is run.

use gosched_sync::context::{self, Context, ContextError};
use gosched_sync::mpsc;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

/// How the context under test is made below its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Cancel,
    /// With a deadline that is far away.
    Far,
    /// With a deadline that passes before the event's turn.
    Near,
    /// The same, with a cause.
    NearCause,
    /// With a deadline in the past.
    Past,
    Value,
    Without,
}

/// What happens, after the near deadlines have passed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Nothing,
    /// The context's own cancel.
    Own,
    OwnCause,
    OwnDropped,
    Parent,
    ParentCause,
    /// The parent was cancelled before the context was made.
    ParentBefore,
    /// The parent's deadline, an earlier one than the context's.
    ParentDeadline,
}

use ContextError::{Canceled, DeadlineExceeded};
use Event::*;
use Kind::*;

const KINDS: [Kind; 7] = [Cancel, Far, Near, NearCause, Past, Value, Without];
const EVENTS: [Event; 8] =
    [Nothing, Own, OwnCause, OwnDropped, Parent, ParentCause, ParentBefore, ParentDeadline];

/// Error and cause.
type Says = Option<(ContextError, &'static str)>;

const CANCELED: Says = Some((Canceled, "context canceled"));
const EXCEEDED: Says = Some((DeadlineExceeded, "context deadline exceeded"));
const OWN_CAUSE: Says = Some((Canceled, "own cause"));
const PARENT_CAUSE: Says = Some((Canceled, "parent's cause"));
const LATE_CAUSE: Says = Some((DeadlineExceeded, "too late"));

/// A line for each kind, a column for each event.
#[rustfmt::skip]
const TABLE: [(Kind, [Says; 8]); 7] = [
    //          Nothing     Own         OwnCause    OwnDropped  Parent      ParentCause   ParentBefore ParentDeadline
    (Cancel,    [None,       CANCELED,   OWN_CAUSE,  CANCELED,   CANCELED,   PARENT_CAUSE, CANCELED, EXCEEDED]),
    (Far,       [None,       CANCELED,   OWN_CAUSE,  CANCELED,   CANCELED,   PARENT_CAUSE, CANCELED, EXCEEDED]),
    (Near,      [EXCEEDED,   EXCEEDED,   EXCEEDED,   EXCEEDED,   EXCEEDED,   EXCEEDED,     CANCELED, EXCEEDED]),
    (NearCause, [LATE_CAUSE, LATE_CAUSE, LATE_CAUSE, LATE_CAUSE, LATE_CAUSE, LATE_CAUSE,   CANCELED, LATE_CAUSE]),
    (Past,      [EXCEEDED,   EXCEEDED,   EXCEEDED,   EXCEEDED,   EXCEEDED,   EXCEEDED,     CANCELED, EXCEEDED]),
    // Without a cancel of its own: its own events are none.
    (Value,     [None,       None,       None,       None,       CANCELED,   PARENT_CAUSE, CANCELED, EXCEEDED]),
    (Without,   [None,       None,       None,       None,       None,       None,         None,     None]),
];

fn make(kind: Kind, parent: &Context) -> (Context, Option<context::Cancel>) {
    let past = || Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
    let (ctx, cancel): (Context, context::Cancel) = match kind {
        Cancel => context::with_cancel(parent),
        Far => context::with_timeout(parent, HOUR),
        Near => context::with_timeout(parent, Duration::from_millis(1)),
        NearCause => context::with_timeout_cause(parent, Duration::from_millis(1), "too late"),
        Past => context::with_deadline(parent, past()),
        Value => return (context::with_value(parent, 7_u8), None),
        Without => return (context::without_cancel(parent), None),
    };
    (ctx, Some(cancel))
}

fn says(ctx: &Context) -> Option<(ContextError, String)> {
    let is_done = ctx.done().try_recv() == Err(gosched_channel::TryRecvError::Disconnected);
    assert_eq!(is_done, ctx.err().is_some(), "done and err go together");
    assert_eq!(ctx.cause().is_some(), ctx.err().is_some());
    Some((ctx.err()?, ctx.cause()?.to_string()))
}

fn run(kind: Kind, event: Event) -> Option<(ContextError, String)> {
    let soon = Duration::from_millis(3);
    let (parent, parents_cancel) = match event {
        ParentDeadline if !matches!(kind, Near | NearCause) => {
            context::with_timeout(&context::background(), soon)
        }
        _ => context::with_cancel(&context::background()),
    };
    if event == ParentBefore {
        parents_cancel.cancel();
    }
    let (ctx, cancel) = make(kind, &parent);
    if matches!(kind, Near | NearCause) {
        ctx.done().recv().unwrap_err();
    }
    let cancel: Option<context::Cancel> = cancel;
    let own = |f: fn(&context::Cancel)| cancel.iter().for_each(f);
    match event {
        Nothing | OwnDropped | ParentBefore => {}
        Own => own(context::Cancel::cancel),
        OwnCause => own(|cancel| cancel.cancel_cause("own cause")),
        Parent => parents_cancel.cancel(),
        ParentCause => parents_cancel.cancel_cause("parent's cause"),
        ParentDeadline if matches!(kind, Near | NearCause) => {}
        ParentDeadline => assert!(parent.done().recv().is_err()),
    }
    if event == OwnDropped {
        drop(cancel);
        return says(&ctx);
    }
    let said = wait_for(&ctx, kind, event);
    drop((cancel, parents_cancel));
    said
}

/// A parent ends its children one after the other: those that will end are waited for.
fn wait_for(ctx: &Context, kind: Kind, event: Event) -> Option<(ContextError, String)> {
    if event == ParentDeadline && kind != Without {
        ctx.done().recv().unwrap_err();
    }
    says(ctx)
}

#[test]
fn every_kind_after_every_event() {
    assert_eq!(TABLE.map(|(kind, _)| kind), KINDS, "every kind has its line");
    for (kind, line) in TABLE {
        for (event, expected) in EVENTS.into_iter().zip(line) {
            let expected = expected.map(|(error, cause)| (error, cause.to_string()));
            assert_eq!(run(kind, event), expected, "{kind:?} after {event:?}");
        }
    }
}

/// What each kind keeps of its parent's deadline and value.
#[test]
fn deadlines_and_values_are_inherited() {
    let parents_deadline = Instant::now() + HOUR;
    let top = context::with_value(&context::background(), "top");
    let (parent, _cancel) = context::with_deadline(&top, parents_deadline);
    for kind in KINDS {
        let (ctx, _cancel) = make(kind, &parent);
        let expected = match kind {
            Without => None,
            Near | NearCause | Past => ctx.deadline(),
            // Ends later than its parent, or has none of its own.
            Far | Cancel | Value => Some(parents_deadline),
        };
        assert_eq!(ctx.deadline(), expected, "{kind:?}");
        assert!(kind == Without || ctx.deadline() <= Some(parents_deadline), "{kind:?}");
        assert_eq!(ctx.value::<&str>(), Some(&"top"), "{kind:?}");
        assert_eq!(ctx.value::<u8>().is_some(), kind == Value, "{kind:?}");
    }
    let background = context::background();
    assert!(background.deadline().is_none() && background.value::<&str>().is_none());
    assert!(background.err().is_none() && background.cause().is_none());
}

/// A function after each kind runs exactly if the context ends.
#[test]
fn functions_run_if_the_context_ends() {
    for (kind, line) in TABLE {
        let (parent, cancel) = context::with_cancel(&context::background());
        let (ctx, _own): (Context, Option<context::Cancel>) = make(kind, &parent);
        let (say, told) = mpsc::channel();
        let after = context::after_func(&ctx, move || say.send(()).unwrap());
        cancel.cancel();
        let ends = line[4].is_some();
        if ends {
            assert_eq!(told.recv(), Ok(()), "{kind:?}");
        }
        assert_eq!(after.stop(), !ends, "{kind:?}");
    }
}
