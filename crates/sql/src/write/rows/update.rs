//! UPDATE of one table or of several: a SELECT finds the keys and the new values, then the rows are changed one by one.
//!
//! ```text
//! update := "UPDATE" ["LOW_PRIORITY"] ["IGNORE"] tables "SET" assignment,* rest
//! rest   := ["WHERE" …] ["ORDER" "BY" …] ["LIMIT" …]
//! ```

use std::ops::Range;

use remora_engine::{Row, Value};
use remora_mysql::{ErrorCode, messages};
use rustc_hash::FxHashSet;

use super::{
    derived::check_assigned,
    evaluate::Query,
    explained::Explained,
    insert::check_found,
    literal::{CellExpr, Parameters, given},
    sequential::{SequentialAssignments, evaluated_in_turn, mentions},
    sum::Sum,
    target::{TargetTable, table_name},
    values::{RowMaker, column_name, default_value},
};
use crate::{
    Error, Outcome, Result,
    catalog::{TableName, Verb, quoted_name},
    parse::Tokens,
    state::SessionState,
    transaction::Key,
    write::rows::computed::Computed,
};

/// A table and its alias in a statement.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: TableName,
    pub(super) alias: String,
}

/// `column = value`.
pub(super) struct Assignment {
    table: usize,
    pub(super) column: usize,
    pub(super) given: CellExpr,
}

/// Runs UPDATE.
pub(super) async fn update(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
) -> Result<Outcome> {
    let read = ReadUpdate::of(session, tokens, parameters).await?;
    let ReadUpdate { ignore, named, targets, assignments, in_turn, tables, rest } = read;
    let mut update = Update { session, tokens, parameters, ignore, in_turn };
    let found = update.find(&named, &targets, &assignments, tables, rest).await?;
    update.change(&named, &targets, &assignments, found).await
}

/// The SELECT with which UPDATE finds its rows.
pub(super) async fn explained_update(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
) -> Result<Explained> {
    let read = ReadUpdate::of(session, tokens, parameters).await?;
    let ReadUpdate { ignore, named, targets, assignments, in_turn, tables, rest } = read;
    let update = Update { session, tokens, parameters, ignore, in_turn };
    let query = update.query(&named, &targets, &assignments, tables, rest);
    Ok(Explained { verb: "UPDATE", targets: changed(&named, &targets), query: Some(query) })
}

/// The names or aliases of the changed tables.
pub(super) fn changed(named: &[Named], targets: &[Option<TargetTable>]) -> Vec<String> {
    let pairs = named.iter().zip(targets);
    pairs.filter(|(_, target)| target.is_some()).map(|(named, _)| named.alias.clone()).collect()
}

/// A parsed UPDATE.
struct ReadUpdate {
    ignore: bool,
    named: Vec<Named>,
    targets: Vec<Option<TargetTable>>,
    assignments: Vec<Assignment>,
    in_turn: Vec<bool>,
    tables: Range<usize>,
    rest: Range<usize>,
}

impl ReadUpdate {
    async fn of(
        session: &mut SessionState,
        tokens: &mut Tokens<'_>,
        parameters: &Parameters<'_>,
    ) -> Result<Self> {
        tokens.expect("UPDATE")?;
        tokens.accept("LOW_PRIORITY");
        let ignore = tokens.accept("IGNORE");
        session.refuses_warnings &= !ignore;
        let tables = tokens.skip_until(|tokens| tokens.is_word("SET"))?;
        let named = named_tables(session, tokens, tables.clone())?;
        tokens.expect("SET")?;
        check_assigned(session, tokens, parameters, tables.clone(), &named).await?;
        let mut targets: Vec<Option<TargetTable>> = vec![None; named.len()];
        let assignments = assignments(session, tokens, parameters, &named, &mut targets)?;
        let rest = rest(tokens)?;
        let in_turn = match (&named[..], &targets[..]) {
            ([named], [Some(target)]) if is_one_table(tokens, tables.clone()) => {
                evaluated_in_turn(tokens, named, target, &assignments)
            }
            _ => vec![false; assignments.len()],
        };
        Ok(Self { ignore, named, targets, assignments, in_turn, tables, rest })
    }
}

