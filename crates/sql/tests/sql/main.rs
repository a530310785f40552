//! SQL over an engine in this process. All in one program, since each program that links DataFusion takes long to link
//! and much disk space.

mod access_paths;
mod date_parts;
mod dml;
mod documents;
mod engine_status;
mod explain;
mod first_rows;
mod hostile;
mod indexes;
mod isolation;
mod joins;
mod json_table;
mod json_table_paths;
mod look_ups;
mod metadata;
mod modes;
mod path_letters;
mod path_matches;
mod path_order;
mod positions;
mod prefix_keys;
mod recursion;
mod same_names;
mod scores;
mod select;
mod sets;
mod skip_locked;
mod statements;
mod subqueries;
#[path = "../support/mod.rs"]
mod support;
mod value_types;
mod variables;
mod views;
mod windows;
mod words;
