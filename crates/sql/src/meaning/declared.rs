//! The expression type of a declared column.

use remora_mysql::Collation;

use super::{
    collation::is_bytes,
    types::{ExprType, Width},
};
use crate::{SqlType, catalog::ColumnSpec};

/// The greatest display width that MySQL accepts.
const MAX_WIDTH: u32 = 255;

/// The type of a column in expressions.
pub(crate) fn expr_type(spec: &ColumnSpec) -> ExprType {
    let kind = &spec.kind;
    let length = match kind.sql {
        SqlType::Enum => kind.labels.iter().map(|label| label.chars().count()).max().unwrap_or(0),
        SqlType::Set => {
            let all: usize = kind.labels.iter().map(|label| label.chars().count()).sum();
            all + kind.labels.len().saturating_sub(1)
        }
        _ => usize::try_from(kind.length).unwrap_or(usize::MAX),
    };
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    // Labels are texts, of the character set binary too.
    let collation = match kind.has_labels() && is_bytes(kind.collation) {
        true => Collation::UTF8MB4_BIN,
        false => kind.collation,
    };
    let mut made = ExprType::column(kind.sql, kind.unsigned, length, collation);
    made.not_null = spec.not_null;
    made.multi = kind.multi();
    if let Some((digits, scale)) = kind.digits.filter(|_| made.is_float()) {
        made.length = u32::from(digits);
        made.decimals = Some(scale);
    }
    let declared = if kind.is_integer() { kind.length } else { 0 };
    let places = match u32::try_from(declared) {
        Ok(0) => made.length,
        declared => declared.unwrap_or(MAX_WIDTH).min(MAX_WIDTH),
    };
    let is_number = made.is_number() && !matches!(kind.sql, SqlType::Year | SqlType::Bit(_));
    made.width = (is_number && (declared > 0 || kind.zerofill))
        .then_some(Width { places, zerofill: kind.zerofill });
    if kind.has_labels() {
        made.members = Some(kind.labels.iter().map(|label| label.to_string()).collect());
    }
    made
}
