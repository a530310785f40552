//! Marks a store that takes no more writes because its disk cannot be trusted.

use std::sync::OnceLock;

use crate::{Error, Result};

/// Remembers the first failed write.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    reason: OnceLock<String>,
}

impl Poison {
    /// Returns [`Error::Poisoned`] once a write has failed.
    pub fn check(&self) -> Result<()> {
        match self.reason.get() {
            Some(reason) => Err(Error::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// Remembers the first error; returns the given one.
    pub fn set(&self, error: Error) -> Error {
        let reason = match &error {
            Error::Poisoned(reason) => reason.clone(),
            other => other.to_string(),
        };
        // Only the first failure is the cause; later ones follow from it.
        let _ = self.reason.set(reason);
        error
    }
}
