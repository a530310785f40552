//! Sources of changes: files (JSON, JSON Lines, CSV, TSV, CirrusSearch dumps), which are imported and exported; the
//! sources of a sphinx.conf; tiedot databases; a MySQL or MariaDB that is followed.

mod error;
pub mod files;
pub mod mysql;
pub mod schema_file;
pub mod sphinx_conf;
pub mod tiedot;

pub use error::{Error, RecordProblem, Result};
