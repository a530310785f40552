//! Predicate pushdown: SQL conditions become conditions of the engine where both mean the same. These are comparisons
//! of a column with constants of its own type, IN lists, BETWEEN and NULL tests, joined by AND and OR.
//!
//! Of a column that is too long for segments, secondary indexes have prefixes. A condition on these leaves too many rows
//! ([`Filter::Prefix`]), so the rows are tested again.
//!
//! The engine's `!=` is true for NULL, and its NOT has two truth values. So negations are expressed differently.

use std::ops::Bound;

use datafusion::{
    common::ScalarValue,
    logical_expr::{
        Between, BinaryExpr, Expr, Operator, TableProviderFilterPushDown,
        expr::{InList, ScalarFunction},
    },
};
use jiff::tz::TimeZone;
use remora_engine::{
    ColumnType, Comparison, Date, DateTime, Decimal, Filter, Literal, TextQuery, Value,
};

use remora_mysql::Collation;

use super::{EngineTable, date_parts, outer, paths::by_paths};
use crate::{
    SqlType,
    meaning::{
        ROWS_MAY_HAVE,
        temporal::{Moment, only_moment},
        types::ExprType,
    },
    search::{self, IndexAnswer},
};

/// Conditions translated for the engine.
pub(super) struct Translated {
    /// The condition on columns.
    pub filter: Option<Filter>,
    /// The condition on text.
    pub text: Option<TextQuery>,
    /// Whether they are equivalent to the original conditions.
    pub exact: bool,
}

/// How much of a condition can be pushed down.
pub(super) fn support(table: &EngineTable, filter: &Expr) -> TableProviderFilterPushDown {
    let translate = |filter: &Expr| translate(table, filter);
    let exact = match translate(filter) {
        Some(_) => true,
        None => match text(table, filter) {
            IndexAnswer::Exact(_) => true,
            IndexAnswer::Superset(_) => false,
            IndexAnswer::Scan if beginning(table, filter).is_some() => false,
            IndexAnswer::Scan if is_called(filter, ROWS_MAY_HAVE) => false,
            IndexAnswer::Scan if by_prefixes(table, filter).is_some() => false,
            IndexAnswer::Scan if by_date_parts(table, filter).is_some() => false,
            // A path that is not indexed yet may be by the time of the scan.
            IndexAnswer::Scan if by_paths(table, &table.paths(), filter, &translate).is_some() => {
                false
            }
            // The value is known when the scan starts.
            IndexAnswer::Scan if outer::outer_comparisons(filter).is_some() => false,
            IndexAnswer::Scan => return TableProviderFilterPushDown::Unsupported,
        },
    };
    // The engine does not see the session's uncommitted rows.
    match exact && table.overlay.is_none() {
        true => TableProviderFilterPushDown::Exact,
        false => TableProviderFilterPushDown::Inexact,
    }
}

fn is_called(filter: &Expr, name: &str) -> bool {
    matches!(filter, Expr::ScalarFunction(call) if call.name() == name)
}

/// Translates a conjunction of conditions as far as possible.
pub(super) fn translate_all(table: &EngineTable, filters: &[Expr]) -> Translated {
    let translate = |filter: &Expr| translate(table, filter);
    let mut translated: Vec<Filter> = filters.iter().filter_map(translate).collect();
    let rest = filters.iter().filter(|filter| translate(filter).is_none());
    let texts: Vec<IndexAnswer> = rest.clone().map(|filter| text(table, filter)).collect();
    let exact = texts.iter().all(|answer| matches!(answer, IndexAnswer::Exact(_)));
    let narrowed = |filter: &Expr| match beginning(table, filter) {
        Some(begins) => Some(begins.filter),
        None => by_prefixes(table, filter).or_else(|| by_date_parts(table, filter)),
    };
    translated.extend(rest.clone().filter_map(narrowed));
    let indexed = table.ready_paths();
    translated.extend(rest.filter_map(|filter| by_paths(table, &indexed, filter, &translate)));
    // If no index has the column's order, the text index narrows down the rows whose texts are tested.
    let begun = filters.iter().filter(|filter| {
        beginning(table, filter).is_some_and(|begins| begins.is_all && !begins.has_index)
    });
    let begun = begun.map(|filter| text(table, filter));
    let mut texts: Vec<TextQuery> =
        texts.into_iter().chain(begun).filter_map(IndexAnswer::superset).collect();
    let text = if texts.len() > 1 { Some(TextQuery::And(texts)) } else { texts.pop() };
    let filter = match translated.len() {
        0 => None,
        1 => translated.into_iter().next(),
        _ => Some(Filter::And(translated)),
    };
    Translated { filter, text, exact }
}

