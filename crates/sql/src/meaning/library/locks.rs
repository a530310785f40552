//! GET_LOCK and its relatives.

use std::time::Duration;

use super::super::{
    call::{Call, Typing},
    function::Definition,
    types::ExprType,
    value::V,
};
use crate::{Result, aside::wait_aside, shared::lock_name, state::Context};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("get_lock", 2, 2, truth_type, get_lock).volatile(),
    Definition::new("release_lock", 1, 1, truth_type, release_lock).volatile(),
    Definition::new("is_free_lock", 1, 1, truth_type, is_free_lock).volatile(),
    Definition::new("is_used_lock", 1, 1, connection_type, is_used_lock).volatile(),
    Definition::new("release_all_locks", 0, 0, count_type, release_all_locks).volatile(),
];

fn truth_type(_typing: &Typing<'_>) -> Result<ExprType> {
    Ok(ExprType::truth())
}

fn connection_type(_typing: &Typing<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21))
}

fn count_type(_typing: &Typing<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21).not_null())
}

/// The statement's session and the lock that the first argument names; NULL without a session.
fn named<'c>(call: &Call<'c>, args: &[V<'_>]) -> Result<Option<(&'c Context, String)>> {
    let Some(context) = call.context else { return Ok(None) };
    let name = args.first().and_then(V::string);
    Ok(Some((context, lock_name(name.as_deref())?)))
}

fn get_lock<'a>(call: &Call<'_>, args: &[V<'a>]) -> Result<V<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(V::Null) };
    let seconds = args.get(1).map_or(0, |seconds| seconds.integer(call));
    // A negative number waits for ever.
    let patience = u64::try_from(seconds).ok().map(Duration::from_secs);
    let taken = wait_aside(|| context.locks.take(&name, patience, || context.is_over()))?;
    Ok(V::truth(taken))
}

fn release_lock<'a>(call: &Call<'_>, args: &[V<'a>]) -> Result<V<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(V::Null) };
    Ok(V::or_null(context.locks.release(&name), V::truth))
}

fn is_free_lock<'a>(call: &Call<'_>, args: &[V<'a>]) -> Result<V<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(V::Null) };
    Ok(V::truth(context.locks.holder(&name).is_none()))
}

fn is_used_lock<'a>(call: &Call<'_>, args: &[V<'a>]) -> Result<V<'a>> {
    let Some((context, name)) = named(call, args)? else { return Ok(V::Null) };
    Ok(V::or_null(context.locks.holder(&name), V::Uint))
}

fn release_all_locks<'a>(call: &Call<'_>, _args: &[V<'a>]) -> Result<V<'a>> {
    Ok(V::Uint(call.context.map_or(0, |context| context.locks.release_all())))
}
