//! The engine's tables as DataFusion reads them: conditions that the engine understands are pushed down, the others are
//! filtered above the scan.

mod arrays;
mod best;
mod cached;
mod date_parts;
mod dynamic;
mod estimates;
mod exec;
mod filter;
mod indexed_paths;
mod json_rows;
mod late;
pub(crate) mod outer;
mod overlaid;
mod path_rows;
mod path_texts;
pub(crate) mod paths;
mod provider;
pub(crate) mod settled;
mod table;

pub(crate) use arrays::array;
pub(crate) use cached::{CachedRows, CachedScan, ScalarSort, ScanCondition, ScanLimits, joined};
pub(crate) use exec::ScanExec;
pub(crate) use json_rows::JsonSource;
pub(crate) use late::LateColumns;
pub(crate) use path_rows::indexes_path;
pub(crate) use table::EngineTable;

/// The prefix of a plan's line for a table scan.
pub(crate) const SCAN_OF: &str = "Scan of ";
