//! Settings from the environment.

use crate::child::{Child, Ended};

fn procs(variable: &str, value: &str) -> Ended {
    Child::new("sched_fatal", &["procs"]).env(variable, value).run()
}

fn expect(ended: &Ended, procs: &str, warnings: &[&str]) {
    ended.expect_code(0).expect_out(&format!("procs={procs}\n"));
    ended.expect_err(&warnings.iter().map(|line| format!("gosched: {line}\n")).collect::<String>());
}

fn default() -> String {
    gosched::runtime::gomaxprocs(0).to_string()
}

#[test]
fn the_number_of_processors() {
    expect(&procs("GOMAXPROCS", "3"), "3", &[]);
    expect(&procs("GOMAXPROCS", " 3 "), "3", &[]);
    expect(&procs("GOSCHED", "procs=3"), "3", &[]);
    expect(&procs("GOSCHED", "procs=3,"), "3", &[]);
}

#[test]
fn a_number_that_is_none() {
    let cpus = default();
    for value in ["abc", "0", "-1", "", "1.5"] {
        let warning = format!("GOMAXPROCS={value} is not a positive number; using {cpus}");
        expect(&procs("GOMAXPROCS", value), &cpus, &[&warning]);
    }
    let warning = "GOSCHED: procs=many is not understood; the default is used";
    expect(&procs("GOSCHED", "procs=many"), &cpus, &[warning]);
}

#[test]
fn an_unknown_key() {
    let ended = procs("GOSCHED", "nonsense=1,procs=3");
    ended.expect_code(0).expect_out("procs=3\n");
    assert_eq!(ended.err().lines().count(), 1, "{}", ended.story());
    ended.expect_err_parts(&["gosched: GOSCHED: unknown key \"nonsense\"; known are procs, tls, "]);
}
