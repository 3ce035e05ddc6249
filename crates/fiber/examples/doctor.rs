//! Prints what this machine offers to goroutines, a line a fact.

fn main() {
    print!("{}", gosched_fiber::doctor());
}
