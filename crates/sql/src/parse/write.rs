//! UPDATE and DELETE as syntax trees, and the expressions of INSERT, REPLACE and LOAD DATA. The parser of SELECT reads
//! their clauses.
//!
//! ```text
//! update := [with] "UPDATE" ["LOW_PRIORITY"] ["IGNORE"] table,* "SET" assignment,* rest
//! delete := [with] "DELETE" ("LOW_PRIORITY" | "QUICK")* ["IGNORE"]
//!           ("FROM" named rest | listed,* "FROM" table,* where | "FROM" listed,* "USING" table,* where)
//! rest   := where ["ORDER" "BY" order,*] ["LIMIT" value]
//! where  := ["WHERE" condition]
//! listed := [database "."] name ["." "*"]
//! assignment := [[database "."] table "."] column ("=" | ":=") (value | "()")
//! ```

use std::{fmt::Display, ops::Range};

use datafusion::sql::sqlparser::{
    ast::{
        self, Expr, GroupByExpr, Ident, LimitClause, OrderBy, OrderByExpr, OrderByKind,
        OrderByOptions, Query, Select, SelectFlavor, SelectItem, SetExpr, TableAlias, TableFactor,
        TableWithJoins, WildcardAdditionalOptions, With, helpers::attached_token::AttachedToken,
    },
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::Token,
};
use remora_engine::Value;

use super::{Source, Statement, depth, keywords, syntax::Part};
use crate::Result;

/// The result type of the parser's own methods.
type Parsed<T> = std::result::Result<T, ParserError>;

/// The tables of an UPDATE or DELETE, and which of their rows it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedRows {
    /// WITH.
    pub with: Option<With>,
    /// FROM.
    pub tables: Vec<TableWithJoins>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// ORDER BY.
    pub order: Vec<OrderByExpr>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// The tokens of the tables.
    pub tables_at: Range<usize>,
    /// The tokens from WHERE, ORDER BY or LIMIT on.
    pub rest_at: Range<usize>,
    /// The OPTION clause, for keyword queries.
    options: Option<String>,
}

/// A column and its new value.
#[derive(Debug)]
pub(crate) struct Assigned {
    /// The column's name with its qualifiers.
    pub path: Vec<String>,
    /// The new value.
    pub value: Expr,
    /// Its tokens.
    pub value_at: Range<usize>,
}

/// An UPDATE.
#[derive(Debug)]
pub(crate) struct Update {
    /// IGNORE.
    pub ignore: bool,
    /// Tables and conditions.
    pub rows: ChangedRows,
    /// SET.
    pub assignments: Vec<Assigned>,
}

/// A table that a DELETE lists: its database and its name or alias.
pub(crate) type Listed = (Option<String>, String);

/// A DELETE.
#[derive(Debug)]
pub(crate) struct Delete {
    /// IGNORE.
    pub ignore: bool,
    /// The tables to delete from, if they are listed beside those that are read.
    pub listed: Option<Vec<Listed>>,
    /// Tables and conditions.
    pub rows: ChangedRows,
}

impl ChangedRows {
    /// The SELECT of these items from the rows.
    pub(crate) fn select(&self, items: Vec<Expr>) -> Query {
        let from = self.tables.clone();
        let select = Select { selection: self.condition.clone(), ..select_from(items, from) };
        let body = SetExpr::Select(Box::new(select));
        let mut query = Query { with: self.with.clone(), ..query_of(body) };
        if !self.order.is_empty() {
            let kind = OrderByKind::Expressions(self.order.clone());
            query.order_by = Some(OrderBy { kind, interpolate: None });
        }
        query.limit_clause = self.limit.clone().map(limit_of);
        match &self.options {
            None => query,
            Some(options) => {
                let mut statement = ast::Statement::Query(Box::new(query));
                // Without a keyword query they have no effect here.
                keywords::set_options(&mut statement, options);
                match statement {
                    ast::Statement::Query(query) => *query,
                    _ => query_from(Vec::new(), Vec::new()),
                }
            }
        }
    }

    /// The SELECT of these items from the tables, whatever the conditions are, and of so many rows at most.
    pub(crate) fn select_any(&self, items: Vec<Expr>, most: Option<u8>) -> Query {
        let query = query_from(items, self.tables.clone());
        let limit_clause = most.map(|most| limit_of(number(most)));
        Query { with: self.with.clone(), limit_clause, ..query }
    }

    /// The SELECT of 1 and of these items from the rows.
    pub(crate) fn select_with_one(&self, mut items: Vec<Expr>) -> Query {
        items.insert(0, number(1));
        self.select(items)
    }

