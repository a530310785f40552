//! The write path of a batch: one writer thread, one commit order.
//!
//! ```text
//! caller   prepare: compute, check, encode              (computed, prepare)
//!          index it if it is large                      (indexing/)
//!          queue, wait                                  (shared/)
//! writer   check what a batch expects of its keys       (conflict, recent)
//!          check that values of unique paths are free   (unique)
//!          take a group, help merges that lag           (writer)
//!          index small batches, one segment a table     (group)
//!          record the changes for watchers              (feed)
//!          commit all rows at once, sync                (writer)
//!          publish, acknowledge                         (group, writer)
//! ```
//! A batch becomes visible as a whole, and visible before it is acknowledged. With
//! [`Always`](crate::Durability::Always) it is durable before it is visible, except in a pipeline.

mod alter;
mod computed;
mod conflict;
mod define;
mod feed;
mod group;
mod large;
mod pending;
mod prebuilt;
mod prepare;
mod recent;
mod unique;
mod watch;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use computed::{RowColumns, computed};
pub use large::LargeBatch;
pub use pending::{Pending, Pipeline};
pub(crate) use prebuilt::prebuild_segments;
pub(crate) use prepare::{distributed, prepare, prepare_change};
pub(crate) use unique::wait_for_paths;
pub(crate) use writer::run;
