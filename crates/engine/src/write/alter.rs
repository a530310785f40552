//! What a changed definition requires of stored rows and segments.
//!
//! Rows are never rewritten: the history of their layouts grows (see `encode::layout`). Segments stay if everything
//! they lack is NULL in all their documents; otherwise the table is indexed again.

use std::sync::Arc;

use remora_index::column::ColumnKind;

use crate::{
    ColumnDef, ColumnType, Error, RequestPart, Result, Schema, TextDef, Value,
    encode::{RowFormat, column_kind, fit, layout_of},
    indexing::RequiredRows,
    schema::PrefixColumn,
};

/// The most row layouts in the history of a table.
const MAX_LAYOUTS: usize = 10_000;

/// A changed definition.
pub(super) struct Altered {
    /// How rows are written from now on, and how existing rows are read.
    pub format: RowFormat,
    /// Whether the existing segments cannot serve the new definition.
    pub index_anew: bool,
}

/// Checks that stored rows of `old` can be read as rows of `schema`. The error names the part of the definition that
/// would require rewriting rows.
pub(super) fn alter(old: &RowFormat, schema: Schema, fills: &[(u32, Value)]) -> Result<Altered> {
    schema.validate()?;
    RequiredRows::of(&schema)?;
    let change = RowChange { old, new: &schema, fills };
    change.check_key()?;
    let mut history = old.history().clone();
    let mut index_anew = schema.required != old.schema().required;
    // Keyword settings with the same id are equal.
    let number = |schema: &Schema| schema.words.as_ref().map(|words| words.id);
    index_anew |= schema.words.is_some() && number(&schema) != number(old.schema());
    for column in &schema.columns {
        match change.old_column(column.id) {
            Some(before) => index_anew |= change.keep_column(before, column)?,
            None => {
                let fill = change.add_column(column)?;
                index_anew |= column.indexed && !fill.is_null();
                if !fill.is_null() {
                    history.fills.push((column.id, fill));
                }
            }
        }
    }
    change.check_fills()?;
    index_anew |= change.needs_prefixes();
    let dropped = &mut history.dropped_texts;
    for text in &schema.texts {
        index_anew |= change.needs_indexing(text) || dropped.contains(&text.id);
        dropped.retain(|&id| id != text.id);
    }
    let gone = old.schema().texts.iter().map(|text| text.id);
    dropped.extend(gone.filter(|&id| schema.texts.iter().all(|text| text.id != id)));
    if layout_of(&schema) != layout_of(old.schema()) {
        history.layouts.push(layout_of(old.schema()));
    }
    if history.layouts.len() > MAX_LAYOUTS {
        return Err(change.refused("it was altered too often: copy it into a new table"));
    }
    let format = RowFormat::with_history(Arc::new(schema), history);
    Ok(Altered { format, index_anew })
}

struct RowChange<'c> {
    old: &'c RowFormat,
    new: &'c Schema,
    fills: &'c [(u32, Value)],
}

