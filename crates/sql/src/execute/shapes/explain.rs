//! EXPLAIN of shapes: asks the engine for the access path.

use std::{sync::Arc, time::Instant};

use remora_engine::{FacetRequest, KeyValues, Selection, Value};

use super::{
    AnyPlan, AnyShape, answers,
    condition::Tests,
    join,
    keys::{distinct, sort},
    normalize::ItemsOfChanged,
    parameterize::{Constants, ParameterizedText},
    plan::{FacetColumn, FacetOrder, FacetWork, KeyOrder, KeyWork, PageWork, ShapePlan, ShapeWork},
    planned::ShapePlans,
    run::{ShapeRun, by_keys, failed},
};
use crate::{
    Result,
    catalog::Reader,
    execute::{
        access::{AccessRequest, Explained, TableAccess},
        row_counter::RowCounter,
    },
    parse::{Source, Statement, write::ChangedQuery},
    plan::Figures,
    search,
    state::SessionState,
};

/// The statement separated from its literals, with the plan of its shape if it has one; `None` if no shape may answer
/// it.
fn found(
    session: &SessionState,
    source: &Source,
    changed: Option<&ChangedQuery>,
) -> Option<(ParameterizedText, Reader, Option<AnyPlan>)> {
    if !answers(session) {
        return None;
    }
    let database = session.database.as_deref();
    let parameterized = ParameterizedText::of(source, changed, database)?;
    let reader = session.reader();
    let of = |items: Option<ItemsOfChanged<'_>>| {
        let (text, mode, pieces) = (&source.text, source.mode, &parameterized.pieces);
        let shape = AnyShape::of(text, mode, pieces, items, &session.interrupted)?;
        AnyPlan::new(&shape, session, &reader, database)
    };
    let plan = match changed {
        None => of(None),
        Some(changed) => changed.columns().and_then(|items| of(Some(&|| items.clone()))),
    };
    Some((parameterized, reader, plan))
}

/// How a statement would be answered, table by table; `None` if it takes the general path.
pub(crate) async fn explain(
    session: &mut SessionState,
    statement: &Statement<'_>,
    changed: Option<&ChangedQuery>,
) -> Result<Option<Explained>> {
    let source = &statement.source;
    let found = found(session, source, changed);
    let Some((parameterized, reader, plan)) = found else { return Ok(None) };
    let constants =
        parameterized.constants(&source.text, source.mode, statement.parameters, session);
    let accesses = match plan {
        Some(AnyPlan::One(plan)) => of_one(session, &reader, &plan, &constants)?,
        Some(AnyPlan::Joined(plan)) => join::explain(session, &reader, &plan, &constants)?,
        Some(AnyPlan::Planned(_)) | None => {
            return ShapePlans::explain(session, &reader, &constants, source, changed).await;
        }
    };
    let Some(accesses) = accesses else { return Ok(None) };
    let selects = accesses.iter().map(|access| access.select).max().unwrap_or(1);
    Ok(Some(Explained { accesses, selects }))
}

/// Runs a statement and returns the measured steps, one line each; `None` if it takes the general path.
pub(crate) async fn analyze(
    session: &mut SessionState,
    source: &Arc<Source>,
    parameters: &[Value],
) -> Result<Option<Vec<String>>> {
    let found = found(session, source, None);
    let Some((parameterized, reader, plan)) = found else { return Ok(None) };
    let constants = parameterized.constants(&source.text, source.mode, parameters, session);
    let plan = match plan {
        Some(AnyPlan::Planned(_)) | None => {
            return ShapePlans::analyze(session, &reader, &constants, source).await;
        }
        Some(plan) => plan,
    };
    let accesses = match &plan {
        AnyPlan::One(plan) => of_one(session, &reader, plan, &constants)?,
        AnyPlan::Joined(plan) => join::explain(session, &reader, plan, &constants)?,
        AnyPlan::Planned(_) => None,
    };
    let Some(accesses) = accesses else { return Ok(None) };
    let (started, mut counted) = (Instant::now(), RowCounter::default());
    if plan.run(session, &reader, &constants, &mut counted).await?.is_none() {
        return Ok(None);
    }
    let last = started.elapsed();
    let whole = Figures { first: last, last, rows: counted.rows, loops: 1 };
    Ok(Some(match accesses.as_slice() {
        [access] => vec![format!("-> {} {whole}", access.estimated_line())],
        accesses => {
            let of_table = |access: &TableAccess| {
                let measured = access.measured.map(|it| format!(" {it}")).unwrap_or_default();
                format!("    -> {}{measured}", access.estimated_line())
            };
            let mut lines = vec![format!("-> Nested loop join {whole}")];
            lines.extend(accesses.iter().map(of_table));
            lines
        }
    }))
}

fn of_one(
    session: &SessionState,
    reader: &Reader,
    plan: &ShapePlan,
    constants: &Constants<'_>,
) -> Result<Option<Vec<TableAccess>>> {
    let Some(asked) = ShapeRun::of(session, reader, plan, constants)? else { return Ok(None) };
    let access = match &plan.work {
        ShapeWork::Keys(work) => asked.explain_keys(work)?,
        ShapeWork::Page(work) => asked.explain_page(work)?,
        ShapeWork::Count(tests) => asked.explain_count(tests)?,
        ShapeWork::Facet(work) => asked.explain_facet(work)?,
        ShapeWork::Ends(tests, ends) => {
            let Some(requests) = asked.end_requests(tests, ends) else { return Ok(None) };
            let mut made = Vec::new();
            for request in requests {
                let path = reader.search_access(&request).map_err(failed)?;
                let wanted = AccessRequest {
                    in_order: true,
                    has_condition: request.selection.filter.is_some(),
                };
                let mut access = asked.access(&request.selection, &path, wanted);
                access.add_extra("the first of an order");
                made.push(access);
            }
            return Ok(Some(made));
        }
    };
    Ok(access.map(|access| vec![access]))
}

