//! JSON_TABLE as a derived table of texts that are cast to the columns' types. The rows of a constant are made here;
//! those of any other document are made when the plan runs ([`crate::plan`]).

use std::{ops::ControlFlow, sync::Arc};

use datafusion::{
    arrow::{
        array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray},
        datatypes::SchemaRef,
    },
    catalog::TableProvider,
    datasource::MemTable,
    error::Result as PlanResult,
    sql::sqlparser::ast::{
        CastKind, DataType, Expr, Join, JoinConstraint, JoinOperator, JsonTableColumn, SetExpr,
        TableFactor, TableWithJoins, Value, ValueWithSpan,
    },
};
use remora_mysql::ErrorCode;

use super::{
    Env, Resolver,
    expr::ClauseContext,
    from::is_right,
    places::{SelectPosition, StatementTable},
    query_of,
    scope::{Clause, NamedColumn, Relation, Scope, quoted},
    select::{empty_select, item},
};
use crate::{
    Error, Result,
    error::from_plan,
    meaning::{
        JSON_ROWS,
        json::{self, Json},
        json_table::{JsonColumn, JsonRow, JsonTable, is_year},
    },
    parse::{
        function_call, visit_expressions,
        write::{table_alias, table_named},
    },
    scan::JsonSource,
};

/// The most bytes of rows made of a constant during planning.
const MAX_BYTES: usize = 256 << 20;

/// A parsed JSON_TABLE.
pub(super) struct ParsedJsonTable<'f> {
    pub document: &'f mut Expr,
    pub path: &'f ValueWithSpan,
    pub columns: &'f [JsonTableColumn],
    pub called: String,
}

impl Resolver<'_> {
    /// Makes JSON_TABLE a derived table. Its document may name relations before it.
    ///
    /// # Errors
    /// 1054 and 1109 for unknown names, 3141 for a constant that is not JSON, and those of [`JsonTable::new`].
    pub(super) fn json_table(
        &mut self,
        parsed: ParsedJsonTable<'_>,
        before: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<(TableFactor, Relation)> {
        let ParsedJsonTable { document, path, columns, called } = parsed;
        self.expr(document, before, env, ClauseContext::plain(Clause::TableFunction))?;
        let table = Arc::new(JsonTable::new(path, columns)?);
        let unique = self.unique(&called);
        let inner = self.unique("json_table");
        let (provider, condition): (Arc<dyn TableProvider>, _) = match constant(document) {
            Some(text) => (rows_of(&table, &inner, text.as_deref())?, None),
            None => {
                let SelectPosition { select, kind, .. } = env.standing;
                let (unique, alias) = (inner.clone(), called.clone());
                let (is_system, number) = (false, 0);
                self.places.push(StatementTable { unique, alias, select, kind, is_system, number });
                let condition = function_call(JSON_ROWS, vec![document.clone()]);
                (Arc::new(JsonSource::new(Arc::clone(&table), &inner)), Some(condition))
            }
        };
        self.tables.push((inner.clone(), provider));
        let named = before_of(document, before);
        let is_lateral = !named.is_empty();
        self.reached.extend(named);
        let factor = derived(table.columns(), condition, is_lateral, (&inner, &unique));
        let named = |column: &JsonColumn| NamedColumn {
            shown: column.name.clone(),
            planned: column.name.to_lowercase(),
            hidden: false,
        };
        let relation = Relation {
            alias: called,
            database: None,
            unique,
            columns: table.columns().iter().map(named).collect(),
            key: Vec::new(),
            determining: Vec::new(),
            is_view: false,
        };
        Ok((factor, relation))
    }
}

/// One join of the preceding parts of FROM and of a part with a JSON_TABLE over their columns, because a document's
/// relations must be on the left of the same join tree.
///
/// # Errors
/// 1235 if that part has a RIGHT JOIN.
pub(super) fn joined(before: Vec<TableWithJoins>, part: TableWithJoins) -> Result<TableWithJoins> {
    let mut before = before.into_iter();
    let Some(mut all) = before.next() else { return Ok(part) };
    for part in before {
        let relation = match part.joins.is_empty() {
            true => part.relation,
            false => TableFactor::NestedJoin { table_with_joins: Box::new(part), alias: None },
        };
        all.joins.push(crossed(relation));
    }
    let TableWithJoins { relation, joins } = without_parentheses(part);
    if joins.iter().any(|join| is_right(&join.join_operator)) {
        let what = "RIGHT JOIN beside JSON_TABLE of a column of a table before a comma";
        return Err(Error::unsupported(what));
    }
    all.joins.push(crossed(relation));
    all.joins.extend(joins);
    Ok(all)
}

fn crossed(relation: TableFactor) -> Join {
    let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
    Join { relation, global: false, join_operator }
}

