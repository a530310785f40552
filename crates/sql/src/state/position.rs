//! `sql_wait_for_position`: reads that wait until this server shows what was written to a followed
//! server.
//!
//! A session that wrote to the source sets it to the GTID set of its transaction. From then on each reading statement
//! waits, before it takes its snapshot, until a source has applied the set. A transaction takes its snapshot when it
//! begins, so only its first statement waits; a READ COMMITTED one takes one for each statement.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use remora_mysql::ErrorCode;

use super::{INTERRUPT_STEP, SessionState};
use crate::{Error, Result, parse::StatementKind};

impl SessionState {
    /// Waits for the session's position before the statement takes its snapshot, and begins the
    /// transaction that it belongs to. Returns 3024 if the position is not reached in time.
    pub(crate) async fn begin_reading(&mut self, kind: StatementKind) -> Result<()> {
        if let Some(moment) = &mut self.moment
            && std::mem::replace(&mut moment.has_begun, true)
        {
            return Ok(());
        }
        if matches!(kind, StatementKind::Select | StatementKind::Do | StatementKind::Rows) {
            self.await_position().await?;
        }
        if kind == StatementKind::Select {
            self.ensure_begun();
        }
        self.transaction.begin_statement(&Arc::clone(&self.shared));
        Ok(())
    }

    /// Waits like [`SessionState::begin_reading`], for a transaction that is about to begin.
    pub(crate) async fn await_position(&self) -> Result<()> {
        match &self.variables.wait_for_position {
            Some(gtids) => self.wait_for_gtids(gtids).await,
            None => Ok(()),
        }
    }

    /// Boxed, so that crates above do not compile it too.
    fn wait_for_gtids<'a>(&'a self, gtids: &'a Arc<str>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.until_applied(gtids))
    }

    async fn until_applied(&self, gtids: &Arc<str>) -> Result<()> {
        let host = &self.shared.host;
        if self.transaction.has_moment() || host.wait_for_gtids(None, gtids, Duration::ZERO)? {
            return Ok(());
        }
        let patience = Duration::from_millis(self.variables.wait_for_position_ms);
        let begun = Instant::now();
        loop {
            self.check_interrupted()?;
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.not_reached(gtids));
            }
            let (host, asked) = (Arc::clone(host), Arc::clone(gtids));
            let step = left.min(INTERRUPT_STEP);
            let waited =
                tokio::task::spawn_blocking(move || host.wait_for_gtids(None, &asked, step)).await;
            if waited.map_err(|_| Error::shutdown())?? {
                return Ok(());
            }
        }
    }

    fn not_reached(&self, gtids: &str) -> Error {
        let patience = self.variables.wait_for_position_ms;
        let applied = self.applied_gtids();
        let message = format!(
            "The position '{gtids}' of sql_wait_for_position was not reached within {patience} ms: \
             it is '{applied}'"
        );
        Error::new(ErrorCode::QueryTimeout, message)
    }

    /// The GTID sets that the followed sources have applied: what `@@gtid_executed` shows.
    pub(super) fn applied_gtids(&self) -> String {
        let replicas = self.shared.host.replicas();
        let sets = replicas.into_iter().map(|each| each.applied);
        sets.filter(|set| !set.is_empty()).collect::<Vec<String>>().join(",")
    }

    /// An error if `gtids` is not a GTID set or no source is followed, since no wait could then
    /// succeed.
    pub(super) fn check_position(&self, gtids: &str) -> Result<()> {
        if !gtids.is_empty() {
            self.shared.host.wait_for_gtids(None, gtids, Duration::ZERO)?;
        }
        Ok(())
    }
}
