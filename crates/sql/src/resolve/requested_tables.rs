//! Conditions of a SELECT on table names of `information_schema`, so that only rows about those tables are made. Tools
//! ask for one table at a time, of a server that has thousands.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Select, TableFactor, TableWithJoins, Value,
    ValueWithSpan,
};

use super::{Env, Resolver, scope::Scope};
use crate::{
    Result,
    catalog::TableName,
    show::{self, RequestedTables},
};

const SYSTEM: &str = "information_schema";

/// A column and the values of which it must have one.
#[derive(Clone, Debug)]
pub(super) struct RequiredValues {
    /// The qualifier of the column; `None` if FROM has no other table.
    table: Option<String>,
    column: String,
    values: Vec<String>,
}

impl Resolver<'_> {
    /// Resolves FROM. Tables of `information_schema` get only rows that can satisfy the condition.
    pub(super) fn sources(
        &mut self,
        select: &mut Select,
        scope: &mut Scope<'_>,
        env: Env<'_>,
    ) -> Result<()> {
        let wanted = self.wanted(select);
        let outer = std::mem::replace(&mut self.wanted, wanted);
        let resolved = self.from(&mut select.from, scope, env);
        self.wanted = outer;
        resolved
    }

    /// The tables that the condition asks about in a table of `information_schema`.
    pub(super) fn requested_tables(&self, name: &TableName, called: &str) -> RequestedTables {
        let mut requested_tables = RequestedTables::default();
        // A column that this table does not have belongs to an outer query.
        let of = |wanted: &&RequiredValues| {
            wanted.table.as_ref().is_none_or(|table| table == called)
                && show::system_has_column(name, &wanted.column)
        };
        for RequiredValues { column, values, .. } in self.wanted.iter().filter(of) {
            let names = match column.to_ascii_uppercase().as_str() {
                "TABLE_SCHEMA" | "CONSTRAINT_SCHEMA" => &mut requested_tables.databases,
                "TABLE_NAME" => &mut requested_tables.tables,
                _ => continue,
            };
            names.get_or_insert_with(|| values.clone());
        }
        requested_tables
    }

    /// The necessary conditions of the SELECT that limit a column to known values.
    fn wanted(&self, select: &Select) -> Vec<RequiredValues> {
        let Some(condition) = &select.selection else { return Vec::new() };
        if !select.from.iter().any(|each| self.names_system(each)) || !are_apart(&select.from) {
            return Vec::new();
        }
        let is_alone = match select.from.as_slice() {
            [TableWithJoins { relation: TableFactor::Table { .. }, joins }] => joins.is_empty(),
            _ => false,
        };
        let mut wanted = Vec::new();
        let mut parts = vec![condition];
        while let Some(part) = parts.pop() {
            let found = match part {
                Expr::Nested(inner) => {
                    parts.push(inner);
                    continue;
                }
                Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                    parts.extend([left.as_ref(), right.as_ref()]);
                    continue;
                }
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => self
                    .column_among(left, std::slice::from_ref(right.as_ref()))
                    .or_else(|| self.column_among(right, std::slice::from_ref(left.as_ref()))),
                Expr::InList { expr, list, negated: false } => self.column_among(expr, list),
                _ => None,
            };
            wanted.extend(found.filter(|found| is_alone || found.table.is_some()));
        }
        wanted
    }

    /// Whether a table of `information_schema` is among these.
    fn names_system(&self, from: &TableWithJoins) -> bool {
        let mut factors =
            std::iter::once(&from.relation).chain(from.joins.iter().map(|it| &it.relation));
        let is_system = |factor: &TableFactor| {
            let TableFactor::Table { name, .. } = factor else { return false };
            match name.0.as_slice() {
                [_] => self.catalog.database().is_ok_and(|it| it.eq_ignore_ascii_case(SYSTEM)),
                [database, _] => database
                    .as_ident()
                    .is_some_and(|database| database.value.eq_ignore_ascii_case(SYSTEM)),
                _ => false,
            }
        };
        factors.any(is_system)
    }

    /// A column that is compared with known values.
    fn column_among(&self, column: &Expr, values: &[Expr]) -> Option<RequiredValues> {
        let (table, column) = match column {
            Expr::Identifier(column) => (None, column),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, column] => (Some(table.value.clone()), column),
                [database, table, column] if database.value.eq_ignore_ascii_case(SYSTEM) => {
                    (Some(table.value.clone()), column)
                }
                _ => return None,
            },
            _ => return None,
        };
        let values = values.iter().map(|value| self.known_text(value)).collect::<Option<_>>()?;
        Some(RequiredValues { table, column: column.value.clone(), values })
    }

    /// A text literal, or the value of DATABASE().
    fn known_text(&self, value: &Expr) -> Option<String> {
        match value {
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
                Some(text.clone())
            }
            Expr::Function(function) => {
                let [name] = function.name.0.as_slice() else { return None };
                let name = &name.as_ident()?.value;
                let is_plain = match &function.args {
                    FunctionArguments::List(list) => list.args.is_empty(),
                    _ => false,
                };
                let is_database =
                    ["DATABASE", "SCHEMA"].iter().any(|it| name.eq_ignore_ascii_case(it));
                (is_plain && is_database)
                    .then(|| self.catalog.database().ok().map(str::to_owned))?
            }
            _ => None,
        }
    }
}

/// Whether all names in FROM are distinct, so that no qualifier is ambiguous.
fn are_apart(from: &[TableWithJoins]) -> bool {
    let factors = from.iter().flat_map(|each| {
        std::iter::once(&each.relation).chain(each.joins.iter().map(|join| &join.relation))
    });
    let called = factors.map(|factor| match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.value.to_lowercase()),
            None => Some(name.0.last()?.as_ident()?.value.to_lowercase()),
        },
        _ => None,
    });
    let Some(mut called) = called.collect::<Option<Vec<String>>>() else { return false };
    let count = called.len();
    called.sort_unstable();
    called.dedup();
    called.len() == count
}
