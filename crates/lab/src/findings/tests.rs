//! Each question is asked twice: of numbers as the theory has them, and of the opposite.

use super::{Finding, all};
use crate::record::{Measured, Task};
use crate::summary::Summary;
use crate::synthetic::{WORK, asleep, asleep_in_a_queue, cell, in_turns, queue, stopped, traced};
use crate::traced::Traced;
use crate::variant::{BLOCKS, BUSY, DECLARES, POOL, SLEEPS, THREADS, UNSTOPPED, YIELDS};

mod traces;

const CPUS: usize = 2;
const PROMPT: &[u64] = &[60_000, 70_000, 100_000];
const ONE_TURN: &[u64] = &[7_000_000, 9_000_000, 9_500_000];
const EVERYBODY: &[u64] = &[990_000_000];

fn findings(cells: &[Measured]) -> Vec<Finding> {
    findings_with(cells, &[])
}

fn findings_with(cells: &[Measured], traces: &[Traced]) -> Vec<Finding> {
    for cell in cells {
        assert_eq!(cell.check(), Ok(()));
    }
    all(&cells.iter().map(Summary::of).collect::<Vec<_>>(), traces, CPUS)
}

/// The finding whose question begins with `words`, and its answer in one line.
#[track_caller]
fn ask(cells: &[Measured], words: &str) -> (bool, String) {
    ask_with(cells, &[], words)
}

#[track_caller]
fn ask_with(cells: &[Measured], traces: &[Traced], words: &str) -> (bool, String) {
    let findings = findings_with(cells, traces);
    let finding = findings.iter().find(|finding| finding.question.starts_with(words));
    let finding = finding.expect("the question is asked");
    (finding.as_expected, finding.answer.join(" "))
}

fn busy(procs: u64, tasks: Vec<Task>) -> Measured {
    cell(BUSY, procs as usize, tasks, PROMPT)
}

fn unstopped(procs: u64, tasks: Vec<Task>) -> Measured {
    cell(UNSTOPPED, procs as usize, tasks, ONE_TURN)
}

#[test]
fn a_queue_is_seen() {
    let (expected, answer) =
        ask(&[unstopped(1, queue(100, 1))], "Why is the tail long on 1 processor");
    assert!(expected, "{answer}");
    assert!(answer.contains("waited 0.000 + 10.0 x k ms"), "{answer}");
    assert!(answer.contains("R2 = 1.0000"), "{answer}");
    assert!(answer.contains("after 500 ms, 99 of 100 after 990 ms"), "{answer}");
    assert!(answer.contains("Computing itself was not slow"), "{answer}");
}

#[test]
fn what_is_no_queue_is_called_none() {
    for cell in [busy(1, in_turns(100, 1)), unstopped(1, in_turns(100, 1))] {
        let (expected, answer) = ask(&[cell], "Why is the tail long");
        assert!(!expected, "{answer}");
        assert!(answer.contains("A queue was expected"), "{answer}");
        assert!(answer.contains("do not show it"), "{answer}");
    }
}

#[test]
fn slow_computing_is_not_hidden_by_the_queue() {
    let slow = |task: Task| Task {
        first_run_ns: 2 * task.first_run_ns,
        done_ns: 2 * task.done_ns,
        own_ns: 2 * task.own_ns,
        ..task
    };
    let tasks = queue(100, 1).into_iter().map(slow).collect();
    let (expected, answer) = ask(&[unstopped(1, tasks)], "Why is the tail long");
    assert!(expected, "{answer}");
    assert!(answer.contains("Each turn was longer than the work"), "{answer}");
}

#[test]
fn first_runs_are_in_a_queue_if_some_are_stopped_later() {
    let answer_to = |tasks| ask(&[busy(1, tasks)], "Why is the tail long on 1 processor");
    let (expected, answer) = answer_to(stopped(100, 10));
    assert!(expected, "{answer}");
    assert!(answer.contains("R2 = 1.0000), where a first turn ends every 10.0 ms"), "{answer}");
    assert!(answer.contains("10 of 100 were overtaken"), "{answer}");
    assert!(
        answer.contains("took up to 1000 ms by the clock, where the median is 10.0"),
        "{answer}"
    );
    let (expected, answer) = answer_to(queue(100, 1));
    assert!(expected && answer.contains("in the order in which they had begun"), "{answer}");
}

