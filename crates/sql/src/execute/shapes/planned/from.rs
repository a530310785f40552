//! The tables of a query, and the table that each condition belongs to.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, TableFactor, Visitor,
};
use remora_engine::ColumnType;

use super::super::{
    shape::{ColumnName, ShapeCondition},
    table::ShapeTable,
};
use crate::{
    catalog::{ExpressionSettings, Reader, plain_text},
    parse::Visit,
    resolve::{StatementTable, names_dual, number_of, number_tables},
    state::SessionState,
};

/// The most tables of a query.
const MAX_TABLES: usize = 16;

/// All tables of a query, including those of its subqueries.
pub(super) struct PlanTables {
    pub all: Vec<ShapeTable>,
    /// The number of each in the statement ([`number_tables`]).
    numbers: Vec<u64>,
    /// The session's variables that decide the values of expressions.
    expression_settings: ExpressionSettings,
}

/// The tables in the FROM of one SELECT.
pub(super) struct JoinedTables<'t> {
    all: &'t [ShapeTable],
    numbers: &'t [u64],
    /// In the order of the text.
    tables: Vec<FromTable>,
    /// Whether FROM also has other relations, such as derived tables, whose columns are unknown here.
    has_others: bool,
    /// The session's variables that decide the values of expressions.
    expression_settings: ExpressionSettings,
}

/// A table in FROM.
struct FromTable {
    /// Its index among all tables.
    table: usize,
    /// The comma-separated part of FROM that it is in, and its place in that part. ON may only name tables before it.
    part: (usize, usize),
    /// Whether an outer join may extend rows with NULLs in its place.
    may_miss: bool,
}

impl PlanTables {
    /// The tables of a query, which are numbered; `None` if it locks rows, if a table is not one of the engine, or if
    /// the session has uncommitted changes in it.
    pub(super) fn of(query: &mut Query, session: &SessionState, reader: &Reader) -> Option<Self> {
        number_tables(query);
        let (all, numbers, named) = (Vec::new(), Vec::new(), Vec::new());
        let mut seeking = Seeking { session, reader, all, numbers, named };
        if Visit::visit(&*query, &mut seeking).is_break() {
            return None;
        }
        let Seeking { all, numbers, .. } = seeking;
        let variables = &session.variables;
        let expression_settings = ExpressionSettings::new(
            variables.collation_connection,
            &variables.time_zone.zone,
            variables.sql_mode,
        );
        (all.len() <= MAX_TABLES).then_some(Self { all, numbers, expression_settings })
    }

    /// The tables in the FROM of a SELECT.
    pub(super) fn joined_by(&self, select: &Select) -> JoinedTables<'_> {
        let mut joined = JoinedTables {
            all: &self.all,
            numbers: &self.numbers,
            tables: Vec::new(),
            has_others: false,
            expression_settings: self.expression_settings,
        };
        for (at, from) in select.from.iter().enumerate() {
            let start = joined.tables.len();
            joined.add(&from.relation, (at, 0), false);
            for (place, Join { relation, join_operator, .. }) in from.joins.iter().enumerate() {
                joined.add(relation, (at, place + 1), is_left(join_operator));
                if !is_left(join_operator) && !is_inner(join_operator) {
                    for outer in joined.tables.iter_mut().skip(start) {
                        outer.may_miss = true;
                    }
                }
            }
        }
        joined
    }

    /// The table of a scan, given its relation name in the plan and the places of all tables.
    pub(super) fn of_relation(&self, relation: &str, places: &[StatementTable]) -> Option<usize> {
        let place = places.iter().find(|place| place.unique == relation)?;
        self.numbers.iter().position(|number| *number == place.number)
    }
}

