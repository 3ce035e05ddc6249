//! index.html: the notes as a page that stands for itself, with all drawings in it.

use crate::figure::{self, Figure};
use crate::findings::Finding;
use crate::report::Document;
use crate::summary::Summary;
use crate::text::{count, escaped, ms};
use crate::variant::{BUSY, UNSTOPPED, VARIANTS, YIELDS};
use crate::{notes, svg, table};
use std::fmt::Write;

const STYLE: &str = "\
*{box-sizing:border-box}html{color-scheme:light dark;-webkit-text-size-adjust:100%}\
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}\
main,header,nav>div{max-width:1180px;margin:0 auto;padding:0 20px}\
header{padding-top:28px}h1{font-size:28px;line-height:1.2;margin:0 0 6px}\
h2{font-size:21px;margin:44px 0 10px}h3{font-size:16px;margin:0 0 6px}\
p{margin:8px 0}.soft,small{color:var(--soft)}a{color:var(--s0)}code{font-size:.92em}\
nav{position:sticky;top:0;background:var(--page);border-bottom:1px solid var(--rule);margin-top:16px;z-index:1}\
nav>div{display:flex;gap:4px 18px;overflow-x:auto;white-space:nowrap;padding-top:8px;padding-bottom:8px}\
nav a{text-decoration:none}\
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px;margin:18px 0}\
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px;min-width:0}\
.tiles b{display:block;font-size:30px;line-height:1.25;font-variant-numeric:tabular-nums}\
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:14px;margin:14px 0}\
.card svg{display:block;width:100%;height:auto}.scroll{overflow-x:auto}.wide svg{min-width:820px}\
.wide{margin:14px 0}.finding{margin:0}main>.finding{margin:14px 0}.finding h3{display:flex;gap:10px;align-items:baseline;flex-wrap:wrap}\
.is{font-size:12px;font-weight:600;border-radius:9px;padding:1px 9px;border:1px solid currentColor;white-space:nowrap}\
.yes{color:var(--s2)}.no{color:var(--late)}\
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}\
th,td{padding:3px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}\
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}\
details{margin:10px 0}@media(max-width:560px){.card{padding:10px}th,td{padding:3px 6px}.two svg text{font-size:14px}}summary{cursor:pointer;font-weight:600}footer{margin:50px 0 30px;color:var(--soft)}";

/// A page with this title and content, light or dark as the reader has it.
pub(crate) fn html(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <link rel=icon href=\"data:,\"><title>{}</title>\n<style>{}{STYLE}</style></head>\n\
         <body>\n{body}</body></html>\n",
        escaped(title),
        svg::style(":root"),
    )
}

/// The page of a run.
pub(crate) fn of(document: &Document) -> String {
    let figures = figure::all(document);
    let summaries = document.summaries();
    let lesson =
        document.findings.first().filter(|finding| finding.question.starts_with("How late is"));
    let mut body = String::new();
    let _ = writeln!(
        body,
        "<header><h1>Schedule forensics</h1><p class=soft>{}.</p></header>",
        escaped(&document.setup())
    );
    navigation(&mut body, document);
    body.push_str("<main>\n<h2 id=lesson>How late is a sleeper beside those who compute?</h2>\n");
    tiles(&mut body, document);
    body.push_str("<div class=two>");
    for figure in figures.iter().filter(|figure| figure.variant.is_none()) {
        card(&mut body, figure);
    }
    let _ = write!(body, "<div class=card>{}", table::lesson(&summaries).html());
    let first =
        document.findings.first().filter(|finding| finding.question.starts_with("How late"));
    if let Some(lesson) = first {
        paragraph(&mut body, lesson);
    }
    body.push_str("</div></div>\n<h2 id=findings>What the numbers say</h2>\n");
    body.push_str("<div class=two>");
    let already = usize::from(lesson.is_some());
    let rest = document.findings.iter().skip(already).filter(|finding| !finding.is_about_a_trace);
    rest.for_each(|finding| told(&mut body, finding));
    body.push_str("</div>\n");
    for failure in &document.failures {
        let (cell, reason) = (&failure.cell, escaped(&failure.reason));
        let _ = writeln!(
            body,
            "<p class=no>There are no numbers for {} on {}: {reason}.</p>",
            cell.variant, cell.procs
        );
    }
    for variant in VARIANTS {
        let of_variant = || figures.iter().filter(|figure| figure.variant == Some(variant.name));
        if of_variant().next().is_none() {
            continue;
        }
        let _ = write!(
            body,
            "<h2 id={}>{}</h2>\n<p class=soft>{}.</p>\n<div class=two>",
            variant.name,
            variant.name,
            inline(variant.about)
        );
        of_variant().filter(|figure| !figure.is_wide).for_each(|figure| card(&mut body, figure));
        body.push_str("</div>\n");
        of_variant().filter(|figure| figure.is_wide).for_each(|figure| card(&mut body, figure));
        let begins = format!("What does the trace of *{}*", variant.name);
        let traces = document.findings.iter().filter(|told| told.question.starts_with(&begins));
        traces.for_each(|finding| told(&mut body, finding));
    }
    tables(&mut body, document);
    body.push_str("</main>\n");
    html("gosched lab: schedule forensics", &body)
}

