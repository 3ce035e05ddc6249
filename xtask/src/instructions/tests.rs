use super::{collected, judged, parsed};

#[test]
fn counts_are_found_in_what_valgrind_prints() {
    assert_eq!(collected("==29852== Collected : 65362802"), Some(65_362_802));
    assert_eq!(collected("==29852== Events    : Ir"), None);
}

#[test]
fn more_than_the_room_above_the_accepted_figure_fails() {
    let judge = |count, accepted| judged("switch", "1.95.0/here", count, Some(accepted));
    assert_eq!(judge(205.9, 200.0).passed, 1, "within 3 %");
    let failures = judge(206.1, 200.0).failures;
    assert!(failures[0].contains("(+3.0 %)"), "{failures:?}");
    assert!(failures[0].contains("cargo xtask instructions --accept"), "{failures:?}");
    assert_eq!(judge(29.0, 25.0).passed, 1, "a few instructions are not many");
    assert_eq!(judge(29.1, 25.0).failures.len(), 1);
    assert_eq!(judge(100.0, 200.0).passed, 1, "fewer are welcome");
}

#[test]
fn an_unknown_compiler_is_no_failure_and_no_pass() {
    let report = judged("switch", "1.99.0/here", 200.0, None);
    assert_eq!((report.passed, report.failures.len()), (0, 0));
    assert!(report.skips[0].contains("200.0 instructions"), "{report:?}");
    assert!(report.skips[0].contains("1.99.0/here"), "{report:?}");
}

#[test]
fn the_table_has_a_line_for_each_figure() {
    let table = parsed("# remark\n\n1.95.0/here switch 190.5\n").expect("right");
    assert_eq!(table[&("1.95.0/here".to_owned(), "switch".to_owned())], 190.5);
    for wrong in ["1.95.0/here switch", "1.95.0/here switch many"] {
        assert!(parsed(wrong).is_err_and(|reason| reason.contains(wrong)), "{wrong}");
    }
}
