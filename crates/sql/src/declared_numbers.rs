//! Numbers in the display format of their columns, for protocols that show values as texts.

use std::sync::Arc;

use remora_engine::{Schema, Value};

use crate::{
    SqlType,
    catalog::{ColumnSpec, SqlTable},
    meaning::{expr_type, types::MAX_SCALE},
};

/// The declared display formats of a table's numbers: ZEROFILL, FLOAT(M,D), DOUBLE(M,D).
pub struct DeclaredNumbers {
    columns: Vec<Form>,
}

struct Form {
    /// The width to which leading zeros pad a number.
    places: usize,
    /// The fraction digits of a float.
    decimals: Option<usize>,
    /// Whether floats have 32 bits.
    is_single: bool,
}

impl DeclaredNumbers {
    /// The formats of a table; `None` if no column has one.
    #[must_use]
    pub fn of(schema: &Arc<Schema>) -> Option<Self> {
        let table = SqlTable::of(schema);
        let special = |column: &ColumnSpec| column.kind.zerofill || column.kind.digits.is_some();
        if !table.columns.iter().any(special) {
            return None;
        }
        let forms = table.columns.iter().map(|column| {
            let kind = expr_type(column);
            let places = kind.width.filter(|width| width.zerofill).map_or(0, |width| width.places);
            let places = usize::try_from(places).unwrap_or(0);
            Form {
                places,
                is_single: column.kind.sql == SqlType::Float,
                decimals: kind.decimals.map(|digits| usize::from(digits.min(MAX_SCALE))),
            }
        });
        Some(Self { columns: forms.collect() })
    }

    /// The text of a value, if the column has a display format.
    #[must_use]
    pub fn text(&self, column: usize, value: &Value) -> Option<String> {
        let Form { places, decimals, is_single } = self.columns.get(column)?;
        let text = match (value, decimals) {
            (Value::Float(number), Some(decimals)) => {
                let number = if *is_single { f64::from(*number as f32) } else { *number };
                format!("{number:.0$}", *decimals)
            }
            (Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Decimal(_), _)
                if *places > 0 =>
            {
                value.to_string()
            }
            _ => return None,
        };
        Some(format!("{text:0>places$}"))
    }
}