/// The text index's answer to a condition.
fn text(table: &EngineTable, filter: &Expr) -> IndexAnswer {
    if !table.by_text_index {
        return IndexAnswer::Scan;
    }
    let column = |expr: &Expr| {
        let Expr::Column(column) = expr else { return None };
        let index = table.schema.index_of(&column.name).ok()?;
        table.positions.get(index).copied()
    };
    search::plan(&search::SearchedTable { table: &table.table, column: &column }, filter)
}

/// The equivalent condition of the engine.
fn translate(table: &EngineTable, filter: &Expr) -> Option<Filter> {
    understood(table, filter).filter(|filter| !has_prefix(filter))
}

/// A condition on prefixes that every row satisfies which satisfies this one.
fn by_prefixes(table: &EngineTable, filter: &Expr) -> Option<Filter> {
    understood(table, filter).filter(has_prefix)
}

/// A condition on the dates that every row has which satisfies this one.
fn by_date_parts(table: &EngineTable, filter: &Expr) -> Option<Filter> {
    date_parts::required(table, filter, &|part| understood(table, part))
}

fn has_prefix(filter: &Filter) -> bool {
    match filter {
        Filter::Prefix(_) => true,
        Filter::And(parts) | Filter::Or(parts) => parts.iter().any(has_prefix),
        _ => false,
    }
}

/// The condition of the engine: an equivalent one, but for its parts that are [`Filter::Prefix`].
fn understood(table: &EngineTable, filter: &Expr) -> Option<Filter> {
    match filter {
        // What a condition comes to that was taken before: IS NULL of a column without NULLs is false.
        Expr::Literal(ScalarValue::Boolean(truth), _) => Some(match truth {
            Some(true) => Filter::And(Vec::new()),
            Some(false) | None => Filter::Or(Vec::new()),
        }),
        Expr::Literal(ScalarValue::Null, _) => Some(Filter::Or(Vec::new())),
        Expr::BinaryExpr(binary) => binary_filter(table, binary),
        Expr::InList(list) => in_list(table, list),
        Expr::Between(between) => range(table, between),
        Expr::IsNull(inner) => {
            let column = column(table, inner)?;
            Some(column.told(Filter::IsNull(column.name.clone())))
        }
        Expr::IsNotNull(inner) => {
            let column = column(table, inner).filter(|column| column.is_held)?;
            Some(Filter::IsNotNull(column.name))
        }
        Expr::ScalarFunction(_) => {
            let begins = beginning(table, filter)?;
            (begins.is_all || has_prefix(&begins.filter)).then_some(begins.filter)
        }
        _ => None,
    }
}

/// The prefix that a LIKE pattern requires.
struct LikePrefix {
    filter: Filter,
    /// Whether the pattern requires nothing else.
    is_all: bool,
    /// Whether the column is the first one of an index.
    has_index: bool,
}

fn beginning(table: &EngineTable, filter: &Expr) -> Option<LikePrefix> {
    let Expr::ScalarFunction(call) = filter else { return None };
    let (of, pattern, escape) = match (call.name(), call.args.as_slice()) {
        ("truth", [inner]) => return beginning(table, inner),
        ("like", [of, pattern]) => (of, pattern, Some('\\')),
        ("like", [of, pattern, escape]) => (of, pattern, search::text(escape)?.chars().next()),
        _ => return None,
    };
    let subject = column(table, of)?;
    let collation = subject.letters?;
    let (letters, is_all) = search::beginning(&search::text(pattern)?, escape);
    let position = table.table.schema.columns.iter().position(|it| it.name == subject.name)?;
    (!letters.is_empty()).then(|| LikePrefix {
        filter: subject.told(search::begins(&subject.name, collation, &letters)),
        is_all: is_all && subject.is_held,
        has_index: table.table.leads_index(position),
    })
}

