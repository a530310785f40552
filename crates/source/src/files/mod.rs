//! Documents in files: bytes -> decompressed stream -> records -> rows -> table, and back.

mod cirrus;
mod delimited;
mod document;
mod export;
mod format;
mod importer;
mod infer;
mod input;
mod json_lines;
mod json_stream;
mod lines;
mod literal;
mod pipeline;
mod position;
mod pretty;
mod record;
mod report;
mod row;
mod row_writer;
mod run;
mod sample;
mod shape;
mod sink;

pub use export::{ExportOptions, ExportReport, check_export, export_table};
pub use format::{Format, Reading, open_reader};
pub use importer::{ImportOptions, Importer};
pub use infer::{Inference, KeyChoice, infer_schema};
pub use input::Input;
pub use literal::{parse_literal, write_literal};
pub use position::FilePosition;
pub use record::{Layout, Record, RecordBatch, RecordReader, Span};
pub use report::{ImportReport, Progress};
pub use row::{RowParser, is_not_given};
pub use row_writer::{Compression, PackedFile, RowWriter};
pub use shape::{Rows, Shape};
pub use sink::{DatabaseSink, RowSink};

/// The most bytes of a record. A longer one is malformed.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

pub(crate) use document::read_document;

#[cfg(test)]
pub(crate) use row::tests::kinds_and_values;
