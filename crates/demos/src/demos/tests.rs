use super::{all, find};
use crate::row::{Row, Rows};
use std::collections::{BTreeMap, HashSet};

#[test]
fn names_are_unique_and_found() {
    let names: HashSet<_> = all().iter().map(|demo| demo.name).collect();
    assert_eq!(names.len(), all().len());
    assert!(names.iter().all(|name| find(name).is_some()));
    assert!(find("none").is_none());
}

#[test]
fn each_has_wrong_and_right_with_names_of_their_own() {
    use crate::row::Verdict::{Right, Wrong};
    for demo in all() {
        let cases: HashSet<_> = demo.cases.iter().map(|case| case.name).collect();
        assert_eq!(cases.len(), demo.cases.len(), "{}", demo.name);
        for verdict in [Wrong, Right] {
            assert!(demo.cases.iter().any(|case| case.verdict == verdict), "{}", demo.name);
        }
        assert!(demo.size.quick <= demo.size.usual && demo.size.usual <= demo.size.most);
    }
}

/// Figures that are the same in all cases show nothing, and the demo says so.
#[test]
fn figures_without_the_effect_are_not_explained_away() {
    for demo in all() {
        for value in [0, 1, 1_000_000] {
            let names = demo.columns.iter().map(|name| ((*name).to_owned(), value));
            let figures: BTreeMap<_, _> = names.collect();
            let row = |case: &crate::demo::Case| Row {
                case: case.name.to_owned(),
                verdict: case.verdict,
                figures: figures.clone(),
                notes: Vec::new(),
            };
            let rows: Vec<Row> = demo.cases.iter().map(row).collect();
            let findings = (demo.explain)(&Rows(&rows));
            assert!(!findings.is_empty(), "{}", demo.name);
            let all_shown = findings.iter().all(|finding| finding.shown);
            assert!(!all_shown, "{} with {value}: {findings:#?}", demo.name);
        }
    }
}