fn binary_filter(table: &EngineTable, binary: &BinaryExpr) -> Option<Filter> {
    let BinaryExpr { left, op, right } = binary;
    match op {
        Operator::And => Some(Filter::And(chain(table, binary)?)),
        Operator::Or => Some(Filter::Or(chain(table, binary)?)),
        _ => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(_), Expr::Literal(value, _)) => compare(table, left, *op, value),
            (Expr::Literal(value, _), Expr::Column(_)) => compare(table, right, op.swap()?, value),
            (Expr::ScalarFunction(call), Expr::Literal(value, _)) => {
                let of = keyed(table, call)?;
                Some(told(of.is_held, of.compare(*op, value)?))
            }
            (Expr::Literal(value, _), Expr::ScalarFunction(call)) => {
                let of = keyed(table, call)?;
                Some(told(of.is_held, of.compare(op.swap()?, value)?))
            }
            _ => None,
        },
    }
}

/// The conditions of a left-deep chain of AND or of OR as one list, because the engine limits the depth of filters.
fn chain(table: &EngineTable, binary: &BinaryExpr) -> Option<Vec<Filter>> {
    let mut parts = vec![understood(table, &binary.right)?];
    let mut rest = binary.left.as_ref();
    while let Expr::BinaryExpr(BinaryExpr { left, op, right }) = rest
        && *op == binary.op
    {
        parts.push(understood(table, right)?);
        rest = left;
    }
    parts.push(understood(table, rest)?);
    parts.reverse();
    Some(parts)
}

fn compare(
    table: &EngineTable,
    of: &Expr,
    operator: Operator,
    value: &ScalarValue,
) -> Option<Filter> {
    let column = column(table, of)?;
    let compared = column.compare(operator, value)?;
    Some(column.told(compared))
}

fn in_list(table: &EngineTable, list: &InList) -> Option<Filter> {
    if list.negated {
        return None;
    }
    if let Expr::ScalarFunction(call) = list.expr.as_ref() {
        let of = keyed(table, call)?;
        return Some(told(of.is_held, of.one_of(&list.list)?));
    }
    let column = column(table, &list.expr)?;
    // A NULL in the list never makes IN true.
    let constants = list.list.iter().map(|each| match each {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    });
    let constants: Option<Vec<&ScalarValue>> = constants.collect();
    let present = constants?.into_iter().filter(|value| !value.is_null());
    let literals: Option<Vec<Literal>> = present.map(|value| column.literal(value)).collect();
    Some(column.told(Filter::In(column.name.clone(), literals?)))
}

fn range(table: &EngineTable, between: &Between) -> Option<Filter> {
    if between.negated {
        return None;
    }
    let column = column(table, &between.expr)?;
    let (Expr::Literal(low, _), Expr::Literal(high, _)) =
        (between.low.as_ref(), between.high.as_ref())
    else {
        return None;
    };
    let (low, high) = (column.literal(low)?, column.literal(high)?);
    Some(column.told(Filter::Between(column.name.clone(), low, high)))
}

/// A column that the engine can compare.
#[derive(Clone, Debug)]
pub(super) struct ComparableColumn {
    /// Its name in the engine.
    pub name: String,
    kind: ExprType,
    is_bool: bool,
    is_bytes: bool,
    /// Whether it is a text column that is compared by collation keys.
    pub has_keys: bool,
    /// Whether it is the first column of an index.
    leads_index: bool,
    /// The time zone of local times.
    zone: TimeZone,
    /// Its collation, if it is a text column other than ENUM and SET.
    letters: Option<Collation>,
    /// Whether segments hold it. Otherwise an index has prefixes of it.
    is_held: bool,
}

fn column(table: &EngineTable, expr: &Expr) -> Option<ComparableColumn> {
    let Expr::Column(column) = expr else { return None };
    ComparableColumn::any(table, table.schema.index_of(&column.name).ok()?)
}

