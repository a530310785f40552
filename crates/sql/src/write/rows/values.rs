//! Makes whole rows of the values that a statement gives.

use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::Expr;
use remora_engine::{Row, Value};
use remora_mysql::{ErrorCode, SqlMode, messages};
use rustc_hash::FxHashMap;

use super::{
    evaluate::{StatementText, TreeQuery},
    literal::CellExpr,
    over_rows::{RowExpression, values_over},
    target::{TargetTable, counter_value},
};
use crate::{
    Error, Result, SqlType,
    catalog::{ColumnSpec, DefaultSpec},
    parse::{Tokens, define::parsed_expression, visit_expressions, write::query_from},
    state::SessionState,
    write::convert::{Converter, TargetColumn},
};

/// Expressions evaluated by one SELECT.
const EXPRESSIONS_AT_ONCE: usize = 500;

/// The given rows: columns and their values, row by row.
pub(crate) struct InsertedRows {
    /// Positions of the columns.
    pub columns: Vec<usize>,
    /// Each has as many values as there are columns.
    pub rows: Vec<Vec<CellExpr>>,
}

impl InsertedRows {
    /// The columns that have a value in every row.
    pub(super) fn valued(&self) -> Vec<usize> {
        let has_default =
            |at: usize| self.rows.iter().any(|row| matches!(row.get(at), Some(CellExpr::Default)));
        let columns = self.columns.iter().enumerate();
        columns.filter(|(at, _)| !has_default(*at)).map(|(_, column)| *column).collect()
    }

    /// Replaces expressions by their values.
    pub(super) async fn evaluate(
        &mut self,
        session: &mut SessionState,
        text: StatementText<'_>,
        (target, maker): (&TargetTable, &RowMaker),
    ) -> Result<()> {
        let tokens = text.tokens();
        if self.assigns_beside_columns(&tokens, target) {
            return self.evaluate_rows(session, text, (target, maker)).await;
        }
        let is_open = |given: &&mut CellExpr| matches!(given, CellExpr::Expression(_));
        let mut open: Vec<&mut CellExpr> = self.rows.iter_mut().flatten().filter(is_open).collect();
        for chunk in open.chunks_mut(EXPRESSIONS_AT_ONCE) {
            let may_name = |given: &CellExpr| match given {
                CellExpr::Expression(range) => names_columns(&tokens, range, target),
                _ => false,
            };
            if !chunk.iter().any(|given| may_name(given)) {
                evaluate_at_once(session, text, chunk.iter_mut()).await?;
                continue;
            }
            // A name may be a unit or a type instead of a column. It is a column if it is unknown
            // without the row.
            let evaluated = evaluate_at_once(session, text, chunk.iter_mut()).await;
            match evaluated {
                Err(error) if error.code == ErrorCode::UnknownColumn => {
                    let alone = chunk.iter_mut().filter(|given| !may_name(given));
                    evaluate_at_once(session, text, alone).await?;
                }
                evaluated => evaluated?,
            }
        }
        self.evaluate_rows(session, text, (target, maker)).await
    }

    /// Whether expressions assign variables while some may name columns. They must then be
    /// evaluated one by one.
    fn assigns_beside_columns(&self, tokens: &Tokens<'_>, target: &TargetTable) -> bool {
        let ranges = || {
            self.rows.iter().flatten().filter_map(|given| match given {
                CellExpr::Expression(range) => Some(range),
                _ => None,
            })
        };
        ranges().any(|range| assigns(tokens, range))
            && ranges().any(|range| names_columns(tokens, range, target))
    }

    /// Evaluates expressions that name columns of the table. A column has the value given earlier
    /// in its row, or else its default.
    async fn evaluate_rows(
        &mut self,
        session: &mut SessionState,
        text: StatementText<'_>,
        (target, maker): (&TargetTable, &RowMaker),
    ) -> Result<()> {
        let is_open = |given: &CellExpr| matches!(given, CellExpr::Expression(_));
        for (number, row) in (1..).zip(&mut self.rows) {
            if !row.iter().any(is_open) {
                continue;
            }
            session.check_interrupted()?;
            let mut known = maker.before_values(session, target);
            for (&position, given) in self.columns.iter().zip(row) {
                if let CellExpr::Expression(range) = given {
                    let value = value_over(session, text, range.clone(), target, &known).await?;
                    *given = CellExpr::Value(value);
                }
                let Some(spec) = target.table.columns.get(position) else { continue };
                let (Some(slot), false) = (known.get_mut(position), *given == CellExpr::Default)
                else {
                    continue;
                };
                let named = TargetColumn {
                    name: column_name(target, position),
                    kind: &spec.kind,
                    row: number,
                };
                // A value that does not fit is reported when the row is made.
                let silent = Converter::silent(session);
                let value = match given.value(&spec.kind)? {
                    // The AUTO_INCREMENT value is generated later.
                    Value::Null if spec.auto_increment => Value::Int(0),
                    value => value,
                };
                *slot = silent.fit(named, value).unwrap_or(Value::Null);
            }
        }
        Ok(())
    }
}

