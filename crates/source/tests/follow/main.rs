//! A follower beside real servers: copies under write load, schema changes, and life with a source
//! that comes and goes. What is here must equal a SELECT at the source at the same position.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod broken;
mod cascades;
mod computed;
mod copies;
mod definitions;
mod failures;
mod filtered;
mod first;
mod keyless;
mod keys;
mod life;
mod limits;
mod lost;
mod names;
mod order;
mod pair;
mod places;
mod statements;
mod strict;
mod texts;
mod versioned;
mod views;
mod words;