impl ComparableColumn {
    /// The column at an index of the table's schema, if the engine can compare it.
    pub(super) fn of(table: &EngineTable, index: usize) -> Option<Self> {
        Self::any(table, index).filter(|column| column.is_held)
    }

    /// The same, or a column of which an index has prefixes.
    fn any(table: &EngineTable, index: usize) -> Option<Self> {
        let position = *table.positions.get(index)?;
        let definition = table.table.schema.columns.get(position)?;
        let is_held = definition.indexed;
        if !is_held && !table.table.has_prefixes(position) {
            return None;
        }
        let kind = ExprType::of_field(table.schema.field(index));
        let is_bool = definition.kind == ColumnType::Bool;
        let has_keys = definition.kind == ColumnType::Text && kind.is_text();
        let (name, zone) = (definition.name.clone(), table.zone.clone());
        let spec = table.table.columns.get(position)?;
        let is_bytes = spec.kind.is_bytes();
        let has_letters = definition.kind == ColumnType::Text && spec.kind.is_text();
        let letters = (has_letters && !spec.kind.has_labels()).then_some(spec.kind.collation);
        let leads_index = has_keys && table.table.leads_index(*table.positions.get(index)?);
        Some(Self { name, kind, is_bool, is_bytes, has_keys, leads_index, letters, is_held, zone })
    }

    /// The column's collation keys; `None` if no index finds them. `order` is the number of the collation.
    pub(super) fn keyed(&self, order: u32) -> Option<Keyed> {
        let is_held = self.is_held;
        (self.has_keys && self.leads_index).then(|| Keyed {
            column: self.name.clone(),
            order,
            is_held,
        })
    }

    /// A condition on the column, as far as the engine can tell.
    fn told(&self, condition: Filter) -> Filter {
        told(self.is_held, condition)
    }

    /// A constant as a value of the column; `None` for NULL and for other types.
    pub(super) fn literal(&self, value: &ScalarValue) -> Option<Literal> {
        self.value(value).map(Literal::Value)
    }

    /// A comparison of the column with a constant; `None` for NULL and for other types.
    pub(super) fn compare(&self, operator: Operator, value: &ScalarValue) -> Option<Filter> {
        let comparison = match operator {
            Operator::Eq => Comparison::Equal,
            Operator::NotEq => Comparison::NotEqual,
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::LessOrEqual,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::GreaterOrEqual,
            _ => return None,
        };
        let (column, literal) = (self.name.clone(), self.literal(value)?);
        let present = Filter::IsNotNull(column.clone());
        let compared = Filter::Compare { column, comparison, literal };
        Some(match comparison {
            // The engine's NotEqual is true for NULL.
            Comparison::NotEqual => Filter::And(vec![present, compared]),
            _ => compared,
        })
    }

    fn value(&self, value: &ScalarValue) -> Option<Value> {
        let kind = self.kind.kind;
        if self.is_bool {
            return None;
        }
        match value {
            ScalarValue::Int64(Some(packed)) if self.kind.has_date() => {
                date_value(kind, *packed, &self.zone)
            }
            ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes))
                if self.is_bytes =>
            {
                Some(Value::Bytes(bytes.as_slice().into()))
            }
            // Texts are compared themselves, not by their keys, if bytes decide.
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text))
                if !self.is_held && self.letters.is_some() =>
            {
                Some(Value::Text(text.as_str().into()))
            }
            ScalarValue::Int64(Some(micros)) if matches!(kind, SqlType::Time(_)) => {
                Some(Value::Time(*micros))
            }
            ScalarValue::Int64(Some(number)) if self.kind.is_integer() && !self.kind.unsigned => {
                Some(Value::Int(*number))
            }
            ScalarValue::UInt64(Some(number)) if self.kind.is_integer() && self.kind.unsigned => {
                Some(Value::Uint(*number))
            }
            ScalarValue::Float64(Some(number)) if kind == SqlType::Double => {
                Some(Value::Float(*number))
            }
            ScalarValue::Decimal128(Some(unscaled), _, scale) => {
                let SqlType::Decimal(_, column_scale) = kind else { return None };
                let scale = u8::try_from(*scale).ok().filter(|scale| *scale <= column_scale)?;
                Some(Value::Decimal(Decimal::from_scaled(*unscaled, scale)))
            }
            _ => None,
        }
    }
}

