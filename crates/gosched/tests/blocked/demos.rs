//! The examples show what they say.

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../examples/ffi.rs"]
mod ffi;
#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../examples/lock_thread.rs"]
mod lock_thread;

use gosched::run;

#[test]
fn ffi_shows_three_ways() {
    let shown = run(ffi::demo);
    assert_eq!(shown.each_ref().map(|shown| shown.way), ["limited", "bare", "declared"]);
    assert!(shown.iter().all(|shown| shown.calls == 100));
    assert!(shown[0].to_string().starts_with("limited   100 calls in "), "{}", shown[0]);
}

#[test]
fn lock_thread_shows_what_a_forgotten_unlock_costs() {
    let [unlocked, forgotten] = run(lock_thread::demo);
    assert!(unlocked.stayed && forgotten.stayed);
    assert_eq!(forgotten.threads, 20, "{forgotten}");
    assert!(unlocked.threads < 20, "{unlocked}");
}
