//! GET_LOCK and related functions.

use std::time::Duration;

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    types::ExprType,
    value::SqlValue,
};
use crate::{Result, blocking::run_blocking, shared::lock_name, state::Context};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("get_lock", 2, 2, truth_type, get_lock).volatile(),
    Definition::new("release_lock", 1, 1, truth_type, release_lock).volatile(),
    Definition::new("is_free_lock", 1, 1, truth_type, is_free_lock).volatile(),
    Definition::new("is_used_lock", 1, 1, connection_type, is_used_lock).volatile(),
    Definition::new("release_all_locks", 0, 0, count_type, release_all_locks).volatile(),
];

fn truth_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::truth())
}

fn connection_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21))
}

fn count_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21).not_null())
}

/// The session and the lock name in the first argument; `None` without a session.
fn named<'c>(call: &Call<'c>, args: &[SqlValue<'_>]) -> Result<Option<(&'c Context, String)>> {
    let Some(context) = call.session() else { return Ok(None) };
    let name = args.first().and_then(SqlValue::string);
    Ok(Some((context, lock_name(name.as_deref())?)))
}

fn get_lock<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(SqlValue::Null) };
    let seconds = args.get(1).map_or(0, |seconds| seconds.integer(call));
    // A negative timeout means no limit.
    let patience = u64::try_from(seconds).ok().map(Duration::from_secs);
    let taken = run_blocking(|| context.locks.take(&name, patience, || context.is_over()))?;
    Ok(SqlValue::truth(taken))
}

fn release_lock<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(SqlValue::Null) };
    Ok(SqlValue::or_null(context.locks.release(&name), SqlValue::truth))
}

fn is_free_lock<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(SqlValue::Null) };
    Ok(SqlValue::truth(context.locks.holder(&name).is_none()))
}

fn is_used_lock<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(SqlValue::Null) };
    Ok(SqlValue::or_null(context.locks.holder(&name), SqlValue::Uint))
}

fn release_all_locks<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::Uint(call.session().map_or(0, |context| context.locks.release_all())))
}
