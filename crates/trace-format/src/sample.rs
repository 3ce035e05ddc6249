//! Samples of the CPU profiler: where a thread was at a moment.
//!
//! They stand beside the events, in batches of their own, sorted by time.

use crate::event::mark;
use crate::varint::read_varint;
use crate::write::{NO_THREAD, PAYLOAD_MAX, batch_header, push_varint};

/// Stands for a processor where there is none.
pub const NO_PROCESSOR: u64 = u64::MAX;

/// Where a thread was. Go's `EvCPUSample`, whose tools call it `StackSample`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSample {
    /// When, in ticks.
    pub time: u64,
    /// The thread.
    pub thread: u64,
    /// Its processor, or [`NO_PROCESSOR`].
    pub processor: u64,
    /// Its goroutine; 0 if it ran none.
    pub goroutine: u64,
    /// The stack, by its number in the generation.
    pub stack: u64,
}

/// Writes samples, sorted by time, in as many batches as it takes; none if there are none.
///
/// ```
/// use gosched_trace_format::{CpuSample, sample_batches};
///
/// let mut out = Vec::new();
/// let sample = CpuSample { time: 5, thread: 100, processor: 0, goroutine: 7, stack: 1 };
/// sample_batches(&mut out, 1, 5, &[sample]);
/// assert!(out.ends_with(&[6, 7, 5, 100, 0, 7, 1]));
/// ```
pub fn sample_batches(out: &mut Vec<u8>, generation: u64, time: u64, samples: &[CpuSample]) {
    const ENTRY_MAX: usize = 1 + 5 * crate::VARINT_MAX;
    for some in samples.chunks((PAYLOAD_MAX - 1) / ENTRY_MAX) {
        let mut payload = vec![mark::CPU_SAMPLES];
        for CpuSample { time, thread, processor, goroutine, stack } in some {
            payload.push(mark::CPU_SAMPLE);
            [time, thread, processor, goroutine, stack]
                .into_iter()
                .for_each(|n| push_varint(&mut payload, *n));
        }
        batch_header(out, generation, NO_THREAD, time, payload.len());
        out.append(&mut payload);
    }
}

/// The sample at the head of `rest`; `None` if there is something else.
pub(crate) fn read_sample(rest: &mut &[u8]) -> Option<CpuSample> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    if *first != mark::CPU_SAMPLE {
        return None;
    }
    let mut next = || read_varint(rest);
    let (time, thread, processor) = (next()?, next()?, next()?);
    Some(CpuSample { time, thread, processor, goroutine: next()?, stack: next()? })
}
