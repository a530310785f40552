//! The plan cache: plans by statement text, shared by all sessions.
//!
//! Plans are stored as `Any`, since their types belong to modules far above this one. The reader
//! names the type.

use std::{any::Any, sync::Arc};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// The most cached statements. When the cache is full, all are dropped; those in use come back with
/// their next use.
const MAX_PLANS: usize = 4_096;

/// What is known of a statement's text.
#[derive(Clone)]
pub(crate) enum CachedStatement {
    /// Seen once; it has no shape.
    Seen,
    /// The plan of its last run.
    Plan(Arc<dyn Any + Send + Sync>),
}

/// Plans by statement text without literals.
#[derive(Default)]
pub(crate) struct Plans {
    known: RwLock<FxHashMap<Box<[u8]>, CachedStatement>>,
}

impl Plans {
    /// The number of cached statements.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.read().len()
    }

    /// What is known of a statement's text.
    pub(crate) fn get(&self, key: &[u8]) -> Option<CachedStatement> {
        self.known.read().get(key).cloned()
    }

    /// Stores what is known of a statement's text.
    pub(crate) fn put(&self, key: &[u8], known: CachedStatement) {
        let mut all = self.known.write();
        if all.len() >= MAX_PLANS {
            all.clear();
        }
        all.insert(key.into(), known);
    }
}
