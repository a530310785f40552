//! What a condition implies of the prefixes that segments hold of columns too long for them.

use remora_index::column::Predicate;

use super::filter::{Condition, not};
use crate::{Schema, schema::PrefixColumn};

/// The prefix columns that a condition may be turned to.
struct Prefixes<'s> {
    schema: &'s Schema,
    all: Vec<PrefixColumn>,
}

impl Condition {
    /// What the condition implies of the prefix columns of a table. It is true for all rows as far as it implies nothing.
    pub fn of_prefixes(self, schema: &Schema) -> Self {
        Prefixes { schema, all: PrefixColumn::all(schema) }.implied(self)
    }
}

fn everything() -> Condition {
    not(Condition::Never)
}

fn is_everything(condition: &Condition) -> bool {
    matches!(condition, Condition::Not(of) if matches!(**of, Condition::Never))
}

impl Prefixes<'_> {
    fn implied(&self, condition: Condition) -> Condition {
        match condition {
            Condition::Never => Condition::Never,
            Condition::Column { id, predicate: Predicate::IsNull } => {
                let is_null = |of: &PrefixColumn| Condition::Column {
                    id: of.id,
                    predicate: Predicate::IsNull,
                };
                self.of_column(id).next().map_or_else(everything, is_null)
            }
            Condition::Column { id, predicate } => {
                let same = self.of_column(id).filter(|prefix| prefix.order.is_none());
                all(same, &predicate)
            }
            Condition::Keyed { id, order, predicate } => {
                let same = self.of_column(id).filter(|prefix| prefix.order == Some(order));
                all(same, &predicate)
            }
            Condition::All(parts) => {
                let parts = parts.into_iter().map(|part| self.implied(part));
                all_of(parts.filter(|part| !is_everything(part)).collect())
            }
            Condition::Any(parts) => {
                let parts: Vec<_> = parts.into_iter().map(|part| self.implied(part)).collect();
                match parts.iter().any(is_everything) {
                    true => everything(),
                    false => Condition::Any(parts),
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
fn all<'p>(prefixes: impl Iterator<Item = &'p PrefixColumn>, predicate: &Predicate) -> Condition {
    let implied = prefixes.filter_map(|prefix| {
        Some(Condition::Column { id: prefix.id, predicate: prefix.implied(predicate)? })
    });
    all_of(implied.collect())
}

fn all_of(mut parts: Vec<Condition>) -> Condition {
    match parts.len() {
        0 => everything(),
        1 => parts.pop().unwrap_or_else(everything),
        _ => Condition::All(parts),
    }
}
