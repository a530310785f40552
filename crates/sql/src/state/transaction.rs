//! How a session's transactions begin and end.

use std::sync::Arc;

use remora_engine::Value;

use super::SessionState;
use crate::{Result, transaction::TransactionCharacteristics};

impl SessionState {
    /// Without autocommit, the first statement opens a transaction.
    pub(crate) fn ensure_begun(&mut self) {
        if !self.variables.autocommit && !self.transaction.is_begun() {
            let manner = self.next_characteristics();
            self.transaction.begin(&self.shared, manner);
        }
    }

    /// The characteristics of the next transaction, from SET TRANSACTION or else from the session.
    pub(crate) fn next_characteristics(&mut self) -> TransactionCharacteristics {
        let read_only = self.transaction.next_read_only.take();
        let sees_committed = self.transaction.next_sees_committed.take();
        let usual = self.usual_characteristics();
        TransactionCharacteristics {
            read_only: read_only.unwrap_or(usual.read_only),
            sees_committed: sees_committed.unwrap_or(usual.sees_committed),
            ..usual
        }
    }

    /// The session's default transaction characteristics.
    pub(crate) fn usual_characteristics(&self) -> TransactionCharacteristics {
        let isolation = self.variables.get("transaction_isolation");
        TransactionCharacteristics {
            read_only: self.variables.transaction_read_only,
            sees_committed: isolation.is_ok_and(|level| sees_committed(&level)),
            statement_only: false,
        }
    }

    /// SET TRANSACTION without SESSION: sets a characteristic of the next transaction only.
    pub(crate) fn set_next_transaction(&mut self, name: &str, value: &Value) {
        if name.ends_with("read_only") {
            let on = match value {
                Value::Text(text) => text.eq_ignore_ascii_case("on") || &**text == "1",
                value => !matches!(value, Value::Int(0) | Value::Uint(0) | Value::Bool(false)),
            };
            self.transaction.next_read_only = Some(on);
        } else {
            self.transaction.next_sees_committed = Some(sees_committed(value));
        }
    }

    /// Commits the open transaction, if there is one. Waits while a table is being rebuilt; if the
    /// statement is killed meanwhile, the transaction stays open.
    pub(crate) async fn commit(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let _definitions = self.wait_for(shared.definitions.read()).await?;
        self.transaction.commit().await
    }
}

/// Whether a level is READ COMMITTED or READ UNCOMMITTED, which behave the same here.
fn sees_committed(level: &Value) -> bool {
    matches!(level, Value::Text(level) if level.to_ascii_uppercase().starts_with("READ-"))
}
