//! Collects the results of a statement.

use std::{future::Future, sync::Arc};

use remora_engine::Value;
use remora_mysql::{Collation, ErrorCode};
use remora_sql::{Cell, Column as SqlColumn, Outcome as SqlOutcome, Reply, SqlType};

use super::rows::{Answer, Outcome, Rows};
use crate::row::{Column, Type};

/// Collects all results of a statement.
#[derive(Default)]
pub(super) struct Taken {
    columns: Option<Arc<[Column]>>,
    rows: Vec<Vec<Value>>,
    outcome: Outcome,
}

impl Taken {
    pub fn answer(self) -> Answer {
        let rows = self.columns.map(|columns| Rows::new(columns, self.rows));
        Answer { rows, outcome: self.outcome }
    }

    /// The columns, once they are known.
    pub fn known_columns(&self) -> Option<Arc<[Column]>> {
        self.columns.clone()
    }

    /// The rows that arrived since the last call.
    pub fn take_rows(&mut self) -> Vec<Vec<Value>> {
        std::mem::take(&mut self.rows)
    }
}

impl Reply for Taken {
    fn columns(&mut self, columns: &[SqlColumn]) -> remora_sql::Result<()> {
        if self.columns.is_some() {
            let message = "the statement answers with several result sets, as FACET does: run each as a \
                           statement of its own";
            return Err(remora_sql::Error::new(ErrorCode::NotSupported, message));
        }
        self.columns = Some(columns.iter().map(column).collect());
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> remora_sql::Result<()> {
        let columns = self.columns.as_deref().unwrap_or_default();
        let pairs = cells.iter().zip(columns);
        self.rows.push(pairs.map(|(cell, column)| value(*cell, column.kind)).collect());
        Ok(())
    }

    fn done(&mut self, outcome: &SqlOutcome, _more: bool) -> remora_sql::Result<()> {
        self.outcome = Outcome {
            rows_changed: outcome.affected_rows,
            last_insert_id: outcome.last_insert_id,
            warnings: outcome.warnings,
        };
        Ok(())
    }

    fn drain(&mut self) -> impl Future<Output = remora_sql::Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

fn column(column: &SqlColumn) -> Column {
    let is_binary = column.collation == Collation::BINARY.0;
    let kind = match column.kind {
        SqlType::Null => Type::Null,
        SqlType::TinyInt
        | SqlType::SmallInt
        | SqlType::MediumInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::Year => match column.unsigned {
            true => Type::Uint,
            false => Type::Int,
        },
        SqlType::Float => Type::Float,
        SqlType::Double => Type::Double,
        SqlType::Decimal(digits, scale) => Type::Decimal(digits, scale),
        SqlType::Bit(_) | SqlType::Geometry => Type::Bytes,
        SqlType::Date => Type::Date,
        SqlType::Time(_) => Type::Time,
        SqlType::DateTime(_) => Type::DateTime,
        // It was already converted to the session's time zone.
        SqlType::Timestamp(_) => Type::DateTime,
        SqlType::Json => Type::Json,
        SqlType::Vector => Type::Vector,
        SqlType::Enum | SqlType::Set | SqlType::Multi | SqlType::Multi64 => Type::Text,
        _ if is_binary => Type::Bytes,
        _ => Type::Text,
    };
    Column { name: column.name.clone(), kind }
}

fn value(cell: Cell<'_>, kind: Type) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(number) if kind == Type::Uint => {
            u64::try_from(number).map_or(Value::Int(number), Value::Uint)
        }
        Cell::Int(number) => Value::Int(number),
        Cell::Uint(number) => Value::Uint(number),
        Cell::Float(number) => Value::Float(f64::from(number)),
        Cell::Double(number) => Value::Float(number),
        Cell::Decimal(number) => Value::Decimal(number.clone()),
        Cell::Text(text) if kind == Type::Json => Value::Json(text.into()),
        Cell::Text(text) => Value::Text(text.into()),
        Cell::Bytes(bytes) => Value::Bytes(bytes.into()),
        Cell::Date(date) => Value::Date(date),
        Cell::Time(micros) => Value::Time(micros),
        Cell::DateTime(moment) => Value::DateTime(moment),
    }
}
