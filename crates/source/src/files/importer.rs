//! Imports files into a table: batches in file order, each stored with its position in the file. A rerun continues
//! where the last one stopped, and of two lines with the same key the later wins.

use std::sync::{Arc, atomic::AtomicBool};

use remora_engine::{Change, ChangeBatch, Row, Schema, TableChanges};

use super::{
    format::{Format, Reading, open_reader},
    input::Input,
    pipeline::{self, PipelineContext, RowBatch, Sizes},
    position::FilePosition,
    record::Span,
    report::{ImportReport, Progress},
    row::ROW_NUMBER_COLUMN,
    run::{AppliedRows, Run},
    sink::RowSink,
};
use crate::{Error, RecordProblem, Result};

const HEAD_BYTES: usize = 64 << 10;

/// Settings of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// How the files are read.
    pub reading: Reading,
    /// The number of malformed records that are skipped. The next one stops the import before its batch is applied.
    pub skip_bad: u64,
    /// The most rows of a batch.
    pub batch_rows: usize,
    /// A batch ends after the record that brings it to this size.
    pub batch_bytes: usize,
    /// Threads that convert records to rows.
    pub threads: usize,
    /// The number of problems in the report.
    pub shown_problems: usize,
    /// Set it from any thread to stop the import after the current batch.
    pub cancel: Arc<AtomicBool>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            reading: Reading::default(),
            skip_bad: 0,
            batch_rows: 16_384,
            batch_bytes: 16 << 20,
            threads: 2,
            shown_problems: 20,
            cancel: Arc::default(),
        }
    }
}

/// Imports files into one table of a sink.
pub struct Importer<'a> {
    sink: &'a dyn RowSink,
    schema: Arc<Schema>,
    options: ImportOptions,
}

impl<'a> Importer<'a> {
    /// The table must exist in the sink with this schema.
    pub fn new(sink: &'a dyn RowSink, schema: Arc<Schema>, options: ImportOptions) -> Self {
        Self { sink, schema, options }
    }

