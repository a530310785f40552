//! EXPLAIN of a run of a cached plan.

use remora_engine::{AccessPath, FoundBy, Result, SearchRequest, TableIndex};

use super::{
    CachedPlan, Read,
    steps::BatchStep,
    trace::{KeysRead, ReadRows, TraceRecords},
    tree::{PlanNode, RowSource},
};
use crate::{
    catalog::Reader,
    execute::access::{AccessRequest, TableAccess},
    plan::{Figures, RunConstant},
};

/// The accesses of the tables, in the order in which they were read.
pub(super) fn accesses(
    plan: &CachedPlan,
    reader: &Reader,
    reads: &[ReadRows],
) -> Result<Vec<TableAccess>> {
    let mut made = Vec::new();
    let joined = joined(plan);
    for (number, read) in reads.iter().enumerate() {
        if let Some(of) = plan.reads.get(read.scan) {
            let is_first = number == 0 || !joined.contains(&read.scan);
            made.push(access(plan, of, reader, read, is_first)?);
        }
    }
    for (scan, of) in plan.reads.iter().enumerate() {
        if reads.iter().all(|read| read.scan != scan) {
            made.push(not_read(plan, of));
        }
    }
    let is_sorted = reads.iter().any(ReadRows::is_in_order);
    let (mut groups, mut sorts) = (false, false);
    steps(&plan.root, &mut |step| match step {
        BatchStep::Group(grouping) => groups |= grouping.has_keys(),
        BatchStep::Window(_) => groups = true,
        BatchStep::Sort(_) => sorts |= !is_sorted,
        BatchStep::Filter(_)
        | BatchStep::Project(..)
        | BatchStep::Cut(_)
        | BatchStep::SubqueryColumns(_) => {}
    });
    if let Some(first) = made.first_mut() {
        if sorts && !first.extra.iter().any(|said| said == "Using filesort") {
            first.add_extra_first("Using filesort");
        }
        if groups {
            first.add_extra_first("Using temporary");
        }
    }
    Ok(made)
}

/// The measured lines of a run: outer steps first, the tables they read indented below.
pub(super) fn lines(
    plan: &CachedPlan,
    reader: &Reader,
    noted: &TraceRecords,
    whole: Figures,
) -> Result<Vec<String>> {
    let figures = |rows: u64, last| Figures { first: last, last, rows, loops: 1 };
    let mut depth = 0;
    let mut lines = Vec::new();
    let mut add = |depth: usize, what: String| {
        lines.push(format!("{}-> {what}", " ".repeat(4 * depth)));
    };
    for step in noted.steps.iter().rev() {
        add(depth, format!("{} {}", step.what, figures(step.rows, step.time)));
        depth += 1;
    }
    match &plan.root.of {
        RowSource::Union(_) => add(depth, "Append".to_owned()),
        RowSource::Join(_) => add(depth, "Join by keys".to_owned()),
        RowSource::Recursion(_) => add(depth, "Recursion".to_owned()),
        RowSource::Scan(_) | RowSource::Round(_) | RowSource::OneRow => {}
    }
    depth += usize::from(matches!(plan.root.of, RowSource::Union(_) | RowSource::Join(_)));
    let accesses = accesses(plan, reader, &noted.reads)?;
    for (at, access) in accesses.iter().enumerate() {
        let measured = match noted.reads.get(at) {
            Some(read) => figures(read.rows, read.time),
            None => Figures::default(),
        };
        add(depth, format!("{} {measured}", access.estimated_line()));
    }
    lines.insert(0, format!("-> Rows {whole}"));
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "    "));
    Ok(lines)
}

/// A table that was not read because the tables before it gave no rows.
fn not_read(plan: &CachedPlan, of: &Read) -> TableAccess {
    let table = plan.tables.get(of.table).map(|table| table.called().to_owned());
    let said = "Not read: the tables before have no rows for it".to_owned();
    TableAccess { table, ..TableAccess::of_no_table(said) }.placed(of.place.as_ref())
}

/// The scans that are inputs of joins.
fn joined(plan: &CachedPlan) -> Vec<usize> {
    fn add(of: &RowSource, joined: &mut Vec<usize>) {
        match of {
            RowSource::Scan(_) | RowSource::Round(_) | RowSource::OneRow => {}
            RowSource::Join(_) | RowSource::Recursion(_) => joined.extend(of.scans()),
            RowSource::Union(union) => union.parts.iter().for_each(|part| add(&part.of, joined)),
        }
    }
    let mut joined = Vec::new();
    add(&plan.root.of, &mut joined);
    for settled in &plan.settled {
        if let RunConstant::Query(part, _) = settled {
            add(&part.of, &mut joined);
        }
    }
    joined
}

