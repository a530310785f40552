//! Ranges that conditions on parts of a date require: `DATE(at) = '2023-08-12'`, `YEAR(at) = 2023` and
//! `at LIKE '2023-08%'` are true for rows of one stretch of time only. The engine reads those rows, by an index if there
//! is one, and the condition is tested again. A stretch may be too long, never too short.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Between, BinaryExpr, Expr, Operator, expr::InList},
};
use jiff::tz::TimeZone;
use remora_engine::{Comparison, Date, DateTime, Filter, Literal, Value};

use super::EngineTable;
use crate::{
    SqlType,
    meaning::{
        temporal::{DAY, Moment, utc_of_local},
        types::ExprType,
    },
    search,
};

/// A column with dates.
struct Dates {
    name: String,
    kind: SqlType,
}

/// The first and the last moment that rows may have; `None` where there is no bound.
struct Stretch {
    from: Option<Moment>,
    to: Option<Moment>,
}

/// A condition that every row satisfies which satisfies this one. `other` translates conditions of other kinds.
pub(super) fn required(
    table: &EngineTable,
    filter: &Expr,
    other: &dyn Fn(&Expr) -> Option<Filter>,
) -> Option<Filter> {
    let part = |part: &Expr| required(table, part, other).or_else(|| other(part));
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            all(vec![part(left), part(right)])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(Filter::Or(vec![part(left)?, part(right)?]))
        }
        Expr::BinaryExpr(binary) => compared(table, binary),
        Expr::Between(between) if !between.negated => within(table, between),
        Expr::InList(list) if !list.negated => one_of(table, list),
        Expr::ScalarFunction(call) => match (call.name(), call.args.as_slice()) {
            ("truth", [inner]) => part(inner),
            ("like", [of, pattern, ..]) => beginning(table, of, pattern, call.args.get(2)),
            _ => None,
        },
        _ => None,
    }
}

/// The known ones of these conditions together.
fn all(parts: Vec<Option<Filter>>) -> Option<Filter> {
    let mut known: Vec<Filter> = parts.into_iter().flatten().collect();
    if known.len() > 1 { Some(Filter::And(known)) } else { known.pop() }
}

fn compared(table: &EngineTable, binary: &BinaryExpr) -> Option<Filter> {
    let BinaryExpr { left, op, right } = binary;
    let (of, op, value) = match (left.as_ref(), right.as_ref()) {
        (of, Expr::Literal(value, _)) => (of, *op, value),
        (Expr::Literal(value, _), of) => (of, op.swap()?, value),
        _ => return None,
    };
    let (dates, Stretch { from, to }) = part_of(table, of, value)?;
    let stretch = match op {
        Operator::Eq => Stretch { from, to },
        Operator::Lt | Operator::LtEq => Stretch { from: None, to },
        Operator::Gt | Operator::GtEq => Stretch { from, to: None },
        _ => return None,
    };
    dates.within(&stretch)
}

fn within(table: &EngineTable, between: &Between) -> Option<Filter> {
    let (Expr::Literal(low, _), Expr::Literal(high, _)) =
        (between.low.as_ref(), between.high.as_ref())
    else {
        return None;
    };
    let (dates, low) = part_of(table, &between.expr, low)?;
    let (_, high) = part_of(table, &between.expr, high)?;
    dates.within(&Stretch { from: low.from, to: high.to })
}

fn one_of(table: &EngineTable, list: &InList) -> Option<Filter> {
    let one = |value: &Expr| {
        let Expr::Literal(value, _) = value else { return None };
        let (dates, stretch) = part_of(table, &list.expr, value)?;
        dates.within(&stretch)
    };
    Some(Filter::Or(list.list.iter().map(one).collect::<Option<_>>()?))
}

/// The column of `DATE(column)` or `YEAR(column)`, and when the part has this value.
fn part_of(table: &EngineTable, of: &Expr, value: &ScalarValue) -> Option<(Dates, Stretch)> {
    let Expr::ScalarFunction(call) = of else { return None };
    let (name, [of]) = (call.name(), call.args.as_slice()) else { return None };
    let stretch = match (name, value) {
        ("date", ScalarValue::Int64(Some(packed))) => {
            let Moment { year, month, day, .. } = Moment::unpack(*packed);
            of_day(year, month, day)
        }
        ("year", ScalarValue::Int64(Some(year))) => of_year(u16::try_from(*year).ok()?)?,
        ("year", ScalarValue::UInt64(Some(year))) => of_year(u16::try_from(*year).ok()?)?,
        _ => return None,
    };
    Some((Dates::of(table, of)?, stretch))
}

