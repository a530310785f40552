//! Assigns the fields of LOAD DATA's lines to columns and user variables, and evaluates its SET clause. The lines of a
//! batch become rows of a temporary table with the user variables as additional columns, so that one SELECT evaluates
//! an expression for all of them.

use std::{cmp::Ordering, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{Expr, VisitorMut};
use remora_engine::Value;
use remora_mysql::{ErrorCode, TokenKind};

use super::{
    evaluate::StatementText,
    insert::column,
    literal::{CellExpr, given},
    over_rows::{RowExpression, VariableColumn, values_over},
    target::{TargetTable, column_of},
    values::{InsertedRows, RowMaker},
};
use crate::{
    Error, Result,
    parse::{
        Source, Tokens, VisitMut,
        write::{Assigned, column_named},
    },
    resolve::plain_name,
    state::SessionState,
};

/// The fields of a line, and one more if there are more than are used. Each may be NULL.
pub(super) type FileLine = Vec<Option<Vec<u8>>>;

/// The targets of a line's fields, and the SET clause.
pub(super) struct Fields {
    fields: Vec<Field>,
    assignments: Vec<Assignment>,
}

/// A column, the value that SET gives it, and the syntax tree of that.
struct Assignment {
    column: usize,
    given: CellExpr,
    value: Expr,
}

enum Field {
    Column(usize),
    Variable(String),
}

impl Fields {
    /// `["(" (column | @variable),* ")"] ["SET" (column "=" expression),*]`
    pub(super) fn parse(
        text: StatementText<'_>,
        tokens: &mut Tokens<'_>,
        target: &TargetTable,
    ) -> Result<Self> {
        let mut fields = Vec::new();
        if tokens.take("(") {
            loop {
                fields.push(match variable(tokens) {
                    Some(name) => Field::Variable(name),
                    None => Field::Column(column(tokens, target)?),
                });
                if !tokens.take(",") {
                    break;
                }
            }
            tokens.need(")")?;
        } else {
            fields = target.table.visible().map(|(place, ..)| Field::Column(place)).collect();
        }
        let mut assignments = Vec::new();
        if tokens.accept("SET") {
            for Assigned { path, value, value_at } in text.assignments(tokens)? {
                let column = column_of(&path, target)?;
                let given = given(&mut tokens.within(value_at), text.parameters, |_| false)?;
                assignments.push(Assignment { column, given, value });
            }
        }
        Ok(Self { fields, assignments })
    }

    /// The number of fields of a line that are used.
    pub(super) fn count(&self) -> usize {
        self.fields.len()
    }

    /// The rows of some lines. `before` is the number of earlier lines.
    pub(super) async fn rows(
        &self,
        session: &mut SessionState,
        source: &Source,
        target: &TargetTable,
        maker: &RowMaker,
        lines: Vec<FileLine>,
        before: u64,
    ) -> Result<InsertedRows> {
        let columns = self.columns();
        for (number, line) in (before + 1..).zip(&lines) {
            self.check_count(session, line.len(), number)?;
        }
        let given_columns = lines.into_iter().map(|line| given_fields(line, self.fields.len()));
        let lines: Vec<Vec<CellExpr>> = given_columns.collect();
        if self.assignments.is_empty() && columns.len() == self.fields.len() {
            return Ok(InsertedRows { columns, rows: lines });
        }
        let mut loading = Loading::new(self, target, &columns, lines.len());
        for (number, line) in (before + 1..).zip(lines) {
            loading.line(self, maker, line, number)?;
        }
        for assignment in &self.assignments {
            loading.set(session, source, maker, assignment, before).await?;
        }
        for VariableColumn { name, values } in &loading.variables {
            if let Some(last) = values.last() {
                session.user_variables.set(name, last.clone())?;
            }
        }
        let rows = loading.given;
        Ok(InsertedRows { columns, rows })
    }

    /// Warns of a line with too few or too many fields; in strict mode without IGNORE it is an error.
    fn check_count(&self, session: &SessionState, found: usize, number: u64) -> Result<()> {
        let missing = self.fields.get(found..).unwrap_or_default();
        // Variables are NULL then, without a warning.
        let missing = missing.iter().filter(|field| matches!(field, Field::Column(_))).count();
        let warning = match found.cmp(&self.fields.len()) {
            Ordering::Equal => return Ok(()),
            Ordering::Less if missing == 0 => return Ok(()),
            Ordering::Less => {
                let message = format!("Row {number} doesn't contain data for all columns");
                Error::new(ErrorCode::TooFewFields, message)
            }
            Ordering::Greater => Error::new(
                ErrorCode::TooManyFields,
                format!(
                    "Row {number} was truncated; it contained more data than there were input columns"
                ),
            ),
        };
        if session.refuses_warnings {
            return Err(warning);
        }
        // One for each missing field.
        for _ in 0..missing.max(1) {
            session.warn(warning.code, warning.message.clone());
        }
        Ok(())
    }

    /// The columns that get values, without duplicates.
    fn columns(&self) -> Vec<usize> {
        let of_field = |field: &Field| match field {
            Field::Column(place) => Some(*place),
            Field::Variable(_) => None,
        };
        let fields = self.fields.iter().filter_map(of_field);
        let mut columns: Vec<usize> = Vec::new();
        for place in fields.chain(self.assignments.iter().map(|each| each.column)) {
            if !columns.contains(&place) || self.assignments.is_empty() {
                columns.push(place);
            }
        }
        columns
    }

    /// The names of the variables, without duplicates.
    fn variables(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for field in &self.fields {
            if let Field::Variable(name) = field
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }
}

/// Consumes a user variable and returns its name in lower case.
fn variable(tokens: &mut Tokens<'_>) -> Option<String> {
    let token = tokens.peek().filter(|token| token.kind == TokenKind::UserVariable)?;
    tokens.next();
    Some(plain_name(&String::from_utf8_lossy(tokens.bytes(token))))
}

/// The values of a line. Missing fields become defaults; surplus fields are dropped.
fn given_fields(line: FileLine, fields: usize) -> Vec<CellExpr> {
    let given = |field: Option<Vec<u8>>| match field.map(String::from_utf8) {
        None => CellExpr::Value(Value::Null),
        Some(Ok(text)) => CellExpr::Value(Value::Text(text.into())),
        Some(Err(error)) => CellExpr::Value(Value::Bytes(error.into_bytes().into())),
    };
    let mut row: Vec<CellExpr> = line.into_iter().take(fields).map(given).collect();
    row.resize(fields, CellExpr::Default);
    row
}

/// The rows of a batch while their columns are set one after the other.
struct Loading<'l> {
    target: &'l TargetTable,
    columns: &'l [usize],
    /// The values for the columns, row by row.
    given: Vec<Vec<CellExpr>>,
    /// The whole rows, as expressions see them.
    rows: Vec<Vec<Value>>,
    variables: Vec<VariableColumn>,
}

impl<'l> Loading<'l> {
    fn new(fields: &Fields, target: &'l TargetTable, columns: &'l [usize], count: usize) -> Self {
        let beside = |name| VariableColumn { name, values: Vec::with_capacity(count) };
        let variables = fields.variables().into_iter().map(beside).collect();
        let (given, rows) = (Vec::with_capacity(count), Vec::with_capacity(count));
        Self { target, columns, given, rows, variables }
    }

    fn line(
        &mut self,
        fields: &Fields,
        maker: &RowMaker,
        line: Vec<CellExpr>,
        number: u64,
    ) -> Result<()> {
        self.given.push(vec![CellExpr::Default; self.columns.len()]);
        self.rows.push(vec![Value::Null; self.target.table.columns.len()]);
        self.variables.iter_mut().for_each(|variable| variable.values.push(Value::Null));
        let row = self.rows.len() - 1;
        for (field, given) in fields.fields.iter().zip(line) {
            match field {
                Field::Column(place) => self.put(maker, row, *place, given, number)?,
                Field::Variable(name) => {
                    let mut known = self.variables.iter_mut();
                    let slot = known.find(|variable| variable.name == *name);
                    let slot = slot.and_then(|variable| variable.values.last_mut());
                    if let (Some(slot), CellExpr::Value(value)) = (slot, given) {
                        *slot = value;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sets a column of a row, converted to its type.
    fn put(
        &mut self,
        maker: &RowMaker,
        row: usize,
        place: usize,
        given: CellExpr,
        number: u64,
    ) -> Result<()> {
        let Some(spec) = self.target.table.columns.get(place) else { return Ok(()) };
        let given = match given {
            CellExpr::Default => CellExpr::Default,
            given if spec.generated.is_some() => given,
            given => {
                let value = given.value(&spec.kind)?;
                let value = maker.fit(self.target, place, value, number)?;
                if let Some(slot) = self.rows.get_mut(row).and_then(|row| row.get_mut(place)) {
                    *slot = value.clone();
                }
                CellExpr::Value(value)
            }
        };
        let at = self.columns.iter().position(|column| *column == place);
        let slot = self.given.get_mut(row).zip(at).and_then(|(row, at)| row.get_mut(at));
        if let Some(slot) = slot {
            *slot = given;
        }
        Ok(())
    }

    /// Sets a column of all rows.
    async fn set(
        &mut self,
        session: &mut SessionState,
        source: &Source,
        maker: &RowMaker,
        Assignment { column, given, value }: &Assignment,
        before: u64,
    ) -> Result<()> {
        let values: Vec<CellExpr> = match given {
            CellExpr::Expression(_) => {
                let mut value = value.clone();
                let _ = value.visit(&mut VariablesOfLines { known: &self.variables });
                let (target, alias) = (self.target, &self.target.name.table);
                let (beside, value) = (&self.variables, RowExpression::of(&value, source));
                let values = values_over(session, target, alias, &self.rows, beside, value).await?;
                values.into_iter().map(CellExpr::Value).collect()
            }
            given => vec![given.clone(); self.rows.len()],
        };
        for ((row, given), number) in values.into_iter().enumerate().zip(before + 1..) {
            self.put(maker, row, *column, given, number)?;
        }
        Ok(())
    }
}

/// Replaces the variables of lines by their columns.
struct VariablesOfLines<'v> {
    known: &'v [VariableColumn],
}

impl VisitorMut for VariablesOfLines<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && name.quote_style.is_none()
            && name.value.starts_with('@')
        {
            let name = plain_name(&name.value);
            if let Some(known) = self.known.iter().find(|variable| variable.name == name) {
                *expr = column_named(&[known.column()]);
            }
        }
        ControlFlow::Continue(())
    }
}