#[test]
fn a_first_turn_is_a_slice_at_most_if_something_ends_it() {
    // Each is stopped after its first 10 ms, and goes on much later.
    let turn = |task: Task| Task {
        done_ns: task.first_run_ns + 3_000_000_000 + WORK,
        own_ns: 3_000_000_000 + WORK,
        ..task
    };
    let tasks = || queue(100, 1).into_iter().map(turn).collect::<Vec<_>>();
    let (expected, answer) = ask(&[busy(1, tasks())], "Why is the tail long");
    assert!(expected, "{answer}");
    assert!(answer.contains("Completion times bunch at the end"), "{answer}");
    let (expected, answer) = ask(&[unstopped(1, tasks())], "Why is the tail long");
    assert!(!expected && answer.contains("waits about 3010 x k ms"), "{answer}");
}

#[test]
fn busy_goroutines_are_stopped() {
    let cells = [busy(1, queue(100, 1)), busy(2, in_turns(100, 2))];
    let (expected, answer) = ask(&cells, "Is a goroutine stopped while it computes (*busy*)");
    assert!(expected, "{answer}");
    assert!(answer.starts_with("Yes, stopped: on 2 processors"), "{answer}");
    assert!(answer.contains("up to 100 goroutines had begun"), "{answer}");
    assert!(answer.contains("since 1.14"), "{answer}");
}

#[test]
fn who_is_stopped_for_the_probe_alone_is_stopped() {
    let mut cell = busy(1, queue(100, 1));
    cell.counts.stops = 7;
    let (expected, answer) = ask(&[cell], "Is a goroutine stopped while it computes (*busy*)");
    assert!(expected && answer.contains("stopped goroutines 7 times"), "{answer}");
}

#[test]
fn busy_goroutines_that_nobody_stops_are_noticed() {
    let cells = [busy(1, queue(100, 1)), busy(2, queue(100, 2))];
    let (expected, answer) = ask(&cells, "Is a goroutine stopped while it computes (*busy*)");
    assert!(!expected && answer.starts_with("No: "), "{answer}");
    assert!(answer.contains("It was expected to be stopped"), "{answer}");
}

#[test]
fn unstopped_is_the_old_world() {
    let cells = [unstopped(1, queue(100, 1)), unstopped(2, queue(100, 2))];
    let (expected, answer) = ask(&cells, "Is a goroutine stopped while it computes (*unstopped*)");
    assert!(expected && answer.starts_with("No: "), "{answer}");
    assert!(answer.contains("1 on 1 processor, 2 on 2 processors"), "{answer}");
    assert!(answer.contains("before Go 1.14"), "{answer}");
}

#[test]
fn stopping_in_the_old_world_is_noticed() {
    let cells = [unstopped(1, in_turns(100, 1))];
    let (expected, answer) = ask(&cells, "Is a goroutine stopped while it computes (*unstopped*)");
    assert!(!expected && answer.starts_with("Yes, stopped: "), "{answer}");
    assert!(answer.contains("It was expected not to be"), "{answer}");
}

#[test]
fn yields_move_the_waiting() {
    let cells = [busy(1, queue(100, 1)), cell(YIELDS, 1, in_turns(100, 1), PROMPT)];
    let (expected, answer) = ask(&cells, "What do yields change on 1 processor?");
    assert!(expected, "{answer}");
    assert!(answer.contains("is 4.90 ms instead of 490 ms, 100 times shorter"), "{answer}");
    assert!(answer.contains("completions bunch at the end"), "{answer}");
}

#[test]
fn yields_that_change_nothing_are_called_so() {
    let cells = [busy(1, in_turns(100, 1)), cell(YIELDS, 1, queue(100, 1), PROMPT)];
    let (expected, answer) = ask(&cells, "What do yields change");
    assert!(!expected, "{answer}");
    assert!(answer.contains("do not show both"), "{answer}");
}

#[test]
fn variants_are_compared_on_the_same_processors() {
    let cells =
        [busy(1, queue(100, 1)), busy(2, queue(100, 2)), cell(YIELDS, 2, in_turns(100, 2), PROMPT)];
    assert!(ask(&cells, "What do yields change on 2 processors?").0);
}

#[test]
fn sleeps_take_timers() {
    let cells = [cell(SLEEPS, 1, asleep(100), PROMPT), cell(SLEEPS, 2, asleep(100), PROMPT)];
    let (expected, answer) = ask(&cells, "What does it take");
    assert!(expected, "{answer}");
    assert!(answer.starts_with("Timers"), "{answer}");
    assert!(answer.contains("10.1 ms on 1 processor, 10.1 ms on 2 processors"), "{answer}");
}

