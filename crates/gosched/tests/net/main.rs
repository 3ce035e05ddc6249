//! Sockets: what waits, what ends a wait, and what must not be lost or left over.

#[path = "../it/child.rs"]
#[allow(dead_code, reason = "the helper of the other tests, of which these use a part")]
mod child;

mod connect;
mod contexts;
mod conversions;
mod datagrams;
mod deadlines;
mod listeners;
mod pairs;
mod processes;
mod streams;
