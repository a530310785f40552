//! MIN, MAX and COUNT(*) of all rows of a scan without reading them: `SELECT MAX(id) + 1 FROM t`, `SELECT COUNT(*),
//! MAX(created_at) FROM t WHERE user_id = 7`. The least and the greatest value are in the first and last row of a key
//! or an index, and the engine counts rows by its indexes.

use datafusion::{
    arrow::array::{ArrayRef, RecordBatch},
    error::Result as PlanResult,
};
use remora_engine::{Filter, SortBy, SortKey};

use super::{
    super::{plan::sortable, table::ShapeTable},
    expressions::ScanOrigin,
    group::{EndFunction, GroupStep},
    planned_run::PlannedRun,
    steps::BatchStep,
    trace::ReadRows,
    tree::{PlanNode, RowSource},
};
use crate::catalog::{KeyKind, KeyPart, PartOf};

impl PlannedRun {
    /// The row of a part's first step that groups all rows of a scan, and the number of steps it is the result of.
    /// `None` if the step needs other values than the ends of an index and counts, or if reading the rows is cheaper.
    pub(super) fn at_ends(&self, part: &PlanNode) -> PlanResult<Option<(RecordBatch, usize)>> {
        let RowSource::Scan(scan) = part.of else { return Ok(None) };
        let place = part.steps.iter().position(|step| matches!(step, BatchStep::Group(_)));
        let Some((place, BatchStep::Group(grouping))) =
            place.and_then(|place| Some((place, part.steps.get(place)?)))
        else {
            return Ok(None);
        };
        let Some(functions) = grouping.ends() else { return Ok(None) };
        let counts = |function: &EndFunction| *function == EndFunction::Count;
        if self.text(scan).is_some() && !functions.iter().all(counts) {
            // The rows of a search are few, or not in the order of an index.
            return Ok(None);
        }
        let before = part.steps.get(..place).unwrap_or_default();
        let is_plain =
            |step: &BatchStep| matches!(step, BatchStep::Filter(_) | BatchStep::Project(..));
        let is_filtered = before.iter().any(|step| matches!(step, BatchStep::Filter(_)));
        if !before.iter().all(is_plain) || is_filtered && functions.contains(&EndFunction::Count) {
            return Ok(None);
        }
        let asked = EndsOfScan { run: self, scan, before, grouping };
        let mut values = Vec::with_capacity(functions.len());
        for (number, function) in functions.iter().enumerate() {
            let value = match function {
                EndFunction::Count => asked.count(values.is_empty())?,
                EndFunction::End { column, greatest } => {
                    asked.end(number, *column, *greatest, values.is_empty())?
                }
            };
            let Some(value) = value else { return Ok(None) };
            values.push(value);
        }
        Ok(Some((grouping.row(values)?, place + 1)))
    }
}

/// The scan whose ends are asked for.
struct EndsOfScan<'a> {
    run: &'a PlannedRun,
    scan: usize,
    /// The steps before the grouping.
    before: &'a [BatchStep],
    grouping: &'a GroupStep,
}