    /// Whether it is a single table.
    pub(crate) fn is_one_table(&self) -> bool {
        match self.tables.as_slice() {
            [only] => only.joins.is_empty() && matches!(only.relation, TableFactor::Table { .. }),
            _ => false,
        }
    }

    /// Whether it is a single table whose rows may be found by keys alone.
    pub(crate) fn may_name_keys(&self) -> bool {
        let is_first_of = self.limit.is_some() || !self.order.is_empty();
        self.is_one_table() && self.condition.is_some() && !is_first_of && self.with.is_none()
    }

    /// Only the positions of the tables and of the clauses after them.
    pub(crate) fn at(tables_at: Range<usize>, rest_at: Range<usize>) -> Self {
        Self { tables_at, rest_at, ..Self::default() }
    }
}

/// The query that finds the rows that a statement changes.
#[derive(Debug)]
pub(crate) struct ChangedQuery {
    /// Tables and conditions of the statement; none if its text holds the rows.
    pub rows: ChangedRows,
    /// Of their keys and the new values.
    pub query: Query,
}

/// A query that finds rows for a statement that changes or locks them.
#[derive(Debug)]
pub(crate) struct SoughtRows {
    pub query: Query,
    /// The tokens of the statement that decide the query; none if others do too.
    pub tokens: Vec<Range<usize>>,
    /// Which of the queries that these tokens decide it is.
    pub number: u8,
}

impl ChangedQuery {
    /// What it selects, if that is nothing but columns.
    pub(crate) fn columns(&self) -> Option<Vec<Expr>> {
        let SetExpr::Select(select) = self.query.body.as_ref() else { return None };
        let column = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                Some(expr.clone())
            }
            _ => None,
        };
        select.projection.iter().map(column).collect()
    }
}

/// `SELECT items FROM tables`.
pub(crate) fn select_from(items: Vec<Expr>, from: Vec<TableWithJoins>) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: items.into_iter().map(SelectItem::UnnamedExpr).collect(),
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

/// `AS name`.
pub(crate) fn table_alias(name: &str) -> TableAlias {
    let name = Ident::with_quote('`', name);
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// A derived table in FROM.
pub(crate) fn derived_table(query: Query, alias: TableAlias) -> TableFactor {
    let subquery = Box::new(query);
    TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None }
}

/// A table in FROM, by the parts of its name.
pub(crate) fn table_named(parts: &[&str], alias: Option<&str>) -> TableWithJoins {
    let parts = parts.iter().map(|part| Ident::with_quote('`', *part));
    let relation = TableFactor::Table {
        name: parts.collect::<Vec<_>>().into(),
        alias: alias.map(table_alias),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    TableWithJoins { relation, joins: Vec::new() }
}

/// A column, by the parts of its name.
pub(crate) fn column_named<T: AsRef<str>>(parts: &[T]) -> Expr {
    let quoted = |part: &T| Ident::with_quote('`', part.as_ref());
    match parts {
        [name] => Expr::Identifier(quoted(name)),
        parts => Expr::CompoundIdentifier(parts.iter().map(quoted).collect()),
    }
}

/// The query of a SELECT.
pub(crate) fn query_from(items: Vec<Expr>, from: Vec<TableWithJoins>) -> Query {
    query_of(SetExpr::Select(Box::new(select_from(items, from))))
}

/// The query with ORDER BY.
pub(crate) fn in_order(query: Query, by: Expr) -> Query {
    let options = OrderByOptions { asc: None, nulls_first: None };
    let by = OrderByExpr { expr: by, options, with_fill: None };
    let order_by = OrderBy { kind: OrderByKind::Expressions(vec![by]), interpolate: None };
    Query { order_by: Some(order_by), ..query }
}

/// A query that consists of a body only.
pub(crate) fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// A number as a literal.
pub(crate) fn number(number: impl Display) -> Expr {
    Expr::Value(ast::Value::Number(number.to_string(), false).into())
}

/// LIMIT.
pub(crate) fn limit_of(limit: Expr) -> LimitClause {
    LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by: Vec::new() }
}

/// An UPDATE. 1064 with the place if it is none.
pub(crate) fn update(statement: &Statement<'_>) -> Result<Update> {
    let (mut ignore, mut assignments) = (false, Vec::new());
    let rows = read(statement, &mut |parser, reading, rows| {
        rows.with = with(parser)?;
        parser.expect_keyword_is(Keyword::UPDATE)?;
        let _ = parser.parse_keyword(Keyword::LOW_PRIORITY);
        ignore = parser.parse_keyword(Keyword::IGNORE);
        reading.tables(parser, rows)?;
        parser.expect_keyword_is(Keyword::SET)?;
        assignments = reading.assignments(parser)?;
        reading.rest(parser, rows)
    })?;
    Ok(Update { ignore, rows, assignments })
}

