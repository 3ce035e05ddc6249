//! Why a stack could not be made.

use std::error::Error;
use std::fmt;

/// What `alloc` reports. Nothing was changed when it is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackError {
    /// No class is large enough.
    TooLarge {
        /// What was asked for.
        bytes: usize,
    },
    /// The kernel refused address space or memory; holds its error number.
    Refused {
        /// The number the system call left in `errno`.
        errno: i32,
    },
    /// Guards need a mapping each on this kernel, and the process is near its limit of mappings.
    MapLimit {
        /// `vm.max_map_count` when the process started.
        limit: usize,
        /// A value that allows twice as many stacks as there are now.
        needed: usize,
    },
    /// The table of arenas is full. Only seen where arenas are kept small by `RLIMIT_AS`.
    ArenasExhausted,
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(f, "no stack of {bytes} bytes: the largest has 64 GiB")
            }
            Self::Refused { errno } => {
                write!(f, "the system refused memory for a stack (errno {errno})")?;
                match *errno {
                    libc::ENOMEM => {
                        write!(f, ", see `ulimit -v` and `sysctl vm.overcommit_memory`")
                    }
                    _ => Ok(()),
                }
            }
            Self::MapLimit { limit, needed } => write!(
                f,
                "guard pages of stacks used up the memory mappings this process may have: \
                 vm.max_map_count is {limit}; `sysctl -w vm.max_map_count={needed}` allows twice \
                 as many stacks, Linux 6.13 needs no mapping for a guard, and \
                 GOSCHED=unguarded=1 does without guards"
            ),
            Self::ArenasExhausted => write!(f, "out of stack arenas: address space is limited"),
        }
    }
}

impl Error for StackError {}
