//! The drawings of a report: for the page, and as files beside the notes.

use crate::chart::{self, Chart, Curve, Scale};
use crate::probe::any_time;
use crate::record::Task;
use crate::report::{CellResult, Document};
use crate::text::count;
use crate::variant::{BUSY, POOL, THREADS, UNSTOPPED, VARIANTS, Variant, YIELDS};
use crate::{lanes, svg};

/// One drawing.
pub(crate) struct Figure {
    /// Its name beside the notes.
    pub(crate) file: String,
    pub(crate) title: String,
    /// The variant that it is about; none if it is about several.
    pub(crate) variant: Option<&'static str>,
    /// Whether it needs the width of a page.
    pub(crate) is_wide: bool,
    size: (f64, f64),
    content: String,
}

impl Figure {
    /// For a page that has the style.
    pub(crate) fn inline(&self) -> String {
        svg::inline(self.size, &self.title, &self.content)
    }

    /// For a file of its own.
    pub(crate) fn svg(&self) -> String {
        svg::file(self.size, &self.title, &self.content)
    }
}

/// All of a report: first the one that matters most, then those of each variant.
pub(crate) fn all(document: &Document) -> Vec<Figure> {
    let mut figures: Vec<Figure> = lesson(&document.cells).into_iter().collect();
    for variant in VARIANTS {
        figures.extend(distributions(&document.cells, variant));
        let of_variant = document.traces.iter().filter(|traced| traced.variant == variant.name);
        figures.extend(of_variant.map(|traced| {
            let (size, content) = lanes::timeline(traced);
            Figure {
                file: format!("timeline-{}-{}.svg", variant.name, traced.procs),
                title: format!(
                    "{} on {}: who ran where",
                    variant.name,
                    count(traced.procs, "processor")
                ),
                variant: Some(variant.name),
                is_wide: true,
                size,
                content,
            }
        }));
    }
    figures
}

/// How late the probe was beside each way to compute, on the fewest processors.
fn lesson(cells: &[CellResult]) -> Option<Figure> {
    let fewest = cells.iter().map(|cell| cell.measured.cell.procs).min()?;
    let find = |name: &&str| {
        let is_it = |cell: &&CellResult| {
            cell.measured.cell.procs == fewest && cell.measured.cell.variant == **name
        };
        cells.iter().find(is_it)
    };
    let curve = |cell: &CellResult| {
        Curve::of(cell.measured.cell.variant.clone(), any_time(&cell.measured.probe))
    };
    let names = [UNSTOPPED, YIELDS, BUSY, THREADS, POOL];
    let curves = names.iter().filter_map(find).map(curve).collect();
    let title = format!("How late a sleeper is, on {}", count(fewest, "processor"));
    figure("lateness.svg".to_owned(), None, Chart { title, scale: Scale::Log, curves })
}

/// The name of the file, the title, the axis, the samples.
type Distribution = (&'static str, &'static str, Scale, fn(&CellResult) -> Vec<u64>);

/// What is drawn of each variant.
const DISTRIBUTIONS: [Distribution; 4] = [
    ("completion", "completion since the start", Scale::Linear, |cell| {
        cell.measured.tasks.iter().map(|task| task.done_ns).collect()
    }),
    ("wait", "wait to first run", Scale::Linear, |cell| {
        cell.measured.tasks.iter().map(Task::wait_ns).collect()
    }),
    ("own", "own run time", Scale::Linear, |cell| {
        cell.measured.tasks.iter().map(|task| task.own_ns).collect()
    }),
    ("lateness", "how late a sleeper is that is due at any time", Scale::Log, |cell| {
        any_time(&cell.measured.probe).collect()
    }),
];

/// One drawing for each quantity, with a curve for each number of processors.
fn distributions(cells: &[CellResult], variant: &'static Variant) -> Vec<Figure> {
    let name = variant.name;
    let draw = |(file, title, scale, samples): &Distribution| {
        let cells = cells.iter().filter(|cell| cell.measured.cell.variant == name);
        let curve = |cell: &CellResult| {
            let name = count(cell.measured.cell.procs, variant.on_short());
            Curve::of(name, samples(cell).into_iter())
        };
        let (title, curves) = (format!("{name}: {title}"), cells.map(curve).collect());
        figure(format!("{file}-{name}.svg"), Some(name), Chart { title, scale: *scale, curves })
    };
    DISTRIBUTIONS.iter().filter_map(draw).collect()
}

/// None if there is nothing to draw.
fn figure(file: String, variant: Option<&'static str>, chart: Chart) -> Option<Figure> {
    let content = chart.content()?;
    Some(Figure { file, title: chart.title, variant, is_wide: false, size: chart::SIZE, content })
}
