//! The value by which rows are grouped.

use super::{
    ColumnKind, Result,
    names::{Names, Term},
};
use crate::sphinx::Group;

const BY_DAY: u32 = 0;
const BY_WEEK: u32 = 1;
const BY_MONTH: u32 = 2;
const BY_YEAR: u32 = 3;
const BY_VALUE: u32 = 4;
const BY_PAIR: u32 = 5;

/// The value that the rows of a group have in common. If no column is named, it is the same for all rows.
///
/// # Errors
/// A sentence for an unknown column, an unknown function, and what cannot be grouped by.
pub fn common(group: &Group<'_>, names: &Names<'_>) -> Result<Term> {
    if group.column.is_empty() {
        return Ok(Term::computed("1", ColumnKind::Number));
    }
    let refuse = |why: String| names.shape.refuse(why);
    let name = &*group.column;
    let is_special = name.starts_with('@') || name.eq_ignore_ascii_case(&names.shape.key);
    let term = names.find(name).filter(|_| !is_special);
    let term = term.ok_or_else(|| refuse(format!("group-by attribute '{name}' not found")))?;
    if matches!(term.kind, ColumnKind::Float | ColumnKind::Double | ColumnKind::Json) {
        return Err(refuse(format!("groups by '{name}', which has no exact values")));
    }
    if term.kind.is_set() {
        return match group.function {
            BY_VALUE => Ok(each_number(term)),
            _ => Err(refuse(format!("groups by times of the multi-value attribute '{name}'"))),
        };
    }
    let is_number = term.kind != ColumnKind::Text;
    match group.function {
        BY_VALUE => Ok(match term.is_nullable {
            true => Term { is_column: false, ..term }.operand(),
            false => term,
        }),
        BY_DAY..=BY_YEAR if is_number => Ok(of_time(group.function, term)),
        BY_DAY..=BY_YEAR => Err(refuse(format!("groups by the time of the text '{name}'"))),
        BY_PAIR => Err(refuse(
            "SPH_GROUPBY_ATTRPAIR is not supported any more (just group on 'bigint' attribute)"
                .to_owned(),
        )),
        mode => Err(refuse(format!("invalid group-by mode (mode={mode})"))),
    }
}

/// Each number of a set: a row belongs to the groups of all its numbers.
fn each_number(set: Term) -> Term {
    let kind = match set.kind {
        ColumnKind::WideSet => ColumnKind::BigInt,
        _ => ColumnKind::Number,
    };
    Term::made_of(format!("`#each`({})", set.sql), kind, &[set])
}

/// The day, the first day of the week, the month or the year of a time, as one number.
fn of_time(function: u32, seconds: Term) -> Term {
    let moment = format!("FROM_UNIXTIME({})", seconds.clone().operand().sql);
    let sql = match function {
        BY_DAY => {
            format!("(YEAR({moment}) * 10000 + MONTH({moment}) * 100 + DAYOFMONTH({moment}))")
        }
        BY_WEEK => {
            let sunday =
                format!("DATE_SUB(DATE({moment}), INTERVAL (DAYOFWEEK({moment}) - 1) DAY)");
            format!("(YEAR({sunday}) * 1000 + DAYOFYEAR({sunday}))")
        }
        BY_MONTH => format!("(YEAR({moment}) * 100 + MONTH({moment}))"),
        _ => format!("YEAR({moment})"),
    };
    Term::made_of(sql, ColumnKind::Number, &[seconds])
}
