//! Where the members further behind in a list lie, guessed from those before.

/// Guesses where a walk through a list will come to, so that lines can be fetched ahead.
///
/// A list can't be read ahead: where a member lies is written in the one before, which is as cold.
/// But what lies on stacks lies in mappings from which these were cut in order; so of many that were
/// entered one after the other each [`DEPTH`](Stride::DEPTH)th is as far from the last as that one
/// from the one before.
///
/// # Examples
/// ```
/// use gosched_base::Stride;
///
/// let mut stride = Stride::new();
/// let guesses: Vec<_> = (100..120).map(|at| stride.passes(at * 4096)).collect();
/// assert_eq!(guesses[8], None, "the first distance");
/// assert_eq!(guesses[9], Some(Stride::DEPTH * 4096), "twice the same one");
/// assert_eq!(stride.passes(7), None);
/// ```
#[derive(Debug, Default)]
pub struct Stride {
    /// The last addresses, and where the next one is noted.
    passed: [usize; Stride::DEPTH],
    at: usize,
    /// How far the last address was from the one `DEPTH` places before it.
    last: usize,
}

impl Stride {
    /// How many places ahead the guess is. As many as the lines by which neighbouring stacks are
    /// shifted against each other, so that these cancel out.
    pub const DEPTH: usize = 8;

    /// Nothing was passed yet.
    #[must_use]
    pub const fn new() -> Stride {
        Stride { passed: [0; Stride::DEPTH], at: 0, last: 0 }
    }

    /// The walk is at `address`. How far from there it will be after `DEPTH` more steps, modulo 2^64,
    /// if it was regular so far; only good for fetching.
    #[inline]
    pub fn passes(&mut self, address: usize) -> Option<usize> {
        let before = std::mem::replace(&mut self.passed[self.at], address);
        self.at = (self.at + 1) % Stride::DEPTH;
        let stride = address.wrapping_sub(before);
        let last = std::mem::replace(&mut self.last, stride);
        (stride == last).then_some(stride)
    }
}
