//! Crates that are written for any `Read + Write`, on goroutines and sockets of gosched.

mod tls;
mod websocket;
