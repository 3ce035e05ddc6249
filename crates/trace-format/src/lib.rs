//! Execution traces in the format `go 1.23 trace`, which Go's tools since 1.23 open.
//!
//! Layer: `trace-format`. Uses nothing of gosched; unsafe: none. One table of events ([`SPECS`]) serves
//! the writer, the reader and the checker.
//!
//! A trace is a header and generations of a second or so. A generation is a set of batches, each the
//! events of one thread with times relative to the one before, together with the strings and stacks
//! that they name by number. A generation can be read without those before it, as far as the states
//! of goroutines and processors are stated in it.
//!
//! * Writing ([`encode`], [`batch_header`], [`Table`]): the first allocates nothing, so that a scheduler
//!   can use it anywhere.
//! * Reading ([`Trace`]): batches, strings, stacks, events.
//! * Checking ([`Order`], [`verify()`]): the one order that all threads' events have, by Go's rules.
//! * Looking ([`Timeline`]): the events as intervals, of goroutines and processors.
#![forbid(unsafe_code)]

mod event;
mod order;
mod read;
mod sample;
mod table;
mod timeline;
mod varint;
mod verify;
mod write;

pub use event::{Arg, Event, Kind, SPECS, Spec, spec};
pub use order::{Broken, Context, GoStatus, Order, ProcStatus, Seen};
pub use read::{Batch, Damaged, Frame, Generation, Trace};
pub use sample::{CpuSample, NO_PROCESSOR, sample_batches};
pub use table::Table;
pub use timeline::{Doing, Range, Timeline, Watch, Who};
pub use varint::{VARINT_MAX, read_varint, write_varint};
pub use verify::{Fault, Verified, verify};
pub use write::{
    EVENT_MAX, EVENT_ROOM, HEADER, NO_THREAD, STRING_MAX, STRINGS, batch_header, encode,
    encode_in_room, encode_string, frequency_batch,
};
