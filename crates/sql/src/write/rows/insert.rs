//! INSERT and REPLACE.
//!
//! ```text
//! insert := ("INSERT" | "REPLACE") word* ["IGNORE"] ["INTO"] table ["(" column,* ")"]
//!           (("VALUES" | "VALUE") row,* ["AS" alias] | "SET" assignment,* ["AS" alias] | query)
//!           ["ON" "DUPLICATE" "KEY" "UPDATE" assignment,*]
//! row    := ["ROW"] "(" (expression | "DEFAULT"),* ")"
//! ```
//!
//! Literals and `?` are read from the tokens ([`super::literal`]): there may be millions, and a syntax tree of them
//! would cost several times as much. Everything else is parsed: the query, the expressions of rows as they are evaluated,
//! the assignments of ON DUPLICATE KEY UPDATE.

use std::{ops::Range, sync::Arc};

use remora_engine::{Row, Value};
use remora_mysql::{ErrorCode, messages};

use super::{
    duplicate::{NewRowAlias, OnDuplicate, update_duplicate},
    evaluate::{StatementText, TreeQuery},
    literal::{CellExpr, Parameters, given},
    named::NamedTable,
    read_again::{check_assigned, check_expressions},
    target::{TargetTable, column_of, table_name},
    values::{InsertedRows, RowMaker},
};
use crate::{
    Error, Outcome, Result,
    catalog::Verb,
    execute::{RowsExplained, Writing},
    parse::{
        Source, Statement, Tokens,
        define::DuplicateRows,
        write::{ChangedQuery, ChangedRows, query_from, table_named},
    },
    state::SessionState,
    write::rows::computed::Computed,
};

/// What happens to a row with an existing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Error 1062.
    Refuse,
    /// It is skipped with a warning.
    Ignore,
    /// It replaces the existing row.
    Replace,
}

/// Counts for the reply.
#[derive(Default)]
pub(super) struct Tally {
    /// Rows given.
    pub records: u64,
    /// Rows with an existing key.
    pub duplicates: u64,
    /// Affected rows as MySQL counts them.
    pub affected: u64,
}

/// Runs INSERT or REPLACE.
pub(super) async fn run(session: &mut SessionState, text: StatementText<'_>) -> Result<Outcome> {
    let mut tokens = text.tokens();
    let InsertHead { policy, ignore, target, columns } = InsertHead::read(session, &mut tokens)?;
    let source = read_source(&mut tokens, text.parameters, &target, columns)?;
    let InsertSource { rows, alias, several, from_query } = source;
    let mut on_duplicate = match policy {
        Policy::Replace => None,
        _ => OnDuplicate::parse(session, text, &mut tokens, &target, alias)?,
    };
    tokens.expect_end()?;
    check_subqueries(session, text, &target, &rows, on_duplicate.as_ref())?;
    let rows = rows.given(session, text, (&target, on_duplicate.as_mut())).await?;
    let mut inserter = Inserter::new(session, &target, policy, ignore).await?;
    inserter.on_duplicate = on_duplicate;
    inserter.from_query = from_query;
    inserter.insert(session, text, rows).await?;
    Ok(inserter.outcome(session, several))
}

/// For EXPLAIN: the source of the rows. Errors in column names are reported as if it ran.
pub(super) async fn explained<'s>(
    session: &mut SessionState,
    text: StatementText<'s>,
) -> Result<Writing<'s>> {
    let mut tokens = text.tokens();
    let InsertHead { policy, target, columns, .. } = InsertHead::read(session, &mut tokens)?;
    let source = read_source(&mut tokens, text.parameters, &target, columns)?;
    let on_duplicate = match policy {
        Policy::Replace => None,
        _ => OnDuplicate::parse(session, text, &mut tokens, &target, source.alias)?,
    };
    tokens.expect_end()?;
    let verb = if policy == Policy::Replace { "REPLACE" } else { "INSERT" };
    let rows = match source.rows {
        SourceRows::Read(range, columns) => {
            if text.query(range.clone())?.columns(session).await?.len() != columns.len() {
                return Err(count_error(1));
            }
            let source = Arc::new(text.source().within(range.clone()));
            let parameters = text.parameters.within(range);
            Some(RowsExplained::Select(Statement { source, parameters }))
        }
        SourceRows::Given(given) => {
            // Checking plans a SELECT from the table, for which the user needs the right.
            if target.name.check(&session.identity, Verb::Select).is_ok() {
                check_given(session, text, (&target, &given)).await?;
                if let Some(on_duplicate) = on_duplicate {
                    on_duplicate.check(session, text, &target).await?;
                }
            }
            let query = query_of_subqueries(text, &given)?;
            query.map(|query| RowsExplained::Query(text.statement, Box::new(query)))
        }
    };
    Ok(Writing { verb, targets: vec![target.name.table], rows })
}

