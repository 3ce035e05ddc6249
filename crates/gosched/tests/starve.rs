//! The example `starve` shows what it says: who came first, not when. A process for each way, since
//! preemption is on or off for all of one.

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../examples/starve.rs"]
mod starve;

use std::env;
use std::process::Command;

const ASKED: &str = "STARVE_WAY";

/// What a child says instead if a page kept the loop waiting in the kernel so long that the other one
/// got the processor: that shows nothing, and another child is asked.
const HELD_UP: &str = "held up";

/// In a child, the way it was started for; nothing otherwise.
#[test]
fn child() {
    if let Some((_, way)) = env::var(ASKED).ok().and_then(|asked| starve::named(&asked)) {
        let shown = gosched::run(move || starve::show(way));
        match gosched::runtime::counters().undeclared_hand_offs {
            0 => println!("{shown}"),
            _ => println!("{HELD_UP}"),
        }
    }
}

fn shown(name: &str) -> String {
    let (_, way) = starve::named(name).expect("a way of that name");
    let mut child = Command::new(env::current_exe().expect("known"));
    child.args(["child", "--exact", "--nocapture"]).env(ASKED, name);
    let output = child.env("GOSCHED", way.settings()).env_remove("GOMAXPROCS").output();
    let output = output.expect("the child starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    if text.contains(HELD_UP) {
        return shown(name);
    }
    let line = text.lines().find_map(|line| Some(&line[line.find(name)?..]));
    line.unwrap_or_else(|| panic!("no line in {text}")).into()
}

#[test]
fn without_preemption_a_loop_keeps_its_processor() {
    let line = shown("preemption off");
    assert!(line.contains("the other ran after the loop"), "{line}");
    assert!(line.ends_with("was stopped 0 times"), "{line}");
}

#[test]
fn a_loop_that_yields_lets_others_run() {
    let line = shown("explicit yield");
    assert!(line.contains("the other ran beside the loop"), "{line}");
    assert!(line.ends_with("was stopped 0 times"), "{line}");
}

#[test]
fn a_loop_is_stopped_for_others() {
    let line = shown("preemption on");
    assert!(line.contains("the other ran beside the loop"), "{line}");
    assert!(!line.ends_with("was stopped 0 times"), "{line}");
}
