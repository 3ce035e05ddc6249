//! The facade's locks, groups and contexts: the target of the public interface compiles and does
//! what it says.

mod api;
