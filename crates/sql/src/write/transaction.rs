//! Runs statements that change rows, in the session's transaction or in one of their own; also BEGIN, COMMIT, ROLLBACK
//! and savepoints.

use remora_mysql::ErrorCode;

use super::rows::{self, RowWork};
use crate::{
    Error, Outcome, Result,
    parse::{Statement, Tokens},
    state::SessionState,
    transaction::TransactionCharacteristics,
};

/// How often a statement outside a transaction is retried after a conflict.
const MOST_ATTEMPTS: u32 = 1_000;

/// Changes rows, by a statement or by key: completely, or without any effect.
pub(super) async fn run_rows(session: &mut SessionState, work: RowWork<'_>) -> Result<Outcome> {
    session.ensure_begun();
    if session.transaction.is_begun() {
        let mark = session.transaction.mark();
        let result = rows::run(session, work).await;
        if result.is_err() {
            session.transaction.go_back(mark);
        }
        return result;
    }
    let (last_insert_id, insert_id) = (session.last_insert_id.get(), session.insert_id);
    for _ in 0..MOST_ATTEMPTS {
        let shared = std::sync::Arc::clone(&session.shared);
        let read_only = session.variables.transaction_read_only;
        let manner = TransactionCharacteristics {
            read_only,
            statement_only: true,
            ..TransactionCharacteristics::default()
        };
        session.transaction.begin(&shared, manner);
        let result = rows::run(session, work).await;
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                session.transaction.roll_back();
                return Err(error);
            }
        };
        match session.commit().await {
            Ok(()) => return Ok(outcome),
            Err(error) if error.code == ErrorCode::Deadlock => {
                session.check_interrupted()?;
                session.warnings.clear();
                session.last_insert_id.set(last_insert_id);
                session.last_insert_id.begin();
                session.insert_id = insert_id;
            }
            Err(error) => {
                session.transaction.roll_back();
                return Err(error);
            }
        }
    }
    let message = "Lock wait timeout exceeded; try restarting transaction";
    Err(Error::new(ErrorCode::LockWaitTimeout, message))
}