/// The value of an expression that may name columns of a row.
async fn value_over(
    session: &mut SessionState,
    text: StatementText<'_>,
    range: Range<usize>,
    target: &TargetTable,
    row: &Row,
) -> Result<Value> {
    let (alias, rows) = (&target.name.table, std::slice::from_ref(row));
    let Some(expr) = text.expressions(&[range])?.pop() else { return Ok(Value::Null) };
    let expr = RowExpression::of(&expr, text.source());
    let found = values_over(session, target, alias, rows, &[], expr).await?;
    Ok(found.into_iter().next().unwrap_or(Value::Null))
}

/// Evaluates expressions with one SELECT and stores their values.
async fn evaluate_at_once<'c, 'g: 'c>(
    session: &mut SessionState,
    text: StatementText<'_>,
    given: impl Iterator<Item = &'c mut &'g mut CellExpr>,
) -> Result<()> {
    let mut given: Vec<&mut &mut CellExpr> = given.collect();
    let range = |given: &&mut &mut CellExpr| match &***given {
        CellExpr::Expression(range) => Some(range.clone()),
        _ => None,
    };
    let ranges: Vec<Range<usize>> = given.iter().filter_map(range).collect();
    if ranges.is_empty() {
        return Ok(());
    }
    let query = query_from(text.expressions(&ranges)?, Vec::new());
    let rows = TreeQuery { query, source: text.source() }.rows(session).await?;
    let values = rows.into_iter().next().unwrap_or_default();
    for (given, value) in given.iter_mut().zip(values) {
        ***given = CellExpr::Value(value);
    }
    Ok(())
}

/// Whether an expression assigns a variable.
fn assigns(tokens: &Tokens<'_>, range: &Range<usize>) -> bool {
    let mut ahead = tokens.within(range.clone());
    while ahead.place() < range.end {
        if ahead.is(":=") {
            return true;
        }
        ahead.next();
    }
    false
}

/// Whether an expression may name a column of the table. A wrong yes only costs time.
fn names_columns(tokens: &Tokens<'_>, range: &Range<usize>, target: &TargetTable) -> bool {
    let mut ahead = tokens.within(range.clone());
    while ahead.place() < range.end {
        match ahead.accept_name() {
            Some(name) if !ahead.is("(") && target.table.column(&name).is_some() => return true,
            Some(_) => {}
            None => {
                ahead.next();
            }
        }
    }
    false
}

/// Makes rows for a table.
pub(crate) struct RowMaker {
    /// Converts values.
    pub converter: Converter,
    defaults: Vec<Option<Value>>,
    /// Values of default expressions, by column: one for each row to come.
    computed: FxHashMap<usize, Vec<Value>>,
    /// The columns whose default expressions name other columns.
    over_rows: Vec<usize>,
    /// Where such a default is wanted: the row's place among those made, and the column.
    wanted: Vec<(usize, usize)>,
    /// The number of rows made since [`RowMaker::expect_rows`].
    rows: usize,
    lenient: bool,
    /// Whether the statement has a single row in its text.
    pub single: bool,
    /// The next AUTO_INCREMENT value, if `insert_id` was set before the statement.
    forced: Option<u64>,
    /// The AUTO_INCREMENT value that was generated for the last row.
    pub made: Option<u64>,
    /// The AUTO_INCREMENT value that the last row was given.
    pub given: Option<u64>,
}

impl RowMaker {
    /// For the rows of one statement.
    pub(crate) async fn new(
        session: &mut SessionState,
        target: &TargetTable,
        lenient: bool,
    ) -> Result<Self> {
        let converter = Converter::new(session, lenient);
        let mut defaults = Vec::with_capacity(target.table.columns.len());
        for (position, spec) in target.table.columns.iter().enumerate() {
            let name = column_name(target, position);
            // An expression may have another value for each row.
            let default = match spec.default {
                DefaultSpec::Expression(_) => None,
                _ => default_value(session, &converter, spec, name).await?,
            };
            defaults.push(default);
        }
        Ok(Self {
            converter,
            defaults,
            computed: FxHashMap::default(),
            over_rows: Vec::new(),
            wanted: Vec::new(),
            rows: 0,
            lenient,
            single: false,
            forced: None,
            made: None,
            given: None,
        })
    }

