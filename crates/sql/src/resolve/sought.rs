//! What a SELECT's condition says of the names of tables that `information_schema` tells of, so that rows of the
//! others are not made: tools ask for one table at a time, of a server that has thousands.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Select, TableFactor, TableWithJoins, Value,
    ValueWithSpan,
};

use super::{Env, Resolver, scope::Scope};
use crate::{
    Result,
    catalog::TableName,
    show::{self, Sought},
};

const SYSTEM: &str = "information_schema";

/// Values of which a column must have one, or the condition is true of no row.
#[derive(Clone, Debug)]
pub(super) struct RequiredValues {
    /// What the column's table is called; `None` where there is no other.
    table: Option<String>,
    column: String,
    values: Vec<String>,
}

impl Resolver<'_> {
    /// Resolves FROM, the tables of `information_schema` in it with the rows that the condition may be true of.
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

    /// Which tables are asked about in the table of this name in FROM.
    pub(super) fn sought(&self, name: &TableName, called: &str) -> Sought {
        let mut sought = Sought::default();
        // A column that this table does not have is one of a query around this one.
        let of = |wanted: &&RequiredValues| {
            wanted.table.as_ref().is_none_or(|table| table == called)
                && show::system_has_column(name, &wanted.column)
        };
        for RequiredValues { column, values, .. } in self.wanted.iter().filter(of) {
            let names = match column.to_ascii_uppercase().as_str() {
                "TABLE_SCHEMA" | "CONSTRAINT_SCHEMA" => &mut sought.databases,
                "TABLE_NAME" => &mut sought.tables,
                _ => continue,
            };
            names.get_or_insert_with(|| values.clone());
        }
        sought
    }

    /// What must be true of every row that a SELECT gives, as far as it says which values a column has.
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

    /// A column that is compared with values which are known by now.
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

    /// A text as it is written, or the name of the database.
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

/// Whether all that FROM names are tables of names of their own: a name may mean one of two otherwise.
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
