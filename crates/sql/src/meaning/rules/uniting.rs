//! Set operations: each column of a UNION gets the common type of all inputs, and INTERSECT ALL and EXCEPT ALL count
//! rows.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::{DataType, Field},
    common::{Column, NullEquality, TableReference, metadata::FieldMetadata},
    error::Result,
    functions_window::row_number::row_number_udwf,
    logical_expr::{
        Aggregate, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, Projection, RecursiveQuery,
        Union, Window, WindowFunctionDefinition,
        expr::{Alias, WindowFunction},
    },
};

use remora_mysql::ErrorCode;

use super::super::{
    function::{Dialect, external},
    library::{common_type, converted, typed, with_representation},
    types::{ExprType, coercibility},
};
use crate::{Error, catalog::Origin};

/// Converts the inputs of a UNION to their common types.
pub(super) fn union(union: Union) -> Result<LogicalPlan> {
    let parts: Vec<Vec<ExprType>> = union
        .inputs
        .iter()
        .map(|input| input.schema().iter().map(|(_, field)| ExprType::of_field(field)).collect())
        .collect();
    let width = parts.iter().map(Vec::len).min().unwrap_or(0);
    let mut common = Vec::with_capacity(width);
    for index in 0..width {
        let types: Vec<ExprType> =
            parts.iter().filter_map(|types| types.get(index).cloned()).collect();
        let found = common_type(&types).map_err(external)?;
        let is_composed = |kind: &ExprType| kind.coercibility == coercibility::NONE;
        if is_composed(&found) && !types.iter().any(is_composed) {
            let message = "Illegal mix of collations for operation 'UNION'";
            return Err(external(Error::new(ErrorCode::CollationsMix, message)));
        }
        common.push(found);
    }
    let inputs = union.inputs.into_iter().zip(&parts);
    let inputs = inputs.map(|(input, types)| cast(input, types, &common));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// Converts the recursive part of a query to the types of its first part.
pub(super) fn recursive(query: RecursiveQuery) -> Result<LogicalPlan> {
    let of = |plan: &LogicalPlan| plan.schema().fields().iter().cloned().collect::<Vec<_>>();
    let (first, further) = (of(&query.static_term), of(&query.recursive_term));
    let is_same = |(a, b): (&Arc<Field>, &Arc<Field>)| {
        a.data_type() == b.data_type() && a.metadata() == b.metadata()
    };
    if first.iter().zip(&further).all(is_same) {
        return Ok(LogicalPlan::RecursiveQuery(query));
    }
    let columns = query.recursive_term.schema().iter().zip(&first);
    let columns = columns.map(|((qualifier, field), first)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        if is_same((first, field)) {
            return column;
        }
        let to = ExprType::of_field(first);
        let converted = match first.data_type() == field.data_type() {
            true => typed(column, &to, Dialect::default()),
            false => with_representation(column, &to, Dialect::default()),
        };
        let metadata = Some(FieldMetadata::from(first.as_ref()));
        let named = Alias::new(converted, qualifier.cloned(), field.name().clone());
        Expr::Alias(named.with_metadata(metadata))
    });
    let input = Arc::clone(&query.recursive_term);
    let recursive_term = LogicalPlan::Projection(Projection::try_new(columns.collect(), input)?);
    let recursive_term = Arc::new(recursive_term);
    Ok(LogicalPlan::RecursiveQuery(RecursiveQuery { recursive_term, ..query }))
}

/// The columns that number the rows on both sides of INTERSECT ALL and EXCEPT ALL.
const NUMBERS: [&str; 2] = ["__number_left", "__number_right"];

/// Whether a join is INTERSECT ALL or EXCEPT ALL. Only set operations match NULL with NULL at this point. The plans of
/// subqueries come here twice.
pub(super) fn is_counted(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !is_distinct(&join.left)
        && !join.left.schema().has_column_with_unqualified_name(NUMBERS[0])
}

