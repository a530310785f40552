//! Where Remora's changes come from. Today: files (JSON Lines, CSV, TSV, CirrusSearch dumps),
//! read into rows, and tables written back to files.

mod error;
pub mod files;
pub mod mysql;
pub mod schema_file;

pub use error::{Error, RecordProblem, Result};
