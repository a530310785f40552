//! The columns that the expressions of a definition name: generated columns, CHECK conditions, defaults. A new
//! definition may name only columns that it has and that have their values before. A column that an expression needs
//! cannot be dropped or renamed.

use std::ops::ControlFlow::Continue;

use datafusion::sql::sqlparser::ast::Expr;
use remora_mysql::ErrorCode;
use rustc_hash::FxHashMap;

use super::{
    draft::{Draft, DraftColumn},
    key_columns::{names, types},
};
use crate::{
    Error, Result, SqlType,
    catalog::{Check, DefaultSpec, SqlTable, TableName},
    meaning::collation::key,
    parse::{define::stored_expression, visit_expressions},
    state::SessionState,
};

/// What is wrong with an expression of a definition.
enum Fault {
    /// It names a column that the table does not have.
    Unknown(String),
    /// It names the AUTO_INCREMENT column.
    Counter,
    /// It names a column that gets its value later.
    Later,
}

/// Checks the columns that a definition's expressions name. `old` is the definition that a statement changes: if that
/// was already invalid, as earlier versions allowed, nothing is checked.
///
/// # Errors
/// 1054, 1291, 3107, 3109, 3767, 3768, 3813, 3818, 3820.
pub(super) async fn check_references(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    old: Option<&SqlTable>,
) -> Result<()> {
    check_labels(session, draft, old)?;
    if let Some(old) = old
        && check_all(session, name, &Draft::of(old), true).await.is_err()
    {
        return Ok(());
    }
    check_all(session, name, draft, old.is_some()).await
}

/// Error 1291 for a label that a new ENUM or SET has twice; a note if the `sql_mode` is not strict.
fn check_labels(session: &SessionState, draft: &Draft, old: Option<&SqlTable>) -> Result<()> {
    for DraftColumn { name, spec, id } in &draft.columns {
        let before = old.and_then(|old| old.visible().find(|(_, known, _)| Some(known.id) == *id));
        let is_known = before.is_some_and(|(_, _, before)| before.kind == spec.kind);
        if !spec.kind.has_labels() || is_known {
            continue;
        }
        let mut first: FxHashMap<_, &str> = FxHashMap::default();
        for label in spec.kind.labels.iter() {
            let Some(twice) = first.insert(key(label, spec.kind.collation), label) else {
                continue;
            };
            let of = if spec.kind.sql == SqlType::Enum { "ENUM" } else { "SET" };
            let message = format!("Column '{name}' has duplicated value '{twice}' in {of}");
            if session.variables.sql_mode.is_strict() {
                return Err(Error::new(ErrorCode::DuplicateLabel, message));
            }
            session.note(ErrorCode::DuplicateLabel, message);
        }
    }
    Ok(())
}

async fn check_all(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    alters: bool,
) -> Result<()> {
    for check in &draft.checks {
        if let Some(fault) = check_fault(session, name, draft, check).await? {
            return Err(check_error(check, fault, alters));
        }
    }
    for (place, column) in draft.columns.iter().enumerate() {
        let name_of = &column.name;
        if let Some(generated) = &column.spec.generated
            && let Some(fault) = fault(session, name, draft, &generated.expression, place).await?
        {
            return Err(match fault {
                Fault::Unknown(unknown) => {
                    Error::unknown_column(&unknown, "generated column function")
                }
                Fault::Counter => Error::new(
                    ErrorCode::GeneratedCounter,
                    format!("Generated column '{name_of}' cannot refer to auto-increment column."),
                ),
                Fault::Later => Error::new(
                    ErrorCode::GeneratedOrder,
                    "Generated column can refer only to generated columns defined prior to it.",
                ),
            });
        }
        if let DefaultSpec::Expression(expression) = &column.spec.default
            && let Some(fault) = fault(session, name, draft, expression, place).await?
        {
            return Err(default_error(name_of, fault));
        }
    }
    Ok(())
}

fn default_error(column: &str, fault: Fault) -> Error {
    let of = format!("Default value expression of column '{column}' cannot refer to");
    match fault {
        Fault::Unknown(unknown) => Error::unknown_column(&unknown, "default value expression"),
        Fault::Counter => {
            Error::new(ErrorCode::DefaultCounter, format!("{of} an auto-increment column."))
        }
        Fault::Later => Error::new(
            ErrorCode::DefaultOrder,
            format!(
                "{of} a column defined after it if that column is a generated column or has an \
                 expression as default value."
            ),
        ),
    }
}

fn check_error(check: &Check, fault: Fault, alters: bool) -> Error {
    let name = &check.name;
    match fault {
        Fault::Unknown(column) if alters => {
            Error::unknown_column(&column, format!("check constraint {name} expression"))
        }
        Fault::Unknown(column) => Error::new(
            ErrorCode::CheckUnknownColumn,
            format!("Check constraint '{name}' refers to non-existing column '{column}'."),
        ),
        Fault::Counter => Error::new(
            ErrorCode::CheckCounter,
            format!("Check constraint '{name}' cannot refer to an auto-increment column."),
        ),
        Fault::Later => Error::new(
            ErrorCode::CheckOtherColumn,
            format!("Column check constraint '{name}' references other column."),
        ),
    }
}