    /// Evaluates the default expressions of columns that are not given, once for each of this many rows, but for those
    /// that name other columns: [`RowMaker::settle`].
    pub(crate) async fn expect_rows(
        &mut self,
        session: &mut SessionState,
        target: &TargetTable,
        columns: &[usize],
        count: usize,
    ) -> Result<()> {
        self.over_rows.clear();
        self.wanted.clear();
        self.rows = 0;
        for (position, spec) in target.table.columns.iter().enumerate() {
            let DefaultSpec::Expression(text) = &spec.default else { continue };
            if columns.contains(&position) {
                continue;
            }
            let (expr, source) = &parsed_expression(text)?;
            if mentions_column(expr, target) {
                self.over_rows.push(position);
                continue;
            }
            let slot =
                TargetColumn { name: column_name(target, position), kind: &spec.kind, row: 1 };
            let mut values = Vec::with_capacity(count);
            while values.len() < count {
                let wanted = (count - values.len()).min(EXPRESSIONS_AT_ONCE);
                let query = query_from(vec![expr.clone(); wanted], Vec::new());
                let rows = TreeQuery { query, source }.rows(session).await?;
                for value in rows.into_iter().flatten() {
                    values.push(self.converter.fit(slot, value)?);
                }
            }
            self.computed.insert(position, values);
        }
        Ok(())
    }

    /// Fills in the defaults that name other columns, one column after the other. `rows` are those made since
    /// [`RowMaker::expect_rows`].
    pub(crate) async fn settle(
        &mut self,
        session: &mut SessionState,
        target: &TargetTable,
        rows: &mut [Row],
    ) -> Result<()> {
        let wanted = std::mem::take(&mut self.wanted);
        for &position in &self.over_rows {
            let of_column = wanted.iter().filter(|(_, column)| *column == position);
            let places: Vec<usize> = of_column.map(|(row, _)| *row).collect();
            let some: Vec<Row> =
                places.iter().filter_map(|&place| rows.get(place)).cloned().collect();
            let Some(spec) = target.table.columns.get(position).filter(|_| !some.is_empty()) else {
                continue;
            };
            let DefaultSpec::Expression(text) = &spec.default else { continue };
            let (expr, source) = parsed_expression(text)?;
            let alias = &target.name.table;
            let expr = RowExpression::of(&expr, &source);
            let values = values_over(session, target, alias, &some, &[], expr).await?;
            for (place, value) in places.into_iter().zip(values) {
                let value = match value.is_null() && spec.not_null {
                    true => self.null_for(target, position, self.refuses_null())?,
                    false => self.fit(target, position, value, place as u64 + 1)?,
                };
                if let Some(slot) = rows.get_mut(place).and_then(|row| row.get_mut(position)) {
                    *slot = value;
                }
            }
        }
        Ok(())
    }

    /// The values of a row before any are given: defaults, or 0 or an empty text.
    fn before_values(&self, session: &SessionState, target: &TargetTable) -> Row {
        let quiet = Converter::quiet(session);
        let columns = target.table.columns.iter().zip(&self.defaults);
        let value = |(spec, default): (&ColumnSpec, &Option<Value>)| match default {
            Some(value) if !value.is_null() || !spec.not_null => value.clone(),
            None if !spec.not_null => Value::Null,
            _ => quiet.implicit(&spec.kind),
        };
        columns.map(value).collect()
    }

