//! FROM: the relations of a query and the columns of its joins.

use std::sync::Arc;

use datafusion::{
    catalog::TableProvider,
    common::Constraint,
    sql::sqlparser::ast::{
        BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, TableFactor,
        TableIndexHints, TableWithJoins,
    },
};
use remora_mysql::ErrorCode;

use super::{
    Env, Resolver, clauses, column_counts,
    expr::ClauseContext,
    hints, json_table, named_once,
    places::{SelectKind, SelectPosition, StatementTable, number_of},
    scope::{Clause, NamedColumn, Relation, Scope, Visible, quoted, unknown_column},
    view_text,
};
use crate::{
    Error, Result,
    catalog::{Origin, ROW_NUMBER, TableName},
    parse::{function_call, write::table_alias},
    scan::EngineTable,
};

/// The most tables of a FROM, as in MySQL.
const MAX_TABLES: usize = 61;

/// Relations, and the columns that can be named without a qualifier.
type Joined = (Vec<Relation>, Vec<Visible>);

/// The side of an outer join whose rows are all kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Left,
    Right,
}

impl Resolver<'_> {
    /// Resolves FROM into the scope.
    pub(super) fn from(
        &mut self,
        from: &mut Vec<TableWithJoins>,
        scope: &mut Scope<'_>,
        env: Env<'_>,
    ) -> Result<()> {
        if is_dual(from) {
            from.clear();
        }
        let outer = std::mem::take(&mut self.reached);
        let mut made: Vec<TableWithJoins> = Vec::with_capacity(from.len());
        let turn = self.turn;
        let is_alone = matches!(from.as_slice(), [only] if only.joins.is_empty());
        self.turn = turn.within(is_alone);
        for mut each in std::mem::take(from) {
            let (relations, visible) = self.joined(&mut each, scope, env)?;
            let reached = std::mem::take(&mut self.reached);
            match are_named(&scope.relations, &reached) {
                true => made = vec![json_table::joined(made, each)?],
                false => made.push(each),
            }
            scope.add(relations, visible)?;
            check_count(scope.relations.len())?;
        }
        self.turn = turn;
        *from = made;
        self.reached = outer;
        Ok(())
    }

    /// Resolves one comma-separated part of FROM. Only LATERAL may refer to the parts before it.
    fn joined(
        &mut self,
        from: &mut TableWithJoins,
        before: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<Joined> {
        let mut joined = self.factor(&mut from.relation, before, env)?;
        for join in &mut from.joins {
            let mut lateral = Scope::new(env.scope);
            lateral.add(before.relations.clone(), before.visible.clone())?;
            lateral.add(joined.0.clone(), joined.1.clone())?;
            let place = view_text::place_of(&join.relation);
            // The right side of a RIGHT JOIN may not depend on rows of the left one.
            let seen = if is_right(&join.join_operator) { before } else { &lateral };
            let is_nested = matches!(join.relation, TableFactor::NestedJoin { .. });
            let known = self.reached.len();
            let right = self.factor(&mut join.relation, seen, env)?;
            let reached = self.reached.get(known..).unwrap_or_default();
            if is_nested && are_named(&lateral.relations, reached) {
                let what = "JSON_TABLE within parentheses of a column of a table before them";
                return Err(Error::unsupported(what));
            }
            self.reached.retain(|name| !joined.0.iter().any(|known| known.unique == *name));
            if let Some(JoinConstraint::Natural) = constraint_of(&join.join_operator) {
                self.note_natural(place, &common_names(&joined.1, &right.1));
            }
            joined = self.join(&mut join.join_operator, joined, right, env)?;
            check_count(joined.0.len())?;
        }
        Ok(joined)
    }

    fn join(
        &mut self,
        operator: &mut JoinOperator,
        left: Joined,
        right: Joined,
        env: Env<'_>,
    ) -> Result<Joined> {
        let (side, constraint) = taken(operator)?;
        let on = match constraint {
            JoinConstraint::On(mut expr) => {
                let mut scope = Scope::new(env.scope);
                scope.add(left.0.clone(), left.1.clone())?;
                scope.add(right.0.clone(), right.1.clone())?;
                self.expr(&mut expr, &scope, env, ClauseContext::plain(Clause::On))?;
                Some(expr)
            }
            JoinConstraint::None => None,
            JoinConstraint::Using(names) => {
                let names = names.iter().map(last_name).collect();
                let (joined, on) = merged(left, right, names, side)?;
                set(operator, side, on);
                return Ok(joined);
            }
            JoinConstraint::Natural => {
                let names = common_names(&left.1, &right.1);
                let (joined, on) = merged(left, right, names, side)?;
                set(operator, side, on);
                return Ok(joined);
            }
        };
        set(operator, side, on);
        let (mut relations, mut visible) = left;
        relations.extend(right.0);
        visible.extend(right.1);
        Ok((relations, visible))
    }

    fn factor(
        &mut self,
        factor: &mut TableFactor,
        before: &Scope<'_>,
        env: Env<'_>,
    ) -> Result<Joined> {
        clauses::check(factor)?;
        match factor {
            TableFactor::Table { name, alias: named, args: None, index_hints, .. } => {
                let hints = std::mem::take(index_hints);
                let given = named.take().map(|named| named.name.value);
                if let Some((made, relation)) = self.view(name, given.as_deref(), env)? {
                    hints::check_none(&hints, &relation.alias)?;
                    *factor = made;
                    let visible = relation.visible();
                    return Ok((vec![relation], visible));
                }
                let relation = self.table(name, given, &hints, env)?;
                *named = Some(table_alias(&relation.unique));
                let visible = relation.visible();
                Ok((vec![relation], visible))
            }
            TableFactor::Derived { lateral, subquery, alias: named, .. } => {
                let given = match named.take() {
                    Some(given) => given,
                    // Sphinx's outer SELECT names no query.
                    None if self.is_sphinx() => table_alias("subselect"),
                    None => return Err(without_alias()),
                };
                let columns: Vec<String> =
                    given.columns.iter().map(|column| column.name.value.clone()).collect();
                let names = (!columns.is_empty()).then_some(columns);
                let scope = if *lateral { Some(before) } else { env.scope };
                let standing = SelectPosition::of(SelectKind::Derived);
                let outputs =
                    self.query(subquery, Env { scope, standing, ..env }, names.as_deref())?;
                if names.as_ref().is_some_and(|names| names.len() != outputs.len()) {
                    return Err(column_counts());
                }
                let determining = std::mem::take(&mut self.determining);
                let unique = self.unique(&given.name.value);
                *named = Some(table_alias(&unique));
                let relation = Relation {
                    alias: given.name.value,
                    database: None,
                    unique,
                    columns: named_once(&outputs)?,
                    key: Vec::new(),
                    determining,
                    is_view: false,
                };
                let visible = relation.visible();
                Ok((vec![relation], visible))
            }
            TableFactor::JsonTable { json_expr, json_path, columns, alias: named } => {
                let Some(given) = named.take() else { return Err(json_table::without_alias()) };
                let (path, called) = (&*json_path, given.name.value);
                let parsed =
                    json_table::ParsedJsonTable { document: json_expr, path, columns, called };
                let (made, relation) = self.json_table(parsed, before, env)?;
                *factor = made;
                let visible = relation.visible();
                Ok((vec![relation], visible))
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.joined(table_with_joins, before, env)
            }
            other => Err(Error::unsupported(&*other)),
        }
    }

    fn table(
        &mut self,
        name: &mut ObjectName,
        given: Option<String>,
        hints: &[TableIndexHints],
        env: Env<'_>,
    ) -> Result<Relation> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let (database, table) = match parts.as_slice() {
            [table] => (None, table.value.clone()),
            [database, table] => (Some(database.value.clone()), table.value.clone()),
            _ => return Err(Error::unsupported(&*name)),
        };
        let called = given.clone().unwrap_or_else(|| table.clone());
        let unique = self.unique(&called);
        self.parts += 1;
        if database.is_none()
            && let Some(common) = env.common.and_then(|all| all.find(&table))
        {
            self.count_copy(common)?;
            *name = ObjectName::from(vec![quoted(&common.unique)]);
            return Ok(Relation {
                alias: called,
                database: None,
                unique,
                columns: common.columns.clone(),
                key: Vec::new(),
                determining: common.determining.clone(),
                is_view: false,
            });
        }
        let database = match database {
            Some(database) => database,
            // Tables of a stored view always have a database.
            None if !self.within.is_empty() => return Err(Error::unsupported(&*name)),
            None => self.catalog.database()?.to_owned(),
        };
        let full = TableName::new(database, table);
        let provider = self.catalog.table_with(&full, &self.requested_tables(&full, &called))?;
        let provider = self.hinted(provider, &called, hints)?;
        let written: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        self.note_relation(&written, given.as_deref(), &full, &unique);
        let number = number_of(name);
        *name = ObjectName::from(vec![quoted(&unique)]);
        let (columns, key) = described(provider.as_ref());
        let any: &dyn std::any::Any = provider.as_ref();
        let is_system = !any.is::<EngineTable>();
        self.tables.push((unique.clone(), provider));
        let SelectPosition { select, kind, .. } = env.standing;
        let (unique_name, alias) = (unique.clone(), called.clone());
        let place = StatementTable { unique: unique_name, alias, select, kind, is_system, number };
        self.places.push(place);
        let is_view = full.database.eq_ignore_ascii_case("information_schema");
        let (database, determining) = (Some(full.database), Vec::new());
        Ok(Relation { alias: called, database, unique, columns, key, determining, is_view })
    }
}

