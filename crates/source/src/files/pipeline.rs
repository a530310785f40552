//! Reads a file with several threads and keeps the order of its lines.
//!
//! One thread decompresses and splits, workers make rows, and the caller's thread takes the batches. For each batch the
//! splitter creates a channel for one message: the sender goes to a free worker, the receiver into a bounded queue in
//! file order. So the caller receives the batches in order, and the queue's length bounds their number.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use remora_engine::{Row, Schema};

use super::{
    record::{Layout, RecordBatch, RecordReader, Span},
    row::RowParser,
};
use crate::{Error, RecordProblem, Result};

/// Sizes of a pipeline.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub batch_rows: usize,
    pub batch_bytes: usize,
    pub threads: usize,
}

/// The rows of a range of a file.
pub(crate) struct RowBatch {
    pub rows: Vec<Row>,
    /// The place of each row.
    pub spans: Vec<Span>,
    /// Malformed records.
    pub problems: Vec<(Span, RecordProblem)>,
    /// Names of unknown fields, and how often each occurred.
    pub ignored: Vec<(String, u64)>,
    /// Whether this is the last batch of the file.
    pub end: bool,
}

/// The state that all threads of a pipeline share.
pub(crate) struct PipelineContext<'a> {
    pub file: &'a str,
    pub schema: &'a Schema,
    pub first_row: u64,
    pub sizes: Sizes,
    pub cancel: &'a AtomicBool,
}

struct Job {
    records: RecordBatch,
    end: bool,
    reply: Sender<Result<RowBatch>>,
}

/// Calls `take` with the batches of a file in order, until it fails.
pub(crate) fn run(
    shared: &PipelineContext<'_>,
    reader: Box<dyn RecordReader>,
    take: &mut dyn FnMut(RowBatch) -> Result<()>,
) -> Result<()> {
    let threads = shared.sizes.threads.max(1);
    let layout = reader.layout().clone();
    thread::scope(|scope| {
        let (job_sender, jobs) = bounded::<Job>(threads);
        let (order_sender, ordered) = bounded(threads + 1);
        for _ in 0..threads {
            let (jobs, layout) = (jobs.clone(), layout.clone());
            scope.spawn(move || work(shared, &layout, &jobs));
        }
        drop(jobs);
        scope.spawn(move || split(shared, reader, &job_sender, &order_sender));
        take_in_order(shared, ordered, take)
    })
}

fn take_in_order(
    shared: &PipelineContext<'_>,
    ordered: Receiver<Receiver<Result<RowBatch>>>,
    take: &mut dyn FnMut(RowBatch) -> Result<()>,
) -> Result<()> {
    for reply in ordered {
        if shared.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        take(reply.recv().unwrap_or(Err(Error::Cancelled))?)?;
    }
    Ok(())
}

/// Splits until the end of the file, an error, or until no more batches are wanted.
fn split(
    shared: &PipelineContext<'_>,
    mut reader: Box<dyn RecordReader>,
    jobs: &Sender<Job>,
    ordered: &Sender<Receiver<Result<RowBatch>>>,
) {
    loop {
        let (reply, answer) = bounded(1);
        if ordered.send(answer).is_err() {
            return;
        }
        let mut records = RecordBatch::default();
        match fill(shared.sizes, &mut *reader, &mut records) {
            Err(error) => {
                // The send fails only if the receiver has failed itself.
                let _ = reply.send(Err(error));
                return;
            }
            Ok(end) => {
                if jobs.send(Job { records, end, reply }).is_err() || end {
                    return;
                }
            }
        }
    }
}

/// Fills a batch; true at the end of the file.
fn fill(sizes: Sizes, reader: &mut dyn RecordReader, records: &mut RecordBatch) -> Result<bool> {
    while records.len() < sizes.batch_rows.max(1) && records.bytes() < sizes.batch_bytes.max(1) {
        if !reader.read_into(records)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn work(shared: &PipelineContext<'_>, layout: &Layout, jobs: &Receiver<Job>) {
    for job in jobs {
        // As in `split`, the receiver may be gone.
        let _ = job.reply.send(Ok(parse(shared, layout, &job.records, job.end)));
    }
}

fn parse(
    shared: &PipelineContext<'_>,
    layout: &Layout,
    records: &RecordBatch,
    end: bool,
) -> RowBatch {
    let mut parser = RowParser::new(shared.schema, layout);
    let (mut rows, mut spans) = (Vec::with_capacity(records.len()), Vec::new());
    let mut problems = Vec::new();
    for record in records.iter() {
        let span = record.span();
        match parser.parse(&record, shared.first_row.saturating_add(span.line)) {
            Ok(row) => {
                rows.push(row);
                spans.push(span);
            }
            Err(message) => {
                let (file, line, offset) = (shared.file.to_owned(), span.line, span.offset);
                problems.push((span, RecordProblem { file, line, offset, message }));
            }
        }
    }
    let ignored = parser.ignored().iter().map(|(name, count)| (name.clone(), *count)).collect();
    RowBatch { rows, spans, problems, ignored, end }
}
