use super::case::{Case, Contender, Options, Outcome, Work};
use super::figures::Figures;
use super::job::Job;
use super::service::Service;
use super::{Comparison, findings, measure};
use std::time::Duration;

const JOBS: usize = 40;

fn case(contender: Contender, work: Work) -> Case {
    let options = Options { jobs: JOBS, pool: 2, repetitions: 1 };
    let cases = options.cases(2, 1_000, "127.0.0.1:1".parse().expect("an address"));
    let case = cases.into_iter().find(|case| case.work == work).expect("every kind of work");
    Case { contender, ..case }
}

/// One in which every light job took `light_ms`, heavy ones 50 ms, and all of them `all_ms`.
fn outcome(contender: Contender, work: Work, all_ms: u64, light_ms: u64) -> Outcome {
    let latency = |i| if work.is_heavy(i) { 50_000_000 } else { light_ms * 1_000_000 };
    Outcome {
        case: case(contender, work),
        elapsed_ns: all_ms * 1_000_000,
        cpu_ns: 7_000_000,
        peak_rss_bytes: 5_000_000,
        rss_before_bytes: 1_000_000,
        threads: 3,
        latency_ns: (0..JOBS).map(latency).collect(),
    }
}

fn ask(outcomes: &[Outcome]) -> (bool, String) {
    let figures: Vec<Figures> = outcomes.iter().map(Figures::of).collect();
    let [finding] = &findings::all(&figures)[..] else { panic!("one question") };
    (finding.as_expected, finding.answer.join(" "))
}

#[test]
fn where_all_compute_all_are_as_fast() {
    let with = |ms| {
        let of = |who, ms| outcome(who, Work::Cpu, ms, 1);
        ask(&[of(Contender::Goroutines, ms), of(Contender::Threads, 100)])
    };
    let (expected, answer) = with(104);
    assert!(expected && answer.contains("The CPUs are the limit"), "{answer}");
    assert!(answer.starts_with("All jobs took: threads 100 ms, goroutines 104 ms;"), "{answer}");
    let (expected, answer) = with(200);
    assert!(!expected && answer.contains("goroutines took 2.0 times the best"), "{answer}");
    assert!(answer.contains("used 7.00 ms of CPU time"), "{answer}");
}

#[test]
fn where_all_wait_a_pool_is_behind() {
    let with = |pool| {
        let of = |who, ms| outcome(who, Work::Io, ms, 1);
        let contenders = [(Contender::Goroutines, 50), (Contender::Threads, 60)];
        let mut outcomes: Vec<_> = contenders.map(|(who, ms)| of(who, ms)).into();
        outcomes.push(of(Contender::Pool, pool));
        ask(&outcomes)
    };
    let (expected, answer) = with(500);
    assert!(expected && answer.contains("it took 10 times as long as goroutines"), "{answer}");
    let (expected, answer) = with(50);
    assert!(!expected && answer.contains("took 1.0 times as long"), "{answer}");
}

#[test]
fn beside_heavy_jobs_goroutines_keep_light_ones_short() {
    let with = |who, ms| {
        let of = |who, ms| outcome(who, Work::Mixed, 100, ms);
        ask(&[of(Contender::Goroutines, 6), of(who, ms)])
    };
    let (expected, answer) = with(Contender::EventLoop, 30);
    assert!(expected && answer.contains("5.0 times as long as with goroutines"), "{answer}");
    let (expected, answer) = with(Contender::EventLoop, 6);
    assert!(!expected && answer.contains("it was 1.0 times"), "{answer}");
    assert!(answer.contains("used 7.00 ms of CPU time in 100 ms"), "{answer}");
    // Without an event loop in the build.
    assert!(with(Contender::Threads, 6).0);
    let (expected, answer) = with(Contender::Threads, 1);
    assert!(!expected && answer.contains("6.0 times the best for goroutines, where"), "{answer}");
}