impl Resolver<'_> {
    /// The table with only those indexes that hints permit.
    fn hinted(
        &self,
        provider: Arc<dyn TableProvider>,
        called: &str,
        own: &[TableIndexHints],
    ) -> Result<Arc<dyn TableProvider>> {
        if own.is_empty() && self.hints.is_empty() {
            return Ok(provider);
        }
        let any: &dyn std::any::Any = provider.as_ref();
        let Some(table) = any.downcast_ref::<EngineTable>() else { return Ok(provider) };
        let indexes = hints::allowed(table.sql(), called, own, &self.hints)?;
        Ok(Arc::new(table.with_indexes(indexes)))
    }
}

/// Error 1116 for more tables than MySQL joins.
fn check_count(tables: usize) -> Result<()> {
    if tables <= MAX_TABLES {
        return Ok(());
    }
    let message = format!("Too many tables; MySQL can only use {MAX_TABLES} tables in a join");
    Err(Error::new(ErrorCode::TooManyTables, message))
}

/// Whether it is `FROM dual`, which means no table.
fn is_dual(from: &[TableWithJoins]) -> bool {
    let [TableWithJoins { relation: TableFactor::Table { name, .. }, joins }] = from else {
        return false;
    };
    names_dual(name) && joins.is_empty()
}

