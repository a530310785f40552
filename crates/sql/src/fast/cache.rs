//! Plans by the text they were made of, shared by all sessions.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::{AnyPlan, lift::Lifted};

/// Most statements that are remembered. When there are more, all are forgotten: what is used comes
/// back with its next use.
const MAX_PLANS: usize = 4_096;

/// What is known of a text.
#[derive(Clone)]
pub(super) enum Known {
    /// It has no shape.
    NoShape,
    /// The plan it had when it last ran.
    Plan(Arc<AnyPlan>),
}

/// Plans by the text without its literals.
#[derive(Default)]
pub(crate) struct Plans {
    known: RwLock<FxHashMap<Box<[u8]>, Known>>,
}

impl Plans {
    /// How many texts are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.read().len()
    }

    /// What is known of a text.
    pub(super) fn get(&self, key: &[u8]) -> Option<Known> {
        self.known.read().get(key).cloned()
    }

    /// Remembers it, if it is short enough.
    pub(super) fn put(&self, lifted: &Lifted, known: Known) {
        if !lifted.has_key {
            return;
        }
        let mut all = self.known.write();
        if all.len() >= MAX_PLANS {
            all.clear();
        }
        all.insert(lifted.key.as_slice().into(), known);
    }
}
