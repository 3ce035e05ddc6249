#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../../../testprogs/fuzz.rs"]
mod fuzz;

mod config;
mod refusal;
mod status;

mod input;
mod scan;

mod chunked;
mod head;

mod body;
mod request;

mod date;
mod response;
mod stream;

mod phase;
mod table;

mod connection;
mod server;

pub mod client;

pub use body::Body;
pub use request::Request;
pub use response::Response;
pub use server::{Handle, Server, serve};
pub use stream::BodyWriter;