/// The stretch that a pattern's beginning names: of its year, month or day.
fn beginning(
    table: &EngineTable,
    of: &Expr,
    pattern: &Expr,
    escape: Option<&Expr>,
) -> Option<Filter> {
    let dates = Dates::of(table, of)?;
    let escape = match escape {
        Some(escape) => search::text(escape)?.chars().next(),
        None => Some('\\'),
    };
    if escape.is_some_and(|escape| escape.is_ascii_digit() || escape == '-') {
        return None;
    }
    let pattern = search::text(pattern)?;
    let fixed: &str = pattern.split(|c: char| !c.is_ascii_digit() && c != '-').next()?;
    let mut parts = fixed.split('-');
    let number = |part: Option<&str>, digits: usize| {
        part.filter(|part| part.len() == digits).and_then(|part| part.parse::<u16>().ok())
    };
    let year = number(parts.next(), 4)?;
    let up_to = |most: u8, part| {
        number(part, 2).and_then(|part| u8::try_from(part).ok()).filter(|part| *part <= most)
    };
    let stretch = match (up_to(12, parts.next()), up_to(31, parts.next())) {
        (Some(month), Some(day)) => of_day(year, month, day),
        (Some(month), None) => {
            Stretch { from: Some(Moment::date(year, month, 0)), to: of_day(year, month, 31).to }
        }
        _ => of_year(year)?,
    };
    dates.within(&stretch)
}

fn of_year(year: u16) -> Option<Stretch> {
    let stretch = Stretch { from: Some(Moment::date(year, 0, 0)), to: of_day(year, 12, 31).to };
    (year <= 9_999).then_some(stretch)
}

fn of_day(year: u16, month: u8, day: u8) -> Stretch {
    let from = Moment::date(year, month, day);
    Stretch { from: Some(from), to: Some(Moment { micros: DAY - 1, ..from }) }
}

impl Dates {
    fn of(table: &EngineTable, expr: &Expr) -> Option<Self> {
        let Expr::Column(column) = expr else { return None };
        let index = table.schema.index_of(&column.name).ok()?;
        let definition = table.table.schema.columns.get(*table.positions.get(index)?)?;
        let kind = ExprType::of_field(table.schema.field(index)).kind;
        let has_dates =
            matches!(kind, SqlType::Date | SqlType::DateTime(_) | SqlType::Timestamp(_));
        (has_dates && definition.indexed).then(|| Self { name: definition.name.clone(), kind })
    }

    fn within(&self, stretch: &Stretch) -> Option<Filter> {
        let bound = |moment: Option<Moment>, comparison, end| {
            let value = self.value(moment?, end)?;
            let literal = Literal::Value(value);
            Some(Filter::Compare { column: self.name.clone(), comparison, literal })
        };
        all(vec![
            bound(stretch.from, Comparison::GreaterOrEqual, -1),
            bound(stretch.to, Comparison::LessOrEqual, 1),
        ])
    }

    /// The moment as a value of the column. A TIMESTAMP is shown in the session's time zone, which is less than a day
    /// from UTC: its bound is moved by a day in the direction of `end`. No bound before 1971 is told, because the zero
    /// date has no moment.
    fn value(&self, moment: Moment, end: i64) -> Option<Value> {
        let date = Date { year: moment.year, month: moment.month, day: moment.day };
        match self.kind {
            SqlType::Date => Some(Value::Date(date)),
            SqlType::DateTime(_) => {
                let micros = u64::try_from(moment.micros).ok()?;
                Some(Value::DateTime(DateTime { date, micros }))
            }
            SqlType::Timestamp(_) if moment.year > 1_970 => {
                let (month, day) = (moment.month.max(1), moment.day.clamp(1, 28));
                // Not every month has the days behind the 28th.
                let days = if end > 0 { i64::from(moment.day.max(1) - day) } else { 0 };
                let shown = Moment { month, day, ..moment };
                let utc = utc_of_local(shown, &TimeZone::UTC)?;
                Some(Value::Timestamp(utc.checked_add((days + end) * DAY)?))
            }
            _ => None,
        }
    }
}
