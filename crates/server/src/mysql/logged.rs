//! The log of queries, of SQL connections.

use std::{borrow::Cow, time::Instant};

use remora_sql::Session;

use super::service::SqlService;
use crate::query_log::AnsweredSearch;

/// The beginning of a statement that may be logged.
#[derive(Clone, Copy)]
pub(super) struct LoggedStatement {
    begun: Instant,
    /// The session's searches until then.
    searches: u64,
}

impl LoggedStatement {
    /// Begins a statement; `None` if queries are not logged.
    pub(super) fn begin(service: &SqlService, session: &Session) -> Option<Self> {
        let is_logged = service.shared.settings.load().query_log.file.is_some();
        is_logged.then(|| Self { begun: Instant::now(), searches: session.searches() })
    }

    /// Logs the statement if it was a search, by what its plan knows.
    pub(super) fn end(
        self,
        service: &SqlService,
        session: &Session,
        connection: u64,
        (text, is_prepared): (&[u8], bool),
    ) {
        let elapsed = self.begun.elapsed();
        let settings = &service.shared.settings.load().query_log;
        if session.searches() == self.searches || elapsed < settings.least_time() {
            return;
        }
        let search = session.last_search();
        let statement: Cow<'_, str> = String::from_utf8_lossy(text);
        let answered = AnsweredSearch {
            connection,
            elapsed,
            found: search.found,
            documents: search.documents,
            table: &search.table,
            query: &search.query,
            statement: &statement,
            is_prepared,
        };
        service.shared.query_log.add(settings, &answered);
    }
}