impl EndsOfScan<'_> {
    fn filter(&self) -> Option<Filter> {
        self.run.filter(self.scan)
    }

    /// The number of rows; `None` if the scan has a limit.
    fn count(&self, is_first: bool) -> PlanResult<Option<ArrayRef>> {
        let Some(read) = self.run.plan.reads.get(self.scan) else { return Ok(None) };
        let started = self.run.started();
        let condition = self.run.condition(self.scan, self.filter());
        let Some(count) = read.scan.count(&self.run.reader, condition)? else {
            return Ok(None);
        };
        if is_first {
            let text = || self.run.text(self.scan).cloned();
            self.run
                .note(0, || ReadRows { text: text(), ..ReadRows::of(self.scan, self.filter()) });
            self.run.has_read(self.scan, count, started);
        }
        Ok(Some(GroupStep::count(count)))
    }

    /// The value of a function that reads the least or greatest value of a column; `None` if the engine does not order the
    /// values as SQL does. Without an index it compares the column's values, which costs less than reading rows.
    fn end(
        &self,
        number: usize,
        column: usize,
        greatest: bool,
        is_first: bool,
    ) -> PlanResult<Option<ArrayRef>> {
        let Some(read) = self.run.plan.reads.get(self.scan) else { return Ok(None) };
        let Some((sort, present)) = self.order(column, greatest) else { return Ok(None) };
        let filters = self.filter().into_iter().chain(present.map(Filter::IsNotNull));
        let filter = Filter::all_of(filters.collect());
        let page = (sort.as_slice(), 1);
        let started = self.run.started();
        let condition = self.run.condition(self.scan, filter.clone());
        let found = read.scan.first(&self.run.reader, condition, page, &self.run.zone)?;
        let Some(mut batch) = found else { return Ok(None) };
        let found = batch.num_rows();
        for step in self.before {
            let Some(made) = self.run.apply(step, &batch)? else { return Ok(None) };
            batch = made;
        }
        if batch.num_rows() < found {
            // A condition drops this row, and the row at the end of the others is not known.
            return Ok(None);
        }
        if is_first {
            let page = Some((sort, 1));
            self.run.note(0, || ReadRows { page, ..ReadRows::of(self.scan, filter) });
            self.run.has_read(self.scan, found as u64, started);
        }
        self.grouping.value(number, &batch, self.run.asked()).map(Some)
    }

    /// The order whose first row has the least or greatest value of a column of the grouping's input, and the column's
    /// name if NULLs must be left out. `None` if the engine does not order the values as SQL does.
    fn order(&self, column: usize, greatest: bool) -> Option<(Vec<SortKey>, Option<String>)> {
        let read = self.run.plan.reads.get(self.scan)?;
        let width = read.scan.schema().fields().len();
        let mut origins: Vec<ScanOrigin> =
            (0..width).map(|place| Some((self.scan, place))).collect();
        for step in self.before {
            origins = step.origins(origins);
        }
        let (_, place) = origins.get(column).copied().flatten()?;
        let position = read.scan.position(place)?;
        let table = self.run.plan.tables.get(read.table)?;
        let definition = table.schema().columns.get(position)?;
        // NULLs sort before all values.
        let present = (definition.nullable && !greatest).then(|| definition.name.clone());
        let sort = match sortable(position, table) {
            Some(_) if table.schema().primary_key.first() == Some(&position) => vec![SortBy::Key],
            Some(name) => vec![SortBy::Column(name)],
            None => vec![self.text_order(position, table)?, SortBy::Key],
        };
        let sort = sort.into_iter().map(|by| SortKey { by, descending: greatest });
        Some((sort.collect(), present))
    }

    /// The order of a text by an index over it. Of texts that are equal in it MySQL's answer is the one at the end of the
    /// index, where they are in key order. With a condition MySQL might not read the index, and answer with another of
    /// them.
    fn text_order(&self, position: usize, table: &ShapeTable) -> Option<SortBy> {
        let is_filtered = self.before.iter().any(|step| matches!(step, BatchStep::Filter(_)));
        if is_filtered || self.filter().is_some() {
            return None;
        }
        let (operand, collation) = table.texts_at(position)?;
        let number = u32::from(collation.0);
        // As declared: the engine's index may have the whole texts of a key over their beginnings.
        let name = &table.schema().columns.get(position)?.name;
        let is_it = |part: &KeyPart| match &part.of {
            PartOf::Column(of) => {
                of.eq_ignore_ascii_case(name) && part.prefix.is_none() && !part.descending
            }
            PartOf::Expression(_) => false,
        };
        let has_order = table.sql.keys.iter().any(|key| {
            matches!(key.kind, KeyKind::Plain | KeyKind::Unique)
                && !key.invisible
                && key.parts.first().is_some_and(is_it)
        });
        has_order.then_some(SortBy::TextKey(operand.name, number))
    }
}
