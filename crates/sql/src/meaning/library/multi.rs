//! Sets of integers: comparisons of their numbers (any, none or all) with others, and unnesting
//! into one row for each number.

use std::ops::Range;

use datafusion::logical_expr::{Expr, Operator, lit};
use remora_mysql::ErrorCode;

use super::{
    super::{
        call::{Call, TypeContext},
        function::{Definition, Dialect, MANY},
        types::ExprType,
        value::SqlValue,
    },
    calls::called,
    literals::number_of_digits,
};
use crate::{
    Error, Result, SqlType,
    multi::{Multi, NumbersOfSet, count, numbers},
};

/// Compares a set with numbers. Arguments: the set, the comparison, and the numbers.
pub(crate) const NUMBERS_OF: &str = "numbers of";

/// The number of an unnested set, in rows made by [`UNFOLD`].
pub(crate) const EACH: &str = "#each";
/// A placeholder condition that unnests the set of its argument [`EACH`].
pub(crate) const UNFOLD: &str = "#unfold";

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("any", 1, 1, |typing| quantified(typing, NumbersOfSet::Any), same),
    Definition::new(EACH, 1, 1, each_type, each),
    Definition::truth(UNFOLD, 1, 1, has_numbers),
    Definition::new("all", 1, 1, |typing| quantified(typing, NumbersOfSet::All), same),
    Definition::truth(NUMBERS_OF, 3, MANY, numbers_of),
];

fn quantified(typing: &TypeContext<'_>, of: NumbersOfSet) -> Result<ExprType> {
    let kind = typing.get(0);
    match kind.multi {
        Some(multi) => Ok(ExprType { multi: Some(Multi { of, ..multi }), ..kind }),
        None => Err(Error::unsupported("ANY() and ALL() of anything but a multi-value attribute")),
    }
}

fn same<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(args.first().cloned().unwrap_or(SqlValue::Null))
}

fn each_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let multi = typing.get(0).multi.ok_or_else(not_taken_apart)?;
    Ok(if multi.is_wide { ExprType::int(20) } else { ExprType::uint(10) }.not_null())
}

/// Planning replaces it by a column.
fn each<'a>(_call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Err(not_taken_apart())
}

fn not_taken_apart() -> Error {
    Error::unsupported("the numbers of a multi-value attribute here")
}

fn has_numbers<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    match args {
        [SqlValue::Json(set)] => Ok(SqlValue::truth(count(set) > 0)),
        // A row of NULLs from an outer join has no numbers.
        [SqlValue::Null] => Ok(SqlValue::truth(false)),
        _ => Err(not_taken_apart()),
    }
}

/// A comparison of a set with a number; `None` for other operands.
pub(super) fn compared(
    (a, a_type): (&Expr, &ExprType),
    op: Operator,
    (b, b_type): (&Expr, &ExprType),
    dialect: Dialect,
) -> Option<Expr> {
    let is_number = |kind: &ExprType| kind.multi.is_none() && kind.kind != SqlType::Json;
    let (set, op, number) = match (a_type.multi, b_type.multi) {
        (Some(_), _) if is_number(b_type) => (a, op, b),
        (_, Some(_)) if is_number(a_type) => (b, op.swap()?, a),
        _ => return None,
    };
    let name = match op {
        Operator::Eq => "in",
        Operator::NotEq => "not in",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        _ => return None,
    };
    Some(called(NUMBERS_OF, vec![set.clone(), lit(name), number_beside(number)], dialect))
}

/// The number that a set is compared with. A literal such as `0x05` is one.
fn number_beside(expr: &Expr) -> Expr {
    number_of_digits(expr).map_or_else(|| expr.clone(), |(number, _)| number)
}

/// Refuses to compare a set by keys with other values, in joins and subqueries.
pub(crate) fn check_sought(a: &ExprType, b: &ExprType) -> Result<()> {
    match a.multi.is_some() == b.multi.is_some() {
        true => Ok(()),
        false => Err(Error::unsupported(
            "a multi-value attribute that is sought in what a query gives or joined by USING: use MEMBER OF",
        )),
    }
}

/// BETWEEN or IN with a set and numbers; `None` for other operands.
pub(super) fn listed(
    name: &str,
    (set, kind): (&Expr, &ExprType),
    (list, types): (&[Expr], &[ExprType]),
    dialect: Dialect,
) -> Option<Expr> {
    let is_number = |kind: &ExprType| kind.multi.is_none() && kind.kind != SqlType::Json;
    if kind.multi.is_none() || !types.iter().all(is_number) {
        return None;
    }
    let args = [set.clone(), lit(name)].into_iter().chain(list.iter().map(number_beside));
    Some(called(NUMBERS_OF, args.collect(), dialect))
}

/// The nearest integers below and above a number. They are equal if it is an integer.
#[derive(Clone, Copy)]
struct Around {
    below: i128,
    above: i128,
}