/// The tokens of the subqueries in an expression.
pub(super) fn queries_within(tokens: &Tokens<'_>, range: Range<usize>) -> Vec<Range<usize>> {
    const BEGIN: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];
    let mut ahead = tokens.within(range.clone());
    let mut found = Vec::new();
    while ahead.place() < range.end {
        let place = ahead.place();
        let mut inner = ahead;
        let opens = inner.take("(") && BEGIN.iter().any(|word| inner.is_word(word));
        if opens && ahead.parenthesised().is_ok() {
            found.push(place..ahead.place());
        } else {
            ahead.next();
        }
    }
    found
}

/// Whether a FROM clause is a single table.
fn is_one_table(tokens: &Tokens<'_>, range: Range<usize>) -> bool {
    let places = range.clone();
    let at = |place: usize| tokens.within(place..range.end);
    let joins = |ahead: Tokens<'_>| {
        ahead.is(",") || ahead.is("(") || ahead.is_word("JOIN") || ahead.is_word("STRAIGHT_JOIN")
    };
    places.into_iter().all(|place| !joins(at(place)))
}

struct Update<'u, 't> {
    session: &'u mut SessionState,
    tokens: &'u Tokens<'t>,
    parameters: &'u Parameters<'u>,
    ignore: bool,
    /// Which assignments are evaluated after the others.
    in_turn: Vec<bool>,
}

impl Update<'_, '_> {
    /// Finds the keys of the rows to change and the values of the assigned expressions, row by row.
    async fn find(
        &mut self,
        named: &[Named],
        targets: &[Option<TargetTable>],
        assignments: &[Assignment],
        tables: Range<usize>,
        rest: Range<usize>,
    ) -> Result<Vec<Vec<Value>>> {
        let quick = self.find_by_key(named, targets, assignments, tables.clone(), rest.clone())?;
        if let Some(found) = quick {
            return Ok(found);
        }
        self.query(named, targets, assignments, tables, rest).rows(self.session).await
    }

    /// The SELECT for [`Update::find`].
    fn query(
        &self,
        named: &[Named],
        targets: &[Option<TargetTable>],
        assignments: &[Assignment],
        tables: Range<usize>,
        rest: Range<usize>,
    ) -> Query {
        let mut query = Query::new("SELECT ");
        let mut items: Vec<Query> = Vec::new();
        for (named, target) in named.iter().zip(targets) {
            items.extend(target.iter().flat_map(|target| key_items(named, target)));
        }
        // A later assignment sees the columns that earlier ones assigned.
        let mut made: Vec<(usize, usize, Query)> = Vec::new();
        for (assignment, in_turn) in assignments.iter().zip(&self.in_turn) {
            if *in_turn {
                continue;
            }
            if let CellExpr::Value(value) = &assignment.given {
                let mut constant = Query::new("?");
                constant.bind(std::slice::from_ref(value));
                made.push((assignment.table, assignment.column, constant));
            }
            let CellExpr::Expression(range) = &assignment.given else { continue };
            let expression = self.substituted(range.clone(), named, targets, &made);
            let mut item = Query::new("(");
            item.push_query(&expression);
            item.push(")");
            made.push((assignment.table, assignment.column, expression));
            items.push(item);
        }
        for (index, item) in items.iter().enumerate() {
            query.push(if index > 0 { "," } else { "" });
            query.push_query(item);
        }
        query.push(" FROM ");
        query.push_tokens(self.tokens, tables, self.parameters);
        query.push_tokens(self.tokens, rest, self.parameters);
        query
    }