impl<'c> RowChange<'c> {
    fn old_column(&self, id: u32) -> Option<&'c ColumnDef> {
        self.old.schema().columns.iter().find(|column| column.id == id)
    }

    fn check_key(&self) -> Result<()> {
        let key = |schema: &'c Schema| {
            let parts = schema.primary_key.iter();
            parts.filter_map(|&part| schema.columns.get(part)).collect::<Vec<_>>()
        };
        let (before, after) = (key(self.old.schema()), key(self.new));
        let same = |(before, after): (&&ColumnDef, &&ColumnDef)| {
            before.id == after.id && is_same_cell(before.kind, after.kind)
        };
        if before.len() == after.len() && before.iter().zip(&after).all(same) {
            return Ok(());
        }
        Err(self.refused("its primary key would change: copy it into a new table"))
    }

    /// Checks a column that exists before and after. Returns whether existing segments cannot serve it.
    fn keep_column(&self, before: &ColumnDef, after: &ColumnDef) -> Result<bool> {
        if !is_widened(before.kind, after.kind) {
            let (name, from, to) = (&after.name, before.kind, after.kind);
            let message = format!("column {name:?} cannot change from {from:?} to {to:?}");
            return Err(self.refused(&message));
        }
        if before.nullable && !after.nullable {
            let message = format!(
                "column {:?} allowed NULL, so its rows may hold it: it cannot become NOT NULL",
                after.name
            );
            return Err(self.refused(&message));
        }
        let same = is_same_cell(before.kind, after.kind);
        Ok(after.indexed && !(before.indexed && same))
    }

    /// The value that existing rows get in a new column.
    fn add_column(&self, column: &ColumnDef) -> Result<Value> {
        let history = self.old.history();
        let used = history.layouts.iter().flatten().any(|(id, _)| *id == column.id)
            || history.fills.iter().any(|(id, _)| *id == column.id);
        if used {
            let (name, id) = (&column.name, column.id);
            let message = format!("column {name:?} has the number {id} of a dropped column");
            return Err(self.refused(&message));
        }
        match self.fills.iter().find(|(id, _)| *id == column.id) {
            Some((_, fill)) => fit(column, fill),
            None => fit(column, &Value::Null),
        }
    }

    fn check_fills(&self) -> Result<()> {
        let is_new = |id: u32| {
            self.old_column(id).is_none() && self.new.columns.iter().any(|column| column.id == id)
        };
        match self.fills.iter().find(|(id, _)| !is_new(*id)) {
            None => Ok(()),
            Some((id, _)) => {
                Err(self.refused(&format!("column {id} is to be filled, but it is not new")))
            }
        }
    }

    /// Whether existing segments lack something that the text index needs.
    fn needs_indexing(&self, text: &TextDef) -> bool {
        let ids = |schema: &Schema, text: &TextDef| -> Vec<u32> {
            let columns = text.columns.iter().filter_map(|&column| schema.columns.get(column));
            columns.map(|column| column.id).collect()
        };
        let after = ids(self.new, text);
        let mut before = self.old.schema().texts.iter();
        match before.find(|before| before.id == text.id) {
            Some(before) => {
                ids(self.old.schema(), before) != after
                    || before.delimiter != text.delimiter
                    || before.normalization != text.normalization
            }
            None => after.iter().any(|&id| self.old_column(id).is_some() || self.is_filled(id)),
        }
    }

    /// Whether existing segments lack prefixes, also of a column without values in their rows: a merge with later segments
    /// would drop the prefixes of these.
    fn needs_prefixes(&self) -> bool {
        let before = PrefixColumn::all(self.old.schema());
        let mut added = PrefixColumn::all(self.new).into_iter();
        added.any(|prefix| before.iter().all(|other| other.id != prefix.id))
    }

    fn is_filled(&self, id: u32) -> bool {
        self.fills.iter().any(|(filled, value)| *filled == id && !value.is_null())
    }

    fn refused(&self, why: &str) -> Error {
        let message = format!("table {:?} cannot be altered: {why}", self.new.name);
        Error::request(RequestPart::Schema, message)
    }
}

/// Whether every value of type `from` is also one of type `to`.
fn is_widened(from: ColumnType, to: ColumnType) -> bool {
    match (from, to) {
        (ColumnType::Int(from), ColumnType::Int(to))
        | (ColumnType::Uint(from), ColumnType::Uint(to)) => from <= to,
        (ColumnType::Uint(from), ColumnType::Int(to)) => from < to,
        (ColumnType::Float, ColumnType::Double) => true,
        (ColumnType::Decimal(from, from_scale), ColumnType::Decimal(to, to_scale)) => {
            let integers = |precision: u8, scale: u8| precision.saturating_sub(scale);
            from_scale <= to_scale && integers(from, from_scale) <= integers(to, to_scale)
        }
        _ => from == to,
    }
}

/// Whether a value has the same cell and the same key bytes in both types.
fn is_same_cell(from: ColumnType, to: ColumnType) -> bool {
    match (from, to) {
        (ColumnType::Int(_), ColumnType::Int(_))
        | (ColumnType::Uint(_), ColumnType::Uint(_))
        | (ColumnType::Float, ColumnType::Double) => true,
        (ColumnType::Decimal(_, from_scale), ColumnType::Decimal(_, to_scale)) => {
            from == to
                || from_scale == to_scale
                    && column_kind(from) == ColumnKind::Ordinal
                    && column_kind(to) == ColumnKind::Ordinal
        }
        _ => from == to,
    }
}
