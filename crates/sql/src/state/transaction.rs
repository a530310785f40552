//! How a session's transactions begin and end.

use std::sync::Arc;

use remora_engine::Value;

use super::SessionState;
use crate::{Result, transaction::TransactionCharacteristics};

impl SessionState {
    /// Without autocommit a transaction is open from the first statement on.
    pub(crate) fn ensure_begun(&mut self) {
        if !self.variables.autocommit && !self.transaction.is_begun() {
            let manner = self.next_characteristics();
            self.transaction.begin(&self.shared, manner);
        }
    }

    /// What the next transaction is to be, by SET TRANSACTION or by the session.
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

    /// What the session's transactions are.
    pub(crate) fn usual_characteristics(&self) -> TransactionCharacteristics {
        let isolation = self.variables.get("transaction_isolation");
        TransactionCharacteristics {
            read_only: self.variables.transaction_read_only,
            sees_committed: isolation.is_ok_and(|level| sees_committed(&level)),
            statement_only: false,
        }
    }

    /// SET TRANSACTION: a characteristic of the next transaction alone.
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

    /// Ends the open transaction, if there is one, keeping what it did. Waits while a table is made
    /// anew; killed meanwhile, it leaves the transaction open.
    pub(crate) async fn commit(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let _definitions = self.wait_for(shared.definitions.read()).await?;
        self.transaction.commit().await
    }
}

/// Whether a level of isolation is READ COMMITTED, or READ UNCOMMITTED, which is the same here.
fn sees_committed(level: &Value) -> bool {
    matches!(level, Value::Text(level) if level.to_ascii_uppercase().starts_with("READ-"))
}