    /// The same as [`Update::find`], if the condition names keys and no expression needs a plan.
    fn find_by_key(
        &self,
        named: &[Named],
        targets: &[Option<TargetTable>],
        assignments: &[Assignment],
        tables: Range<usize>,
        rest: Range<usize>,
    ) -> Result<Option<Vec<Vec<Value>>>> {
        let ([named], [Some(target)]) = (named, targets) else { return Ok(None) };
        let Some(sums) = self.sums(&named.alias, target, assignments) else { return Ok(None) };
        let mut query = key_query(named, target);
        query.push_tokens(self.tokens, tables, self.parameters);
        query.push_tokens(self.tokens, rest, self.parameters);
        let Some(keys) = query.keys(self.session, target)? else { return Ok(None) };
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(row) = target.row(self.session, &key)? else { continue };
            let mut values = key.0.to_vec();
            for sum in &sums {
                let Some(value) = sum.value(&row) else { return Ok(None) };
                values.push(value);
            }
            found.push(values);
        }
        Ok(Some(found))
    }

    /// The assigned expressions, except those evaluated later, if all of them are sums.
    fn sums(
        &self,
        alias: &str,
        target: &TargetTable,
        assignments: &[Assignment],
    ) -> Option<Vec<Sum>> {
        let mut sums = Vec::new();
        for (assignment, in_turn) in assignments.iter().zip(&self.in_turn) {
            let CellExpr::Expression(range) = &assignment.given else { continue };
            if !in_turn {
                sums.push(Sum::of(self.tokens, range.clone(), self.parameters, alias, target)?);
            }
        }
        Some(sums)
    }

    /// An expression with columns that were assigned earlier replaced by their new values.
    fn substituted(
        &self,
        range: Range<usize>,
        named: &[Named],
        targets: &[Option<TargetTable>],
        made: &[(usize, usize, Query)],
    ) -> Query {
        let mut query = Query::new("");
        let mut begin = range.start;
        if let ([named], [Some(target)]) = (named, targets) {
            let queries = queries_within(self.tokens, range.clone());
            for mention in mentions(self.tokens, range.clone(), named, target) {
                // Inside a subquery the name may belong to another table.
                if queries.iter().any(|query| query.contains(&mention.tokens.start)) {
                    continue;
                }
                let mut earlier = made.iter().rev();
                let earlier = earlier.find(|(_, column, _)| *column == mention.column);
                let Some((.., expression)) = earlier else { continue };
                query.push_tokens(self.tokens, begin..mention.tokens.start, self.parameters);
                query.push("(");
                query.push_query(expression);
                query.push(")");
                begin = mention.tokens.end;
            }
        }
        query.push_tokens(self.tokens, begin..range.end, self.parameters);
        query
    }

    async fn change(
        &mut self,
        named: &[Named],
        targets: &[Option<TargetTable>],
        assignments: &[Assignment],
        found: Vec<Vec<Value>>,
    ) -> Result<Outcome> {
        if let ([named], [Some(target)], true) = (named, targets, self.in_turn.contains(&true)) {
            let (tokens, parameters, in_turn) = (self.tokens, self.parameters, &self.in_turn);
            let change =
                SequentialAssignments { tokens, parameters, named, target, assignments, in_turn };
            let mut changer = Changer::new(self.session, target, self.ignore).await?;
            let (matched, changed) = change.change(self.session, &mut changer, &found).await?;
            return Ok(self.outcome(matched, changed));
        }
        let (mut matched, mut changed) = (0_u64, 0_u64);
        let keys: Vec<usize> = targets.iter().map(key_length).collect();
        let mut at = 0;
        for (index, target) in targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let length = keys.get(index).copied().unwrap_or(0);
            let mut changer = Changer::new(self.session, target, self.ignore).await?;
            for row in &found {
                let Some(key) = key_of(row, at, length) else { continue };
                if !changer.is_new(&key) {
                    continue;
                }
                let values = row.get(keys.iter().sum::<usize>()..).unwrap_or_default();
                let own = (index, assignments, values);
                self.session.check_progress()?;
                changed += u64::from(changer.change(self.session, &key, own).await?);
                matched = matched.saturating_add(1);
            }
            at += length;
        }
        Ok(self.outcome(matched, changed))
    }

    fn outcome(&self, matched: u64, changed: u64) -> Outcome {
        let affected_rows = if self.session.counts_found_rows { matched } else { changed };
        let warnings = self.session.warnings.count();
        let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
        let last_insert_id = self.session.last_insert_id.given().unwrap_or(0);
        Outcome { affected_rows, info, last_insert_id, ..Outcome::default() }
    }
}

