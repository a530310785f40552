//! The order of a plan's result, where the engine has it.

use std::collections::BTreeSet;

use datafusion::{
    arrow::compute::SortOptions,
    common::ScalarValue,
    physical_expr::{
        PhysicalSortExpr, ScalarFunctionExpr,
        expressions::{Column, Literal},
    },
};
use jiff::tz::TimeZone;
use remora_engine::{ColumnDef, ColumnType, Schema, SortBy, SortKey};

use super::{
    super::{plan::sortable, table::ShapeTable},
    expressions::{BatchExpression, ScanOrigin},
    steps::BatchStep,
    tree::{FirstRows, PlanNode, RowSource, Tree},
};
use crate::scan::CachedScan;

/// The order of a plan's result, which one of its scans has.
pub(super) struct ResultOrder {
    pub scan: usize,
    pub keys: Vec<SortKey>,
    pub grouped: OrderedGroups,
}

/// How the first rows of an order are grouped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderedGroups {
    /// They are not.
    Not,
    /// By the columns of the order: groups are read one after the other, and the last one of the first rows may lack some
    /// of its rows.
    ByOrder,
    /// The same by the primary key or its first columns.
    ByKey,
}

/// The order of a plan's result in engine terms, and the scan that has it; `None` if the plan does more than filter,
/// project, group by what it sorts by and sort once, or the engine does not have the order. `table` gives the table of
/// a scan.
pub(super) fn order<'t>(
    tree: &Tree,
    part: &PlanNode,
    table: impl Fn(usize) -> Option<&'t ShapeTable>,
    zone: &TimeZone,
) -> Option<ResultOrder> {
    let mut origins = part.of.origins(&tree.widths());
    let (mut order, mut group_keys): (_, Option<Vec<ScanOrigin>>) = (None, None);
    for step in &part.steps {
        match step {
            BatchStep::Sort(keys) if order.is_none() => {
                order = Some(sorted_by(keys, &origins, &tree.scans, &table)?);
                if !group_keys.take().is_none_or(|groups| are_sorted_by(keys, &groups, &origins)) {
                    return None;
                }
            }
            BatchStep::Group(grouping) if order.is_none() && group_keys.is_none() => {
                origins = grouping.key_origins(&origins)?;
                group_keys = Some(origins.clone());
                continue;
            }
            step if step.is_by_row() => {}
            _ => return None,
        }
        origins = step.origins(origins);
    }
    let is_of_groups = part.steps.iter().any(|step| matches!(step, BatchStep::Group(_)));
    let (scan, mut keys) = match (order, &part.of) {
        (Some(order), _) => order,
        (None, RowSource::Scan(scan)) if !is_of_groups => {
            (*scan, vec![SortKey { by: SortBy::Key, descending: false }])
        }
        (None, _) => return None,
    };
    let grouped = match is_of_groups {
        true => grouped(&mut keys, table(scan)?.schema(), zone)?,
        false => OrderedGroups::Not,
    };
    part.of.follows(scan).then_some(ResultOrder { scan, keys, grouped })
}

/// How rows in this order are grouped by its columns, which become the whole key if they are its first ones; `None` if
/// rows of one group may be apart.
fn grouped(keys: &mut Vec<SortKey>, schema: &Schema, zone: &TimeZone) -> Option<OrderedGroups> {
    let mut places = Vec::with_capacity(keys.len());
    for key in &*keys {
        let SortBy::Column(name) = &key.by else { return None };
        let place = schema.columns.iter().position(|column| column.name == *name)?;
        // Where a zone has an hour twice, its times do not have the order of the moments.
        let is_moment = schema.columns.get(place)?.kind == ColumnType::Timestamp;
        if is_moment && zone.to_fixed_offset().is_err() {
            return None;
        }
        places.push(place);
    }
    let descending = keys.first()?.descending;
    let is_one_way = keys.iter().all(|key| key.descending == descending);
    let Some(rest) = schema.primary_key.strip_prefix(places.as_slice()).filter(|_| is_one_way)
    else {
        return Some(OrderedGroups::ByOrder);
    };
    for place in rest {
        let by = SortBy::Column(schema.columns.get(*place)?.name.clone());
        keys.push(SortKey { by, descending });
    }
    Some(OrderedGroups::ByKey)
}

/// Whether rows are sorted by all keys of their groups and by nothing else.
fn are_sorted_by(
    keys: &[(BatchExpression, PhysicalSortExpr)],
    groups: &[ScanOrigin],
    origins: &[ScanOrigin],
) -> bool {
    let origin = |(expression, _): &(BatchExpression, PhysicalSortExpr)| {
        let column = expression.downcast_ref::<Column>()?;
        origins.get(column.index()).copied().flatten()
    };
    let sorted: BTreeSet<_> = keys.iter().filter_map(origin).collect();
    let grouped: BTreeSet<_> = groups.iter().flatten().copied().collect();
    sorted.len() == keys.len() && sorted == grouped
}