fn steps(part: &PlanNode, visit: &mut impl FnMut(&BatchStep)) {
    part.steps.iter().for_each(&mut *visit);
    match &part.of {
        RowSource::Scan(_) | RowSource::Round(_) | RowSource::OneRow => {}
        RowSource::Recursion(of) => {
            std::iter::once(&of.first).chain(&of.blocks).for_each(|part| steps(part, visit));
        }
        RowSource::Join(join) => {
            steps(&join.left, visit);
            steps(&join.right, visit);
        }
        RowSource::Union(union) => union.parts.iter().for_each(|part| steps(part, visit)),
    }
}

fn access(
    plan: &CachedPlan,
    of: &Read,
    reader: &Reader,
    read: &ReadRows,
    is_first: bool,
) -> Result<TableAccess> {
    let Some(table) = plan.tables.get(of.table) else { return Ok(TableAccess::default()) };
    let mut path = path(of, reader, read)?;
    if let Some(limit) = read.limit.filter(|_| read.whole().filter.is_none()) {
        path.examined = path.examined.min(limit);
        path.matching = path.examined;
    }
    let own = of.scan.selection(read.own());
    let has_condition = own.filter.is_some() || own.text.is_some();
    let wanted = AccessRequest { in_order: read.is_in_order(), has_condition };
    let mut access =
        TableAccess::of(&table.sql, table.called(), &path, wanted).placed(of.place.as_ref());
    if is_first {
        return Ok(access);
    }
    match (path.found_by.as_slice(), read.keys.is_empty()) {
        ([found_by], false) => by_keys(plan, of, read, found_by, &mut access),
        _ => access.add_extra("Using join buffer (hash join)"),
    }
    Ok(access)
}

/// Marks an access as a lookup by keys of the tables before.
fn by_keys(
    plan: &CachedPlan,
    of: &Read,
    read: &ReadRows,
    found_by: &FoundBy,
    access: &mut TableAccess,
) {
    let Some(table) = plan.tables.get(of.table) else { return };
    let columns: Vec<usize> = match found_by.index {
        TableIndex::Key => table.schema().primary_key.clone(),
        TableIndex::Secondary(place) => {
            let index = table.schema().indexes.get(place);
            index.iter().flat_map(|index| &index.columns).map(|part| part.column).collect()
        }
    };
    let keys = |position: usize| {
        let is_of = |keys: &&KeysRead| {
            keys.place.and_then(|place| of.scan.position(place)) == Some(position)
        };
        read.keys.iter().find(is_of)
    };
    let used: Vec<Option<&KeysRead>> =
        columns.iter().take(found_by.columns).map(|position| keys(*position)).collect();
    let count: u64 = used.iter().flatten().map(|keys| keys.count).max().unwrap_or(0);
    if count == 0 {
        return access.add_extra("Using join buffer (hash join)");
    }
    let of_column = |keys: &Option<&KeysRead>| match keys {
        Some(keys) => column_name(plan, keys).unwrap_or_else(|| "func".to_owned()),
        None => "const".to_owned(),
    };
    let names: Vec<String> = used.iter().map(of_column).collect();
    let key = table.sql.key_of(found_by.index);
    let is_one =
        key.is_some_and(|key| found_by.columns >= key.parts.len() && table.sql.is_unique(key));
    access.kind = Some(if is_one { "eq_ref" } else { "ref" });
    access.compared = Some(names.join(","));
    access.rows = access.rows.map(|rows| rows.div_ceil(count).max(1));
    access.add_extra(format!("{count} keys at once"));
}

/// The qualified name of the column that keys come from.
fn column_name(plan: &CachedPlan, keys: &KeysRead) -> Option<String> {
    let (scan, place) = keys.from?;
    let read = plan.reads.get(scan)?;
    let table = plan.tables.get(read.table)?;
    let column = table.schema().columns.get(read.scan.position(place)?)?;
    Some(format!("{}.{}.{}", table.name.database, table.called(), column.name))
}

fn path(of: &Read, reader: &Reader, read: &ReadRows) -> Result<AccessPath> {
    if read.by_path.is_some() {
        let path = reader.access(&of.scan.selection(read.whole()))?;
        let (examined, ordered_by_path) = (read.rows, read.by_path);
        return Ok(AccessPath { examined, matching: examined, ordered_by_path, ..path });
    }
    let Some((sort, limit)) = &read.page else {
        return reader.access(&of.scan.selection(read.whole()));
    };
    let request: SearchRequest = of.scan.page(read.whole(), (sort, *limit));
    match reader.first_access(&request)? {
        Some(path) => Ok(path),
        None => reader.search_access(&request),
    }
}
