//! The state and report of one import run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use remora_engine::Row;

use super::{
    input::Input,
    position::FilePosition,
    record::Span,
    report::{ImportReport, Progress},
};
use crate::RecordProblem;

/// The state of a run.
pub(crate) struct Run<'r> {
    pub report: ImportReport,
    pub file: String,
    /// The name under which the file's position is stored; `None` for a stream.
    pub source: Option<String>,
    /// The position up to which the file was applied.
    pub position: FilePosition,
    /// Whether the table had no rows when the run began.
    pub is_into_empty: bool,
    pub consumed: Arc<AtomicU64>,
    shown_problems: usize,
    progress: &'r mut dyn FnMut(&Progress),
    started: Instant,
    done_bytes: u64,
    total_bytes: Option<u64>,
}

/// The fewest rows behind a refused one that are tried together.
const NEAR_ROWS: usize = 64;

/// Rows that are applied in one batch.
pub(crate) struct AppliedRows {
    pub rows: Vec<Row>,
    /// The place of each row.
    pub spans: Vec<Span>,
    /// The last record of the part, whether it became a row or not.
    pub last: Option<Span>,
    /// Whether the file ends after it.
    pub end: bool,
}

impl AppliedRows {
    /// Splits into the first `count` rows and the others, the others first, as a stack needs them.
    fn split(mut self, count: usize) -> [Self; 2] {
        let count = count.min(self.rows.len());
        let (rows, spans) = (self.rows.split_off(count), self.spans.split_off(count));
        let last = self.spans.last().copied();
        [Self { rows, spans, last: self.last, end: self.end }, Self { last, end: false, ..self }]
    }

    /// Splits into two parts, the second one first.
    pub fn halves(self) -> [Self; 2] {
        let middle = self.rows.len() / 2;
        self.split(middle)
    }

    /// Splits into the rows before a place, some behind it, and the others, the last ones first. Where many rows are refused,
    /// the next one is near: few rows are tried in vain then.
    pub fn around(self, place: usize) -> [Self; 3] {
        let [behind, mut before] = self.split(place + 1);
        before.rows.pop();
        before.spans.pop();
        before.last = before.spans.last().copied();
        let [others, near] = behind.split((place * 4).max(NEAR_ROWS));
        [others, near, before]
    }
}

impl<'r> Run<'r> {
    pub fn new(
        inputs: &[Input],
        shown_problems: usize,
        progress: &'r mut dyn FnMut(&Progress),
    ) -> Self {
        Self {
            report: ImportReport::default(),
            file: String::new(),
            source: None,
            position: FilePosition::default(),
            is_into_empty: false,
            consumed: Arc::default(),
            shown_problems,
            progress,
            started: Instant::now(),
            done_bytes: 0,
            total_bytes: inputs.iter().map(Input::total_bytes).sum(),
        }
    }

    /// Counts a skipped record.
    pub fn skip(&mut self, span: Span, problem: RecordProblem) {
        self.report.skipped += 1;
        self.report.record_bytes += span.end_offset - span.offset;
        if self.report.problems.len() < self.shown_problems {
            self.report.problems.push(problem);
        }
    }

    pub fn count_ignored(&mut self, ignored: Vec<(String, u64)>) {
        for (name, count) in ignored {
            *self.report.ignored.entry(name).or_default() += count;
        }
    }

    pub fn applied(&mut self, part: &AppliedRows, position: FilePosition) {
        self.report.rows += part.rows.len() as u64;
        let bytes = part.spans.iter().map(|span| span.end_offset - span.offset);
        self.report.record_bytes += bytes.sum::<u64>();
        self.position = position;
    }

    /// Calls the caller's progress function.
    pub fn report_progress(&mut self) {
        (self.progress)(&Progress {
            file: self.file.clone(),
            rows: self.report.rows,
            skipped: self.report.skipped,
            record_bytes: self.report.record_bytes,
            bytes: self.done_bytes + self.consumed.load(Ordering::Relaxed),
            total_bytes: self.total_bytes,
            elapsed: self.started.elapsed(),
        });
    }

    pub fn end_file(&mut self, input: &Input) {
        let read = || self.consumed.load(Ordering::Relaxed);
        self.done_bytes += input.total_bytes().unwrap_or_else(read);
        self.consumed = Arc::default();
    }
}