/// Changes the rows of one table.
pub(super) struct Changer {
    target: TargetTable,
    maker: RowMaker,
    computed: Computed,
    ignore: bool,
    seen: FxHashSet<Key>,
    number: u64,
}

impl Changer {
    async fn new(session: &mut SessionState, target: &TargetTable, ignore: bool) -> Result<Self> {
        let maker = RowMaker::new(session, target, ignore).await?;
        let computed = Computed::of(target);
        let seen = FxHashSet::default();
        Ok(Self { target: target.clone(), maker, computed, ignore, seen, number: 0 })
    }

    /// Whether this key was not changed before.
    pub(super) fn is_new(&mut self, key: &Key) -> bool {
        self.seen.insert(key.clone())
    }

    /// Changes a row; returns whether it changed.
    async fn change(
        &mut self,
        session: &mut SessionState,
        key: &Key,
        (table, assignments, values): (usize, &[Assignment], &[Value]),
    ) -> Result<bool> {
        let target = self.target.clone();
        let Some(old) = target.row(session, key)? else { return Ok(false) };
        self.number += 1;
        let mut row = Row::clone(&old);
        let mut assigned = Vec::new();
        let mut values = values.iter();
        for assignment in assignments {
            let evaluated = match &assignment.given {
                CellExpr::Expression(_) => values.next().cloned(),
                _ => None,
            };
            if assignment.table != table {
                continue;
            }
            self.set(session, assignment, evaluated, &mut row, self.number).await?;
            assigned.push(assignment.column);
        }
        self.put(session, &old, row, &assigned).await
    }

    /// Assigns a column of a row.
    pub(super) async fn set(
        &mut self,
        session: &mut SessionState,
        assignment: &Assignment,
        evaluated: Option<Value>,
        row: &mut Row,
        number: u64,
    ) -> Result<()> {
        self.number = number;
        let value = self.assigned(session, assignment, evaluated, row).await?;
        if let Some(slot) = row.get_mut(assignment.column) {
            *slot = value;
        }
        Ok(())
    }

    /// Replaces an old row; returns whether it changed.
    pub(super) async fn put(
        &mut self,
        session: &mut SessionState,
        old: &Row,
        mut row: Row,
        assigned: &[usize],
    ) -> Result<bool> {
        if row == *old {
            return Ok(false);
        }
        let target = self.target.clone();
        self.computed.touch(&target, &self.maker, assigned, &mut row)?;
        let mut rows = vec![row];
        let kept = self.computed.complete(session, &target, &self.maker, &mut rows).await?;
        let Some(row) = rows.pop().filter(|_| kept == [true]) else { return Ok(false) };
        match target.update(session, old, row)? {
            None => Ok(true),
            Some(duplicate) if self.ignore => {
                self.maker.converter.warn(duplicate.error.code, duplicate.error.message);
                Ok(false)
            }
            Some(duplicate) => Err(duplicate.error),
        }
    }