/// The most expressions of rows that are planned together.
const CHECKED_AT_ONCE: usize = 64;

/// Checks the expressions of rows: 1054 for a column that the table does not have.
async fn check_given(
    session: &mut SessionState,
    text: StatementText<'_>,
    (target, given): (&TargetTable, &InsertedRows),
) -> Result<()> {
    let ranges = given.rows.iter().flatten().filter_map(|given| match given {
        CellExpr::Expression(range) => Some(range.clone()),
        _ => None,
    });
    let ranges: Vec<_> = ranges.collect();
    let name = [target.name.database.as_str(), target.name.table.as_str()];
    for some in ranges.chunks(CHECKED_AT_ONCE) {
        let query = query_from(text.expressions(some)?, vec![table_named(&name, None)]);
        TreeQuery { query, source: text.source() }.check(session).await?;
    }
    Ok(())
}

/// The subqueries among the rows' expressions, as items of one SELECT without a table.
fn query_of_subqueries(
    text: StatementText<'_>,
    given: &InsertedRows,
) -> Result<Option<ChangedQuery>> {
    let ranges = with_subqueries(&text.tokens(), given);
    if ranges.is_empty() {
        return Ok(None);
    }
    let rows = ChangedRows::default();
    let query = rows.select_with_one(text.expressions(&ranges)?);
    Ok(Some(ChangedQuery { rows, query }))
}

/// The tokens of the rows' expressions that have a subquery.
fn with_subqueries(tokens: &Tokens<'_>, given: &InsertedRows) -> Vec<Range<usize>> {
    const BEGIN: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];
    let is_query = |place: usize, end: usize| {
        let mut inner = tokens.within(place..end);
        inner.take("(") && BEGIN.iter().any(|word| inner.is_word(word))
    };
    let ranges = given.rows.iter().flatten().filter_map(|given| match given {
        CellExpr::Expression(range) => Some(range),
        _ => None,
    });
    let has_query =
        |range: &&Range<usize>| (*range).clone().any(|place| is_query(place, range.end));
    ranges.filter(has_query).cloned().collect()
}

/// Error 1093 if a subquery of the rows or of ON DUPLICATE KEY UPDATE reads the table. The query of the rows may.
fn check_subqueries(
    session: &SessionState,
    text: StatementText<'_>,
    target: &TargetTable,
    rows: &SourceRows,
    on_duplicate: Option<&OnDuplicate>,
) -> Result<()> {
    let ranges = match rows {
        SourceRows::Given(given) => with_subqueries(&text.tokens(), given),
        SourceRows::Read(..) => Vec::new(),
    };
    let changed = NamedTable { name: target.name.clone(), alias: target.name.table.clone() };
    let given = text.expressions(&ranges)?;
    // Beside a query's rows, the expressions of ON DUPLICATE KEY UPDATE may too.
    let on_duplicate = on_duplicate.filter(|_| matches!(rows, SourceRows::Given(_)));
    let assigned = on_duplicate.into_iter().flat_map(OnDuplicate::expressions);
    check_expressions(session, &changed, given.iter())?;
    check_assigned(session, &changed, assigned)
}

/// The part of INSERT and REPLACE before the rows.
struct InsertHead {
    policy: Policy,
    ignore: bool,
    target: TargetTable,
    columns: Option<Vec<usize>>,
}

impl InsertHead {
    fn read(session: &mut SessionState, tokens: &mut Tokens<'_>) -> Result<Self> {
        let replace = tokens.accept("REPLACE");
        if !replace {
            tokens.expect("INSERT")?;
        }
        while tokens.accept_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]) {}
        let ignore = tokens.accept("IGNORE");
        session.refuses_warnings &= !ignore;
        tokens.accept("INTO");
        let name = table_name(tokens, session)?;
        let verb = if replace { Verb::Replace } else { Verb::Insert };
        let target = TargetTable::find(session, &name, verb)?;
        let columns = column_list(tokens, &target)?;
        let policy = match (replace, ignore) {
            (true, _) => Policy::Replace,
            (false, true) => Policy::Ignore,
            (false, false) => Policy::Refuse,
        };
        Ok(Self { policy, ignore, target, columns })
    }
}