impl JoinedTables<'_> {
    fn add(&mut self, factor: &TableFactor, part: (usize, usize), may_miss: bool) {
        // MySQL and MariaDB write the joins of a view so.
        if let TableFactor::NestedJoin { table_with_joins: nested, alias: None } = factor {
            let start = self.tables.len();
            self.add(&nested.relation, part, may_miss);
            for Join { relation, join_operator, .. } in &nested.joins {
                self.add(relation, part, may_miss || is_left(join_operator));
                if !is_left(join_operator) && !is_inner(join_operator) {
                    self.tables.iter_mut().skip(start).for_each(|outer| outer.may_miss = true);
                }
            }
            return;
        }
        match self.place(factor) {
            Some(table) => self.tables.push(FromTable { table, part, may_miss }),
            None => self.has_others = true,
        }
    }

    /// The table that a relation is, among all tables.
    fn place(&self, factor: &TableFactor) -> Option<usize> {
        let TableFactor::Table { name, .. } = factor else { return None };
        let number = number_of(name);
        self.numbers.iter().position(|it| *it == number)
    }

    /// The table that a WHERE condition can be pushed down to.
    pub(super) fn of_where(&self, condition: &ShapeCondition) -> Option<usize> {
        let outer = self.owner(condition)?;
        (!outer.may_miss).then_some(outer.table)
    }

    /// The table that an ON condition can be pushed down to. `place` is the join's part of FROM and its place there.
    /// The ON of a LEFT JOIN filters only the table on its right.
    pub(super) fn of_join(
        &self,
        condition: &ShapeCondition,
        join: &Join,
        (part, place): (usize, usize),
    ) -> Option<usize> {
        let outer = self.owner(condition)?;
        if outer.part.0 != part || outer.part.1 > place + 1 {
            return None;
        }
        let is_its_own = self.place(&join.relation) == Some(outer.table);
        let leaves_out = match is_left(&join.join_operator) {
            true => is_its_own,
            false => is_inner(&join.join_operator) && !outer.may_miss,
        };
        leaves_out.then_some(outer.table)
    }

    /// The one table that all columns of a condition belong to.
    fn owner(&self, condition: &ShapeCondition) -> Option<&FromTable> {
        let mut names = Vec::new();
        if !columns(condition, &mut names) {
            return None;
        }
        let mut owner: Option<&FromTable> = None;
        for name in names {
            if name.table.is_none() && self.has_others {
                return None;
            }
            let of = |outer: &&FromTable| {
                self.all.get(outer.table).is_some_and(|table| table.position(name).is_some())
            };
            let mut having = self.tables.iter().filter(of);
            let (Some(having), None) = (having.next(), having.next()) else { return None };
            if owner.is_some_and(|owner| owner.table != having.table) {
                return None;
            }
            owner = Some(having);
        }
        owner
    }

    /// The type of a column of one of the tables; `None` if it is not certain which column that is.
    pub(super) fn kind(&self, column: &ColumnName) -> Option<ColumnType> {
        if column.table.is_none() && self.has_others {
            return None;
        }
        let kind = |outer: &FromTable| {
            let table = self.all.get(outer.table)?;
            Some(table.schema().columns.get(table.position(column)?)?.kind)
        };
        let mut kinds = self.tables.iter().filter_map(kind);
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Some(kind),
            _ => None,
        }
    }

    /// The hidden column of a functional key that holds the values of this expression.
    pub(super) fn hidden_column(&self, expr: &Expr) -> Option<ColumnName> {
        if self.all.iter().all(|table| table.sql.expressions.is_empty()) {
            return None;
        }
        let (called, text) = plain_text(expr)?;
        let is_called =
            |it: &&FromTable| self.all.get(it.table).map(ShapeTable::called) == called.as_deref();
        let from = match (&called, self.tables.as_slice()) {
            (Some(_), all) => all.iter().find(is_called)?,
            // With several tables, an unqualified column might belong to any of them.
            (None, [from]) if !self.has_others && self.all.len() == 1 => from,
            (None, _) => return None,
        };
        if from.may_miss {
            // For a row of NULLs the expression may give another value than the column, which is NULL.
            return None;
        }
        let table = self.all.get(from.table)?;
        let mut keys =
            table.sql.expressions.iter().filter(|key| key.is_for(self.expression_settings));
        let hidden = keys.find(|key| key.text == text)?.position;
        let name = table.schema().columns.get(hidden)?.name.clone();
        Some(ColumnName { table: Some(table.called().to_owned()), name, hidden: Some(hidden) })
    }
}

