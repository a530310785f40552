//! SQL over an engine in this process. One program, for each that holds DataFusion is long to link and large on disk.

mod access_paths;
mod dml;
mod documents;
mod engine_status;
mod explain;
mod hostile;
mod indexes;
mod isolation;
mod joins;
mod json_table;
mod metadata;
mod path_letters;
mod positions;
mod scores;
mod select;
mod sets;
mod statements;
#[path = "../support/mod.rs"]
mod support;
mod views;
mod words;
