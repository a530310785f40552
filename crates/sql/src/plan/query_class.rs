//! How much planning a query needs. Running every rule of DataFusion over a small plan costs more than running the
//! plan. So a query without joins, UNION and subqueries skips the rules for those, and an expression without a table
//! skips nearly all rules.

use std::{ops::ControlFlow, sync::Arc};

use datafusion::{
    execution::{SessionState as PlanState, SessionStateBuilder},
    optimizer::Optimizer,
    physical_optimizer::optimizer::PhysicalOptimizer,
    sql::sqlparser::ast::{
        BinaryOperator, Expr, GroupByExpr, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
        SetExpr, TableFactor, TableWithJoins, Visitor,
    },
};

use super::{
    bare_literals::BareLiterals,
    distinct_keys::{self, DistinctKeys},
    functions,
    gathered::GatherIterations,
    join_order::{self, JoinOrder},
    null_safe::{self, CrossJoins},
    one_group::{self, FiltersAboveOneGroup},
    partitions::{self, PartitionsOfNull},
    pushed::{self, DynamicFilters},
    recursion::Recursions,
    rules,
    unlike::UnlikeKeys,
};
use crate::parse::Visit;

/// The kind of a query, which decides the rules it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryClass {
    /// A SELECT of expressions without a table.
    Constants,
    /// One SELECT of one table.
    OneTable,
    /// Anything.
    Any,
    /// Anything, for a cached plan: joins and sorts stay where they were written.
    Cached,
}

/// Logical rules for joins, subqueries and UNION.
const OF_SEVERAL: [&str; 11] = [
    "rewrite_set_comparison",
    "optimize_unions",
    "unions_to_filter",
    "eliminate_join",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
    "extract_equijoin_predicate",
    "eliminate_cross_join",
    "filter_null_join_keys",
    "eliminate_outer_join",
];
/// Physical rules for the same, and for windows above a limit.
const RUNNING_OF_SEVERAL: [&str; 5] = [
    "join_selection",
    "WindowTopN",
    "LimitPushPastWindows",
    "HashJoinBuffering",
    "TopKRepartition",
];
/// Rules that push down field access of structs. No column is a struct.
const OF_STRUCTURES: [&str; 2] = ["extract_leaf_expressions", "push_down_leaf_projections"];
/// The physical rule that cached plans need: it merges two-step aggregation into one step.
const OF_KEPT: [&str; 1] = ["CombinePartialFinalAggregate"];
/// The rule that expressions need: it replaces some functions by others.
const OF_CONSTANTS: [&str; 1] = ["simplify_expressions"];

impl QueryClass {
    /// The kind of a query.
    pub(crate) fn of(query: &Query) -> Self {
        let SetExpr::Select(select) = query.body.as_ref() else { return Self::Any };
        let mut seen = Seen { queries: 0, tables: 0, aggregates: false };
        if query.with.is_some() || query.visit(&mut seen).is_break() || seen.queries > 1 {
            return Self::Any;
        }
        let is_bare = query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && select.selection.is_none()
            && select.having.is_none()
            && select.distinct.is_none()
            && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
        match seen.tables {
            0 if is_bare && select.from.is_empty() && !seen.aggregates => Self::Constants,
            0 | 1 => Self::OneTable,
            _ => Self::Any,
        }
    }