    /// Whether the statement has IGNORE.
    pub(crate) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Makes a row of the values given for some columns. `number` is its number in the statement, from 1.
    pub(crate) fn row(
        &mut self,
        session: &mut SessionState,
        target: &TargetTable,
        columns: &[usize],
        given: &[CellExpr],
        number: u64,
    ) -> Result<Row> {
        let table = &target.table;
        let mut row: Vec<Option<Value>> = vec![None; table.columns.len()];
        for (&position, given) in columns.iter().zip(given) {
            let Some(spec) = table.columns.get(position) else { continue };
            let value = match given {
                CellExpr::Default => None,
                given => Some(given.value(&spec.kind)?),
            };
            if value.is_some() && spec.generated.is_some() {
                return Err(self.generated_error(target, position));
            }
            let fitted = match value {
                Some(Value::Null) if spec.not_null && !spec.auto_increment => {
                    Some(self.null_for(target, position, self.refuses_null())?)
                }
                Some(value) => Some(match self.fit(target, position, value, number)? {
                    // A JSON value that is no date.
                    Value::Null if spec.not_null && !spec.auto_increment => {
                        self.converter.implicit(&spec.kind)
                    }
                    fitted => fitted,
                }),
                None => None,
            };
            if let Some(slot) = row.get_mut(position) {
                *slot = fitted;
            }
        }
        let mut made = Vec::with_capacity(row.len());
        (self.made, self.given) = (None, None);
        let counted = [target.table.auto_increment(), target.table.row_number];
        for (position, value) in row.iter_mut().enumerate() {
            made.push(match counted.contains(&Some(position)) {
                true => Value::Null,
                false => self.complete(target, position, value.take())?,
            });
        }
        // Counters come last, so that a refused row takes no number.
        for position in counted.into_iter().flatten() {
            let value = row.get_mut(position).and_then(Option::take);
            let value = self.counted(session, target, position, value)?;
            if let Some(slot) = made.get_mut(position) {
                *slot = value;
            }
        }
        self.rows += 1;
        Ok(made)
    }

    /// A value converted for its column.
    pub(crate) fn fit(
        &self,
        target: &TargetTable,
        position: usize,
        value: Value,
        row: u64,
    ) -> Result<Value> {
        let Some(spec) = target.table.columns.get(position) else { return Ok(value) };
        let name = column_name(target, position);
        let fitted = self.converter.fit(TargetColumn { name, kind: &spec.kind, row }, value);
        fitted.map_err(|error| named_in_full(error, target))
    }

    /// Error 1048, or the column's value instead of NULL if that is permitted.
    pub(crate) fn null_for(
        &self,
        target: &TargetTable,
        position: usize,
        strict: bool,
    ) -> Result<Value> {
        let name = column_name(target, position);
        let message = messages::column_cannot_be_null(name);
        if strict {
            return Err(Error::new(ErrorCode::ColumnCannotBeNull, message));
        }
        self.converter.warn(ErrorCode::ColumnCannotBeNull, message);
        let spec = target.table.columns.get(position);
        Ok(spec.map_or(Value::Null, |spec| match spec.kind.sql {
            // Not the first label, which is only the default: the number 0.
            SqlType::Enum => Value::Text("".into()),
            _ => self.converter.implicit(&spec.kind),
        }))
    }

    /// Error 3105.
    pub(crate) fn generated_error(&self, target: &TargetTable, position: usize) -> Error {
        let message = format!(
            "The value specified for generated column '{}' in table '{}' is not allowed.",
            column_name(target, position),
            target.name.table
        );
        Error::new(ErrorCode::GeneratedColumnValue, message)
    }

    /// Whether NULL in a NOT NULL column is an error. In a single row it always is, without IGNORE.
    fn refuses_null(&self) -> bool {
        self.converter.is_strict() || self.single && !self.lenient
    }

    /// The value of a column without a counter, given or not.
    fn complete(
        &mut self,
        target: &TargetTable,
        position: usize,
        value: Option<Value>,
    ) -> Result<Value> {
        let Some(spec) = target.table.columns.get(position) else { return Ok(Value::Null) };
        match value {
            _ if spec.generated.is_some() => Ok(Value::Null),
            Some(value) => Ok(value),
            None => self.default(target, position, spec),
        }
    }

    fn default(
        &mut self,
        target: &TargetTable,
        position: usize,
        spec: &ColumnSpec,
    ) -> Result<Value> {
        if let Some(value) = self.computed.get_mut(&position).and_then(Vec::pop) {
            return Ok(value);
        }
        if self.over_rows.contains(&position) {
            self.wanted.push((self.rows, position));
            return Ok(Value::Null);
        }
        if let Some(Some(value)) = self.defaults.get(position) {
            return Ok(value.clone());
        }
        if !spec.not_null {
            return Ok(Value::Null);
        }
        let implicit = self.converter.implicit(&spec.kind);
        if spec.kind.sql == SqlType::Enum || spec.kind.multi().is_some() {
            return Ok(implicit);
        }
        let name = column_name(target, position);
        let message = messages::no_default(name);
        self.converter.complain(ErrorCode::NoDefault, message, implicit)
    }

