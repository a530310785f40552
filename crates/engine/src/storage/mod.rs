//! The data directory: its lock, the row store and what it contains, the segment files and the manifest that names
//! them.
//!
//! ```text
//! DIR/LOCK FORMAT        see `lock`
//! DIR/MANIFEST           see `manifest`
//! DIR/segments/N.seg     one segment's bytes (eight digits), see the index crate
//! DIR/store/             the row store's own files, see `store`
//! ```

pub(crate) mod catalog;
pub(crate) mod durable;
pub(crate) mod feed;
pub(crate) mod lock;
pub(crate) mod manifest;
pub(crate) mod rows;
pub(crate) mod segment_files;
pub(crate) mod staged;
pub(crate) mod store;