impl Around {
    fn of(value: &SqlValue<'_>, call: &Call<'_>) -> Self {
        let whole = match value {
            SqlValue::Int(number) => Some(i128::from(*number)),
            SqlValue::Uint(number) => Some(i128::from(*number)),
            // Parsed as an integer, since doubles cannot represent all 64-bit integers.
            SqlValue::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let SqlValue::Dec(number) = value
            && let Some(units) = number.units.to_i128()
            && let Some(one) = 10_i128.checked_pow(number.scale.into())
        {
            let below = units.div_euclid(one);
            return Self { below, above: below + i128::from(units.rem_euclid(one) != 0) };
        }
        let number = match whole {
            Some(number) => return Self { below: number, above: number },
            None => value.double(call),
        };
        // The cast saturates numbers out of range.
        Self { below: number.floor() as i128, above: number.ceil() as i128 }
    }

    fn whole(self) -> Option<i128> {
        (self.below == self.above).then_some(self.below)
    }
}

fn numbers_of<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [SqlValue::Json(set), name, values @ ..] = args else { return Ok(SqlValue::Null) };
    let name = name.string().unwrap_or_default();
    let (is_not, name) = match name.strip_prefix("not ") {
        Some(name) => (true, name),
        None => (false, &*name),
    };
    let set: Vec<i128> = numbers(set).map(i128::from).collect();
    let present: Vec<Around> =
        values.iter().filter(|it| !it.is_null()).map(|it| Around::of(it, call)).collect();
    let is_known = present.len() == values.len();
    if !is_known && name != "in" {
        return Ok(SqlValue::Null);
    }
    let held = match (name, present.as_slice()) {
        ("in", list) => among(&set, list),
        (_, [one]) => within(&set, name, *one).len(),
        ("between", [low, high]) => {
            let (from, to) = (within(&set, ">=", *low), within(&set, "<=", *high));
            to.end.saturating_sub(from.start)
        }
        _ => return Err(Error::new(ErrorCode::Unknown, "a comparison of a set was not planned")),
    };
    let of =
        call.type_of(0).and_then(|kind| kind.multi).map_or(NumbersOfSet::Some, |multi| multi.of);
    let holds = holds(of, is_not, held, set.len());
    // A comparison with NULL might be true, so the result is unknown.
    Ok(match is_known || holds && !is_not {
        true => SqlValue::truth(holds),
        false => SqlValue::Null,
    })
}

/// The result of a comparison for a set of `count` numbers, `held` of which satisfy it before
/// negation.
fn holds(of: NumbersOfSet, is_not: bool, held: usize, count: usize) -> bool {
    match (of, is_not) {
        (NumbersOfSet::Some | NumbersOfSet::Any, false) => held > 0,
        (NumbersOfSet::Some, true) => held == 0,
        (NumbersOfSet::Any, true) => held < count,
        (NumbersOfSet::All, false) => count > 0 && held == count,
        (NumbersOfSet::All, true) => count > 0 && held == 0,
    }
}

/// How many numbers of a set are in a list.
fn among(set: &[i128], list: &[Around]) -> usize {
    let mut found = vec![false; set.len()];
    for number in list.iter().filter_map(|each| each.whole()) {
        if let Ok(place) = set.binary_search(&number)
            && let Some(slot) = found.get_mut(place)
        {
            *slot = true;
        }
    }
    found.into_iter().filter(|found| *found).count()
}

/// The index range of a set's sorted numbers that compare so with a number.
fn within(set: &[i128], name: &str, one: Around) -> Range<usize> {
    let before = |limit: i128| set.partition_point(|number| *number < limit);
    let up_to = |limit: i128| set.partition_point(|number| *number <= limit);
    match name {
        "<" => 0..before(one.above),
        "<=" => 0..up_to(one.below),
        ">" => up_to(one.below)..set.len(),
        _ => before(one.above)..set.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares all small sets with a naive check of each number.
    #[test]
    fn sets_are_compared_as_their_numbers_are_one_by_one() {
        let whole = |number: i128| Around { below: number, above: number };
        let half = |number: i128| Around { below: number, above: number + 1 };
        for bits in 0..1_u32 << 5 {
            let set: Vec<i128> =
                (0..5).filter(|bit| bits >> bit & 1 == 1).map(|bit| 2 * bit).collect();
            for limit in -1..10_i128 {
                for (one, doubled) in [(whole(limit), 2 * limit), (half(limit), 2 * limit + 1)] {
                    let count = |test: &dyn Fn(i128) -> bool| {
                        set.iter().filter(|number| test(**number * 2)).count()
                    };
                    assert_eq!(within(&set, "<", one).len(), count(&|it| it < doubled));
                    assert_eq!(within(&set, "<=", one).len(), count(&|it| it <= doubled));
                    assert_eq!(within(&set, ">", one).len(), count(&|it| it > doubled));
                    assert_eq!(within(&set, ">=", one).len(), count(&|it| it >= doubled));
                    let list = [one, whole(4), whole(4)];
                    let expected = count(&|it| it == doubled || it == 8);
                    assert_eq!(among(&set, &list), expected, "{set:?} {doubled}");
                }
            }
        }
    }

    #[test]
    fn an_empty_set_has_no_number_of_which_all_holds() {
        for is_not in [false, true] {
            assert!(!holds(NumbersOfSet::All, is_not, 0, 0));
            assert!(!holds(NumbersOfSet::Any, is_not, 0, 0));
            assert_eq!(holds(NumbersOfSet::Some, is_not, 0, 0), is_not);
        }
    }
}