/// A DELETE. 1064 with the place if it is none.
pub(crate) fn delete(statement: &Statement<'_>) -> Result<Delete> {
    let (mut ignore, mut listed) = (false, None);
    let rows = read(statement, &mut |parser, reading, rows| {
        rows.with = with(parser)?;
        parser.expect_keyword_is(Keyword::DELETE)?;
        while parser.parse_keyword(Keyword::LOW_PRIORITY) || parse_word(parser, "QUICK") {}
        ignore = parser.parse_keyword(Keyword::IGNORE);
        if !parser.parse_keyword(Keyword::FROM) || lists_tables(parser) {
            listed = Some(parser.parse_comma_separated(listed_table)?);
            if !parser.parse_keyword(Keyword::USING) {
                parser.expect_keyword_is(Keyword::FROM)?;
            }
        }
        // Without a list it is one table. Only then LIMIT is allowed.
        match listed.is_some() {
            true => {
                reading.tables(parser, rows)?;
                reading.condition(parser, rows)
            }
            false => {
                reading.one_table(parser, rows)?;
                reading.rest(parser, rows)
            }
        }
    })?;
    Ok(Delete { ignore, listed, rows })
}

/// The tables of a statement that changes rows, and the conditions behind them, which are all that its tokens are.
pub(crate) fn changed_rows(statement: &Statement<'_>) -> Result<ChangedRows> {
    read(statement, &mut |parser, reading, rows| {
        reading.tables(parser, rows)?;
        reading.rest(parser, rows)
    })
}

/// The assignments `a = 1, b = c + 1` that these tokens are.
pub(crate) fn assignments(
    source: &Source,
    tokens: Range<usize>,
    parameters: &[Value],
) -> Result<Vec<Assigned>> {
    depth::check(source, std::slice::from_ref(&tokens))?;
    let (mut found, reading) = (Vec::new(), Reading { source, end: tokens.end });
    Part { end: tokens.end, tokens }.read(source, parameters, &mut |parser| {
        found = reading.assignments(parser)?;
        Ok(())
    })?;
    Ok(found)
}

/// Expressions of a statement: their tokens, and the values of the `?` among them. They are to be planned together.
pub(crate) fn expressions(source: &Source, all: &[(Range<usize>, &[Value])]) -> Result<Vec<Expr>> {
    let ranges: Vec<Range<usize>> = all.iter().map(|(tokens, _)| tokens.clone()).collect();
    depth::check(source, &ranges)?;
    let mut found = Vec::with_capacity(all.len());
    for (tokens, parameters) in all {
        let part = Part { tokens: tokens.clone(), end: tokens.end };
        part.read(source, parameters, &mut |parser| {
            found.push(parser.parse_expr()?);
            Ok(())
        })?;
    }
    Ok(found)
}

/// The SELECT of the items that these tokens are.
pub(crate) fn query_of_items(
    source: &Source,
    tokens: Range<usize>,
    parameters: &[Value],
    from: Vec<TableWithJoins>,
) -> Result<Query> {
    depth::check(source, std::slice::from_ref(&tokens))?;
    let mut select = select_from(Vec::new(), from);
    Part { end: tokens.end, tokens }.read(source, parameters, &mut |parser| {
        select.projection = parser.parse_projection()?;
        Ok(())
    })?;
    Ok(query_of(SetExpr::Select(Box::new(select))))
}

/// `SELECT * FROM table WHERE condition`.
pub(crate) fn query_of_all(table: TableWithJoins, condition: Option<Expr>) -> Query {
    let mut select = Select { selection: condition, ..select_from(Vec::new(), vec![table]) };
    select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
    query_of(SetExpr::Select(Box::new(select)))
}

/// Reads a whole statement, but for its OPTION clause.
fn read(
    statement: &Statement<'_>,
    read: &mut dyn FnMut(&mut Parser<'_>, &Reading<'_>, &mut ChangedRows) -> Parsed<()>,
) -> Result<ChangedRows> {
    let (source, parameters) = (&statement.source, statement.parameters);
    let all = 0..source.tokens.len();
    depth::check(source, std::slice::from_ref(&all))?;
    let options = keywords::option_clause(source, &all, parameters)?;
    let end = options.as_ref().map_or(all.end, |(start, _)| *start);
    let reading = Reading { source, end };
    let mut rows = ChangedRows::default();
    let part = Part { tokens: 0..end, end: all.end };
    part.read(source, parameters, &mut |parser| read(parser, &reading, &mut rows))?;
    if let Some((start, options)) = options {
        if rows.limit.is_some() {
            return Err(source.syntax_error(start));
        }
        rows.options = Some(options);
        rows.rest_at.end = all.end;
    }
    Ok(rows)
}