impl ShapeRun<'_> {
    fn access(
        &self,
        selection: &Selection,
        path: &remora_engine::AccessPath,
        wanted: AccessRequest,
    ) -> TableAccess {
        let table = &self.plan.table;
        let mut access = TableAccess::of(&table.sql, table.called(), path, wanted);
        if let Some(text) = &selection.text {
            access.add_extra(search::selection(Some(text), None));
        }
        access
    }

    fn explain_keys(&self, work: &KeyWork) -> Result<Option<TableAccess>> {
        let table = &self.plan.table;
        if work.test.is_single && work.branches.times == 1 && self.page.is_everything() {
            let Some(key) = work.test.single(self.constants) else { return Ok(None) };
            let row = match key {
                Some(key) => {
                    self.reader.get_columns(&table.engine_name, &key, &[]).map_err(failed)?
                }
                None => None,
            };
            return Ok(match row {
                Some(_) => Some(TableAccess::by_keys(&table.sql, table.called(), "const", 1)),
                None if work.test.by_bytes => None,
                None => Some(TableAccess::of_no_table("no matching row in const table")),
            });
        }
        let mut keys: Vec<KeyValues> = Vec::new();
        let filled = work.test.fill(self.constants, work.branches, &mut keys);
        if work.test.by_bytes || filled.is_none() {
            return Ok(None);
        }
        match work.order {
            KeyOrder::Ascending | KeyOrder::Descending => sort(&mut keys),
            KeyOrder::FirstAsked => distinct(&mut keys),
            KeyOrder::AsAsked => {}
        }
        let mut access =
            TableAccess::by_keys(&table.sql, table.called(), "range", keys.len() as u64);
        access.add_extra("Using where");
        access.add_extra(format!("{} keys at once", keys.len()));
        Ok(Some(access))
    }

    fn explain_page(&self, work: &PageWork) -> Result<Option<TableAccess>> {
        let Some(selection) = self.selection(&work.tests) else { return Ok(None) };
        let has_condition = selection.filter.is_some();
        if self.few(work, &selection)?.is_some() {
            let mut path = self.reader.access(&selection).map_err(failed)?;
            let last = self.page.offset.saturating_add(self.page.limit);
            if !has_condition {
                path.examined = path.examined.min(last);
                path.matching = path.examined;
            }
            let wanted = AccessRequest { in_order: false, has_condition };
            return Ok(Some(self.access(&selection, &path, wanted)));
        }
        let Some((request, is_page)) = self.search(work, selection)? else { return Ok(None) };
        let path = match self.reader.first_access(&request) {
            Ok(None) if !is_page => return Ok(None),
            Ok(None) => self.reader.search_access(&request),
            Ok(Some(path)) => Ok(path),
            Err(error) => Err(error),
        };
        let path = match path {
            Ok(path) => path,
            Err(remora_engine::Error::Request { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let wanted = AccessRequest { in_order: true, has_condition };
        Ok(Some(self.access(&request.selection, &path, wanted)))
    }

    fn explain_count(&self, tests: &Tests) -> Result<Option<TableAccess>> {
        let Some(selection) = self.selection(tests) else { return Ok(None) };
        if selection.text.is_none() && selection.filter.is_none() {
            return Ok(Some(TableAccess::of_no_table("Select tables optimized away")));
        }
        let path = self.reader.count_access(&selection).map_err(failed)?;
        let wanted = AccessRequest { in_order: false, has_condition: selection.filter.is_some() };
        let mut access = self.access(&selection, &path, wanted);
        if !path.found_by.is_empty() && !path.by_text && path.matching == path.examined {
            access.add_extra("Using index");
        }
        access.add_extra("Count, no row is read");
        Ok(Some(access))
    }

    fn explain_facet(&self, work: &FacetWork) -> Result<Option<TableAccess>> {
        let Some(selection) = self.selection(&work.tests) else { return Ok(None) };
        if let Some(request) = self.values_request(work, &selection)
            && let Some(found) = self.reader.values_in_order(&request).map_err(failed)?
        {
            let path = self.reader.access(&selection).map_err(failed)?;
            let examined = found.values.len() as u64;
            let is_part = found.found_by.columns > 0 || found.found_by.is_bounded;
            let path = remora_engine::AccessPath {
                found_by: is_part.then_some(found.found_by).into_iter().collect(),
                ordered_by: Some(found.found_by.index),
                examined,
                matching: examined,
                scanned: 0,
                ..path
            };
            let wanted =
                AccessRequest { in_order: true, has_condition: selection.filter.is_some() };
            let mut access = self.access(&selection, &path, wanted);
            access.add_extra("Using index for group-by");
            return Ok(Some(access));
        }
        let ([FacetColumn { name, collation }], []) = (&*work.columns, &*work.ends) else {
            return Ok(None);
        };
        if let Some(collation) = *collation {
            let (selection, column) = (selection.clone(), name.clone());
            let request =
                FacetRequest { selection, column, limit: usize::MAX, ..FacetRequest::default() };
            let found = self.reader.facet(&request).map_err(failed)?;
            if by_keys(found.values, collation, work.order).is_none() {
                return Ok(None);
            }
        }
        let path = self.reader.access(&selection).map_err(failed)?;
        let wanted = AccessRequest { in_order: false, has_condition: selection.filter.is_some() };
        let mut access = self.access(&selection, &path, wanted);
        access.add_extra("Counts of each value, no row is read");
        if let FacetOrder::Value(_) = work.order {
            access.add_extra_first("Using filesort");
        }
        access.add_extra_first("Using temporary");
        Ok(Some(access))
    }
}
