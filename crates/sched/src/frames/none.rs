//! No frames: this was built without the feature.

use crate::goroutine::GRef;
use crate::labels::{self, Labels};
use std::fmt::{self, Write};
use std::sync::Arc;

pub(crate) fn prepare() {}

/// Whether locks may be taken.
pub(crate) struct Names(bool);

impl Names {
    pub(crate) fn unknown() -> Names {
        Names(false)
    }

    pub(crate) fn known() -> Names {
        Names(true)
    }

    pub(crate) fn labels(&self, g: GRef) -> Option<Arc<Labels>> {
        self.0.then(|| labels::of(g)).flatten()
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