/// A statement that is read.
struct Reading<'s> {
    source: &'s Source,
    /// The end of the tokens that are read.
    end: usize,
}

impl Reading<'_> {
    /// The index of the parser's next token in the statement.
    fn at(&self, parser: &Parser<'_>) -> usize {
        let column = parser.peek_token_ref().span.start.column as usize;
        match column.checked_sub(1) {
            None => self.end,
            Some(place) => self.source.tokens.partition_point(|token| token.start < place),
        }
    }

    fn tables(&self, parser: &mut Parser<'_>, rows: &mut ChangedRows) -> Parsed<()> {
        let start = self.at(parser);
        rows.tables = parser.parse_comma_separated(Parser::parse_table_and_joins)?;
        rows.tables_at = start..self.at(parser);
        Ok(())
    }

    /// The only table of a statement, with an alias or not.
    fn one_table(&self, parser: &mut Parser<'_>, rows: &mut ChangedRows) -> Parsed<()> {
        let start = self.at(parser);
        if parser.peek_token_ref().token == Token::LParen {
            return parser.expected_ref("a table", parser.peek_token_ref());
        }
        let relation = parser.parse_table_factor()?;
        rows.tables = vec![TableWithJoins { relation, joins: Vec::new() }];
        rows.tables_at = start..self.at(parser);
        Ok(())
    }

    fn condition(&self, parser: &mut Parser<'_>, rows: &mut ChangedRows) -> Parsed<()> {
        let start = self.at(parser);
        if parser.parse_keyword(Keyword::WHERE) {
            rows.condition = Some(parser.parse_expr()?);
        }
        rows.rest_at = start..self.at(parser);
        Ok(())
    }

    fn rest(&self, parser: &mut Parser<'_>, rows: &mut ChangedRows) -> Parsed<()> {
        self.condition(parser, rows)?;
        let start = rows.rest_at.start;
        if parser.parse_keywords(&[Keyword::ORDER, Keyword::BY]) {
            rows.order = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
        }
        if parser.parse_keyword(Keyword::LIMIT) {
            // A number or `?`, no expression.
            rows.limit = Some(parser.parse_prefix()?);
        }
        rows.rest_at = start..self.at(parser);
        Ok(())
    }

    fn assignments(&self, parser: &mut Parser<'_>) -> Parsed<Vec<Assigned>> {
        parser.parse_comma_separated(|parser| {
            let mut path = vec![name(parser)?];
            while parser.consume_token(&Token::Period) {
                path.push(name(parser)?);
            }
            if !parser.consume_token(&Token::Assignment) {
                parser.expect_token(&Token::Eq)?;
            }
            let start = self.at(parser);
            let value = value(parser)?;
            Ok(Assigned { path, value, value_at: start..self.at(parser) })
        })
    }
}

/// WITH, if it comes next.
fn with(parser: &mut Parser<'_>) -> Parsed<Option<With>> {
    if !parser.parse_keyword(Keyword::WITH) {
        return Ok(None);
    }
    let with_token = parser.get_current_token().clone().into();
    let recursive = parser.parse_keyword(Keyword::RECURSIVE);
    let cte_tables = parser.parse_comma_separated(Parser::parse_cte)?;
    Ok(Some(With { with_token, recursive, cte_tables }))
}

/// An expression, or `()`, the empty set.
fn value(parser: &mut Parser<'_>) -> Parsed<Expr> {
    let is_empty = parser.peek_token_ref().token == Token::LParen
        && parser.peek_nth_token_ref(1).token == Token::RParen;
    if !is_empty {
        return parser.parse_expr();
    }
    parser.advance_token();
    parser.advance_token();
    Ok(Expr::Tuple(Vec::new()))
}

/// A name, which no variable is.
fn name(parser: &mut Parser<'_>) -> Parsed<String> {
    match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_some() || !word.value.starts_with('@') => {
            parser.parse_identifier().map(|name| name.value)
        }
        _ => parser.expected_ref("a name", parser.peek_token_ref()),
    }
}

fn parse_word(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let is_it = match &parser.peek_token_ref().token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        _ => false,
    };
    if is_it {
        parser.advance_token();
    }
    is_it
}