/// Notes the first rows that parts of a plan need of their scans: of derived tables, of parts of a UNION and of
/// subqueries, as far as the engine has the order.
pub(super) fn note_first_rows<'t>(
    tree: &mut Tree,
    table: impl Fn(usize) -> Option<&'t ShapeTable>,
) {
    let widths = tree.widths();
    tree.each_of_scan(&mut |part, scan, scans| {
        part.first = first_of(part, scan, (scans, &widths), &table);
    });
}

/// The ORDER BY and LIMIT of a part over one scan, if the engine has the order.
fn first_of<'t>(
    part: &PlanNode,
    scan: usize,
    (scans, widths): (&[CachedScan], &[usize]),
    table: &impl Fn(usize) -> Option<&'t ShapeTable>,
) -> Option<FirstRows> {
    let sorted = part.steps.iter().position(|step| matches!(step, BatchStep::Sort(_)))?;
    let Some(BatchStep::Cut(places)) = part.steps.get(sorted + 1) else { return None };
    let mut origins = part.of.origins(widths);
    for step in part.steps.get(..=sorted)? {
        if let BatchStep::Sort(keys) = step {
            let (of, order) = sorted_by(keys, &origins, scans, table)?;
            return (of == scan).then_some(FirstRows { order, count: places.end, sort: sorted });
        }
        if !step.is_by_row() {
            return None;
        }
        origins = step.origins(origins);
    }
    None
}

/// Sort keys in engine terms, if all are columns of one scan.
fn sorted_by<'t>(
    keys: &[(BatchExpression, PhysicalSortExpr)],
    origins: &[ScanOrigin],
    scans: &[CachedScan],
    table: &impl Fn(usize) -> Option<&'t ShapeTable>,
) -> Option<(usize, Vec<SortKey>)> {
    let mut of = None;
    let mut order = Vec::new();
    for (expression, key) in keys {
        let (column, collation) = sorted_column(expression)?;
        let (scan, place) = origins.get(column.index()).copied().flatten()?;
        if *of.get_or_insert(scan) != scan {
            return None;
        }
        if scans.get(scan)?.is_score(place) {
            let descending = key.options.descending;
            order.push(SortKey { by: SortBy::Score, descending });
            continue;
        }
        let position = scans.get(scan)?.position(place)?;
        let by = match collation {
            None => SortBy::Column(sortable(position, table(scan)?)?),
            Some(number) => {
                let (operand, _) = table(scan)?.texts_at(position)?;
                SortBy::TextKey(operand.name, number)
            }
        };
        let SortOptions { descending, nulls_first } = key.options;
        // MySQL sorts NULL as the least value.
        if nulls_first == descending {
            return None;
        }
        order.push(SortKey { by, descending });
    }
    let of = of?;
    by_key_after_scores(&mut order, table(of)?);
    Some((of, order))
}

/// Names an order of equal scores by the key as the engine does, which searches for the best rows alone then.
fn by_key_after_scores(order: &mut Vec<SortKey>, table: &ShapeTable) {
    let Some((SortKey { by: SortBy::Score, .. }, ties)) = order.split_first() else { return };
    let key = &table.schema().primary_key;
    let columns = key.iter().map(|key| table.schema().columns.get(*key));
    let is_part = |(tie, column): (&SortKey, Option<&ColumnDef>)| {
        let name = column.map(|column| &column.name);
        !tie.descending && matches!(&tie.by, SortBy::Column(of) if Some(of) == name)
    };
    if ties.len() == key.len() && ties.iter().zip(columns).all(is_part) {
        order.truncate(1);
        order.push(SortKey { by: SortBy::Key, descending: false });
    }
}

/// The column that is sorted by, and the number of its collation if it is sorted by collation keys.
fn sorted_column(expression: &BatchExpression) -> Option<(&Column, Option<u32>)> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some((column, None));
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    if let ("match_score", [of]) = (call.name(), call.args()) {
        return Some((of.downcast_ref::<Column>()?, None));
    }
    let ("collation_key", [of, number]) = (call.name(), call.args()) else { return None };
    let ScalarValue::Int64(Some(number)) = number.downcast_ref::<Literal>()?.value() else {
        return None;
    };
    Some((of.downcast_ref::<Column>()?, Some(u32::try_from(*number).ok()?)))
}