/// Whether the join is a LEFT JOIN.
pub(super) fn is_left(operator: &JoinOperator) -> bool {
    matches!(operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_))
}

/// Whether the join returns pairs of rows alone.
pub(super) fn is_inner(operator: &JoinOperator) -> bool {
    use JoinOperator::{CrossJoin, Inner, Join, StraightJoin};
    matches!(operator, Join(_) | Inner(_) | CrossJoin(_) | StraightJoin(_))
}

/// The condition of a join, for the supported kinds of joins.
pub(super) fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator::{Inner, Join, Left, LeftOuter, StraightJoin};
    match operator {
        Join(constraint)
        | Inner(constraint)
        | StraightJoin(constraint)
        | Left(constraint)
        | LeftOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// Whether the join may be left without a condition.
pub(super) fn may_be_bare(join: &Join) -> bool {
    is_inner(&join.join_operator)
}

/// A table's name or alias in the query.
fn called(factor: &TableFactor) -> Option<&str> {
    let TableFactor::Table { name, alias, .. } = factor else { return None };
    match alias {
        Some(alias) => Some(alias.name.value.as_str()),
        None => Some(name.0.last()?.as_ident()?.value.as_str()),
    }
}

/// Collects the columns of a condition; false if it is more than comparisons of columns with literals.
fn columns<'c>(condition: &'c ShapeCondition, names: &mut Vec<&'c ColumnName>) -> bool {
    match condition {
        ShapeCondition::Compare(name, ..)
        | ShapeCondition::Between(name, ..)
        | ShapeCondition::Begins(name, _)
        | ShapeCondition::Like(name, _)
        | ShapeCondition::IsNull(name) => {
            names.push(name);
            true
        }
        ShapeCondition::In(of, _) => {
            names.extend(of);
            true
        }
        ShapeCondition::And(parts) | ShapeCondition::Or(parts) => {
            parts.iter().all(|part| columns(part, names))
        }
        ShapeCondition::Not(part) | ShapeCondition::Again(part, _) => columns(part, names),
        ShapeCondition::Match(searched) => {
            names.extend(&searched.columns);
            true
        }
        ShapeCondition::Holds(..) | ShapeCondition::Keywords(_) => false,
    }
}

struct Seeking<'a> {
    session: &'a SessionState,
    reader: &'a Reader,
    all: Vec<ShapeTable>,
    numbers: Vec<u64>,
    /// The names of common table expressions, which hide tables of the same name.
    named: Vec<String>,
}

impl Seeking<'_> {
    /// Whether the name is that of a common table expression.
    fn is_named(&self, name: &ObjectName) -> bool {
        let [part] = name.0.as_slice() else { return false };
        let part = part.as_ident().map(|part| part.value.as_str());
        part.is_some_and(|part| self.named.iter().any(|it| it.eq_ignore_ascii_case(part)))
    }

    fn table(&self, name: &ObjectName, factor: &TableFactor) -> Option<ShapeTable> {
        let names: Option<Vec<&str>> =
            name.0.iter().map(|part| Some(part.as_ident()?.value.as_str())).collect();
        let (database, table) = match names?.as_slice() {
            [table] => (self.session.database.as_deref(), *table),
            [database, table] => (Some(*database), *table),
            _ => return None,
        };
        let called = called(factor);
        let table = ShapeTable::of((database, table), called, &self.session.shared, self.reader)?;
        (!table.is_changed_by(self.session)).then_some(table)
    }
}

impl Visitor for Seeking<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.named.extend(with.cte_tables.iter().map(|it| it.alias.name.value.clone()));
        }
        match query.locks.is_empty() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => {}
            TableFactor::Table { name, .. } if names_dual(name) => {}
            TableFactor::Table { name, args: None, .. } if self.is_named(name) => {}
            TableFactor::Table { name, args: None, .. } => match self.table(name, factor) {
                Some(table) if self.all.len() < MAX_TABLES => {
                    self.all.push(table);
                    self.numbers.push(number_of(name));
                }
                _ => return ControlFlow::Break(()),
            },
            _ => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}
