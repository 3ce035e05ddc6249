//! Makes stacks with protected guards until that is refused, and shows that the process goes on.

use std::fs;
use std::thread;

use gosched_fiber::stack::{self, Class, GuardKind};

fn main() {
    stack::choose_guard(GuardKind::Protect);
    let mut stacks = Vec::new();
    let error = loop {
        match stack::alloc(Class::SMALL) {
            Ok(stack) => stacks.push(stack),
            Err(error) => break error,
        }
    };
    println!("stacks={}", stacks.len());
    println!("maps={}", fs::read_to_string("/proc/self/maps").expect("readable").lines().count());
    println!("error: {error}");
    // Needs mappings of its own.
    thread::spawn(|| println!("a thread ran")).join().expect("the thread ends");
}
