//! Counts the effects of the stream's rows. A table's required filter decides which rows it has.

use std::sync::atomic::{AtomicU64, Ordering};

use remora_engine::{RequiredRows, Value};

use crate::mysql::binlog::RowChange;

/// The effect of a source's change on the local table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowOutcome {
    Inserted,
    /// The row does not satisfy the filter.
    InsertSkipped,
    /// The row now satisfies the filter.
    UpdateAdded,
    /// The row no longer satisfies the filter.
    UpdateRemoved,
    UpdateModified,
    /// The row does not satisfy the filter, neither before nor after.
    UpdateSkipped,
    Deleted,
    /// The row was not in the table.
    DeleteSkipped,
}

/// The number of outcomes.
const OUTCOMES: usize = 8;

/// Numbers of changes by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowTally([u64; OUTCOMES]);

/// The sums since the start.
#[derive(Default)]
pub(super) struct RowCounters([AtomicU64; OUTCOMES]);

impl RowTally {
    /// Counts a change. A change of the key counts as a deletion and an insert.
    pub fn count(&mut self, change: &RowChange, key: &[usize], required: Option<&RequiredRows>) {
        let holds = |row: &[Value]| required.is_none_or(|required| required.accept(row));
        let inserted = |row: &[Value]| match holds(row) {
            true => RowOutcome::Inserted,
            false => RowOutcome::InsertSkipped,
        };
        let deleted = |row: &[Value]| match holds(row) {
            true => RowOutcome::Deleted,
            false => RowOutcome::DeleteSkipped,
        };
        match change {
            RowChange::Insert(row) => self.add(inserted(row)),
            RowChange::Delete(row) => self.add(deleted(row)),
            RowChange::Update { before, after }
                if key.iter().any(|&place| before.get(place) != after.get(place)) =>
            {
                self.add(deleted(before));
                self.add(inserted(after));
            }
            RowChange::Update { before, after } => {
                self.add(match (holds(before), holds(after)) {
                    (true, true) => RowOutcome::UpdateModified,
                    (false, true) => RowOutcome::UpdateAdded,
                    (true, false) => RowOutcome::UpdateRemoved,
                    (false, false) => RowOutcome::UpdateSkipped,
                });
            }
        }
    }

    fn add(&mut self, outcome: RowOutcome) {
        if let Some(count) = self.0.get_mut(outcome as usize) {
            *count += 1;
        }
    }
}

impl RowCounters {
    pub fn add(&self, tally: &RowTally) {
        for (counter, more) in self.0.iter().zip(tally.0).filter(|(_, more)| *more > 0) {
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub fn read(&self, outcome: RowOutcome) -> u64 {
        self.0.get(outcome as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use remora_engine::{
        ColumnDef, ColumnType, Comparison, Filter, Literal, RequiredRows, Row, Schema, Value,
    };

    use super::*;

    /// A table of two numbers, of which the second must be 1.
    fn required() -> RequiredRows {
        let column = |id, name: &str| ColumnDef {
            id,
            name: name.to_owned(),
            kind: ColumnType::Int(64),
            nullable: true,
            indexed: true,
            declared: None,
        };
        let schema = Schema {
            required: Some(Filter::Compare {
                column: "enabled".to_owned(),
                comparison: Comparison::Equal,
                literal: Literal::Text("1".to_owned()),
            }),
            ..Schema::over("t", vec![column(0, "id"), column(1, "enabled")], vec![0])
        };
        RequiredRows::of(&schema).unwrap()
    }

    fn row(id: i64, enabled: i64) -> Row {
        vec![Value::Int(id), Value::Int(enabled)]
    }

    #[test]
    fn required_filter_classifies_changes() {
        let required = required();
        assert_eq!(required.columns(), [1]);
        let update = |before, after| RowChange::Update { before, after };
        let cases = [
            (RowChange::Insert(row(1, 1)), vec![RowOutcome::Inserted]),
            (RowChange::Insert(row(1, 0)), vec![RowOutcome::InsertSkipped]),
            (update(row(1, 0), row(1, 1)), vec![RowOutcome::UpdateAdded]),
            (update(row(1, 1), row(1, 0)), vec![RowOutcome::UpdateRemoved]),
            (update(row(1, 1), row(1, 1)), vec![RowOutcome::UpdateModified]),
            (update(row(1, 0), row(1, 2)), vec![RowOutcome::UpdateSkipped]),
            (RowChange::Delete(row(1, 1)), vec![RowOutcome::Deleted]),
            (RowChange::Delete(row(1, 0)), vec![RowOutcome::DeleteSkipped]),
            (update(row(1, 1), row(2, 0)), vec![RowOutcome::Deleted, RowOutcome::InsertSkipped]),
        ];
        for (change, expected) in cases {
            let mut tally = RowTally::default();
            tally.count(&change, &[0], Some(&required));
            let mut wanted = RowTally::default();
            expected.into_iter().for_each(|outcome| wanted.add(outcome));
            assert_eq!(tally, wanted, "{change:?}");
        }
        let mut tally = RowTally::default();
        tally.count(&RowChange::Insert(row(1, 0)), &[0], None);
        let counters = RowCounters::default();
        counters.add(&tally);
        counters.add(&tally);
        assert_eq!(counters.read(RowOutcome::Inserted), 2);
        assert_eq!(counters.read(RowOutcome::InsertSkipped), 0);
    }
}
