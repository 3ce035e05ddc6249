//! The attribute macros of gosched: `#[gosched::main]`, `#[gosched::test]` and
//! `#[gosched::preemptible]`.
//!
//! Programs use them through the crate `gosched`, which re-exports them and has what their
//! expansions call in a hidden module `__private`:
//!
//! * `main<T: Termination + 'static>(f: fn() -> T) -> !` runs `f` as the main goroutine and ends
//!   the process with what it returned.
//! * `test<T: Termination>(name: &'static str, timeout: Option<Duration>, f: fn() -> T) -> T` runs
//!   `f` as a goroutine and hands on its result or its panic; when it takes longer than `timeout`
//!   it dumps all goroutines and fails.
//!
//! Layer: compile time only. Unsafe: none.
//!
//! Invariants
//! * I1. A function's body passes through as it was written, so errors in it are the compiler's
//!   own and point into the program. `preemptible` adds statements to it and changes nothing.
//! * I2. The inner function keeps the outer one's name, so that recursion stays recursion and a
//!   backtrace shows a name that the program knows.
//! * I3. A rejected function becomes one with the same name whose body is the error, so that one
//!   mistake makes one message.
//!
//! Rejected: finding loops among unparsed tokens, which saves `syn`'s feature `full` (two seconds
//! of a first build): where a loop's head ends and its body begins takes a parser of expressions.

#![forbid(unsafe_code)]

mod entry;
mod preemptible;
mod test_fn;

mod request;

mod function;
mod options;

mod duration;

use proc_macro::TokenStream;

/// Makes a function the program's main goroutine.
///
/// The function may return what `main` may return. When it does, the process ends with that
/// result, as in Go: other goroutines are not waited for. The attribute goes on any function
/// without arguments; it becomes one that returns never, so a `main` written by hand can do
/// something first, while the program has only one thread.
///
/// `crate = path` tells where gosched is when it isn't called `::gosched`.
///
/// Go: `func main`.
///
/// # Examples
///
/// ```
/// # extern crate self as gosched;
/// # pub use gosched_macros::main;
/// # pub mod __private {
/// #     pub fn main<T: std::process::Termination + 'static>(f: fn() -> T) -> ! {
/// #         let failed = f().report() != std::process::ExitCode::SUCCESS;
/// #         std::process::exit(failed.into())
/// #     }
/// # }
/// use std::num::ParseIntError;
///
/// #[gosched::main]
/// fn main() -> Result<(), ParseIntError> {
///     let answer: u32 = "42".parse()?;
///     println!("{answer}");
///     Ok(())
/// }
/// ```
///
/// A goroutine blocks where a future would await, so `async` is refused:
///
/// ```compile_fail
/// # extern crate self as gosched;
/// # pub use gosched_macros::main;
/// # pub mod __private { pub fn main<T>(f: fn() -> T) -> ! { f(); std::process::exit(0) } }
/// #[gosched::main]
/// async fn main() {}
/// ```
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(arguments.into(), item.into()).into()
}

/// Puts safepoints into a function: one at its entry and one into each of its loops.
///
/// A safepoint is one load and one branch; there the goroutine lets others run when it has had its
/// share. For code that can't be stopped by signal: with `asyncpreemptoff=1`, or on machines where
/// the runtime can't do it. Elsewhere it changes nothing but when exactly a goroutine is stopped.
///
/// `while`, `loop` and `for` of the function itself are covered, not those in closures, nested
/// items, async blocks and macro calls. Put the attribute on those functions as well. `crate = path`
/// tells where gosched is when it isn't called `::gosched`.
///
/// Go: the checks that its compiler puts at function entries.
///
/// # Examples
///
/// ```
/// # extern crate self as gosched;
/// # pub use gosched_macros::preemptible;
/// # pub mod runtime { pub fn safepoint() {} }
/// #[gosched::preemptible]
/// fn collatz(mut n: u64) -> u32 {
///     let mut steps = 0;
///     while n != 1 {
///         n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
///         steps += 1;
///     }
///     steps
/// }
/// # fn main() {
/// assert_eq!(collatz(27), 111);
/// # }
/// ```
///
/// A constant has no goroutine to stop:
///
/// ```compile_fail
/// # extern crate self as gosched;
/// # pub use gosched_macros::preemptible;
/// # pub mod runtime { pub fn safepoint() {} }
/// #[gosched::preemptible]
/// const fn seven() -> u32 { 7 }
/// # fn main() {}
/// ```
#[proc_macro_attribute]
pub fn preemptible(arguments: TokenStream, item: TokenStream) -> TokenStream {
    preemptible::expand(arguments.into(), item.into()).into()
}

/// Makes a function a test that runs as a goroutine.
///
/// It takes what `#[test]` takes: `#[should_panic]`, `#[ignore]`, `#[cfg(...)]`, and a result to
/// return. With `timeout = "5s"` (units `ms`, `s`, `m`, `h`) a test that takes longer dumps all
/// goroutines and fails, instead of hanging. `crate = path` tells where gosched is when it isn't
/// called `::gosched`.
///
/// Go: a function `TestXxx` and the flag `-timeout`; here each test has a time-out of its own.
///
/// # Examples
///
/// ```
/// # extern crate self as gosched;
/// # pub use gosched_macros::test;
/// # pub mod __private {
/// #     pub fn test<T>(_: &str, _: Option<std::time::Duration>, f: fn() -> T) -> T { f() }
/// # }
/// #[gosched::test(timeout = "5s")]
/// fn adds() {
///     assert_eq!(1 + 1, 2);
/// }
///
/// #[gosched::test]
/// #[should_panic(expected = "empty")]
/// fn refuses() {
///     None::<u32>.expect("empty");
/// }
/// # fn main() {}
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    test_fn::expand(arguments.into(), item.into()).into()
}
