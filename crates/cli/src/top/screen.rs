//! Where tables are drawn: one over the other in a terminal, else one after the other.

use std::io::{self, IsTerminal, Write};

pub(super) struct Screen {
    is_redrawn: bool,
}

/// To the upper left corner.
const HOME: &str = "\x1b[H";
/// From here to the end of the line, and of the screen.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

impl Screen {
    /// `repeats`: more than one table will come.
    pub(super) fn new(repeats: bool) -> Screen {
        Screen { is_redrawn: repeats && io::stdout().is_terminal() }
    }

    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.is_redrawn {
            // Written over, not cleared first: nothing flickers.
            write!(out, "{HOME}")?;
            text.lines().try_for_each(|line| writeln!(out, "{line}{CLEAR_LINE}"))?;
            write!(out, "{CLEAR_REST}")?;
        } else {
            writeln!(out, "{text}")?;
        }
        out.flush()
    }
}