    async fn assigned(
        &mut self,
        session: &mut SessionState,
        assignment: &Assignment,
        evaluated: Option<Value>,
        row: &[Value],
    ) -> Result<Value> {
        let (target, column) = (&self.target, assignment.column);
        let Some(spec) = target.table.columns.get(column) else { return Ok(Value::Null) };
        let name = column_name(target, column);
        let value = match (&assignment.given, evaluated) {
            (CellExpr::Default, _) if spec.generated.is_some() => {
                return Ok(row.get(column).cloned().unwrap_or(Value::Null));
            }
            (CellExpr::Default, _) => {
                let default = default_value(session, &self.maker.converter, spec, name).await?;
                match default {
                    None if spec.kind.multi().is_some() => {
                        return Ok(self.maker.converter.implicit(&spec.kind));
                    }
                    None if spec.not_null => {
                        let message = messages::no_default(name);
                        let implicit = self.maker.converter.implicit(&spec.kind);
                        return self.maker.converter.complain(
                            ErrorCode::NoDefault,
                            message,
                            implicit,
                        );
                    }
                    default => return Ok(default.unwrap_or(Value::Null)),
                }
            }
            (_, Some(value)) => value,
            (given, None) => given.value(&spec.kind)?,
        };
        if spec.generated.is_some() {
            return Err(self.maker.generated_error(target, column));
        }
        match self.maker.fit(target, column, value, self.number)? {
            Value::Null if spec.not_null => {
                self.maker.null_for(target, column, self.maker.converter.is_strict())
            }
            value => Ok(value),
        }
    }
}

/// A SELECT of a table's key, up to its FROM.
pub(super) fn key_query(named: &Named, target: &TargetTable) -> Query {
    let mut query = Query::new("SELECT ");
    for (index, item) in key_items(named, target).iter().enumerate() {
        query.push(if index > 0 { "," } else { "" });
        query.push_query(item);
    }
    query.push(" FROM ");
    query
}

pub(super) fn is_rest(tokens: &Tokens<'_>) -> bool {
    ["WHERE", "ORDER", "LIMIT"].iter().any(|word| tokens.is_reserved(word))
}

/// Words that a SELECT can have after its conditions, and a write cannot.
const OF_QUERIES: [&str; 10] = [
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "GROUP",
    "HAVING",
    "WINDOW",
    "INTO",
    "FOR",
    "LOCK",
    "PROCEDURE",
];

/// Consumes the rest of the statement: WHERE, ORDER BY, and LIMIT with one number. It becomes the end of a SELECT, so what
/// only a SELECT may have there is refused.
pub(super) fn rest(tokens: &mut Tokens<'_>) -> Result<Range<usize>> {
    if !tokens.at_end() && !is_rest(tokens) {
        return Err(tokens.syntax_error());
    }
    let start = tokens.place();
    let ends = |tokens: &Tokens<'_>| {
        tokens.is_reserved("LIMIT") || OF_QUERIES.iter().any(|word| tokens.is_reserved(word))
    };
    tokens.skip_until(ends)?;
    if tokens.accept("LIMIT") {
        // As a SELECT it would be refused too, with a text that is not the client's.
        if tokens.is_word("ALL") {
            return Err(tokens.syntax_error());
        }
        tokens.next();
    }
    tokens.expect_end()?;
    Ok(start..tokens.place())
}

/// The tables of a FROM clause and their aliases, without derived tables.
pub(super) fn named_tables(
    session: &SessionState,
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<Vec<Named>> {
    const NO_ALIAS: [&str; 13] = [
        "JOIN",
        "INNER",
        "LEFT",
        "RIGHT",
        "CROSS",
        "STRAIGHT_JOIN",
        "NATURAL",
        "ON",
        "USING",
        "USE",
        "FORCE",
        "IGNORE",
        "SET",
    ];
    let end = range.end;
    let mut ahead = tokens.within(range);
    let mut named = Vec::new();
    let mut expects_table = true;
    while ahead.place() < end {
        if expects_table && let Some(behind) = behind_rows(&ahead)? {
            ahead = behind;
            expects_table = false;
            continue;
        }
        if expects_table && ahead.is("(") {
            ahead.next();
            continue;
        }
        if expects_table {
            let name = table_name(&mut ahead, session)?;
            if ahead.place() < end && ahead.is_word("PARTITION") {
                return Err(Error::unsupported("PARTITION (…) of a table"));
            }
            let mut alias = name.table.clone();
            let said = ahead.accept("AS");
            let is_alias = said || !NO_ALIAS.iter().any(|word| ahead.is_word(word));
            if ahead.place() < end
                && is_alias
                && let Some(said) = ahead.accept_name()
            {
                alias = said;
            }
            named.push(Named { name, alias });
            expects_table = false;
            continue;
        }
        let joins = ahead.is(",") || ahead.is_word("JOIN") || ahead.is_word("STRAIGHT_JOIN");
        if ahead.is("(") {
            ahead.parenthesised()?;
        } else {
            ahead.next();
        }
        expects_table = joins;
    }
    Ok(named)
}

/// The tokens after a derived table or a JSON_TABLE, if one comes next.
pub(super) fn behind_rows<'t>(tokens: &Tokens<'t>) -> Result<Option<Tokens<'t>>> {
    const BEGIN: [&str; 3] = ["SELECT", "WITH", "VALUES"];
    let mut inner = *tokens;
    inner.next();
    let is_query = tokens.is("(") && BEGIN.iter().any(|word| inner.is_word(word));
    let is_function = tokens.is_word("JSON_TABLE") && inner.is("(");
    if !is_query && !is_function {
        return Ok(None);
    }
    let mut behind = if is_function { inner } else { *tokens };
    behind.parenthesised()?;
    Ok(Some(behind))
}

