//! EXPLAIN of a join by keys: reads the tables as the statement would and records each access.

use std::cell::RefCell;

use remora_engine::Selection;

use super::{
    plan::{Comparand, JoinChain, JoinPlan, JoinStep, JoinTest},
    read::{JoinRun, StepRead},
};
use crate::{
    Result,
    catalog::Reader,
    error::from_engine,
    execute::{
        access::{AccessRequest, TableAccess},
        shapes::{parameterize::Constants, shape::Comparison},
    },
    plan::Figures,
    resolve::SelectKind,
    state::SessionState,
};

/// The accesses of its tables, in reading order; `None` if the statement takes the general path.
pub(in crate::execute::shapes) fn explain(
    session: &SessionState,
    reader: &Reader,
    plan: &JoinPlan,
    constants: &Constants<'_>,
) -> Result<Option<Vec<TableAccess>>> {
    if plan.chain.tables().iter().any(|table| table.is_changed_by(session)) {
        return Ok(None);
    }
    plan.check(session)?;
    let noted = Some(RefCell::default());
    let reading = JoinRun { session, reader, constants, noted };
    if reading.rows(&plan.chain)?.is_none() {
        return Ok(None);
    }
    let mut reads = reading.noted.map(RefCell::into_inner).unwrap_or_default().into_iter();
    let (mut accesses, mut selects) = (Vec::new(), 1);
    of_chain(reader, &plan.chain, 1, &mut selects, &mut reads, &mut accesses)?;
    Ok(Some(accesses))
}

/// Adds the accesses of a chain in the order in which they were recorded.
fn of_chain(
    reader: &Reader,
    chain: &JoinChain,
    select: usize,
    selects: &mut usize,
    reads: &mut impl Iterator<Item = StepRead>,
    accesses: &mut Vec<TableAccess>,
) -> Result<()> {
    for (before, _) in &chain.before {
        *selects += 1;
        of_chain(reader, before, *selects, selects, reads, accesses)?;
    }
    for (number, step) in chain.steps.iter().enumerate() {
        let Some(read) = reads.next() else { return Ok(()) };
        let mut access = of_step(reader, chain, (number, step), &read)?;
        access.select = select;
        let (last, rows) = (read.time, read.rows as u64);
        access.measured = Some(Figures { first: last, last, rows, loops: 1 });
        if select > 1 {
            access.select_kind = SelectKind::Subquery;
        }
        accesses.push(access);
    }
    Ok(())
}

fn of_step(
    reader: &Reader,
    chain: &JoinChain,
    (number, step): (usize, &JoinStep),
    read: &StepRead,
) -> Result<TableAccess> {
    let called = step.table.called();
    if let Some(held) = &step.table.temporary {
        return Ok(TableAccess::every(called, held.row_count() as u64));
    }
    let of_key = |columns: usize| {
        let key = step.table.schema().primary_key.iter().take(columns);
        key.map(|position| compared(chain, step, *position)).collect::<Vec<_>>().join(",")
    };
    let parts = step.table.schema().primary_key.len();
    let mut access = match &read.scan {
        Some(scan) => {
            let selection = Selection {
                table: scan.table.clone(),
                filter: scan.filter.clone(),
                indexes: scan.indexes,
                ..Selection::default()
            };
            let path = reader.access(&selection).map_err(|error| from_engine(&error))?;
            let wanted = AccessRequest { in_order: false, has_condition: true };
            let mut access = TableAccess::of(&step.table.sql, called, &path, wanted);
            if let ([found_by], Some("const" | "ref")) = (path.found_by.as_slice(), access.kind)
                && number > 0
            {
                access.compared = Some(of_key(found_by.columns));
            }
            access
        }
        None if step.key.is_empty() => TableAccess::by_keys(&step.table.sql, called, "ref", 0),
        None => {
            let keys = read.keys.div_ceil(read.rows_before.max(1)) as u64;
            let kind = match (number, keys) {
                (0, 0 | 1) => "const",
                (_, 0 | 1) => "eq_ref",
                _ => "range",
            };
            let mut access = TableAccess::by_keys(&step.table.sql, called, kind, keys.max(1));
            if kind != "range" {
                access.compared = Some(of_key(parts));
            }
            access
        }
    };
    if number > 0 && read.rows_before != 1 {
        access.add_extra(format!("for {} rows at once", read.rows_before));
    }
    Ok(access)
}

/// What a column is compared with.
fn compared(chain: &JoinChain, step: &JoinStep, position: usize) -> String {
    let is_of = |test: &&JoinTest| step.fields.get(test.field) == Some(&position);
    let with = step.tests.iter().find(is_of).map(|test| test.with);
    match with {
        Some(Comparand::Slot(Comparison::Equal, slot, None)) => {
            column_of(chain, slot).unwrap_or_else(|| "func".to_owned())
        }
        Some(Comparand::Slot(..) | Comparand::Before(_)) => "func".to_owned(),
        _ => "const".to_owned(),
    }
}

/// The column that a slot holds.
fn column_of(chain: &JoinChain, slot: usize) -> Option<String> {
    let mut left = slot;
    for step in &chain.steps {
        if let Some(position) = step.fields.get(left) {
            let table = &step.table;
            let column = table.schema().columns.get(*position)?;
            return Some(format!("{}.{}.{}", table.name.database, table.called(), column.name));
        }
        left -= step.fields.len();
    }
    None
}