/// Runs BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, RELEASE SAVEPOINT.
pub(super) async fn run_transaction(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<Outcome> {
    let source = &statement.source;
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    if tokens.accept("BEGIN") {
        tokens.accept("WORK");
        tokens.expect_end()?;
        begin_next(session).await?;
    } else if tokens.accept_all("START TRANSACTION") {
        let said = characteristics(&mut tokens)?;
        let next = session.next_characteristics();
        let read_only = said.unwrap_or(next.read_only);
        begin(session, TransactionCharacteristics { read_only, ..next }).await?;
    } else if tokens.accept("COMMIT") {
        end(session, &mut tokens, true).await?;
    } else if tokens.accept("ROLLBACK") {
        let mut ahead = tokens;
        ahead.accept("WORK");
        if ahead.accept("TO") {
            ahead.accept("SAVEPOINT");
            let name = ahead.name()?;
            ahead.expect_end()?;
            session.transaction.return_to(&name)?;
            warn_of_dropped(session);
        } else {
            end(session, &mut tokens, false).await?;
        }
    } else if tokens.accept("SAVEPOINT") {
        let name = tokens.name()?;
        tokens.expect_end()?;
        session.ensure_begun();
        session.transaction.save(&name);
    } else if tokens.accept_all("RELEASE SAVEPOINT") {
        let name = tokens.name()?;
        tokens.expect_end()?;
        session.transaction.release(&name)?;
    } else {
        return Err(Error::unsupported(source.shown()));
    }
    Ok(Outcome::default())
}

/// Warns that a rollback does not restore dropped temporary tables.
fn warn_of_dropped(session: &SessionState) {
    if session.transaction.has_dropped_temporary() {
        let message =
            "Some temporary tables were dropped, but these operations could not be rolled back.";
        session.warn(ErrorCode::DroppedTemporary, message);
    }
}

/// Reads the characteristics in START TRANSACTION; returns READ ONLY (true) or READ WRITE.
fn characteristics(tokens: &mut Tokens<'_>) -> Result<Option<bool>> {
    let mut read_only = None;
    while !tokens.at_end() {
        if tokens.accept_all("READ ONLY") {
            read_only = Some(true);
        } else if tokens.accept_all("READ WRITE") {
            read_only = Some(false);
        } else if !tokens.accept_all("WITH CONSISTENT SNAPSHOT") {
            return Err(tokens.syntax_error());
        }
        if !tokens.take(",") {
            tokens.expect_end()?;
        }
    }
    Ok(read_only)
}

/// Begins a transaction with the characteristics of the next one.
pub(super) async fn begin_next(session: &mut SessionState) -> Result<()> {
    let manner = session.next_characteristics();
    begin(session, manner).await
}

/// Begins a transaction. An open one is committed first.
async fn begin(session: &mut SessionState, manner: TransactionCharacteristics) -> Result<()> {
    session.commit().await?;
    session.locks_tables = false;
    session.await_position().await?;
    let shared = std::sync::Arc::clone(&session.shared);
    session.transaction.begin(&shared, manner);
    Ok(())
}

/// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`. A chained transaction keeps its connection.
async fn end(session: &mut SessionState, tokens: &mut Tokens<'_>, commits: bool) -> Result<()> {
    tokens.accept("WORK");
    let chains = tokens.accept_all("AND CHAIN");
    if !chains {
        tokens.accept_all("AND NO CHAIN");
    }
    let releases = !chains && tokens.accept("RELEASE");
    if !releases {
        tokens.accept_all("NO RELEASE");
    }
    tokens.expect_end()?;
    if releases && !session.may_be_released {
        let what = "RELEASE where no connection can be ended: end the transaction without it";
        return Err(Error::unsupported(what));
    }
    // The chained transaction has the same characteristics.
    let manner = session.transaction.manner().unwrap_or_else(|| session.usual_characteristics());
    if commits {
        session.commit().await?;
    } else {
        warn_of_dropped(session);
        session.transaction.roll_back();
    }
    if chains {
        begin(session, manner).await?;
    }
    session.is_released = releases;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, atomic::Ordering},
        time::Duration,
    };

    use remora_engine::{Database, Options};
    use remora_mysql::ErrorCode;

    use crate::{Cell, Column, EmbeddedHost, Identity, Instance, Outcome, Reply, Result, Settings};

    /// A reply for statements without a client.
    struct Nobody;

    impl Reply for Nobody {
        fn columns(&mut self, _columns: &[Column]) -> Result<()> {
            Ok(())
        }

        fn row(&mut self, _cells: &[Cell<'_>]) -> Result<()> {
            Ok(())
        }

        fn done(&mut self, _outcome: &Outcome, _more: bool) -> Result<()> {
            Ok(())
        }

        async fn drain(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_table_that_is_made_anew_can_be_killed() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), Options::default()).unwrap();
        let settings = Settings {
            version: "9.7.0-remora".to_owned(),
            max_query_memory_bytes: 1 << 30,
            max_total_memory_bytes: 2 << 30,
            max_temporary_memory_bytes: 1 << 30,
            spill: None,
            max_spill_bytes: 1 << 30,
            max_direct_rows: crate::MAX_DIRECT_ROWS,
            default_database: "test".to_owned(),
        };
        let instance = Instance::new(database.clone(), Arc::new(EmbeddedHost), settings);
        let mut session = instance.session(1, Identity::default());
        let table = b"CREATE TABLE t (id INT PRIMARY KEY)";
        session.query(table, false, &mut Nobody).await.unwrap();
        let shared = instance.shared();
        for statement in ["INSERT INTO t VALUES (1)", "ALTER TABLE t ADD UNIQUE (id)"] {
            let alone = shared.definitions.write().await;
            let interrupter = session.interrupter();
            let kill = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                interrupter.store(true, Ordering::Relaxed);
            };
            let mut reply = Nobody;
            let asked = session.query(statement.as_bytes(), false, &mut reply);
            let (asked, ()) = tokio::join!(asked, kill);
            assert_eq!(asked.unwrap_err().code, ErrorCode::Interrupted, "{statement}");
            drop(alone);
            interrupter.store(false, Ordering::Relaxed);
            assert_eq!(database.reader().row_count("t").unwrap(), 0, "{statement}");
        }
        let row = b"INSERT INTO t VALUES (2)";
        session.query(row, false, &mut Nobody).await.unwrap();
        assert_eq!(database.reader().row_count("t").unwrap(), 1);
    }
}