/// Whether the name of a table is `dual`, without a database.
pub(crate) fn names_dual(name: &ObjectName) -> bool {
    let [part] = name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case("dual"))
}

/// The columns of a table, and the names of its key columns.
fn described(provider: &dyn TableProvider) -> (Vec<NamedColumn>, Vec<String>) {
    let schema = provider.schema();
    let named = schema.fields().iter().map(|field| {
        let planned = field.name().clone();
        let (shown, invisible) = match Origin::read(field.metadata()) {
            Some(origin) => (origin.column, origin.invisible),
            None => (planned.clone(), false),
        };
        let hidden = invisible || shown == ROW_NUMBER;
        NamedColumn { shown, planned, hidden }
    });
    let columns: Vec<NamedColumn> = named.collect();
    let keys = provider.constraints().into_iter().flat_map(|constraints| constraints.iter());
    let primary = keys.filter_map(|constraint| match constraint {
        Constraint::PrimaryKey(parts) => Some(parts),
        Constraint::Unique(_) => None,
    });
    let parts = primary.flatten().filter_map(|part| columns.get(*part));
    let key = parts.map(|column| column.planned.clone()).collect();
    (columns, key)
}

/// The kept side and the constraint of a join. The constraint is taken out.
fn taken(operator: &mut JoinOperator) -> Result<(Side, JoinConstraint)> {
    let (side, constraint) = match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::StraightJoin(constraint) => (Side::Both, constraint),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (Side::Left, constraint)
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (Side::Right, constraint)
        }
        _ => return Err(Error::unsupported("this kind of JOIN")),
    };
    Ok((side, std::mem::replace(constraint, JoinConstraint::None)))
}