/// The rows of a statement.
struct InsertSource {
    rows: SourceRows,
    alias: Option<NewRowAlias>,
    /// Whether the reply reports the number of records.
    several: bool,
    /// Whether they come from a query.
    from_query: bool,
}

/// Rows as a statement has them.
enum SourceRows {
    /// Rows in the statement's text.
    Given(InsertedRows),
    /// Rows of the query that these tokens are, for these columns.
    Read(Range<usize>, Vec<usize>),
}

impl SourceRows {
    /// Runs the query, if there is one, and returns the rows.
    async fn given(
        self,
        session: &mut SessionState,
        text: StatementText<'_>,
        (target, on_duplicate): (&TargetTable, Option<&mut OnDuplicate>),
    ) -> Result<InsertedRows> {
        let (range, columns) = match self {
            Self::Given(given) => return Ok(given),
            Self::Read(range, columns) => (range, columns),
        };
        let query = text.query(range)?;
        let mut found = match on_duplicate {
            Some(on_duplicate) => on_duplicate.rows(session, query, target).await?,
            None => query.table(session).await?,
        };
        if found.rows.first().is_some_and(|row| row.len() != columns.len()) {
            return Err(count_error(1));
        }
        let specs = columns.iter().filter_map(|column| target.table.columns.get(*column));
        found.fit(specs.map(|spec| &spec.kind).enumerate());
        let given = |row: Vec<Value>| row.into_iter().map(CellExpr::Value).collect();
        let rows = found.rows.into_iter().map(given).collect();
        Ok(InsertedRows { columns, rows })
    }
}

fn read_source(
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
    target: &TargetTable,
    columns: Option<Vec<usize>>,
) -> Result<InsertSource> {
    if columns.is_none() && tokens.accept("SET") {
        let (columns, row) = assignments(tokens, parameters, target)?;
        let alias = alias(tokens, &columns)?;
        let rows = SourceRows::Given(InsertedRows { columns, rows: vec![row] });
        return Ok(InsertSource { rows, alias, several: false, from_query: false });
    }
    let columns = columns.unwrap_or_else(|| all_columns(target));
    let begins_rows = tokens.accept_any(&["VALUES", "VALUE"]);
    if begins_rows {
        let rows = rows(tokens, parameters, columns.len())?;
        let alias = alias(tokens, &columns)?;
        let several = rows.len() > 1;
        let rows = SourceRows::Given(InsertedRows { columns, rows });
        return Ok(InsertSource { rows, alias, several, from_query: false });
    }
    let query = tokens.skip_until(|tokens| {
        let mut ahead = *tokens;
        ahead.accept_all("ON DUPLICATE KEY")
    })?;
    if query.is_empty() {
        return Err(tokens.syntax_error());
    }
    let rows = SourceRows::Read(query, columns);
    Ok(InsertSource { rows, alias: None, several: true, from_query: true })
}

/// The default column list: all visible columns.
fn all_columns(target: &TargetTable) -> Vec<usize> {
    let visible = target.table.visible().filter(|(_, _, spec)| !spec.invisible);
    visible.map(|(position, ..)| position).collect()
}

fn column_list(tokens: &mut Tokens<'_>, target: &TargetTable) -> Result<Option<Vec<usize>>> {
    let mut ahead = *tokens;
    let opens = ahead.take("(");
    let query = ["SELECT", "WITH", "TABLE", "VALUES"].iter().any(|word| ahead.is_word(word));
    if !opens || query || ahead.is("(") {
        return Ok(None);
    }
    tokens.need("(")?;
    let mut columns = Vec::new();
    if !tokens.take(")") {
        columns.push(column(tokens, target)?);
        while !tokens.take(")") {
            tokens.need(",")?;
            columns.push(column(tokens, target)?);
        }
    }
    check_once(&columns, target)?;
    Ok(Some(columns))
}

fn check_once(columns: &[usize], target: &TargetTable) -> Result<()> {
    let mut seen = rustc_hash::FxHashSet::default();
    match columns.iter().find(|position| !seen.insert(**position)) {
        None => Ok(()),
        Some(&twice) => {
            let name = super::values::column_name(target, twice);
            let message = format!("Column '{name}' specified twice");
            Err(Error::new(ErrorCode::FieldSpecifiedTwice, message))
        }
    }
}

/// A column of the target table, qualified or not.
pub(super) fn column(tokens: &mut Tokens<'_>, target: &TargetTable) -> Result<usize> {
    let mut name = tokens.name()?;
    while tokens.take(".") {
        name = tokens.name()?;
    }
    column_of(&[name], target)
}