    /// The rules for this kind of query, selected from the rules for any.
    pub(crate) fn rules_of(self, any: PlanState) -> PlanState {
        let logical = |name: &str| match self {
            Self::Constants => OF_CONSTANTS.contains(&name),
            Self::OneTable => !OF_SEVERAL.contains(&name) && !OF_STRUCTURES.contains(&name),
            Self::Any | Self::Cached => !OF_STRUCTURES.contains(&name),
        };
        let running = |name: &str| match self {
            Self::Constants => false,
            Self::OneTable => !RUNNING_OF_SEVERAL.contains(&name),
            Self::Any => true,
            Self::Cached => OF_KEPT.contains(&name),
        };
        let mut logical_rules = Optimizer::new().rules;
        logical_rules.retain(|rule| logical(rule.name()));
        for rule in logical_rules.iter_mut().filter(|rule| rule.name() == null_safe::REPLACED) {
            *rule = Arc::new(CrossJoins::new());
        }
        for rule in logical_rules.iter_mut().filter(|rule| rule.name() == one_group::REPLACED) {
            *rule = Arc::new(FiltersAboveOneGroup::new());
        }
        // This rule takes two different equalities of one column for a contradiction.
        let place = logical_rules.iter().position(|rule| rule.name() == one_group::REPLACED);
        if let Some(place) = place {
            logical_rules.insert(place, Arc::new(BareLiterals));
            logical_rules.insert(place, Arc::new(UnlikeKeys));
        }
        let place = logical_rules.iter().position(|rule| rule.name() == distinct_keys::BEHIND);
        if let Some(place) = place {
            logical_rules.insert(place + 1, Arc::new(DistinctKeys));
        }
        let place = logical_rules.iter().position(|rule| rule.name() == join_order::BEHIND);
        if let (Self::Any, Some(place)) = (self, place) {
            logical_rules.insert(place + 1, Arc::new(JoinOrder));
        }
        let mut running_rules = PhysicalOptimizer::new().rules;
        running_rules.retain(|rule| running(rule.name()));
        let place = running_rules.iter().position(|rule| rule.name() == partitions::BEHIND);
        if let Some(place) = place {
            running_rules.insert(place + 1, Arc::new(PartitionsOfNull));
        }
        let last = running_rules.iter().rposition(|rule| pushed::REPLACED.contains(&rule.name()));
        if let Some(last) = last {
            running_rules.insert(last + 1, Arc::new(DynamicFilters));
            running_rules.insert(last + 2, Arc::new(GatherIterations));
        }
        running_rules.retain(|rule| !pushed::REPLACED.contains(&rule.name()));
        if matches!(self, Self::Any | Self::Cached) {
            running_rules.insert(0, Arc::new(Recursions));
        }
        let mut config = any.config().clone();
        if matches!(self, Self::Constants | Self::OneTable) {
            // In so small a plan the second pass finds nothing.
            config.options_mut().optimizer.max_passes = 1;
        }
        SessionStateBuilder::new_from_existing(any)
            .with_config(config)
            .with_optimizer_rules(rules::optimizing(logical_rules))
            .with_physical_optimizer_rules(rules::running(running_rules))
            .build()
    }
}

/// Whether a SELECT of a query has several relations.
pub(crate) fn has_joins(query: &Query) -> bool {
    query.visit(&mut SeekingJoins).is_break()
}

struct SeekingJoins;