/// Whether one of these relations is among the names.
fn are_named(relations: &[Relation], names: &[String]) -> bool {
    relations.iter().any(|known| names.contains(&known.unique))
}

/// Whether it is a RIGHT JOIN.
pub(super) fn is_right(operator: &JoinOperator) -> bool {
    matches!(operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_))
}

/// The constraint of a join.
fn constraint_of(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint) => Some(constraint),
        _ => None,
    }
}

fn set(operator: &mut JoinOperator, side: Side, on: Option<Expr>) {
    *operator = match (side, on) {
        (Side::Both, None) => JoinOperator::CrossJoin(JoinConstraint::None),
        (Side::Both, Some(on)) => JoinOperator::Inner(JoinConstraint::On(on)),
        (Side::Left, Some(on)) => JoinOperator::Left(JoinConstraint::On(on)),
        (Side::Right, Some(on)) => JoinOperator::Right(JoinConstraint::On(on)),
        (Side::Left, None) => JoinOperator::Left(JoinConstraint::On(always())),
        (Side::Right, None) => JoinOperator::Right(JoinConstraint::On(always())),
    };
}

fn always() -> Expr {
    Expr::Value(datafusion::sql::sqlparser::ast::Value::Boolean(true).into())
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map_or(String::new(), |part| part.value.clone())
}

/// The column names that both sides have, in the left side's order.
fn common_names(left: &[Visible], right: &[Visible]) -> Vec<String> {
    let lower = |visible: &Visible| visible.name.shown.to_lowercase();
    let has = |name: &String| right.iter().any(|other| other.name.is(name));
    let shown = left.iter().filter(|visible| !visible.name.hidden);
    shown.map(lower).filter(has).collect()
}

/// A join by USING or NATURAL: columns with common names are merged. They come first, in the order of the left side, or of
/// the right side of a RIGHT JOIN.
fn merged(
    left: Joined,
    right: Joined,
    mut names: Vec<String>,
    side: Side,
) -> Result<(Joined, Option<Expr>)> {
    let mut merged = Vec::new();
    let mut on: Option<Expr> = None;
    let leading = if side == Side::Right { &right.1 } else { &left.1 };
    let place = |lower: String| leading.iter().position(|each| each.name.is(&lower));
    names.sort_by_key(|name| place(name.to_lowercase()).unwrap_or(usize::MAX));
    names.dedup_by_key(|name| name.to_lowercase());
    for name in &names {
        let (a, b) = (only_column(name, &left.1)?, only_column(name, &right.1)?);
        let same = binary(a.expr.clone(), BinaryOperator::Eq, b.expr.clone());
        on = Some(match on {
            Some(before) => binary(before, BinaryOperator::And, same),
            None => same,
        });
        merged.push(match side {
            Side::Right => Visible { name: a.name, ..b },
            _ => a,
        });
    }
    let is_merged =
        |visible: &Visible| names.iter().any(|name| visible.name.is(&name.to_lowercase()));
    // A RIGHT JOIN lists the right side's columns first.
    let (first, second) = match side {
        Side::Right => (right.1, left.1),
        _ => (left.1, right.1),
    };
    let rest = first.into_iter().chain(second).filter(|visible| !is_merged(visible));
    merged.extend(rest);
    let mut relations = left.0;
    relations.extend(right.0);
    Ok(((relations, merged), on))
}

/// The column of this name on one side of a join. Errors 1054 and 1052.
fn only_column(name: &str, visible: &[Visible]) -> Result<Visible> {
    let lower = name.to_lowercase();
    let mut found = visible.iter().filter(|each| each.name.is(&lower));
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only.clone()),
        (Some(_), Some(_)) => Err(Error::ambiguous_column(name, Clause::From.name())),
        (None, _) => Err(unknown_column(name, Clause::From)),
    }
}

/// `left op right`.
pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// A constant wrapped in a function, so that it is not taken for a literal.
pub(super) fn opaque(expr: Expr) -> Expr {
    function_call("ifnull", vec![expr.clone(), expr])
}

/// Error 1248.
fn without_alias() -> Error {
    Error::new(ErrorCode::DerivedWithoutAlias, "Every derived table must have its own alias")
}
