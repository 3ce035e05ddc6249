//! The crate graph may only point down.

use super::Problem;
use crate::workspace::{Dependency, Package};

/// Folders of crates, the lowest layer first. ARCHITECTURE.md quotes this table.
///
/// A crate may use the layers below its own, not its neighbours. A name without a folder keeps
/// the place of a crate to come.
pub(crate) const LAYERS: &[&[&str]] = &[
    &["base", "macros"],
    &["fiber", "protocol", "runq"],
    &["poll", "topology", "trace-format", "unwind"],
    &["sched"],
    &["channel", "net"],
    &["os", "sync"],
    &["pprof"],
    &["gosched"],
    &["http", "lab", "demos"],
    &["bench", "debug", "testprogs"],
    &["cli"],
];

/// Crates that stand apart: they use no crate of the workspace and none uses them.
const APART: &[&str] = &["xtask"];

/// Arrows of `[dev-dependencies]` that point up: (from, to).
///
/// The macros name paths of the facade, so only a test that links both can run what they make.
const UP_IN_TESTS: &[(&str, &str)] = &[("macros", "gosched")];

/// Every arrow of the crate graph that does not point down.
pub(crate) fn check(packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let from = short(package);
        let file = format!("{}/Cargo.toml", package.folder);
        if layer(from).is_none() && !APART.contains(&from) {
            let text = format!("{from} has no layer: enter it in xtask/src/tidy/layers.rs");
            problems.push(Problem::new(&file, 0, text));
            continue;
        }
        for Dependency { name, dev } in &package.dependencies {
            let Some(to) = packages.iter().find(|other| other.name == *name).map(short) else {
                continue;
            };
            let down = layer(to).zip(layer(from)).is_some_and(|(to, from)| to < from);
            let excused = *dev && UP_IN_TESTS.contains(&(from, to));
            if !down && !excused {
                let text = format!("{from} may not use {to}: the arrow does not point down");
                problems.push(Problem::new(&file, 0, text));
            }
        }
    }
    problems
}

/// The name of a crate in the table: its folder's.
fn short(package: &Package) -> &str {
    package.folder.rsplit('/').next().unwrap_or(&package.folder)
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::{Dependency, Package, check};

    fn package(folder: &str, dependencies: &[(&str, bool)]) -> Package {
        let name = |folder: &str| format!("gosched-{}", folder.trim_start_matches("crates/"));
        Package {
            name: name(folder),
            folder: folder.to_owned(),
            dependencies: dependencies
                .iter()
                .map(|(to, dev)| Dependency { name: name(to), dev: *dev })
                .collect(),
            tests: Vec::new(),
        }
    }

    fn problems(from: &str, to: &str, dev: bool) -> usize {
        check(&[package(from, &[(to, dev)]), package(to, &[])]).len()
    }

    #[test]
    fn down_is_allowed() {
        assert_eq!(problems("crates/sched", "crates/fiber", false), 0);
        assert_eq!(problems("crates/cli", "crates/base", false), 0);
    }

    #[test]
    fn up_and_sideways_are_not() {
        assert_eq!(problems("crates/fiber", "crates/sched", false), 1);
        assert_eq!(problems("crates/fiber", "crates/runq", false), 1);
        assert_eq!(problems("crates/fiber", "crates/sched", true), 1);
    }

    #[test]
    fn tests_of_the_macros_may_look_up() {
        assert_eq!(problems("crates/macros", "crates/gosched", true), 0);
        assert_eq!(problems("crates/macros", "crates/gosched", false), 1);
    }

    #[test]
    fn xtask_stands_apart() {
        assert_eq!(problems("xtask", "crates/base", false), 1);
        assert_eq!(problems("crates/cli", "xtask", false), 1);
    }

    #[test]
    fn a_crate_without_a_layer_is_named() {
        assert_eq!(check(&[package("crates/new", &[])]).len(), 1);
    }
}