impl Visitor for SeekingJoins {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_joined = select.from.len() > 1
            || select.from.iter().any(|from| {
                !from.joins.is_empty() || matches!(from.relation, TableFactor::NestedJoin { .. })
            });
        if is_joined { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Whether STRAIGHT_JOIN keeps tables of a query in the order that it names them.
pub(crate) fn has_straight_joins(query: &Query) -> bool {
    query.visit(&mut SeekingStraightJoins).is_break()
}

struct SeekingStraightJoins;

impl Visitor for SeekingStraightJoins {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_said = select.select_modifiers.as_ref().is_some_and(|said| said.straight_join);
        if is_said || select.from.iter().any(is_straight) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } if is_straight(table_with_joins) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn is_straight(from: &TableWithJoins) -> bool {
    let mut joins = from.joins.iter();
    joins.any(|join| matches!(join.join_operator, JoinOperator::StraightJoin(_)))
}

/// Functions of the session and the clock, which neither wait nor compute.
const LIGHT: [&str; 27] = [
    "CONCAT",
    "CONNECTION_ID",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_ROLE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURTIME",
    "DATABASE",
    "FOUND_ROWS",
    "IF",
    "IFNULL",
    "LAST_INSERT_ID",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NOW",
    "ROW_COUNT",
    "SCHEMA",
    "SESSION_USER",
    "SYSTEM_USER",
    "UNIX_TIMESTAMP",
    "USER",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "VERSION",
];
/// The most expressions of a light query.
const MAX_LIGHT: usize = 64;

/// Whether a query is answered faster than another thread could be woken, like the queries of connection pools and
/// drivers.
pub(crate) fn is_light(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let mut weighed = Weighed { count: 0 };
    query.with.is_none() && select.from.is_empty() && query.visit(&mut weighed).is_continue()
}

/// Counts expressions and stops at one that is not light.
struct Weighed {
    count: usize,
}

impl Visitor for Weighed {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.count += 1;
        let light = match expr {
            Expr::Value(_)
            | Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Nested(_)
            | Expr::UnaryOp { .. } => true,
            Expr::BinaryOp { op, .. } => is_plain(op),
            Expr::Function(function) => name_of(&function.name)
                .is_some_and(|name| LIGHT.iter().any(|light| light.eq_ignore_ascii_case(name))),
            _ => false,
        };
        match light && self.count <= MAX_LIGHT {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

fn is_plain(operator: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(operator, Plus | Minus | Multiply | Divide | Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// What a query contains.
struct Seen {
    queries: usize,
    tables: usize,
    aggregates: bool,
}

impl Visitor for Seen {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.tables += 1;
        match factor {
            TableFactor::Table { args: None, .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.aggregates |= function.over.is_some() || is_aggregate(&function.name);
        }
        ControlFlow::Continue(())
    }
}

fn is_aggregate(name: &ObjectName) -> bool {
    name_of(name).is_none_or(|name| {
        functions::aggregate(name).is_some() || functions::window(name).is_some()
    })
}

fn name_of(name: &ObjectName) -> Option<&str> {
    name.0.last().and_then(ObjectNamePart::as_ident).map(|name| name.value.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::sql::sqlparser::ast;
    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::{Statement, split};

    fn query(text: &str) -> Query {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        match (Statement { source: Arc::new(source), parameters: &[] }).parse().unwrap() {
            ast::Statement::Query(query) => *query,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_extent_is_what_a_query_is_made_of() {
        for (text, extent) in [
            ("SELECT 1, UPPER('a') AS b, 1 IN (1, 2)", QueryClass::Constants),
            ("SELECT COUNT(*)", QueryClass::OneTable),
            ("SELECT 1 WHERE 0", QueryClass::OneTable),
            ("SELECT 1 LIMIT 0", QueryClass::OneTable),
            ("SELECT DISTINCT 1", QueryClass::OneTable),
            ("SELECT RANK() OVER (ORDER BY 1)", QueryClass::OneTable),
            ("SELECT a, COUNT(*) FROM t WHERE b > 1 GROUP BY a HAVING a > 2", QueryClass::OneTable),
            ("SELECT a FROM t, u", QueryClass::Any),
            ("SELECT a FROM t JOIN u USING (a)", QueryClass::Any),
            ("SELECT (SELECT 1)", QueryClass::Any),
            ("SELECT a FROM t WHERE a IN (SELECT 1)", QueryClass::Any),
            ("SELECT a FROM (SELECT 1 AS a) AS t", QueryClass::Any),
            ("SELECT 1 UNION SELECT 2", QueryClass::Any),
            ("WITH t AS (SELECT 1) SELECT * FROM t", QueryClass::Any),
            ("SELECT a FROM JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$')) t", QueryClass::Any),
        ] {
            assert_eq!(QueryClass::of(&query(text)), extent, "{text}");
        }
    }

    #[test]
    fn what_waits_or_computes_is_not_light() {
        for text in ["SELECT 1", "SELECT @@version, now(), -(1 + 2) AS x", "SELECT CONCAT('a', 2)"]
        {
            assert!(is_light(&query(text)), "{text}");
        }
        let many = format!("SELECT 1{}", "+1".repeat(MAX_LIGHT));
        for text in [
            "SELECT SLEEP(1)",
            "SELECT IF(1, SLEEP(1), 2)",
            "SELECT REPEAT('a', 1000000)",
            "SELECT 'a' REGEXP 'b'",
            "SELECT (SELECT 1)",
            "SELECT 1 FROM t",
            "SELECT 1 UNION SELECT 2",
            &many,
        ] {
            assert!(!is_light(&query(text)), "{text}");
        }
    }
}