fn navigation(body: &mut String, document: &Document) {
    body.push_str("<nav><div>");
    let has = |name: &str| document.cells.iter().any(|cell| cell.measured.cell.variant == name);
    let variants = VARIANTS.iter().map(|variant| variant.name).filter(|name| has(name));
    for name in ["lesson", "findings"].into_iter().chain(variants).chain(["tables", "method"]) {
        let _ = write!(body, "<a href=\"#{name}\">{name}</a>");
    }
    body.push_str("</div></nav>\n");
}

/// The three numbers that the experiment is about.
fn tiles(body: &mut String, document: &Document) {
    let Some(fewest) = document.cells.iter().map(|cell| cell.measured.cell.procs).min() else {
        return;
    };
    body.push_str("<div class=tiles>");
    for (name, words) in
        [(UNSTOPPED, "without preemption"), (YIELDS, "with yields"), (BUSY, "with preemption")]
    {
        let is_it = |cell: &Summary| cell.variant == name && cell.procs == fewest;
        if let Some(cell) = document.cells.iter().map(|cell| &cell.summary).find(|s| is_it(s)) {
            let late = &cell.late_any_time;
            let _ = write!(
                body,
                "<div class=card>{words}<b>{} ms</b><small>late at the median, {} ms at p99 \
                 (<a href=\"#{name}\">{name}</a> on {})</small></div>",
                ms(late.p50),
                ms(late.p99),
                count(fewest, "processor"),
            );
        }
    }
    body.push_str("</div>\n");
}

fn card(body: &mut String, figure: &Figure) {
    if figure.is_wide {
        let _ = writeln!(
            body,
            "<div class=\"card wide\"><div class=scroll>{}</div></div>",
            figure.inline()
        );
    } else {
        let _ = write!(body, "<div class=card>{}</div>", figure.inline());
    }
}

pub(crate) fn told(body: &mut String, finding: &Finding) {
    let (class, words) = match finding.as_expected {
        true => ("yes", "as expected"),
        false => ("no", "not as expected"),
    };
    let question = inline(&finding.question);
    let _ = write!(
        body,
        "<div class=\"card finding\"><h3><span>{question}</span><span class=\"is {class}\">{words}</span></h3>"
    );
    paragraph(body, finding);
    body.push_str("</div>\n");
}

fn paragraph(body: &mut String, finding: &Finding) {
    let answer = finding.answer.iter().map(|sentence| inline(sentence)).collect::<Vec<_>>();
    let _ = write!(body, "<p>{}</p>", answer.join(" "));
}

fn tables(body: &mut String, document: &Document) {
    body.push_str("<h2 id=tables>Tables</h2>\n");
    for (title, table) in notes::tables_of(document) {
        let _ = writeln!(
            body,
            "<details><summary>{}</summary>{}</details>",
            escaped(title),
            table.html()
        );
    }
    body.push_str("<h2 id=method>How it is measured</h2>\n<ul>");
    for line in notes::MEASURES.lines() {
        match line.strip_prefix("* ") {
            Some(text) => {
                let _ = write!(body, "<li>{}", inline(text));
            }
            None => {
                let _ = write!(body, " {}", inline(line));
            }
        }
    }
    body.push_str("</ul>\n");
    let files: Vec<_> = document
        .traces
        .iter()
        .map(|traced| format!("<a href=\"{0}\">{0}</a>", escaped(&traced.file)))
        .collect();
    if !files.is_empty() {
        let _ = write!(
            body,
            "<p>Traces, for <code>gosched trace summary FILE</code> and <code>go tool trace \
             FILE</code>: {}.</p>",
            files.join(", ")
        );
    }
    body.push_str(
        "<footer>All numbers are in <a href=\"results.json\">results.json</a>, the text in \
         <a href=\"NOTES.md\">NOTES.md</a>.</footer>\n",
    );
}

/// The little Markdown that sentences have: `*word*` and code.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in escaped(text).split('`').enumerate() {
        if i % 2 == 1 {
            let _ = write!(out, "<code>{part}</code>");
            continue;
        }
        for (i, words) in part.split('*').enumerate() {
            if i % 2 == 1 {
                let _ = write!(out, "<em>{words}</em>");
            } else {
                out.push_str(words);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{html, inline};

    #[test]
    fn sentences_become_html() {
        assert_eq!(inline("*busy* on `a<b`, 2"), "<em>busy</em> on <code>a&lt;b</code>, 2");
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let page = html("t", "");
        for needs in ["src=", "@import", "url(", "http:", "https:"] {
            assert!(!page.contains(needs), "{needs}");
        }
        assert!(page.contains("name=viewport") && page.contains("prefers-color-scheme:dark"));
    }
}
