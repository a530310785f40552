//! ON DUPLICATE KEY UPDATE.
//!
//! Its expressions see the existing row under the table's name, and the new row as `VALUES(column)` or under its alias.
//! Both are one-row temporary tables of the session meanwhile. The most common expressions, a constant or a column of
//! the new row, need no evaluation.

use std::ops::Range;

use remora_engine::{Row, Value};
use remora_mysql::ErrorCode;

use super::{
    evaluate::Query,
    insert::{Alias, column},
    literal::{CellExpr, Parameters, given},
    target::{Duplicate, TargetTable},
    values::{RowMaker, column_name},
};
use crate::{
    Result,
    catalog::quoted_name,
    parse::Tokens,
    state::SessionState,
    write::rows::computed::{Computed, NEW_COLUMN},
};

/// The name of the new row if it has no alias.
const NEW_ROW: &str = "#new";

/// The assignments.
pub(super) struct OnDuplicate {
    assignments: Vec<Assignment>,
    alias: Alias,
}

struct Assignment {
    column: usize,
    from: From,
}

enum From {
    /// A literal.
    Given(CellExpr),
    /// A column of the new row.
    New(usize),
    /// An expression.
    Query(String, Vec<Value>),
}

impl OnDuplicate {
    /// Reads the assignments, if there are any.
    pub(super) fn parse(
        session: &SessionState,
        tokens: &mut Tokens<'_>,
        parameters: &Parameters<'_>,
        target: &TargetTable,
        alias: Option<Alias>,
    ) -> Result<Option<Self>> {
        if !tokens.accept_all("ON DUPLICATE KEY UPDATE") {
            return Ok(None);
        }
        let nobody =
            || Alias { name: NEW_ROW.to_owned(), columns: Vec::new(), positions: Vec::new() };
        let mut made = Self { assignments: Vec::new(), alias: alias.unwrap_or_else(nobody) };
        loop {
            let column = column(tokens, target)?;
            tokens.need("=")?;
            let from = match given(tokens, parameters, |_| false)? {
                CellExpr::Expression(range) => {
                    warn_of_values(session, tokens, range.clone());
                    made.expression(tokens, parameters, target, range)
                }
                given => From::Given(given),
            };
            made.assignments.push(Assignment { column, from });
            if !tokens.take(",") {
                return Ok(Some(made));
            }
        }
    }

    /// Checks the expressions over an existing and a new row: 1054 for an unknown column.
    pub(super) async fn check(
        self,
        session: &mut SessionState,
        target: &TargetTable,
    ) -> Result<()> {
        let (database, table) = (quoted_name(&target.name.database), &target.name.table);
        for assignment in self.assignments {
            let From::Query(text, parameters) = assignment.from else { continue };
            // Expressions that name the new row by its alias are checked when they run.
            if text.contains(&quoted_name(&self.alias.name)) {
                continue;
            }
            let mut query =
                Query::new(&format!("SELECT {text} FROM {database}.{}", quoted_name(table)));
            query.bind(&parameters);
            query.check(session).await?;
        }
        Ok(())
    }

    fn expression(
        &self,
        tokens: &Tokens<'_>,
        parameters: &Parameters<'_>,
        target: &TargetTable,
        range: Range<usize>,
    ) -> From {
        let end = range.end;
        let mut ahead = tokens.within(range.clone());
        let mut text = String::new();
        let mut only = None;
        let mut parts = 0;
        while ahead.place() < end {
            let place = ahead.place();
            if place > range.start {
                text.push_str(&tokens.gap_before(place));
            }
            if let Some(new) = self.new_column(&mut ahead, target) {
                let name = format!("{NEW_COLUMN}{}", column_name(target, new));
                text.push_str(&format!("{}.{}", quoted_name(&self.alias.name), quoted_name(&name)));
                only = Some(new);
            } else {
                ahead.next();
                text.push_str(&tokens.shown(place..place + 1));
            }
            parts += 1;
        }
        match only.filter(|_| parts == 1) {
            Some(new) => From::New(new),
            None => From::Query(text, parameters.within(range).to_vec()),
        }
    }

