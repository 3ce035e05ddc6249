//! The server over real sockets.

mod bodies;
mod clients;
mod fixture;
mod generated;
mod limits;
mod panics;
mod shutdown;
mod table;
mod timeouts;