    /// The value of the AUTO_INCREMENT column: NULL and 0 mean the next one.
    fn counted(
        &mut self,
        session: &mut SessionState,
        target: &TargetTable,
        position: usize,
        value: Option<Value>,
    ) -> Result<Value> {
        if target.table.row_number == Some(position) {
            return Ok(Value::Uint(target.next_value(session, position)?));
        }
        let Some(spec) = target.table.columns.get(position) else { return Ok(Value::Null) };
        let zero_is_kept = session.variables.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        let given = match &value {
            None | Some(Value::Null) => None,
            Some(Value::Int(0) | Value::Uint(0)) if !zero_is_kept => None,
            Some(Value::Float(number)) if *number == 0.0 && !zero_is_kept => None,
            Some(value) => Some(value.clone()),
        };
        let Some(given) = given else {
            let next = match session.insert_id.take().or(self.forced) {
                Some(next) => {
                    target.pass_value(session, position, next)?;
                    self.forced = next.checked_add(1);
                    next
                }
                None => target.next_value(session, position)?,
            };
            self.made = Some(next);
            let bits = u32::from(spec.kind.integer_bits().unwrap_or(64));
            let most = if spec.kind.unsigned {
                u64::MAX >> (64 - bits)
            } else {
                i64::MAX as u64 >> (64 - bits)
            };
            if next > most {
                let message = "Failed to read auto-increment value from storage engine";
                return Err(Error::new(ErrorCode::AutoIncrementExhausted, message));
            }
            return Ok(match spec.kind.engine_type() {
                remora_engine::ColumnType::Uint(_) => Value::Uint(next),
                remora_engine::ColumnType::Int(_) => Value::Int(next as i64),
                _ => Value::Float(next as f64),
            });
        };
        let number = counter_value(&given);
        if let Some(number) = number {
            target.pass_value(session, position, number)?;
        }
        self.given = match &given {
            // The protocol sends it as unsigned.
            Value::Int(number) => Some(*number as u64),
            _ => number,
        };
        Ok(given)
    }
}

/// Whether an expression names a column of the table.
fn mentions_column(expr: &Expr, target: &TargetTable) -> bool {
    let names = |expr: &Expr| match expr {
        Expr::Identifier(name) => target.table.column(&name.value).is_some(),
        Expr::CompoundIdentifier(_) => true,
        _ => false,
    };
    let found = visit_expressions(expr, |expr| match names(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Errors about JSON qualify the column with its table.
fn named_in_full(mut error: Error, target: &TargetTable) -> Error {
    if error.code == ErrorCode::InvalidJson {
        let table = format!("for column '{}.", target.name.table);
        error.message = error.message.replacen("for column '", &table, 1);
    }
    error
}

/// The name of a column.
pub(crate) fn column_name(target: &TargetTable, position: usize) -> &str {
    target.table.schema.columns.get(position).map_or("", |column| column.name.as_str())
}

/// The DEFAULT of a column that names other columns, over a row; `None` for any other.
pub(super) async fn default_over(
    session: &mut SessionState,
    target: &TargetTable,
    spec: &ColumnSpec,
    row: &[Value],
) -> Result<Option<Value>> {
    let DefaultSpec::Expression(text) = &spec.default else { return Ok(None) };
    let (expr, source) = parsed_expression(text)?;
    if !mentions_column(&expr, target) {
        return Ok(None);
    }
    let (alias, rows) = (&target.name.table, &[row.to_vec()]);
    let expr = RowExpression::of(&expr, &source);
    let found = values_over(session, target, alias, rows, &[], expr).await?;
    Ok(Some(found.into_iter().next().unwrap_or(Value::Null)))
}

/// A column's DEFAULT for the rows of a statement; `None` if none is declared.
pub(crate) async fn default_value(
    session: &mut SessionState,
    converter: &Converter,
    spec: &ColumnSpec,
    name: &str,
) -> Result<Option<Value>> {
    let slot = TargetColumn { name, kind: &spec.kind, row: 1 };
    let value = match &spec.default {
        DefaultSpec::None => return Ok(None),
        DefaultSpec::Null => Value::Null,
        DefaultSpec::Constant(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => Value::Bytes(text.as_slice().into()),
        },
        DefaultSpec::Now => return converter.now(slot).map(Some),
        DefaultSpec::Bits(text) | DefaultSpec::Expression(text) => {
            let (expr, source) = parsed_expression(text)?;
            let query = query_from(vec![expr], Vec::new());
            let rows = TreeQuery { query, source: &source }.rows(session).await?;
            rows.into_iter().next().and_then(|row| row.into_iter().next()).unwrap_or(Value::Null)
        }
    };
    if value.is_null() {
        return Ok(if spec.not_null { None } else { Some(Value::Null) });
    }
    converter.fit(slot, value).map(Some)
}
