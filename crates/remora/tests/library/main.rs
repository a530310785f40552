//! The library as a program uses it.

mod documents;
mod opening;
mod paths;
mod sessions;
mod statements;
mod tables;

/// What a test ends with.
type Tested = Result<(), Box<dyn std::error::Error>>;
