//! The plan cache: plans by statement text, shared by all sessions.
//!
//! Plans are stored as `Any`, since their types belong to modules far above this one. The reader
//! names the type.

use std::{any::Any, sync::Arc};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// The most cached statements, and the most bytes of their texts. When the cache is full, all are
/// dropped; those in use come back with their next use.
const MAX_PLANS: usize = 4_096;
const MAX_TEXT_BYTES: usize = 8 << 20;

/// What is known of a statement's text.
#[derive(Clone)]
pub(crate) enum CachedStatement {
    /// Seen once; no plan could be made of a shape.
    Seen,
    /// The plan of its shape, or that it has none, with the plans of its runs.
    Plan(Arc<dyn Any + Send + Sync>),
}

/// Plans by statement text without literals.
#[derive(Default)]
pub(crate) struct Plans {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    statements: FxHashMap<Box<[u8]>, CachedStatement>,
    /// Bytes of their texts.
    text_bytes: usize,
}

impl Plans {
    /// The number of cached statements.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.read().statements.len()
    }

    /// All plans of statements.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        let known = self.known.read();
        let plan = |known: &CachedStatement| match known {
            CachedStatement::Plan(plan) => Some(Arc::clone(plan)),
            CachedStatement::Seen => None,
        };
        known.statements.values().filter_map(plan).collect()
    }

    /// What is known of a statement's text.
    pub(crate) fn get(&self, key: &[u8]) -> Option<CachedStatement> {
        self.known.read().statements.get(key).cloned()
    }

    /// Stores what is known of a statement's text.
    pub(crate) fn put(&self, key: &[u8], known: CachedStatement) {
        let mut all = self.known.write();
        if all.statements.len() >= MAX_PLANS || all.text_bytes + key.len() > MAX_TEXT_BYTES {
            *all = Known::default();
        }
        if all.statements.insert(key.into(), known).is_none() {
            all.text_bytes += key.len();
        }
    }
}