/// What is wrong with a condition. Of one that a column declares, [`Fault::Later`] says that it names another column.
async fn check_fault(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    check: &Check,
) -> Result<Option<Fault>> {
    let declares = |(expression, _): &&(String, String)| {
        *expression == check.expression || format!("({expression})") == check.expression
    };
    let owner = draft.column_checks.iter().find(declares);
    let found = fault(session, name, draft, &check.expression, usize::MAX).await?;
    let Some((_, owner)) = owner else { return Ok(found) };
    if matches!(found, Some(Fault::Unknown(_))) {
        return Ok(Some(Fault::Later));
    }
    let others = mentioned(&check.expression).into_iter().filter(|name| !is_same(name, owner));
    let others = others.filter(|name| draft.column(name).is_some());
    Ok(if others.count() > 0 { Some(Fault::Later) } else { found })
}

/// What is wrong with an expression of the column at a place. Conditions are behind all columns.
async fn fault(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    expression: &str,
    place: usize,
) -> Result<Option<Fault>> {
    let mut named = Vec::new();
    for column in mentioned(expression) {
        let Some(at) = draft.column(&column) else {
            // It may be no column but a unit or the like. That only a plan tells.
            return match types(session, name, draft, &[expression]).await {
                Err(error) if error.code == ErrorCode::UnknownColumn => {
                    Ok(Some(Fault::Unknown(column)))
                }
                Err(error) => Err(error),
                Ok(_) => Ok(None),
            };
        };
        named.push(at);
    }
    let column = |at: &usize| draft.columns.get(*at).map(|column| &column.spec);
    if named.iter().filter_map(column).any(|spec| spec.auto_increment) {
        return Ok(Some(Fault::Counter));
    }
    let mut later = named.iter().filter(|at| **at >= place).filter_map(column);
    let is_late = later
        .any(|spec| spec.generated.is_some() || matches!(spec.default, DefaultSpec::Expression(_)));
    Ok(is_late.then_some(Fault::Later))
}

/// The names that may be columns in an expression, without their qualifiers, in order.
fn mentioned(expression: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let Some(expr) = stored_expression(expression) else { return found };
    let _ = visit_expressions(&expr, |part| {
        let name = match part {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        found.extend(name.map(|name| name.value.clone()));
        Continue::<()>(())
    });
    found
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Whether a column keeps its number and its name.
fn keeps(draft: &Draft, id: u32, name: &str) -> bool {
    draft.columns.iter().any(|column| column.id == Some(id) && is_same(&column.name, name))
}

/// Drops the conditions that name only columns that are dropped, as MySQL does, then refuses columns that are dropped
/// or renamed while an expression that stays needs them.
///
/// # Errors
/// 3108, 3766, 3959.
pub(super) fn check_dependents(old: &SqlTable, name: &TableName, draft: &mut Draft) -> Result<()> {
    let before: Vec<(u32, String)> =
        old.visible().map(|(_, column, _)| (column.id, column.name.clone())).collect();
    let gone: Vec<&(u32, String)> =
        before.iter().filter(|(id, name)| !keeps(draft, *id, name)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let is_dropped = |name: &str| {
        let of = gone.iter().find(|(_, gone)| is_same(gone, name));
        of.is_some_and(|(id, _)| !draft.columns.iter().any(|column| column.id == Some(*id)))
    };
    let is_useless = |check: &Check| {
        let mentioned = mentioned(&check.expression);
        let mut of_table =
            mentioned.iter().filter(|name| before.iter().any(|(_, column)| is_same(column, name)));
        let first = of_table.next();
        first.is_some_and(|first| is_dropped(first) && of_table.all(|name| is_same(name, first)))
    };
    let kept =
        draft.checks.iter().filter(|check| !old.checks.contains(check) || !is_useless(check));
    let kept: Vec<Check> = kept.cloned().collect();
    draft.checks = kept;
    for (_, column) in &gone {
        check_gone(old, name, draft, column)?;
    }
    Ok(())
}

/// Refuses to let a column go that an expression needs which was there before.
fn check_gone(old: &SqlTable, name: &TableName, draft: &Draft, gone: &str) -> Result<()> {
    let mut checks = draft.checks.iter().filter(|check| old.checks.contains(check));
    if let Some(check) = checks.find(|check| names(&check.expression, gone)) {
        let message = format!(
            "Check constraint '{}' uses column '{gone}', hence column cannot be dropped or renamed.",
            check.name
        );
        return Err(Error::new(ErrorCode::CheckNeedsColumn, message));
    }
    let each = |column: &DraftColumn| {
        let (_, _, spec) = old.visible().find(|(_, known, _)| Some(known.id) == column.id)?;
        let generated = spec.generated.as_ref().filter(|it| {
            column.spec.generated.as_ref() == Some(*it) && names(&it.expression, gone)
        });
        if generated.is_some() {
            let message = format!("Column '{gone}' has a generated column dependency.");
            return Some(Error::new(ErrorCode::GeneratedNeedsColumn, message));
        }
        let DefaultSpec::Expression(expression) = &spec.default else { return None };
        (column.spec.default == spec.default && names(expression, gone)).then(|| {
            let message = format!(
                "Column '{gone}' of table '{}' has a default value expression dependency and \
                 cannot be dropped or renamed.",
                name.table
            );
            Error::new(ErrorCode::DefaultNeedsColumn, message)
        })
    };
    draft.columns.iter().find_map(each).map_or(Ok(()), Err)
}
