//! compare.html: bars, curves, the table and what it says.

use super::Comparison;
use super::case::{Contender, Outcome, Work};
use super::figures::{self, Figures, light};
use crate::chart::{self, Chart, Curve, Scale};
use crate::page::{html, told};
use crate::svg::{self, text};
use crate::text::{escaped, ms};
use std::fmt::Write;

/// Bars, one for each contender.
struct Bars {
    title: &'static str,
    of: fn(&Figures) -> f64,
    words: fn(&Figures) -> String,
}

const BARS: [Bars; 3] = [
    Bars { title: "until all were done, ms", of: |f| f.elapsed_ns, words: |f| ms(f.elapsed_ns) },
    Bars { title: "one job at p99, ms", of: |f| f.latency.p99, words: |f| ms(f.latency.p99) },
    Bars {
        title: "most memory, MB",
        of: Figures::megabytes,
        words: |f| format!("{:.1}", f.megabytes()),
    },
];

pub(super) fn of(comparison: &Comparison) -> String {
    let mut body = format!(
        "<header><h1>The same jobs on goroutines and on others</h1><p class=soft>{}.</p></header>\n\
         <nav><div><a href=\"#findings\">findings</a>",
        escaped(&comparison.setup())
    );
    for work in Work::ALL {
        let _ = write!(body, "<a href=\"#{0}\">{0}</a>", work.name());
    }
    body.push_str("<a href=\"#table\">table</a></div></nav>\n<main>\n");
    body.push_str("<h2 id=findings>What the numbers say</h2>\n<div class=two>");
    comparison.findings.iter().for_each(|finding| told(&mut body, finding));
    body.push_str("</div>\n");
    for failure in &comparison.failures {
        let _ = writeln!(body, "<p class=no>There are no numbers for {}.</p>", escaped(failure));
    }
    for work in Work::ALL {
        let figures: Vec<_> = comparison.figures.iter().filter(|f| f.work == work).collect();
        if figures.is_empty() {
            continue;
        }
        let _ = write!(
            body,
            "<h2 id={}>{}</h2>\n<p class=soft>{}.</p>\n<div class=two><div class=card>",
            work.name(),
            work.name(),
            work.about()
        );
        let (size, content) = bars(&figures);
        body.push_str(&svg::inline(size, &format!("{}: times and memory", work.name()), &content));
        body.push_str("</div><div class=card>");
        body.push_str(&latencies(work, &comparison.outcomes).unwrap_or_default());
        body.push_str("</div></div>\n");
    }
    let _ = writeln!(
        body,
        "<h2 id=table>Table</h2>\n<div class=card>{}</div>\n<p class=soft>Each case has a process of \
         its own, and the same loop hands all jobs over. Goroutines and the event loop have a thread \
         for each CPU, the pool has {}. The median of {} by time counts. The service that jobs ask \
         runs in another process on the same CPUs. CPU time is counted in 10 ms.</p>\n\
         <footer>All numbers are in <a href=\"compare.json\">compare.json</a>.</footer></main>",
        figures::table(&comparison.figures).html(),
        crate::text::count(comparison.options.pool, "thread"),
        crate::text::count(comparison.options.repetitions, "run"),
    );
    html("gosched compare", &body)
}

fn latencies(work: Work, outcomes: &[Outcome]) -> Option<String> {
    let curve =
        |outcome: &Outcome| Curve::of(outcome.case.contender.name().to_owned(), light(outcome));
    let title = format!("{}: from when a job came until it was done", work.name());
    let of_work = outcomes.iter().filter(|outcome| outcome.case.work == work);
    let curves = of_work.map(curve).collect();
    let content = Chart { title: title.clone(), scale: Scale::Log, curves }.content()?;
    Some(svg::inline(chart::SIZE, &title, &content))
}

/// Three groups of bars, each to its own scale.
fn bars(figures: &[&Figures]) -> ((f64, f64), String) {
    const LEFT: f64 = 104.0;
    const ROW: f64 = 18.0;
    let widest = chart::SIZE.0 - LEFT - 70.0;
    let (mut out, mut y) = (String::new(), 22.0);
    for Bars { title, of, words } in &BARS {
        text(&mut out, (12.0, y), "title", title);
        y += 10.0;
        let largest = figures.iter().map(|f| of(f)).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        for f in figures {
            let width = (widest * of(f) / largest).max(1.0);
            let colour = Contender::ALL.iter().position(|who| *who == f.contender).unwrap_or(4);
            text(&mut out, (LEFT - 8.0, y + 12.0), "end soft", f.contender.name());
            let _ = write!(
                out,
                "<rect class=\"f{colour}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{:.1}\" rx=\"2\"/>",
                ROW - 4.0
            );
            text(&mut out, (LEFT + width + 6.0, y + 12.0), "", &words(f));
            y += ROW;
        }
        y += 24.0;
    }
    ((chart::SIZE.0, y - 14.0), out)
}
