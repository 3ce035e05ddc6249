//! No frames: this was built without the feature.

use crate::goroutine::GRef;
use std::fmt::{self, Write};

pub(crate) fn prepare() {}

pub(crate) struct Names;

impl Names {
    pub(crate) fn unknown() -> Names {
        Names
    }

    pub(crate) fn known() -> Names {
        Names
    }
}

pub(crate) fn write(
    _: &mut impl Write,
    _: GRef,
    _: Option<[usize; 3]>,
    _: &mut Names,
) -> fmt::Result {
    Ok(())
}