    /// Consumes `VALUES(column)` or `alias.column`, or a column alias.
    fn new_column(&self, tokens: &mut Tokens<'_>, target: &TargetTable) -> Option<usize> {
        let mut ahead = *tokens;
        if ahead.accept("VALUES") && ahead.take("(") {
            let column = column(&mut ahead, target).ok()?;
            ahead.need(")").ok()?;
            *tokens = ahead;
            return Some(column);
        }
        let mut ahead = *tokens;
        let name = ahead.accept_name()?;
        let renamed = |name: &str| {
            let place =
                self.alias.columns.iter().position(|known| known.eq_ignore_ascii_case(name));
            place.and_then(|place| self.alias.positions.get(place)).copied()
        };
        let column = if name == self.alias.name && ahead.take(".") {
            let name = ahead.name().ok()?;
            if self.alias.columns.is_empty() { target.table.column(&name) } else { renamed(&name) }
        } else {
            renamed(&name).filter(|_| !ahead.is("(") && !ahead.is("."))
        };
        let column = column?;
        *tokens = ahead;
        Some(column)
    }
}

/// Warns that VALUES() is deprecated in MySQL.
fn warn_of_values(session: &SessionState, tokens: &Tokens<'_>, range: Range<usize>) {
    let end = range.end;
    let mut ahead = tokens.within(range);
    while ahead.place() < end {
        if ahead.accept("VALUES") && ahead.is("(") {
            session.warn(
                ErrorCode::DeprecatedSyntax,
                "'VALUES function' is deprecated and will be removed in a future release. Please \
                 use an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in \
                 the ON DUPLICATE KEY UPDATE clause with alias.col instead",
            );
        }
        ahead.next();
    }
}

/// Updates the existing row. Returns the affected rows as MySQL counts them: 2 if it changed.
#[expect(clippy::too_many_arguments, reason = "all that a row's insertion knows")]
pub(super) async fn update_duplicate(
    session: &mut SessionState,
    target: &TargetTable,
    maker: &RowMaker,
    computed: &Computed,
    on_duplicate: &OnDuplicate,
    duplicate: &Duplicate,
    new: &Row,
    lenient: bool,
) -> Result<u64> {
    let Some(old) = target.row(session, &duplicate.key)? else { return Ok(0) };
    let mut row = Row::clone(&old);
    for assignment in &on_duplicate.assignments {
        let Some(spec) = target.table.columns.get(assignment.column) else { continue };
        let value = match &assignment.from {
            From::Given(CellExpr::Default) => {
                super::values::default_value(session, &maker.converter, spec, "").await?
            }
            From::Given(given) => Some(given.value(&spec.kind)?),
            From::New(column) => new.get(*column).cloned(),
            From::Query(text, parameters) => {
                let rows = [(target.name.table.as_str(), &row), (&on_duplicate.alias.name, new)];
                Some(computed.expression(session, target, &rows, text, parameters).await?)
            }
        };
        let value = value.unwrap_or(Value::Null);
        let value = maker.fit(target, assignment.column, value, 1)?;
        let value = match value {
            Value::Null if spec.not_null => {
                maker.null_for(target, assignment.column, maker.converter.is_strict())?
            }
            value => value,
        };
        if let Some(slot) = row.get_mut(assignment.column) {
            *slot = value;
        }
    }
    if row == *old {
        return Ok(u64::from(session.counts_found_rows));
    }
    let assigned: Vec<usize> = on_duplicate.assignments.iter().map(|a| a.column).collect();
    computed.touch(target, maker, &assigned, &mut row)?;
    let mut rows = vec![row];
    let kept = computed.complete(session, target, maker, &mut rows).await?;
    let Some(row) = rows.pop().filter(|_| kept == [true]) else { return Ok(0) };
    match target.update(session, &old, row)? {
        None => Ok(2),
        Some(third) if lenient => {
            maker.converter.warn(third.error.code, third.error.message);
            Ok(0)
        }
        Some(third) => Err(third.error),
    }
}
