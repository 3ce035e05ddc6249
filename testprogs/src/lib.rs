//! What several of the child programs share.

pub mod filter;
pub mod registers;
pub mod signals;

pub mod random;
