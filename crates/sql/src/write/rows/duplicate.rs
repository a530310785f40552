//! ON DUPLICATE KEY UPDATE.
//!
//! Its expressions see the existing row under the table's name, and the new row as `VALUES(column)` or under its alias.
//! Both are one-row temporary tables of the session meanwhile. The most common expressions, a constant or a column of
//! the new row, need no evaluation.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query,
    VisitorMut,
};
use remora_engine::{Row, Value};
use remora_mysql::ErrorCode;

use super::{
    evaluate::{StatementText, TreeQuery},
    found_rows::FoundRows,
    literal::{CellExpr, given},
    selected::{ColumnsBeside, place_of},
    target::{Duplicate, TargetTable, check_found, column_of, counter_value},
    values::{RowMaker, column_name},
};
use crate::{
    Result,
    parse::{
        Source, Tokens, VisitMut, visit_expressions,
        write::{Assigned, column_named, query_from, table_named},
    },
    state::SessionState,
    write::rows::computed::{Computed, NEW_COLUMN},
};

/// The name of the new row if it has no alias.
const NEW_ROW: &str = "#new";

/// `AS new(a, b)`.
pub(super) struct NewRowAlias {
    /// The name of the new row.
    pub name: String,
    /// The names of its columns, if they are renamed.
    pub columns: Vec<String>,
    /// Positions of the columns.
    pub positions: Vec<usize>,
}

/// The assignments.
pub(super) struct OnDuplicate {
    assignments: Vec<Assignment>,
    alias: NewRowAlias,
    /// The columns of the rows' query that the expressions name.
    selected: ColumnsBeside,
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
    /// A column of the rows' query.
    Selected(usize),
    /// An expression.
    Expression(Box<Expr>),
}

impl OnDuplicate {
    /// Reads the assignments, if there are any, to the end of the statement.
    pub(super) fn parse(
        session: &SessionState,
        text: StatementText<'_>,
        tokens: &mut Tokens<'_>,
        target: &TargetTable,
        alias: Option<NewRowAlias>,
    ) -> Result<Option<Self>> {
        if !tokens.accept_all("ON DUPLICATE KEY UPDATE") {
            return Ok(None);
        }
        let nobody =
            || NewRowAlias { name: NEW_ROW.to_owned(), columns: Vec::new(), positions: Vec::new() };
        let mut made = Self {
            assignments: Vec::new(),
            alias: alias.unwrap_or_else(nobody),
            selected: ColumnsBeside::default(),
        };
        for Assigned { path, value, value_at } in text.assignments(tokens)? {
            let column = match path.as_slice() {
                [.., table, _] if *table != target.name.table => {
                    return check_found(None, &path.join("."));
                }
                _ => column_of(&path, target)?,
            };
            let from = match given(&mut tokens.within(value_at), text.parameters, |_| false)? {
                CellExpr::Expression(_) => made.expression(session, target, value),
                given => From::Given(given),
            };
            made.assignments.push(Assignment { column, from });
        }
        Ok(Some(made))
    }

    /// The expressions that are evaluated.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.assignments.iter().filter_map(|assignment| match &assignment.from {
            From::Expression(expr) => Some(&**expr),
            _ => None,
        })
    }

    /// Runs the query of the rows, which selects the columns that the expressions name too, and returns them.
    pub(super) async fn rows(
        &mut self,
        session: &mut SessionState,
        mut query: TreeQuery<'_>,
        target: &TargetTable,
    ) -> Result<FoundRows> {
        let expressions = self.assignments.iter_mut().filter_map(|each| match &mut each.from {
            From::Expression(expr) => Some(&mut **expr),
            _ => None,
        });
        let mut expressions: Vec<&mut Expr> = expressions.collect();
        let found = ColumnsBeside::find(session, &mut query, target, &mut expressions).await?;
        self.selected = found;
        for assignment in &mut self.assignments {
            if let From::Expression(expr) = &assignment.from
                && let Some(place) = place_of(expr)
            {
                assignment.from = From::Selected(place);
            }
        }
        let mut found = query.table(session).await?;
        if self.selected.len() > 0 {
            self.selected.keep_distinct(&found.columns, &mut found.rows)?;
            self.selected.take(session, &found.columns, &mut found.rows);
        }
        Ok(found)
    }

    /// Checks the expressions over an existing and a new row: 1054 for an unknown column.
    pub(super) async fn check(
        self,
        session: &mut SessionState,
        text: StatementText<'_>,
        target: &TargetTable,
    ) -> Result<()> {
        let (database, table) = (target.name.database.as_str(), target.name.table.as_str());
        for assignment in self.assignments {
            let From::Expression(expr) = assignment.from else { continue };
            // Expressions that name the new row by its alias are checked when they run.
            let names_new_row = visit_expressions(expr.as_ref(), |each| match each {
                Expr::CompoundIdentifier(path)
                    if path.last().is_some_and(|name| name.value.starts_with(NEW_COLUMN)) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            });
            if names_new_row.is_break() {
                continue;
            }
            let query = query_from(vec![*expr], vec![table_named(&[database, table], None)]);
            TreeQuery { query, source: text.source() }.check(session).await?;
        }
        Ok(())
    }

    /// An expression with the columns of the new row in the place of what names them. Warns that VALUES() is deprecated in
    /// MySQL.
    fn expression(&self, session: &SessionState, target: &TargetTable, mut value: Expr) -> From {
        if let Some(new) = self.new_column(&value, target) {
            warn_of_values(session, &value);
            return From::New(new);
        }
        let mut replacing = NewColumns { on_duplicate: self, session, target, within: 0 };
        let _ = value.visit(&mut replacing);
        From::Expression(Box::new(value))
    }

    /// The column that `VALUES(column)`, `alias.column` or a column alias is.
    fn new_column(&self, expr: &Expr, target: &TargetTable) -> Option<usize> {
        let renamed = |name: &str| {
            let mut columns = self.alias.columns.iter();
            let place = columns.position(|known| known.eq_ignore_ascii_case(name))?;
            self.alias.positions.get(place).copied()
        };
        match expr {
            Expr::Function(function) if is_values(function) => {
                let FunctionArguments::List(list) = &function.args else { return None };
                let [FunctionArg::Unnamed(FunctionArgExpr::Expr(column))] = list.args.as_slice()
                else {
                    return None;
                };
                match column {
                    Expr::Identifier(name) => target.table.column(&name.value),
                    Expr::CompoundIdentifier(path) => target.table.column(&path.last()?.value),
                    _ => None,
                }
            }
            Expr::CompoundIdentifier(path) => match path.as_slice() {
                [alias, name] if alias.value == self.alias.name => {
                    match self.alias.columns.is_empty() {
                        true => target.table.column(&name.value),
                        false => renamed(&name.value),
                    }
                }
                _ => None,
            },
            Expr::Identifier(name) => renamed(&name.value),
            _ => None,
        }
    }
}

