//! A source without a server, for tests.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use remora_source::{
    mysql::{
        FollowerStatus, State, TableState, TableStatus,
        gtid::{Flavor, GtidSet},
    },
    schema_file::DeclaredWords,
};

use super::Source;

/// Its status is set by the test.
pub(crate) struct FakeSource {
    pub(crate) status: std::sync::Arc<Mutex<FollowerStatus>>,
}

/// A running source at this position with these tables.
pub(crate) fn running(applied: &str, tables: &[(&str, TableState)]) -> FakeSource {
    let tables = tables.iter().map(|(table, state)| (table.to_string(), state.clone())).map(
        |(table, state)| TableStatus {
            table,
            state,
            copied: None,
            words_missing: None,
            keys_missing: None,
        },
    );
    let status = FollowerStatus {
        source: "127.0.0.1:3306".to_owned(),
        server_uuid: "u".to_owned(),
        state: State::Running,
        applied: applied.to_owned(),
        lag_seconds: Some(0.5),
        lag_transactions: Some(3),
        last_applied_at: None,
        events: 10,
        inserts: 4,
        inserts_skipped: 6,
        updates: 3,
        updates_added: 1,
        updates_removed: 1,
        updates_skipped: 8,
        deletes: 2,
        deletes_skipped: 9,
        statements: 1,
        row_statements: 2,
        harmless_statements: 3,
        unknown_statements: 4,
        skipped_other_tables: 5,
        checksum_errors: 0,
        queue_length: 7,
        last_error: None,
        tables: tables.collect(),
    };
    FakeSource { status: std::sync::Arc::new(Mutex::new(status)) }
}

impl Source for FakeSource {
    fn status(&self) -> FollowerStatus {
        self.status.lock().clone()
    }

    fn stop(&self) -> Result<(), remora_source::Error> {
        self.status.lock().state = State::Stopped;
        Ok(())
    }

    fn request_stop(&self) -> Result<(), remora_source::Error> {
        self.stop()
    }

    fn resume(&self) -> Result<(), remora_source::Error> {
        self.status.lock().state = State::Running;
        Ok(())
    }

    fn sync(&self, table: &str) -> Result<(), remora_source::Error> {
        let mut status = self.status.lock();
        let begun =
            TableState::Copying { rows: 0, estimated: 9, rows_per_second: 0, seconds_left: 0 };
        let found = status.tables.iter_mut().find(|known| known.table == table);
        found.into_iter().for_each(|known| known.state = begun.clone());
        Ok(())
    }

    fn cancel_sync(&self, table: Option<&str>) -> usize {
        let mut cancelled = 0;
        for known in &mut self.status.lock().tables {
            let asked = table.is_none_or(|table| table == known.table);
            if asked && matches!(known.state, TableState::Copying { .. }) {
                known.state = TableState::Live;
                cancelled += 1;
            }
        }
        cancelled
    }

    fn declare_words(
        &self,
        table: &str,
        words: Option<DeclaredWords>,
    ) -> Result<(), remora_source::Error> {
        let mut status = self.status.lock();
        let mut tables = status.tables.iter_mut();
        let Some(known) = tables.find(|known| known.table == table) else {
            return Err(remora_source::Error::Setting(format!("table {table} is not followed")));
        };
        known.words_missing = words.map(|words| format!("{words:?}"));
        Ok(())
    }

    fn wait_for(&self, gtids: &GtidSet, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let applied = GtidSet::parse_as(Flavor::MySql, &self.status.lock().applied);
            if applied.is_ok_and(|applied| applied.covers(gtids)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
