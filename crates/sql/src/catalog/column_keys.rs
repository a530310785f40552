//! What clients are told of a column's keys and of its default.

use super::{DefaultSpec, KeyKind, PartOf, table::SqlTable};
use crate::ColumnKeys;

impl ColumnKeys {
    /// Those of each column of a table, in the schema's order.
    pub(super) fn all(table: &SqlTable) -> Vec<Self> {
        let mut all: Vec<Self> = table
            .columns
            .iter()
            .map(|spec| {
                let has_none = matches!(spec.default, DefaultSpec::None) && !spec.auto_increment;
                Self { without_default: spec.not_null && has_none, ..Self::default() }
            })
            .collect();
        for key in &table.keys {
            let positions = key.parts.iter().map(|part| match &part.of {
                PartOf::Column(name) => table.column(name),
                PartOf::Expression(_) => None,
            });
            let positions: Vec<Option<usize>> = positions.collect();
            let named: Vec<usize> = positions.iter().copied().flatten().collect();
            // A unique key can be the primary key of a table that declares none.
            let is_primary = key.kind == KeyKind::Primary
                || key.kind == KeyKind::Unique && named == table.schema.primary_key;
            for (place, position) in positions.iter().enumerate() {
                let Some(keys) = position.and_then(|position| all.get_mut(position)) else {
                    continue;
                };
                keys.part = true;
                if place > 0 || is_primary {
                    continue;
                }
                match key.kind == KeyKind::Unique && positions.len() == 1 {
                    true => keys.unique = true,
                    false => keys.multiple = true,
                }
            }
        }
        all
    }
}