    /// Imports the inputs one after another. `progress` is called after each batch.
    ///
    /// # Errors
    /// A file cannot be read, the sink refuses a batch, more records are malformed than may be skipped, or the import
    /// was cancelled. Batches applied before stay.
    pub fn run(
        &self,
        inputs: &mut [Input],
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<ImportReport> {
        let mut run = Run::new(inputs, self.options.shown_problems, progress);
        run.is_into_empty = self.sink.is_empty(&self.schema.name)?;
        let imported = inputs.iter_mut().try_for_each(|input| self.import(input, &mut run));
        let finished = self.sink.finish();
        imported.and(finished).map(|()| run.report)
    }

    fn import(&self, input: &mut Input, run: &mut Run<'_>) -> Result<()> {
        self.start_file(input, run)?;
        if run.position.end {
            run.report.files_done_before += 1;
        } else {
            run.report.files_resumed += usize::from(run.position.offset > 0);
            let head = input.sample(HEAD_BYTES)?;
            let stream = input.open()?;
            let file = input.name();
            let Reading { format, shape } = &self.options.reading;
            let format = format.map_or_else(|| Format::detect(file, &head), Ok)?;
            let reader = open_reader(file, stream, format, shape, &run.position)?;
            let shared = PipelineContext {
                file,
                schema: &self.schema,
                first_row: run.position.first_row,
                sizes: self.sizes(),
                cancel: &self.options.cancel,
            };
            pipeline::run(&shared, reader, &mut |batch| self.take(batch, run))?;
        }
        run.end_file(input);
        Ok(())
    }

    fn start_file(&self, input: &Input, run: &mut Run<'_>) -> Result<()> {
        run.file = input.name().to_owned();
        run.consumed = input.consumed();
        run.source =
            input.identity()?.map(|identity| format!("import:{}:{identity}", self.schema.name));
        let stored = match &run.source {
            Some(source) => self.sink.source_position(source)?,
            None => None,
        };
        // The rows of an earlier import are gone: the table was emptied, or is another of this name.
        let stored = match stored {
            Some(_) if run.is_into_empty => None,
            stored => stored,
        };
        run.position = match stored.map(|text| text.parse()) {
            Some(Ok(position)) => position,
            _ => FilePosition { first_row: self.first_row()?, ..FilePosition::default() },
        };
        Ok(())
    }

    fn first_row(&self) -> Result<u64> {
        let is_number = |&at: &usize| {
            self.schema.columns.get(at).is_some_and(|column| column.name == ROW_NUMBER_COLUMN)
        };
        if self.schema.primary_key.iter().any(is_number) {
            self.sink.largest_row_number(&self.schema.name)
        } else {
            Ok(0)
        }
    }

    fn sizes(&self) -> Sizes {
        let ImportOptions { batch_rows, batch_bytes, threads, .. } = self.options;
        Sizes { batch_rows, batch_bytes, threads }
    }

    fn take(&self, batch: RowBatch, run: &mut Run<'_>) -> Result<()> {
        let RowBatch { rows, spans, mut problems, ignored, end } = batch;
        let left = usize::try_from(self.left(run)).unwrap_or(usize::MAX);
        if problems.len() > left {
            return Err(Error::Record(problems.swap_remove(left).1));
        }
        let last_problem = problems.last().map(|(span, _)| *span);
        let last = later(spans.last().copied(), last_problem);
        for (span, problem) in problems {
            run.skip(span, problem);
        }
        run.count_ignored(ignored);
        self.apply(AppliedRows { rows, spans, last, end }, run)?;
        run.report_progress();
        Ok(())
    }

    /// The number of malformed records that may still be skipped.
    fn left(&self, run: &Run<'_>) -> u64 {
        self.options.skip_bad.saturating_sub(run.report.skipped)
    }

    /// Applies a part atomically. If the sink refuses a row and rows may be skipped, the rows before and behind it are
    /// applied; the part is halved until that row is found, unless the sink says which one it is.
    fn apply(&self, part: AppliedRows, run: &mut Run<'_>) -> Result<()> {
        let mut parts = vec![part];
        while let Some(part) = parts.pop() {
            let position = run.position.behind(part.last, part.end);
            match self.apply_once(&part, position, run) {
                Ok(()) => run.applied(&part, position),
                Err(Error::Row { place, message }) => {
                    let Some(span) = part.spans.get(place).copied() else {
                        return Err(Error::Sink(message));
                    };
                    let problem = problem_at(span, message, run);
                    if self.left(run) == 0 {
                        return Err(Error::Record(problem));
                    }
                    run.skip(span, problem);
                    parts.extend(part.around(place));
                }
                Err(Error::Engine(error @ remora_engine::Error::Request { .. })) => {
                    match part.spans.as_slice() {
                        [] => return Err(error.into()),
                        spans if self.left(run) == 0 => return Err(refused(spans, &error, run)),
                        [span] => {
                            run.skip(*span, problem_at(*span, error.to_string(), run));
                            parts.push(AppliedRows { rows: Vec::new(), spans: Vec::new(), ..part });
                        }
                        _ => parts.extend(part.halves()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn apply_once(&self, part: &AppliedRows, position: FilePosition, run: &Run<'_>) -> Result<()> {
        let source = run.source.clone().map(|source| (source, position.to_string()));
        if part.rows.is_empty() && (source.is_none() || position == run.position) {
            return Ok(());
        }
        // Hidden columns of functional keys are not in files: the engine computes them.
        let given = self.schema.given_columns();
        let put = |row: &Row| Change::Put(row.iter().take(given).cloned().collect());
        let changes: Vec<_> = part.rows.iter().map(put).collect();
        let table = TableChanges { table: self.schema.name.as_str().into(), changes };
        let tables = if part.rows.is_empty() { Vec::new() } else { vec![table] };
        let positions = source.into_iter().collect();
        self.sink.apply(ChangeBatch { tables, positions })
    }
}

/// The error for refused rows, none of which were applied.
fn refused(spans: &[Span], error: &remora_engine::Error, run: &Run<'_>) -> Error {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Error::Sink(error.to_string());
    };
    let message = match spans {
        [_] => error.to_string(),
        _ => format!("one of the rows up to line {}: {error}", last.line),
    };
    Error::Record(problem_at(*first, message, run))
}

fn problem_at(span: Span, message: String, run: &Run<'_>) -> RecordProblem {
    RecordProblem { file: run.file.clone(), line: span.line, offset: span.offset, message }
}

fn later(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    [one, other].into_iter().flatten().max_by_key(|span| span.end_offset)
}
