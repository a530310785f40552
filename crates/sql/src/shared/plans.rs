//! The plan cache: plans by statement text, shared by all sessions.
//!
//! Only the modules that make and run plans know their types, and they stand far above this one. So a plan is stored as
//! `Any`, and the reader names its type.

use std::{any::Any, sync::Arc};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// Most statements that are remembered. When there are more, all are forgotten: what is used comes
/// back with its next use.
const MAX_PLANS: usize = 4_096;

/// What is known of a text.
#[derive(Clone)]
pub(crate) enum CachedStatement {
    /// It has no shape and came once.
    Seen,
    /// The plan it had when it last ran.
    Plan(Arc<dyn Any + Send + Sync>),
}

/// Plans by the text without its literals.
#[derive(Default)]
pub(crate) struct Plans {
    known: RwLock<FxHashMap<Box<[u8]>, CachedStatement>>,
}

impl Plans {
    /// How many texts are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.read().len()
    }

    /// What is known of a text.
    pub(crate) fn get(&self, key: &[u8]) -> Option<CachedStatement> {
        self.known.read().get(key).cloned()
    }

    /// Remembers it.
    pub(crate) fn put(&self, key: &[u8], known: CachedStatement) {
        let mut all = self.known.write();
        if all.len() >= MAX_PLANS {
            all.clear();
        }
        all.insert(key.into(), known);
    }
}
