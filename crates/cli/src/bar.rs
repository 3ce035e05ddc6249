//! How far something is: a bar on a terminal, a line for each step elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Says on standard error how many of some steps have ended.
pub(crate) struct Bar {
    /// None where nobody watches.
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { bar: stderr().is_terminal().then(drawn) }
    }

    /// Step `what` begins, when `ended` of `all` have ended.
    pub(crate) fn begins(&self, ended: usize, all: usize, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(all as u64);
            bar.set_position(ended as u64);
            bar.set_message(what.to_owned());
        }
    }

    /// Step `what` has ended, the `ended`-th of `all`, or failed.
    pub(crate) fn ended(
        &self,
        ended: usize,
        all: usize,
        what: &str,
        took: Duration,
        failed: Option<&str>,
    ) {
        let end = failed
            .map_or_else(|| format!("{:.1} s", took.as_secs_f64()), |why| format!("failed: {why}"));
        match &self.bar {
            None => eprintln!("{ended:>2} of {all}  {what:<28} {end}"),
            Some(bar) => {
                bar.set_position(ended as u64);
                if failed.is_some() {
                    bar.println(format!("{what}: {end}"));
                }
            }
        }
    }

    /// All is done; the bar goes.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn drawn() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
    let style = "{elapsed_precise} [{bar:30}] {pos}/{len}  {msg}";
    // The words are right; the plain bar is as good.
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("=> "));
    }
    // The seconds go on while a step takes some.
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
