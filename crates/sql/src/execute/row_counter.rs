//! A reply that counts rows and discards them.

use crate::{Cell, Column, Outcome, Reply, Result};

/// The number of rows received.
#[derive(Default)]
pub(super) struct RowCounter {
    pub rows: u64,
}

impl Reply for RowCounter {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[Cell<'_>]) -> Result<()> {
        self.rows += 1;
        Ok(())
    }

    fn done(&mut self, _: &Outcome, _: bool) -> Result<()> {
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}
