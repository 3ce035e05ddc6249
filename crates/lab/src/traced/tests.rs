use super::{Role, Span, Traced};
use gosched_trace_format::{
    EVENT_MAX, Frame, HEADER, Kind, Table, batch_header, encode, frequency_batch,
};

const MANY: u64 = 1;
const PROBE: u64 = 2;
const MAIN: u64 = 3;

/// A trace of these events on one thread, a tick being a microsecond.
fn trace(events: &[(Kind, u64, &[u64])]) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    frequency_batch(&mut out, 1, 0, 1_000_000);
    let mut payload = Vec::new();
    for (kind, dt, args) in events {
        let mut bytes = [0; EVENT_MAX];
        let len = encode(&mut bytes, *kind, *dt, args).expect("there is room");
        payload.extend_from_slice(&bytes[..len]);
    }
    batch_header(&mut out, 1, 100, 0, payload.len());
    out.extend_from_slice(&payload);
    let mut table = Table::new();
    for (id, text) in [(1, "sleep"), (2, "gc"), (3, "preempted")] {
        table.string(id, text);
    }
    let functions = [
        (MANY, "gosched_lab::task::Job::spawn::{{closure}}"),
        (PROBE, "gosched_lab::probe::spawn::{{closure}}"),
        (MAIN, "main"),
    ];
    for (id, function) in functions {
        let file = "main.rs".into();
        table.stack(id, &[Frame { pc: id, function: function.into(), file, line: 3 }]);
    }
    table.write(&mut out, 1, 0);
    out
}

/// Main makes the probe, which sleeps; one of the many is preempted for it after 3 ms.
const EVENTS: [(Kind, u64, &[u64]); 19] = [
    (Kind::ProcStatus, 0, &[0, 1]),
    (Kind::GoStatusStack, 0, &[1, 100, 2, MAIN]),
    (Kind::ProcsChange, 100, &[1, 0]),
    (Kind::GoCreate, 100, &[2, PROBE, 0]),
    (Kind::GoBlock, 100, &[1, 0]),
    (Kind::GoStart, 100, &[2, 1]),
    (Kind::GoBlock, 100, &[1, 0]),
    (Kind::GoUnblock, 100, &[1, 1, 0]),
    (Kind::GoStart, 100, &[1, 2]),
    (Kind::GoCreate, 300, &[3, MANY, 0]),
    (Kind::STWBegin, 100, &[2, 0]),
    (Kind::GCBegin, 100, &[1, 0]),
    (Kind::GCEnd, 100, &[2]),
    (Kind::STWEnd, 100, &[]),
    (Kind::GoBlock, 100, &[1, 0]),
    (Kind::GoStart, 500, &[3, 1]),
    (Kind::GoUnblock, 1_000, &[2, 2, 0]),
    (Kind::GoStop, 2_000, &[3, 0]),
    (Kind::GoStart, 100, &[2, 3]),
];

#[test]
fn a_trace_is_told_from_the_first_of_the_many() {
    let told = Traced::of(&trace(&EVENTS)).expect("it is right");
    assert_eq!((told.goroutines, told.generations, told.events), (1, 1, 19));
    assert_eq!(told.given_up, [("preempted".to_owned(), 1)].into());
    assert_eq!((told.count("GoStart"), told.count("GoBlock")), (4, 3));
    let p0 = &told.processors[0];
    assert_eq!((p0.p, p0.total()), (Some(0), 19));

    // The first of the many is made at 1,000 us; the probe sleeps from 500 us on.
    let span = |what: &str, from_ns, took_ns| Span { what: what.to_owned(), from_ns, took_ns };
    assert_eq!(told.stops, [span("gc", 100_000, 300_000)]);
    assert_eq!(told.collections, [span("collection", 200_000, 100_000)]);
    assert_eq!(told.procs_changes, [(-900_000, 1)]);
    let [sleep] = told.sleeps[..] else { panic!("{:?}", told.sleeps) };
    assert_eq!((sleep.from_ns, sleep.ready_ns, sleep.ran_ns), (-500_000, 2_000_000, 4_100_000));
    assert_eq!((sleep.ready_late_ns(), sleep.late_ns()), (1_500_000, 3_600_000));

    let many: Vec<_> = told.runs.iter().filter(|run| run.role == Role::Many(3)).collect();
    assert_eq!(many.len(), 1);
    assert_eq!((many[0].p, many[0].from_ns, many[0].to_ns), (0, 1_000_000, 4_000_000));
}

#[test]
fn a_trace_that_can_not_be_is_an_error() {
    let twice = [&EVENTS[..16], &[(Kind::GoStart, 1, &[3, 2])]].concat();
    assert!(Traced::of(&trace(&twice)).is_err());
    assert!(Traced::of(b"hello").is_err());
}