/// The same joins without parentheses around the first.
fn without_parentheses(part: TableWithJoins) -> TableWithJoins {
    match part {
        TableWithJoins { relation: TableFactor::NestedJoin { table_with_joins, .. }, joins } => {
            let mut inner = *table_with_joins;
            inner.joins.extend(joins);
            without_parentheses(inner)
        }
        part => part,
    }
}

/// Error 3667.
pub(super) fn without_alias() -> Error {
    Error::new(ErrorCode::TableFunctionWithoutAlias, "Every table function must have an alias")
}

/// The preceding relations that a document names.
fn before_of(document: &Expr, before: &Scope<'_>) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    let _: ControlFlow<()> = visit_expressions(document, |each| {
        if let Expr::CompoundIdentifier(name) = each
            && let [relation, _] = name.as_slice()
            && before.relations.iter().any(|known| known.unique == relation.value)
        {
            named.push(relation.value.clone());
        }
        ControlFlow::Continue(())
    });
    named
}

/// The text of a constant, `Some(None)` for NULL; `None` if it is not a constant.
fn constant(document: &Expr) -> Option<Option<String>> {
    match document {
        Expr::Nested(inner) => constant(inner),
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            Some(Some(text.clone()))
        }
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(None),
        _ => None,
    }
}

/// The rows of a constant.
fn rows_of(table: &JsonTable, name: &str, text: Option<&str>) -> Result<Arc<dyn TableProvider>> {
    let rows = match text {
        None => Vec::new(),
        Some(text) => {
            let document = json::parse_argument(text, 1, "json_table")?;
            constant_rows(table, &document)?
        }
    };
    texts(JsonSource::schema_of(table, name), &rows).map_err(from_plan)
}

fn constant_rows(table: &JsonTable, document: &Json) -> Result<Vec<JsonRow>> {
    let mut bytes = 0_usize;
    table.rows(document, &mut |more| {
        bytes = bytes.saturating_add(more);
        if bytes <= MAX_BYTES {
            return Ok(());
        }
        let message = format!("JSON_TABLE gives rows of more than {MAX_BYTES} bytes");
        Err(Error::new(ErrorCode::OutOfMemory, message))
    })
}

/// The rows as a table of texts.
fn texts(schema: SchemaRef, rows: &[JsonRow]) -> PlanResult<Arc<dyn TableProvider>> {
    let array = |index: usize| {
        let values = rows.iter().map(|row| row.get(index).and_then(Option::as_deref));
        Arc::new(values.collect::<StringViewArray>()) as ArrayRef
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let arrays = (0..schema.fields().len()).map(array).collect();
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

/// Builds `(SELECT CAST(a AS type) … FROM inner WHERE condition) AS unique`.
fn derived(
    columns: &[JsonColumn],
    condition: Option<Expr>,
    is_lateral: bool,
    (inner, unique): (&str, &str),
) -> TableFactor {
    let mut select = empty_select();
    select.projection = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let name = column.name.to_lowercase();
            let held = JsonSource::column(inner, at);
            let value = Expr::CompoundIdentifier(vec![quoted(inner), quoted(&held)]);
            item(cast(value, column.kind.clone()), &name)
        })
        .collect();
    select.selection = condition;
    select.from = vec![table_named(&[inner], Some(inner))];
    TableFactor::Derived {
        lateral: is_lateral,
        subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
        alias: Some(table_alias(unique)),
        sample: None,
    }
}

fn cast(value: Expr, kind: Option<DataType>) -> Expr {
    let value = match &kind {
        // The text '0' is the year 2000, the number 0 is not.
        Some(kind) if is_year(kind) => cast(value, Some(DataType::BigInt(None))),
        _ => value,
    };
    let data_type = match kind {
        None => DataType::UnsignedInteger,
        Some(
            DataType::TinyInt(_)
            | DataType::SmallInt(_)
            | DataType::MediumInt(_)
            | DataType::Int(_)
            | DataType::Integer(_)
            | DataType::BigInt(_)
            | DataType::Boolean
            | DataType::Bool,
        ) => DataType::SignedInteger,
        Some(
            DataType::TinyIntUnsigned(_)
            | DataType::SmallIntUnsigned(_)
            | DataType::MediumIntUnsigned(_)
            | DataType::IntUnsigned(_)
            | DataType::IntegerUnsigned(_)
            | DataType::BigIntUnsigned(_),
        ) => DataType::UnsignedInteger,
        Some(DataType::Text | DataType::LongText | DataType::MediumText | DataType::TinyText) => {
            DataType::Char(None)
        }
        Some(
            DataType::Blob(_) | DataType::LongBlob | DataType::MediumBlob | DataType::TinyBlob,
        ) => DataType::Binary(None),
        Some(other) => other,
    };
    let expr = Box::new(value);
    Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}