#[test]
fn sleepers_in_a_queue_are_noticed() {
    let (expected, answer) =
        ask(&[cell(SLEEPS, 1, asleep_in_a_queue(100), PROMPT)], "What does it take");
    assert!(!expected, "{answer}");
    assert!(answer.contains("only after 1000 ms"), "{answer}");
}

#[test]
fn a_blocked_thread_hands_its_processor_on() {
    for variant in [BLOCKS, DECLARES] {
        let question = format!("Does a thread that blocks keep its processor (*{variant}*)");
        let mut quick = cell(variant, 1, asleep(100), PROMPT);
        quick.counts.undeclared_hand_offs = 99;
        let (expected, answer) = ask(&[quick], &question);
        assert!(expected && answer.starts_with("No: "), "{answer}");
        assert!(answer.contains("99 times"), "{answer}");
        assert!(answer.contains("one begins every 0.001 ms"), "{answer}");
        let (expected, answer) =
            ask(&[cell(variant, 1, asleep_in_a_queue(100), PROMPT)], &question);
        assert!(!expected && answer.contains("after 1000 ms on 1 processor"), "{answer}");
    }
}

#[test]
fn a_late_probe_is_classed() {
    let beside = "How late does a sleeper wake beside *unstopped*";
    let answer_to = |late: &[u64]| ask(&[cell(UNSTOPPED, 1, queue(100, 1), late)], beside);
    let (expected, answer) = answer_to(ONE_TURN);
    assert!(expected && answer.contains("as late as the turn is long"), "{answer}");
    let (expected, answer) = answer_to(PROMPT);
    assert!(!expected && answer.contains("stopped for it"), "{answer}");
    let (expected, answer) = answer_to(EVERYBODY);
    assert!(
        !expected && answer.contains("p90 is 89 times a turn of 10.0 ms. That is about as many"),
        "{answer}"
    );
}

#[test]
fn a_prompt_probe_beside_busy_is_expected() {
    let answer_to = |late: &[u64], stops: u64| {
        let mut cell = cell(BUSY, 1, stopped(100, 2), late);
        cell.counts.stops = stops;
        ask(&[cell], "How late does a sleeper wake beside *busy*")
    };
    let (expected, answer) = answer_to(PROMPT, 3);
    assert!(expected && answer.contains("stopped 3 times while it slept 3 times"), "{answer}");
    let (expected, answer) = answer_to(ONE_TURN, 0);
    assert!(!expected && answer.contains("waited until one ended its turn"), "{answer}");
    let (expected, answer) = answer_to(ONE_TURN, 3);
    assert!(!expected && answer.contains("but late"), "{answer}");
    // However long stopped goroutines took in the end, a turn is a slice.
    let (expected, answer) = answer_to(EVERYBODY, 3);
    assert!(!expected && answer.contains("a turn of 10.0 ms"), "{answer}");
}

#[test]
fn a_prompt_probe_beside_yields_is_expected() {
    let beside_yields = "How late does a sleeper wake beside *yields*";
    let answer_to = |late: &[u64]| ask(&[cell(YIELDS, 1, in_turns(100, 1), late)], beside_yields);
    let (expected, answer) = answer_to(PROMPT);
    assert!(expected && answer.contains("does not make others late"), "{answer}");
    let (expected, answer) = answer_to(ONE_TURN);
    assert!(!expected && answer.contains("85 times a turn of 0.100 ms"), "{answer}");
}

#[test]
fn a_late_probe_beside_sleepers_is_not_blamed_on_turns() {
    let beside_sleeps = "How late does a sleeper wake beside *sleeps*";
    let answer_to = |late: &[u64]| ask(&[cell(SLEEPS, 1, asleep(100), late)], beside_sleeps);
    let (expected, answer) = answer_to(PROMPT);
    assert!(expected && answer.contains("does not make others late"), "{answer}");
    let (expected, answer) = answer_to(ONE_TURN);
    assert!(!expected && answer.contains("expected to wake promptly"), "{answer}");
}

#[test]
fn more_processors_are_faster_up_to_the_cpus() {
    let cells = [busy(1, queue(100, 1)), busy(2, queue(100, 2))];
    let (expected, answer) = ask(&cells, "What do more processors bring");
    assert!(expected, "{answer}");
    assert!(answer.contains("500 ms on 2 (2.0 times as fast, of 2.0 possible)"), "{answer}");
    assert!(answer.contains("so the tail shrinks"), "{answer}");
}

