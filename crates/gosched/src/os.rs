//! What only some systems have, placed as in `std::os`.

/// Unix.
pub mod unix {
    /// Unix sockets, in the shape of `std::os::unix::net`.
    pub mod net {
        pub use gosched_net::unix::*;
    }
}
