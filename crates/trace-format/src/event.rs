//! The one table of events: numbers, names, arguments.

/// What an argument of an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arg {
    /// A plain number.
    Number,
    /// A processor.
    Processor,
    /// Its sequence number.
    ProcessorSeq,
    /// A thread, or [`NO_THREAD`](crate::NO_THREAD).
    Thread,
    /// A processor's status.
    ProcStatus,
    /// A goroutine.
    Goroutine,
    /// Its sequence number.
    GoroutineSeq,
    /// A goroutine's status.
    GoStatus,
    /// A stack, by its number in the generation; 0 for none.
    Stack,
    /// A string, by its number in the generation; 0 for the empty one.
    String,
    /// The sequence number of collections.
    GcSeq,
    /// A task of the user's; 0 for none.
    Task,
}

/// What one kind of event is called and has to say.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its number is the byte that it begins with.
    pub kind: Kind,
    /// Go's name.
    pub name: &'static str,
    /// Its arguments, after the time for those that have one: their names and meanings.
    pub args: &'static [(&'static str, Arg)],
}

/// An event that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in ticks.
    pub time: u64,
    /// What.
    pub kind: Kind,
    /// The rest, see [`Spec::args`]; those beyond are 0.
    pub args: [u64; 4],
}

macro_rules! events {
    ($($(#[$doc:meta])* $number:literal $name:ident ($($arg:literal: $meaning:ident),*);)+) => {
        /// The kinds of events that have a time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)+
        }

        /// Every kind of event that has a time.
        pub const SPECS: &[Spec] = &[
            $(Spec {
                kind: Kind::$name,
                name: stringify!($name),
                args: &[$(($arg, Arg::$meaning)),*],
            },)+
        ];
    };
}

events! {
    /// GOMAXPROCS is this now.
    9 ProcsChange ("procs_value": Number, "stack": Stack);
    /// The thread begins to use a processor.
    10 ProcStart ("p": Processor, "p_seq": ProcessorSeq);
    /// It gives it up.
    11 ProcStop ();
    /// The processor of a thread in a system call is taken.
    12 ProcSteal ("p": Processor, "p_seq": ProcessorSeq, "m": Thread);
    /// The processor was in this status before its next event.
    13 ProcStatus ("p": Processor, "pstatus": ProcStatus);
    /// A goroutine is made.
    14 GoCreate ("new_g": Goroutine, "new_stack": Stack, "stack": Stack);
    /// A goroutine appears in a system call: a thread of C calls back.
    15 GoCreateSyscall ("new_g": Goroutine);
    /// A goroutine begins to run on the thread.
    16 GoStart ("g": Goroutine, "g_seq": GoroutineSeq);
    /// The running one ends.
    17 GoDestroy ();
    /// The one in a system call ends there.
    18 GoDestroySyscall ();
    /// The running one gives way, or has to.
    19 GoStop ("reason_string": String, "stack": Stack);
    /// The running one waits.
    20 GoBlock ("reason_string": String, "stack": Stack);
    /// A waiting one can go on.
    21 GoUnblock ("g": Goroutine, "g_seq": GoroutineSeq, "stack": Stack);
    /// The running one enters a system call.
    22 GoSyscallBegin ("p_seq": ProcessorSeq, "stack": Stack);
    /// It is back, and has its processor still.
    23 GoSyscallEnd ();
    /// It is back, and the processor is gone.
    24 GoSyscallEndBlocked ();
    /// The goroutine was in this status before its next event.
    25 GoStatus ("g": Goroutine, "m": Thread, "gstatus": GoStatus);
    /// The world is being stopped.
    26 STWBegin ("kind_string": String, "stack": Stack);
    /// It goes on.
    27 STWEnd ();
    /// A collection was going on before the generation.
    28 GCActive ("gc_seq": GcSeq);
    /// A collection begins.
    29 GCBegin ("gc_seq": GcSeq, "stack": Stack);
    /// It ends.
    30 GCEnd ("gc_seq": GcSeq);
    /// The processor was sweeping before the generation.
    31 GCSweepActive ("p": Processor);
    /// It begins to sweep.
    32 GCSweepBegin ("stack": Stack);
    /// It ends.
    33 GCSweepEnd ("swept_value": Number, "reclaimed_value": Number);
    /// The goroutine was assisting a collection before the generation.
    34 GCMarkAssistActive ("g": Goroutine);
    /// It begins to.
    35 GCMarkAssistBegin ("stack": Stack);
    /// It ends.
    36 GCMarkAssistEnd ();
    /// So many bytes are allocated.
    37 HeapAlloc ("heapalloc_value": Number);
    /// A collection is due at so many.
    38 HeapGoal ("heapgoal_value": Number);
    /// A label of the running goroutine.
    39 GoLabel ("label_string": String);
    /// A task of the user's begins.
    40 UserTaskBegin ("task": Task, "parent_task": Task, "name_string": String, "stack": Stack);
    /// It ends.
    41 UserTaskEnd ("task": Task, "stack": Stack);
    /// A region of the running goroutine begins.
    42 UserRegionBegin ("task": Task, "name_string": String, "stack": Stack);
    /// It ends.
    43 UserRegionEnd ("task": Task, "name_string": String, "stack": Stack);
    /// Something that the user notes.
    44 UserLog ("task": Task, "key_string": String, "value_string": String, "stack": Stack);
    /// The running goroutine waits and this one, which waited, runs.
    45 GoSwitch ("g": Goroutine, "g_seq": GoroutineSeq);
    /// The running goroutine ends and this one, which waited, runs.
    46 GoSwitchDestroy ("g": Goroutine, "g_seq": GoroutineSeq);
    /// A goroutine is made that waits.
    47 GoCreateBlocked ("new_g": Goroutine, "new_stack": Stack, "stack": Stack);
    /// As `GoStatus`, with a stack.
    48 GoStatusStack ("g": Goroutine, "m": Thread, "gstatus": GoStatus, "stack": Stack);
}

/// What an event that begins with `number` is; `None` for what is none, or has no time.
///
/// ```
/// let spec = gosched_trace_format::spec(16).unwrap();
/// assert_eq!(spec.name, "GoStart");
/// assert_eq!(spec.args.len(), 2);
/// ```
#[must_use]
pub fn spec(number: u8) -> Option<&'static Spec> {
    SPECS.get(usize::from(number).checked_sub(9)?)
}

/// First bytes of batches, and of what is in them.
pub(crate) mod mark {
    pub(crate) const BATCH: u8 = 1;
    pub(crate) const STACKS: u8 = 2;
    pub(crate) const STACK: u8 = 3;
    pub(crate) const STRINGS: u8 = 4;
    pub(crate) const STRING: u8 = 5;
    pub(crate) const CPU_SAMPLES: u8 = 6;
    pub(crate) const CPU_SAMPLE: u8 = 7;
    pub(crate) const FREQUENCY: u8 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_indexed_by_the_number() {
        for (i, entry) in SPECS.iter().enumerate() {
            assert_eq!(entry.kind as usize, i + 9);
            assert!(entry.args.len() <= 4);
        }
        assert!(spec(8).is_none());
        assert!(spec(49).is_none());
    }
}