#[test]
fn more_processors_than_cpus_share_them() {
    let shared = |task: Task| Task { first_run_ns: 0, own_ns: 2 * WORK, done_ns: 2 * WORK, ..task };
    let four = queue(4, 4).into_iter().map(shared).collect();
    let cells = [busy(1, queue(4, 1)), busy(4, four)];
    let (expected, answer) = ask(&cells, "What do more processors bring");
    assert!(expected, "{answer}");
    assert!(answer.contains("threads share the CPUs"), "{answer}");
    assert!(answer.contains("a processor for 20.0 ms instead of 10.0 ms"), "{answer}");
}

#[test]
fn no_speed_up_is_explained_by_the_cpu_time() {
    let cells = [busy(1, queue(100, 1)), busy(2, queue(100, 1))];
    let (expected, answer) = ask(&cells, "What do more processors bring");
    assert!(!expected, "{answer}");
    assert!(answer.contains("other programs had the CPUs"), "{answer}");

    let mut cells = cells;
    cells[1].cpu_ns *= 2;
    let (expected, answer) = ask(&cells, "What do more processors bring");
    assert!(!expected, "{answer}");
    assert!(answer.contains("although"), "{answer}");
}

/// The three ways to compute on one processor, with these latenesses of the probe.
fn three(unstopped: &[u64], yields: &[u64], busy: &[u64]) -> [Measured; 3] {
    [
        cell(UNSTOPPED, 1, queue(100, 1), unstopped),
        cell(YIELDS, 1, in_turns(100, 1), yields),
        cell(BUSY, 1, stopped(100, 2), busy),
    ]
}

#[test]
fn the_lesson_is_in_the_lateness() {
    let words = "How late is a sleeper on 1 processor without preemption";
    let (expected, answer) = ask(&three(ONE_TURN, PROMPT, PROMPT), words);
    assert!(expected, "{answer}");
    assert!(answer.contains("(*unstopped*) it is 4.00 ms at the median"), "{answer}");
    assert!(answer.contains("because it can go on only when somebody ends a turn"), "{answer}");
}

#[test]
fn a_lesson_that_the_numbers_do_not_teach_is_none() {
    let words = "How late is a sleeper";
    for (cells, says) in [
        (three(PROMPT, PROMPT, PROMPT), "neither yields nor preemption made it so"),
        (three(ONE_TURN, EVERYBODY, PROMPT), "yields did not make it so"),
        (three(ONE_TURN, PROMPT, EVERYBODY), "preemption did not make it so"),
    ] {
        let (expected, answer) = ask(&cells, words);
        assert!(!expected && answer.contains(says), "{answer}");
        assert!(!answer.contains("because it can go on only"), "{answer}");
    }
}

#[test]
fn threads_take_turns() {
    let ask_of = |tasks| {
        let cells = [busy(1, queue(100, 1)), cell(THREADS, 1, tasks, ONE_TURN)];
        ask(&cells, "What do operating system threads do")
    };
    let (expected, answer) = ask_of(in_turns(100, 1));
    assert!(expected && answer.contains("lets all of them take turns"), "{answer}");
    assert!(answer.contains("late by 4.00 ms at the median"), "{answer}");
    let (expected, answer) = ask_of(queue(100, 1));
    assert!(!expected && answer.contains("the numbers do not show it"), "{answer}");
}

#[test]
fn a_pool_lets_everybody_wait() {
    let ask_of = |late: &[u64]| {
        let words = "What does a pool of 1 thread do";
        ask(&[cell(POOL, 1, queue(100, 1), late)], words)
    };
    let (expected, answer) = ask_of(EVERYBODY);
    assert!(expected && answer.contains("one more job in the queue"), "{answer}");
    assert!(answer.contains("slope 10.0 ms, R2 = 1.0000"), "{answer}");
    let (expected, answer) = ask_of(PROMPT);
    assert!(!expected && answer.contains("expected to wait behind everybody"), "{answer}");
}

#[test]
fn missing_cells_are_no_findings() {
    assert!(findings(&[]).is_empty());
    let questions = findings(&[cell(SLEEPS, 2, asleep(10), PROMPT)]);
    let questions: Vec<_> = questions.iter().map(|finding| finding.question.as_str()).collect();
    assert_eq!(
        questions,
        [
            "What does it take that all sleep instead?",
            "How late does a sleeper wake beside *sleeps*?",
        ]
    );
}