/// `a = 1, b = DEFAULT`.
fn assignments(
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
    target: &TargetTable,
) -> Result<(Vec<usize>, Vec<CellExpr>)> {
    let (mut columns, mut row) = (Vec::new(), Vec::new());
    loop {
        columns.push(column(tokens, target)?);
        if !tokens.take("=") {
            tokens.need(":=")?;
        }
        row.push(given(tokens, parameters, ends_assignments)?);
        if !tokens.take(",") {
            check_once(&columns, target)?;
            return Ok((columns, row));
        }
    }
}

fn ends_assignments(tokens: &Tokens<'_>) -> bool {
    let mut ahead = *tokens;
    ahead.accept_all("ON DUPLICATE KEY") || ahead.is_word("AS")
}

fn rows(
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
    columns: usize,
) -> Result<Vec<Vec<CellExpr>>> {
    let mut rows: Vec<Vec<CellExpr>> = Vec::new();
    loop {
        tokens.accept("ROW");
        tokens.need("(")?;
        let mut row = Vec::with_capacity(columns);
        if !tokens.take(")") {
            row.push(given(tokens, parameters, |_| false)?);
            while !tokens.take(")") {
                tokens.need(",")?;
                row.push(given(tokens, parameters, |_| false)?);
            }
        }
        // `()` means the default for every column.
        if row.is_empty() {
            row = vec![CellExpr::Default; columns];
        }
        if row.len() != columns {
            return Err(count_error(rows.len() + 1));
        }
        rows.push(row);
        if !tokens.take(",") {
            return Ok(rows);
        }
    }
}

fn count_error(row: usize) -> Error {
    let message = format!("Column count doesn't match value count at row {row}");
    Error::new(ErrorCode::ValueCount, message)
}

fn alias(tokens: &mut Tokens<'_>, columns: &[usize]) -> Result<Option<NewRowAlias>> {
    if !tokens.accept("AS") {
        return Ok(None);
    }
    let name = tokens.name()?;
    let mut names = Vec::new();
    if tokens.take("(") {
        loop {
            names.push(tokens.name()?);
            if !tokens.take(",") {
                break;
            }
        }
        tokens.need(")")?;
    }
    Ok(Some(NewRowAlias { name, columns: names, positions: columns.to_vec() }))
}

/// Inserts rows into a table.
pub(super) struct Inserter {
    target: TargetTable,
    policy: Policy,
    maker: RowMaker,
    computed: Computed,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Option<OnDuplicate>,
    /// Whether the rows come from a query.
    pub from_query: bool,
    /// The first AUTO_INCREMENT value that was generated for an inserted row.
    first_made: Option<u64>,
    /// The AUTO_INCREMENT value of the last row that was given one.
    last_counted: Option<u64>,
    /// Counts for the reply.
    pub tally: Tally,
}

impl Inserter {
    pub(super) async fn new(
        session: &mut SessionState,
        target: &TargetTable,
        policy: Policy,
        lenient: bool,
    ) -> Result<Self> {
        let maker = RowMaker::new(session, target, lenient).await?;
        Ok(Self {
            target: target.clone(),
            policy,
            maker,
            computed: Computed::of(target),
            on_duplicate: None,
            from_query: false,
            first_made: None,
            last_counted: None,
            tally: Tally::default(),
        })
    }

    /// Its row maker.
    pub(super) fn maker(&self) -> &RowMaker {
        &self.maker
    }

    /// Makes the rows and inserts them.
    pub(super) async fn insert(
        &mut self,
        session: &mut SessionState,
        text: StatementText<'_>,
        mut given: InsertedRows,
    ) -> Result<()> {
        let target = self.target.clone();
        given.evaluate(session, text, (&target, &self.maker)).await?;
        self.insert_values(session, text.source(), given).await
    }

    /// Makes the rows of values and inserts them. The source is of ON DUPLICATE KEY UPDATE.
    async fn insert_values(
        &mut self,
        session: &mut SessionState,
        source: &Source,
        given: InsertedRows,
    ) -> Result<()> {
        let target = self.target.clone();
        let count = given.rows.len();
        self.maker.single = count == 1 && !self.from_query;
        self.maker.expect_rows(session, &target, &given.valued(), count).await?;
        let (mut rows, mut counted) = (Vec::with_capacity(count), Vec::with_capacity(count));
        // The rows before one that does not fit are inserted first: the first error is that of the first row.
        let mut misfit = Ok(());
        for (number, given_row) in (self.tally.records + 1..).zip(&given.rows) {
            match self.maker.row(session, &target, &given.columns, given_row, number) {
                Ok(row) => rows.push(row),
                Err(error) => {
                    misfit = Err(error);
                    break;
                }
            }
            counted.push((self.maker.made, self.maker.given));
        }
        self.maker.settle(session, &target, &mut rows).await?;
        let kept = self.computed.complete(session, &target, &self.maker, &mut rows).await?;
        for ((row, keep), counted) in rows.into_iter().zip(kept).zip(counted) {
            self.tally.records += 1;
            session.check_progress()?;
            if keep {
                self.put(session, source, row, counted).await?;
            }
        }
        misfit
    }

