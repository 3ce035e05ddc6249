//! The time of each processor, drawn from a trace: the whole run, and its beginning at a size at
//! which single goroutines can be seen.

use crate::chart::{label, step};
use crate::probe::PERIOD;
use crate::svg::{line, text};
use crate::text::count;
use crate::traced::{Role, Stretch, Traced};
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const LANE: f64 = 24.0;
const GAP: f64 = 6.0;

/// How much of the beginning is drawn large.
const CLOSE_NS: f64 = 60e6;

/// Columns of the drawing of the whole run.
const COLUMNS: usize = 280;

/// From when to when a drawing goes.
#[derive(Clone, Copy)]
struct Window {
    from: f64,
    to: f64,
}

impl Window {
    fn x(self, ns: f64) -> f64 {
        let part = ((ns - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn has(self, from: f64, to: f64) -> bool {
        from < self.to && to > self.from
    }
}

/// Rectangles of one class, as one path.
#[derive(Default)]
struct Boxes(String);

impl Boxes {
    /// What is thinner than half a pixel is drawn as thin as that.
    fn add(&mut self, x: (f64, f64), y: f64, height: f64) {
        let width = (x.1 - x.0).max(0.5);
        let _ = write!(self.0, "M{:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z", x.0);
    }

    fn draw(&self, out: &mut String, class: &str) {
        if !self.0.is_empty() {
            let _ = write!(out, "<path class=\"{class}\" d=\"{}\"/>", self.0);
        }
    }
}

/// The drawing and its size.
pub(crate) fn timeline(traced: &Traced) -> ((f64, f64), String) {
    let mut out = String::new();
    let title = format!("{} on {}", traced.variant, count(traced.procs, "processor"));
    text(&mut out, (12.0, 20.0), "title", &title);
    legend(&mut out, 40.0);
    let end = traced.runs.iter().map(|run| run.to_ns).max().unwrap_or(0) as f64;
    let whole = Window { from: -1e6, to: end.max(1e6) };
    let close = Window { from: -1e6, to: CLOSE_NS.min(end).max(1e6) };

    let mut y = heading(&mut out, 62.0, "The beginning, large");
    for p in processors(traced) {
        lane(&mut out, y, &format!("P{p}"));
        large(&mut out, &of(traced, p), close, y);
        y += LANE + GAP;
    }
    lane(&mut out, y, "probe");
    probe(&mut out, traced, close, y);
    y = axis(&mut out, close, y + LANE);

    y = heading(
        &mut out,
        y + 18.0,
        "All of it: the part of the time in which goroutines ran; stops of the world (red) and GC (green)",
    );
    for p in processors(traced) {
        lane(&mut out, y, &format!("P{p}"));
        small(&mut out, &of(traced, p), whole, y);
        y += LANE + GAP;
    }
    lane(&mut out, y, "STW, GC");
    ranges(&mut out, traced, whole, y);
    y = axis(&mut out, whole, y + LANE);
    ((WIDTH, y + 6.0), out)
}

fn processors(traced: &Traced) -> impl Iterator<Item = u64> {
    traced.processors.iter().filter_map(|processor| processor.p)
}

fn of(traced: &Traced, p: u64) -> Vec<Stretch> {
    traced.runs.iter().filter(|run| run.p == p).copied().collect()
}

fn legend(out: &mut String, y: f64) {
    let mut x = LEFT;
    for (class, words) in [
        ("many", "one of the many"),
        ("more", "the next one"),
        ("probe", "probe runs"),
        ("unseen", "probe due, nobody saw it"),
        ("late", "probe waits for a P"),
        ("other", "main"),
    ] {
        let _ = write!(
            out,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\"/>",
            y - 10.0
        );
        text(out, (x + 16.0, y), "soft", words);
        x += 16.0 + 6.9 * words.len() as f64 + 12.0;
    }
}

fn heading(out: &mut String, y: f64, words: &str) -> f64 {
    text(out, (LEFT, y + 4.0), "soft", words);
    y + 12.0
}

fn lane(out: &mut String, y: f64, name: &str) {
    text(out, (LEFT - 8.0, y + 16.0), "end", name);
    let _ = write!(
        out,
        "<rect class=\"lane\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{}\" height=\"{LANE}\"/>",
        WIDTH - LEFT - RIGHT
    );
}

/// Every stretch of its own.
fn large(out: &mut String, runs: &[Stretch], window: Window, y: f64) {
    let [mut many, mut more, mut probe, mut other] = [const { Boxes(String::new()) }; 4];
    for run in runs.iter().filter(|run| window.has(run.from_ns as f64, run.to_ns as f64)) {
        let x = (window.x(run.from_ns as f64), window.x(run.to_ns as f64));
        match run.role {
            Role::Many(id) if id % 2 == 0 => many.add(x, y, LANE),
            Role::Many(_) => more.add(x, y, LANE),
            // However short it is, one wants to see it.
            Role::Probe => probe.add((x.0, x.1.max(x.0 + 1.5)), y, LANE),
            Role::Other => other.add(x, y, LANE),
        }
    }
    let classes = [(many, "many"), (more, "more"), (other, "other"), (probe, "probe")];
    classes.iter().for_each(|(boxes, class)| boxes.draw(out, class));
}

/// Asleep as a thin line; due and not noticed; noticed and waiting; running.
fn probe(out: &mut String, traced: &Traced, window: Window, y: f64) {
    let [mut asleep, mut unseen, mut late, mut ran] = [const { Boxes(String::new()) }; 4];
    for sleep in &traced.sleeps {
        let due = sleep.from_ns + PERIOD.as_nanos() as i64;
        let [from, due, ready, ends] =
            [sleep.from_ns, due, sleep.ready_ns.max(due), sleep.ran_ns].map(|ns| ns as f64);
        if !window.has(from, ends) {
            continue;
        }
        asleep.add((window.x(from), window.x(due)), y + LANE / 2.0 - 1.0, 2.0);
        if ready > due {
            unseen.add((window.x(due), window.x(ready)), y + 4.0, LANE - 8.0);
        }
        if ends > ready {
            late.add((window.x(ready), window.x(ends)), y + 4.0, LANE - 8.0);
        }
        if ends < window.to {
            ran.add((window.x(ends), window.x(ends) + 1.5), y, LANE);
        }
    }
    let classes = [(asleep, "other"), (unseen, "unseen"), (late, "late"), (ran, "probe")];
    classes.iter().for_each(|(boxes, class)| boxes.draw(out, class));
}

/// How much of each column goroutines ran, as one outline.
fn small(out: &mut String, runs: &[Stretch], window: Window, y: f64) {
    let column = (window.to - window.from) / COLUMNS as f64;
    let floor = y + LANE;
    let mut path = format!("M{LEFT} {floor:.1}");
    for (i, busy) in busy(runs, window).into_iter().enumerate() {
        let top = floor - LANE * (busy / column).min(1.0);
        let to = window.x(window.from + (i + 1) as f64 * column);
        let _ = write!(path, "V{top:.1}H{to:.1}");
    }
    let _ = write!(out, "<path class=\"more\" d=\"{path}V{floor:.1}z\"/>");
}

fn busy(runs: &[Stretch], window: Window) -> Vec<f64> {
    let column = (window.to - window.from) / COLUMNS as f64;
    let mut busy = vec![0.0; COLUMNS];
    for run in runs {
        let (from, to) = (run.from_ns as f64 - window.from, run.to_ns as f64 - window.from);
        // What is before the window begins in column 0, and adds nothing there.
        let (first, last) = ((from / column) as usize, (to / column) as usize);
        for (i, busy) in busy.iter_mut().enumerate().take(last + 1).skip(first) {
            let (begins, ends) = (i as f64 * column, (i + 1) as f64 * column);
            *busy += (to.min(ends) - from.max(begins)).max(0.0);
        }
    }
    busy
}

/// Stops of the world and collections.
fn ranges(out: &mut String, traced: &Traced, window: Window, y: f64) {
    for (spans, class, top) in [(&traced.stops, "late", 0.0), (&traced.collections, "f2", 12.0)] {
        let mut boxes = Boxes::default();
        for span in spans {
            let x = window.x(span.from_ns as f64);
            let to = window.x((span.from_ns + span.took_ns as i64) as f64);
            boxes.add((x, to.max(x + 1.5)), y + top, LANE / 2.0);
        }
        boxes.draw(out, class);
    }
}

fn axis(out: &mut String, window: Window, y: f64) -> f64 {
    line(out, (LEFT, y), (WIDTH - RIGHT, y), "axis");
    let (from, to) = (window.from / 1e6, window.to / 1e6);
    let step = step((to - from) * 0.75);
    let first = (from / step).ceil() as i64;
    let marks = (first..).map(|i| i as f64 * step).take_while(|mark| *mark <= to);
    for mark in marks {
        let x = window.x(mark * 1e6);
        line(out, (x, y), (x, y + 4.0), "axis");
        let unit = if mark == 0.0 { " ms" } else { "" };
        text(out, (x, y + 17.0), "mid soft", &format!("{}{unit}", label(mark)));
    }
    y + 22.0
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Window, busy, timeline};
    use crate::synthetic::traced;
    use crate::traced::{Role, Stretch};

    #[test]
    fn all_lanes_are_drawn() {
        let ((_, height), svg) = timeline(&traced("busy", 2));
        for words in ["busy on 2 processors", ">P0<", ">P1<", ">probe<", ">STW, GC<", "\"late\""] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
        assert!(height > 250.0);
    }

    #[test]
    fn no_time_is_lost_between_columns() {
        let run = |from_ns, to_ns| Stretch { p: 0, role: Role::Other, from_ns, to_ns };
        let runs = [run(-500, 90), run(100, 101), run(300, 1_500)];
        let busy = busy(&runs, Window { from: -500.0, to: 1_500.0 });
        assert_eq!(busy.len(), COLUMNS);
        assert!((busy.iter().sum::<f64>() - 1_791.0).abs() < 1e-6);
    }
}