/// Whether a plan is a DISTINCT, as such or as GROUP BY of all columns.
fn is_distinct(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Distinct(_) => true,
        LogicalPlan::SubqueryAlias(named) => is_distinct(&named.input),
        LogicalPlan::Projection(shown) => match shown.input.as_ref() {
            LogicalPlan::Aggregate(groups) => is_of_groups(&shown.expr, groups),
            _ => false,
        },
        _ => false,
    }
}

/// Whether the columns are all groups in their order.
fn is_of_groups(shown: &[Expr], groups: &Aggregate) -> bool {
    let is_group = |(index, expr): (usize, &Expr)| match expr.clone().unalias() {
        Expr::Column(column) => {
            column.name == format!("__first_{index}")
                || column.name == groups.schema.field(index).name().as_str()
        }
        _ => false,
    };
    // ROLLUP repeats groups of NULL.
    let is_plain = !groups.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
    is_plain && shown.len() == groups.group_expr.len() && shown.iter().enumerate().all(is_group)
}

/// INTERSECT ALL and EXCEPT ALL count how often a row occurs: equal rows are numbered on both sides, and the join
/// compares the numbers too.
pub(super) fn counted(mut join: Join) -> Result<LogicalPlan> {
    let shown = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let (left, right): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    join.left = numbered(join.left, left, NUMBERS[0])?;
    join.right = numbered(join.right, right, NUMBERS[1])?;
    let [left, right] = NUMBERS.map(|name| Expr::Column(Column::new_unqualified(name)));
    join.on.push((left, right));
    let join = Arc::new(LogicalPlan::Join(join).recompute_schema()?);
    Ok(LogicalPlan::Projection(Projection::try_new(shown, join)?))
}

/// The rows with a further column: the number of each row among those with the same keys.
fn numbered(input: Arc<LogicalPlan>, keys: Vec<Expr>, name: &str) -> Result<Arc<LogicalPlan>> {
    let function = WindowFunctionDefinition::WindowUDF(row_number_udwf());
    let number = Expr::from(WindowFunction::new(function, Vec::new()));
    let number = number.partition_by(keys).build()?.alias(name);
    Ok(Arc::new(LogicalPlan::Window(Window::try_new(vec![number], input)?)))
}

/// The column without its table as origin.
fn without_origin(column: Expr, qualifier: Option<TableReference>, field: &Field) -> Expr {
    let (name, metadata) = (field.name().clone(), Some(FieldMetadata::from(Origin::none())));
    Expr::Alias(Alias::new(column, qualifier, name).with_metadata(metadata))
}

fn cast(
    input: Arc<LogicalPlan>,
    types: &[ExprType],
    common: &[ExprType],
) -> Result<Arc<LogicalPlan>> {
    let is_plain = |field: &Field| Origin::read(field.metadata()).is_none();
    let is_bool = |field: &Field| *field.data_type() == DataType::Boolean;
    if types == common
        && !input.schema().fields().iter().any(|field| is_bool(field))
        && input.schema().fields().iter().all(|field| is_plain(field))
    {
        return Ok(input);
    }
    let columns = input.schema().iter().zip(types.iter().zip(common));
    let columns = columns.map(|((qualifier, field), (from, to))| {
        let column = Expr::Column(Column::from((qualifier, field)));
        let same = from.arrow() == to.arrow() && *field.data_type() == to.arrow();
        let cast = match same {
            // A truth value has another representation than the integer that it is.
            _ if is_bool(field) => with_representation(column, to, Dialect::default()),
            _ if from == to => column,
            true => typed(column, to, Dialect::default()),
            false => converted(&column, from, to, Dialect::default()),
        };
        if !is_plain(field) {
            return without_origin(cast, qualifier.cloned(), field);
        }
        match from == to && !is_bool(field) {
            true => cast,
            false => cast.alias_qualified(qualifier.cloned(), field.name().clone()),
        }
    });
    let columns = columns.collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}