    /// Inserts a row. `made` and `given` are its AUTO_INCREMENT value, generated or given.
    async fn put(
        &mut self,
        session: &mut SessionState,
        source: &Source,
        row: Row,
        (made, given): (Option<u64>, Option<u64>),
    ) -> Result<()> {
        let target = self.target.clone();
        let mut replaced = false;
        let nth = usize::try_from(self.tally.records).unwrap_or(usize::MAX).saturating_sub(1);
        while let Some(duplicate) = target.duplicate(session, &row, None)? {
            if let Some(on_duplicate) = &self.on_duplicate {
                let (affected, counted) = update_duplicate(
                    session,
                    &target,
                    &self.maker,
                    &self.computed,
                    (on_duplicate, source, nth),
                    &duplicate,
                    &row,
                    self.policy == Policy::Ignore,
                )
                .await?;
                self.tally.affected += affected;
                // MySQL counts the rows that changed; with IGNORE, those that did not.
                let has_changed = affected == 2;
                self.tally.duplicates += u64::from(has_changed != (self.policy == Policy::Ignore));
                if has_changed {
                    self.last_counted = counted;
                }
                return Ok(());
            }
            self.tally.duplicates += u64::from(!replaced);
            match self.policy {
                Policy::Refuse => return Err(duplicate.error),
                Policy::Ignore => {
                    self.maker.converter.warn(duplicate.error.code, duplicate.error.message);
                    return Ok(());
                }
                Policy::Replace => {
                    let Some(old) = target.row(session, &duplicate.key)? else { break };
                    if target.is_same(&old, &row) {
                        self.tally.affected += 1;
                        self.last_counted = given.or(self.last_counted);
                        return Ok(());
                    }
                    target.delete(session, &old);
                    self.tally.affected += 1;
                    replaced = true;
                }
            }
        }
        target.insert(session, row)?;
        self.tally.affected += 1;
        match made {
            Some(made) => _ = self.first_made.get_or_insert(made),
            None => self.last_counted = given.or(self.last_counted),
        }
        Ok(())
    }

    /// The reply to the client.
    pub(super) fn outcome(&self, session: &mut SessionState, several: bool) -> Outcome {
        let Tally { records, duplicates, affected } = self.tally;
        let mut outcome = Outcome { affected_rows: affected, ..Outcome::default() };
        if let Some(first) = self.first_made {
            session.last_insert_id.set(first);
            outcome.last_insert_id = first;
        } else if let Some(last) = session.last_insert_id.given().or(self.last_counted) {
            outcome.last_insert_id = last;
        }
        if several {
            let duplicates = match self.policy {
                Policy::Replace => affected.saturating_sub(records),
                _ => duplicates,
            };
            let warnings = session.warnings.count();
            outcome.info = messages::records_info(records, duplicates, warnings);
        }
        outcome
    }
}

/// Inserts the rows of a query into a table that was just created.
pub(super) async fn fill(
    session: &mut SessionState,
    target: &TargetTable,
    (columns, rows): (Vec<usize>, Vec<Vec<Value>>),
    duplicates: DuplicateRows,
) -> Result<Outcome> {
    let policy = match duplicates {
        DuplicateRows::Refuse => Policy::Refuse,
        DuplicateRows::Ignore => Policy::Ignore,
        DuplicateRows::Replace => Policy::Replace,
    };
    let lenient = policy == Policy::Ignore;
    let mut inserter = Inserter::new(session, target, policy, lenient).await?;
    inserter.from_query = true;
    let given = |row: Vec<Value>| row.into_iter().map(CellExpr::Value).collect();
    let given = InsertedRows { columns, rows: rows.into_iter().map(given).collect() };
    let no_text = Source::new(Vec::new(), Vec::new(), session.lex_mode());
    inserter.insert_values(session, &no_text, given).await?;
    Ok(inserter.outcome(session, true))
}