/// Whether DELETE FROM is followed by a list of tables to delete from, not by the tables that are read.
fn lists_tables(parser: &Parser<'_>) -> bool {
    let mut behind = 1;
    while parser.peek_nth_token_ref(behind).token == Token::Period {
        behind += 2;
    }
    match &parser.peek_nth_token_ref(behind).token {
        Token::Comma => true,
        Token::Word(word) => word.keyword == Keyword::USING,
        _ => false,
    }
}

fn listed_table(parser: &mut Parser<'_>) -> Parsed<Listed> {
    let first = name(parser)?;
    if !parser.consume_token(&Token::Period) || parser.consume_token(&Token::Mul) {
        return Ok((None, first));
    }
    let table = name(parser)?;
    if parser.consume_token(&Token::Period) {
        parser.expect_token(&Token::Mul)?;
    }
    Ok((Some(first), table))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    fn statement(text: &str) -> Statement<'static> {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().remove(0);
        Statement { source: Arc::new(source), parameters: &[] }
    }

    fn shown(rows: &ChangedRows) -> String {
        rows.select(vec![Expr::Value(ast::Value::Null.into())]).to_string()
    }

    #[test]
    fn an_update_has_tables_assignments_and_conditions() {
        let text = "update ignore t as x join u using (id) set x.a = u.b + 1, b := (), c = default \
                    where x.limit > 2 order by x.order desc limit 3";
        let statement = statement(text);
        let read = update(&statement).unwrap();
        assert!(read.ignore);
        let assigned: Vec<_> = read.assignments.iter().map(|each| each.path.join(".")).collect();
        assert_eq!(assigned, ["x.a", "b", "c"]);
        assert_eq!(read.assignments[0].value.to_string(), "u.b + 1");
        let text_of = |range: &Range<usize>| {
            let tokens = &statement.source.tokens[range.clone()];
            text[tokens[0].start..tokens[tokens.len() - 1].end].to_owned()
        };
        assert_eq!(text_of(&read.assignments[0].value_at), "u.b + 1");
        assert_eq!(text_of(&read.assignments[1].value_at), "()");
        assert_eq!(text_of(&read.assignments[2].value_at), "default");
        assert_eq!(text_of(&read.rows.tables_at), "t as x join u using (id)");
        assert!(text_of(&read.rows.rest_at).starts_with("where x.limit"));
        assert_eq!(
            shown(&read.rows),
            "SELECT NULL FROM t AS x JOIN u USING(id) WHERE x.limit > 2 ORDER BY x.order DESC LIMIT 3"
        );
    }

    #[test]
    fn a_delete_may_list_its_tables() {
        let listed = |text: &str| delete(&statement(text)).unwrap().listed;
        let of = |table: &str| (None, table.to_owned());
        assert_eq!(listed("delete low_priority quick from t where a = 1"), None);
        assert_eq!(listed("delete from t as a order by b limit 1"), None);
        assert_eq!(listed("delete a, b.* from a join b"), Some(vec![of("a"), of("b")]));
        let (database, table) = (Some("d".to_owned()), "a".to_owned());
        assert_eq!(
            listed("delete from d.a.*, b using d.a, b"),
            Some(vec![(database, table), of("b")])
        );
        assert_eq!(listed("delete from t using t"), Some(vec![of("t")]));
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text: &str| match text.starts_with("update") {
            true => update(&statement(text)).unwrap_err().message,
            false => delete(&statement(text)).unwrap_err().message,
        };
        let is_near = |text: &str, place: &str| {
            let message = error(text);
            assert!(message.ends_with(&format!("near '{place}' at line 1")), "{text}: {message}");
        };
        is_near("update t set", "");
        is_near("update t set a 1", "1");
        is_near("update t set @a = 1", "@a = 1");
        is_near("update t set a = 1 2", "2");
        is_near("update t set a = 1 limit 1 + 1", "+ 1");
        is_near("delete from t where", "");
        is_near("delete a from", "");
        is_near("delete from t limit 1, 2", ", 2");
        is_near("delete a.b.c from t", "c from t");
    }

    #[test]
    fn expressions_are_read_where_they_stand() {
        let statement = statement("insert into t values (1 + 2, if(a, 'x', b), 1 +)");
        let read = |range| expressions(&statement.source, &[(range, &[])]);
        assert_eq!(read(5..8).unwrap()[0].to_string(), "1 + 2");
        assert_eq!(read(9..17).unwrap()[0].to_string(), "if(a, 'x', b)");
        let message = read(18..20).unwrap_err().message;
        assert!(message.ends_with("near ')' at line 1"), "{message}");
    }
}