/// Whether this is a call of VALUES.
fn is_values(function: &Function) -> bool {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => {
            name.quote_style.is_none() && name.value.eq_ignore_ascii_case("VALUES")
        }
        _ => false,
    }
}

/// Replaces what names columns of the new row.
struct NewColumns<'n> {
    on_duplicate: &'n OnDuplicate,
    session: &'n SessionState,
    target: &'n TargetTable,
    /// In how many queries within the expression a name stands: there a name alone may belong to another table.
    within: usize,
}

impl VisitorMut for NewColumns<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.within = self.within.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        warn_of_values(self.session, expr);
        if self.within > 0 && matches!(expr, Expr::Identifier(_)) {
            return ControlFlow::Continue(());
        }
        if let Some(new) = self.on_duplicate.new_column(expr, self.target) {
            let name = format!("{NEW_COLUMN}{}", column_name(self.target, new));
            *expr = column_named(&[self.on_duplicate.alias.name.as_str(), name.as_str()]);
        }
        ControlFlow::Continue(())
    }
}

/// Warns if this is a call of VALUES.
fn warn_of_values(session: &SessionState, expr: &Expr) {
    if matches!(expr, Expr::Function(function) if is_values(function)) {
        session.warn(
            ErrorCode::DeprecatedSyntax,
            "'VALUES function' is deprecated and will be removed in a future release. Please \
             use an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in \
             the ON DUPLICATE KEY UPDATE clause with alias.col instead",
        );
    }
}

/// Updates the existing row. `nth` is the new row's number in the statement, from 0. Returns the affected rows as MySQL
/// counts them, 2 if it changed, and its AUTO_INCREMENT value then.
#[expect(clippy::too_many_arguments, reason = "all that a row's insertion knows")]
pub(super) async fn update_duplicate(
    session: &mut SessionState,
    target: &TargetTable,
    maker: &RowMaker,
    computed: &Computed,
    (on_duplicate, source, nth): (&OnDuplicate, &Source, usize),
    duplicate: &Duplicate,
    new: &Row,
    lenient: bool,
) -> Result<(u64, Option<u64>)> {
    let Some(old) = target.row(session, &duplicate.key)? else { return Ok((0, None)) };
    let mut row = Row::clone(&old);
    let selected = &on_duplicate.selected;
    let beside = selected.schema.as_ref().zip(selected.rows.get(nth));
    for assignment in &on_duplicate.assignments {
        let Some(spec) = target.table.columns.get(assignment.column) else { continue };
        let value = match &assignment.from {
            From::Given(CellExpr::Default) => {
                super::values::default_value(session, &maker.converter, spec, "").await?
            }
            From::Given(given) => Some(given.value(&spec.kind)?),
            From::New(column) => new.get(*column).cloned(),
            From::Selected(column) => beside.and_then(|(_, row)| row.get(*column).cloned()),
            From::Expression(expr) => {
                let rows = [(target.name.table.as_str(), &row), (&on_duplicate.alias.name, new)];
                let expression = (expr.as_ref(), source);
                Some(computed.expression(session, target, &rows, beside, expression).await?)
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
        return Ok((u64::from(session.counts_found_rows), None));
    }
    let assigned: Vec<usize> = on_duplicate.assignments.iter().map(|a| a.column).collect();
    computed.touch(target, maker, &assigned, &mut row)?;
    let mut rows = vec![row];
    let kept = computed.complete(session, target, maker, &mut rows).await?;
    let Some(row) = rows.pop().filter(|_| kept == [true]) else { return Ok((0, None)) };
    let counted = target.table.auto_increment().and_then(|column| row.get(column));
    let counted = counted.and_then(counter_value);
    match target.update(session, &old, row)? {
        None => Ok((2, counted)),
        Some(third) if lenient => {
            maker.converter.warn(third.error.code, third.error.message);
            Ok((0, None))
        }
        Some(third) => Err(third.error),
    }
}
