//! A test's body in a process of its own: what crates keep for each thread must be this test's.

use std::process::Command;

const CHILD: &str = "GOSCHED_CROWD_CHILD";

/// Runs `body` in a child process. `test` is the path of the calling test.
#[track_caller]
pub(crate) fn in_child(test: &str, body: fn()) {
    if std::env::var(CHILD).as_deref() == Ok(test) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command.args([test, "--exact", "--nocapture"]).env(CHILD, test);
    let ended = command.output().expect("the child starts");
    let (out, err) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let tail: String = err.chars().take(4_000).collect();
    assert!(ended.status.success(), "{test}: {}\n{out}\n{tail}", ended.status);
    out.lines().filter(|line| line.contains("goroutines")).for_each(|line| println!("{line}"));
}
