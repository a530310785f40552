//! What a condition implies of the prefixes that segments hold of columns too long for them.

use remora_index::column::Predicate;

use super::filter::{CompiledFilter, not};
use crate::{Schema, schema::PrefixColumn};

/// The prefix columns that a condition may be turned to.
struct Prefixes<'s> {
    schema: &'s Schema,
    all: Vec<PrefixColumn>,
}

impl CompiledFilter {
    /// What the condition implies of the prefix columns of a table. It is true for all rows as far as it implies nothing.
    pub fn of_prefixes(self, schema: &Schema) -> Self {
        Prefixes { schema, all: PrefixColumn::all(schema) }.implied(self)
    }
}

fn everything() -> CompiledFilter {
    not(CompiledFilter::Never)
}

fn is_everything(condition: &CompiledFilter) -> bool {
    matches!(condition, CompiledFilter::Not(of) if matches!(**of, CompiledFilter::Never))
}

impl Prefixes<'_> {
    fn implied(&self, condition: CompiledFilter) -> CompiledFilter {
        match condition {
            CompiledFilter::Never => CompiledFilter::Never,
            CompiledFilter::Column { id, predicate: Predicate::IsNull } => {
                let is_null = |of: &PrefixColumn| CompiledFilter::Column {
                    id: of.id,
                    predicate: Predicate::IsNull,
                };
                self.of_column(id).next().map_or_else(everything, is_null)
            }
            CompiledFilter::Column { id, predicate } => {
                let same = self.of_column(id).filter(|prefix| prefix.order.is_none());
                all(same, &predicate)
            }
            CompiledFilter::Keyed { id, order, predicate } => {
                let same = self.of_column(id).filter(|prefix| prefix.order == Some(order));
                all(same, &predicate)
            }
            CompiledFilter::All(parts) => {
                let parts = parts.into_iter().map(|part| self.implied(part));
                all_of(parts.filter(|part| !is_everything(part)).collect())
            }
            CompiledFilter::Any(parts) => {
                let parts: Vec<_> = parts.into_iter().map(|part| self.implied(part)).collect();
                match parts.iter().any(is_everything) {
                    true => everything(),
                    false => CompiledFilter::Any(parts),
                }
            }
            _ => everything(),
        }
    }

    /// The prefix columns of the column with this number.
    fn of_column(&self, id: u32) -> impl Iterator<Item = &PrefixColumn> {
        self.all.iter().filter(move |prefix| {
            self.schema.columns.get(prefix.column).is_some_and(|column| column.id == id)
        })
    }
}

/// A predicate on a column as one on each of its prefix columns, since each index has its own.
fn all<'p>(
    prefixes: impl Iterator<Item = &'p PrefixColumn>,
    predicate: &Predicate,
) -> CompiledFilter {
    let implied = prefixes.filter_map(|prefix| {
        Some(CompiledFilter::Column { id: prefix.id, predicate: prefix.implied(predicate)? })
    });
    all_of(implied.collect())
}

fn all_of(mut parts: Vec<CompiledFilter>) -> CompiledFilter {
    match parts.len() {
        0 => everything(),
        1 => parts.pop().unwrap_or_else(everything),
        _ => CompiledFilter::All(parts),
    }
}
