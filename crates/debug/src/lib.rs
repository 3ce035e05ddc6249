#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod query;

mod dump;
mod index;
mod metrics;
mod pprof;
mod trace;

mod sampler;
mod state;

mod page;

mod routes;
mod server;

pub use routes::answer;
pub use server::Server;
