//! Command of gosched.
fn main() {}