/// The key's columns of a table, for a SELECT.
pub(super) fn key_items(named: &Named, target: &TargetTable) -> Vec<Query> {
    let schema = &target.table.schema;
    let parts = schema.primary_key.iter().filter_map(|&part| schema.columns.get(part));
    let item =
        |name: &str| Query::new(&format!("{}.{}", quoted_name(&named.alias), quoted_name(name)));
    parts.map(|column| item(&column.name)).collect()
}

fn key_length(target: &Option<TargetTable>) -> usize {
    target.as_ref().map_or(0, |target| target.table.schema.primary_key.len())
}

/// The key at a position of a result row; `None` for a row of NULLs from an outer join.
pub(super) fn key_of(row: &[Value], at: usize, length: usize) -> Option<Key> {
    let parts = row.get(at..at + length)?;
    let present = parts.iter().all(|part| !part.is_null());
    present.then(|| Key(parts.iter().cloned().collect()))
}

fn assignments(
    session: &SessionState,
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
    named: &[Named],
    targets: &mut [Option<TargetTable>],
) -> Result<Vec<Assignment>> {
    let mut assignments = Vec::new();
    loop {
        let mut path = vec![tokens.name()?];
        while tokens.take(".") {
            path.push(tokens.name()?);
        }
        let (table, column) = assigned_column(session, &path, named)?;
        if !tokens.take("=") {
            tokens.need(":=")?;
        }
        let given = given(tokens, parameters, is_rest)?;
        if let (Some(slot), Some(named)) = (targets.get_mut(table), named.get(table))
            && slot.is_none()
        {
            *slot = Some(TargetTable::find(session, &named.name, Verb::Update)?);
        }
        let kind = targets
            .get(table)
            .and_then(Option::as_ref)
            .and_then(|target| target.table.columns.get(column).map(|spec| &spec.kind));
        if let (CellExpr::List(_), Some(kind)) = (&given, kind) {
            // Reported even if no row is found.
            given.value(kind)?;
        }
        assignments.push(Assignment { table, column, given });
        if !tokens.take(",") {
            return Ok(assignments);
        }
    }
}

/// The table whose column is assigned.
pub(super) fn assigned_column(
    session: &SessionState,
    path: &[String],
    named: &[Named],
) -> Result<(usize, usize)> {
    let name = path.last().map_or("", String::as_str);
    let mut found = None;
    for (index, table) in named.iter().enumerate() {
        let fits = match path {
            [_] => true,
            [alias, _] => *alias == table.alias,
            [database, alias, _] => *alias == table.alias && *database == table.name.database,
            _ => false,
        };
        if !fits {
            continue;
        }
        let known = super::target::table_of(session, &table.name, Verb::Update)?;
        if let Some(column) = known.column(name) {
            if found.is_some() {
                let message = format!("Column '{name}' in field list is ambiguous");
                return Err(Error::new(ErrorCode::AmbiguousColumn, message));
            }
            found = Some((index, column));
        }
    }
    check_found(found, &path.join("."))
}
