//! What is read from made-up systems, and from this one.

mod cgroup;
mod cpus;
mod damaged;
mod machine;
mod system;
mod tree;
mod watch;