/// A condition on a column, as far as the engine can tell: of a column that segments do not hold, by its prefixes.
fn told(is_held: bool, condition: Filter) -> Filter {
    if is_held { condition } else { Filter::Prefix(Box::new(condition)) }
}

/// A column whose texts are compared by collation keys.
pub(super) struct Keyed {
    column: String,
    order: u32,
    /// As in [`ComparableColumn`].
    is_held: bool,
}

/// Parses `collation_key(column, number of the collation)`.
fn keyed(table: &EngineTable, call: &ScalarFunction) -> Option<Keyed> {
    let ("collation_key", [of, Expr::Literal(ScalarValue::Int64(Some(number)), _)]) =
        (call.name(), call.args.as_slice())
    else {
        return None;
    };
    let Expr::Column(named) = of else { return None };
    let index = table.schema.index_of(&named.name).ok()?;
    let position = *table.positions.get(index)?;
    let definition = table.table.schema.columns.get(position)?;
    let spec = table.table.columns.get(position)?;
    let is_held = definition.indexed;
    let is_told = is_held || table.table.has_prefixes(position);
    let has_keys = is_told && definition.kind == ColumnType::Text && spec.kind.is_text();
    let order = u32::try_from(*number).ok()?;
    has_keys.then(|| Keyed { column: definition.name.clone(), order, is_held })
}

impl Keyed {
    pub(super) fn compare(self, operator: Operator, value: &ScalarValue) -> Option<Filter> {
        use Bound::{Excluded, Included, Unbounded};
        let ScalarValue::BinaryView(Some(key)) = value else { return None };
        let (column, order, key) = (self.column, self.order, key.clone());
        let (low, high) = match operator {
            Operator::Eq => return Some(Filter::KeyIn(column, order, vec![key])),
            Operator::NotEq => {
                let present = Filter::IsNotNull(column.clone());
                let equal = Filter::KeyIn(column, order, vec![key]);
                return Some(Filter::And(vec![present, Filter::Not(Box::new(equal))]));
            }
            Operator::Lt => (Unbounded, Excluded(key)),
            Operator::LtEq => (Unbounded, Included(key)),
            Operator::Gt => (Excluded(key), Unbounded),
            Operator::GtEq => (Included(key), Unbounded),
            _ => return None,
        };
        Some(Filter::KeyWithin(column, order, low, high))
    }

    fn one_of(self, list: &[Expr]) -> Option<Filter> {
        let constants = list.iter().map(|each| match each {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        });
        self.one_of_values(constants)
    }

    /// A condition that a key is one of these; `None` if one of them is not a constant key.
    pub(super) fn one_of_values<'v>(
        self,
        values: impl Iterator<Item = Option<&'v ScalarValue>>,
    ) -> Option<Filter> {
        let mut keys = Vec::new();
        for value in values {
            match value? {
                ScalarValue::BinaryView(Some(key)) => keys.push(key.clone()),
                // A NULL in the list never makes IN true.
                value if value.is_null() => {}
                _ => return None,
            }
        }
        Some(Filter::KeyIn(self.column, self.order, keys))
    }
}

/// A packed date as a value of a date or time column. It is a local time in `zone`.
fn date_value(kind: SqlType, packed: i64, zone: &TimeZone) -> Option<Value> {
    let moment = Moment::unpack(packed);
    let date = Date { year: moment.year, month: moment.month, day: moment.day };
    match kind {
        SqlType::Date => (moment.micros == 0).then_some(Value::Date(date)),
        SqlType::DateTime(_) => {
            let micros = u64::try_from(moment.micros).ok()?;
            Some(Value::DateTime(DateTime { date, micros }))
        }
        SqlType::Timestamp(_) => only_moment(moment, zone).map(Value::Timestamp),
        _ => None,
    }
}