#[test]
fn heavy_jobs_are_a_tenth_and_not_in_the_latencies() {
    let figures = Figures::of(&outcome(Contender::Pool, Work::Mixed, 100, 2));
    assert_eq!((figures.latency.p50, figures.latency.max), (2e6, 2e6));
    let heavy = (0..JOBS).filter(|i| Work::Mixed.is_heavy(*i)).count();
    assert_eq!(heavy, JOBS / 10);
    let rounds = [0, 9].map(|i| Job::of(&case(Contender::Pool, Work::Mixed), i).rounds);
    assert_eq!(rounds, [50, 20_000]);
}

#[test]
fn mixed_jobs_use_half_of_the_cpus() {
    // 2.045 ms on average.
    assert_eq!(Work::Mixed.interval(1), Duration::from_micros(4_090));
    assert_eq!(Work::Mixed.interval(2), Duration::from_micros(2_045));
    assert_eq!(Work::Io.interval(2), Duration::ZERO);
}

#[test]
fn the_median_run_counts() {
    let runs = |all: &[u64]| {
        let run = |ms: &u64| outcome(Contender::Pool, Work::Cpu, *ms, 1);
        super::median(all.iter().map(run).collect()).map(|outcome| outcome.elapsed_ns / 1_000_000)
    };
    assert_eq!([runs(&[300, 100, 200]), runs(&[100]), runs(&[])], [Some(200), Some(100), None]);
}

#[test]
fn what_can_not_be_true_is_refused() {
    let right = outcome(Contender::Pool, Work::Cpu, 100, 2);
    assert_eq!(right.check(), Ok(()));
    let fewer = Outcome { latency_ns: vec![1; JOBS - 1], ..right.clone() };
    assert!(fewer.check().expect_err("too few").contains("39 of 40"));
    let longer = Outcome { elapsed_ns: 1, ..right };
    assert!(longer.check().is_err());
}

#[test]
fn every_contender_does_every_job() {
    let service = Service::start().expect("there is a loopback interface");
    // The runtime runs already in this process, so goroutines can't be among them; the command's own
    // tests run those.
    for contender in [Contender::Threads, Contender::Pool, Contender::EventLoop] {
        if !contender.is_built_in() {
            assert!(measure(case(contender, Work::Cpu)).is_err());
            continue;
        }
        for work in Work::ALL {
            let case = Case { service: service.address(), interval_ns: 0, ..case(contender, work) };
            let outcome = measure(case).expect("it runs");
            assert_eq!(outcome.check(), Ok(()));
            let answers = 5_000_000 * work.recipe().asks as u64;
            assert!(outcome.latency_ns.iter().all(|latency| *latency >= answers), "{outcome:?}");
        }
    }
}

#[test]
fn a_service_that_is_gone_is_an_error() {
    let failed = measure(case(Contender::Threads, Work::Io)).expect_err("nobody listens there");
    assert!(failed.contains("failed: "), "{failed}");
}

#[test]
fn a_page_and_a_table_have_everybody() {
    let outcomes: Vec<_> = Work::ALL
        .into_iter()
        .flat_map(|work| Contender::ALL.map(|who| outcome(who, work, 100, 2)))
        .collect();
    let figures: Vec<Figures> = outcomes.iter().map(Figures::of).collect();
    let comparison = Comparison {
        version: "gosched",
        cpus: 2,
        options: Options { jobs: JOBS, pool: 2, repetitions: 1 },
        rounds_per_ms: 1_000,
        findings: findings::all(&figures),
        figures,
        failures: vec!["nobody with nothing: a < b".to_owned()],
        outcomes,
    };
    let (page, table) = (super::page::of(&comparison), comparison.terminal());
    assert_eq!(page.matches("<svg ").count(), 2 * Work::ALL.len());
    assert!(page.contains("a &lt; b") && !page.contains("src="), "{page}");
    for work in Work::ALL {
        for contender in Contender::ALL {
            let row = format!("\n{} {} ", work.name(), contender.name());
            assert!(table.contains(&row), "{row}: {table}");
        }
    }
}
