//! The progress of an import: a bar on a terminal, otherwise occasional lines.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use remora_source::files::Progress;

use crate::cli::output::thousands;

/// The time between two lines.
const LINE_PAUSE: Duration = Duration::from_secs(5);

/// Shows progress on standard error.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Display {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::no_length();
            let form = "{bar:32} {percent:>3}% {msg} {eta} left";
            if let Ok(style) = ProgressStyle::with_template(form) {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, last_line: Instant::now() }
    }

    /// Shows the current progress.
    pub(super) fn show(&mut self, progress: &Progress) {
        match &self.bar {
            Some(bar) => {
                if let Some(total) = progress.total_bytes {
                    bar.set_length(total);
                }
                bar.set_position(progress.bytes);
                bar.set_message(rates(progress));
            }
            None if self.last_line.elapsed() >= LINE_PAUSE => {
                self.last_line = Instant::now();
                let done = progress.total_bytes.map_or(String::new(), |total| {
                    format!("{:>3}% ", progress.bytes.saturating_mul(100) / total.max(1))
                });
                eprintln!("{done}{} of {}", rates(progress), progress.file);
            }
            None => {}
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn rates(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64().max(0.001);
    let rows_per_second = (progress.rows as f64 / seconds) as u64;
    let megabytes_per_second = progress.record_bytes as f64 / 1e6 / seconds;
    format!(
        "{} rows, {} rows/s, {megabytes_per_second:.1} MB/s",
        thousands(progress.rows),
        thousands(rows_per_second),
    )
}
