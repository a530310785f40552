//! Functions that wait: SLEEP, and those that wait for a followed server's position.

use std::{
    thread,
    time::{Duration, Instant},
};

use remora_mysql::{ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    function::Definition,
    types::ExprType,
    value::SqlValue,
};
use crate::{Error, Result, blocking::run_blocking, state::Context};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("sleep", 1, 1, present_type, sleep).volatile(),
    Definition::new("wait_for_executed_gtid_set", 1, 2, number_type, wait_for_executed).volatile(),
    Definition::new("master_gtid_wait", 1, 2, number_type, master_gtid_wait).volatile(),
];

/// How often a waiting function checks whether its statement has ended.
const STEP: Duration = Duration::from_millis(10);
/// The longest finite wait, in seconds.
const LONGEST_S: f64 = 31_536_000.0;
const WRONG_SLEEP: &str = "Incorrect arguments to sleep.";

fn present_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21).not_null())
}

fn number_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21))
}

/// SLEEP. It waits in small steps, so that KILL can end it.
fn sleep<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let given = args.first().filter(|value| !value.is_null()).map(|value| value.double(call));
    let seconds = match given.filter(|seconds| *seconds >= 0.0) {
        Some(seconds) => seconds.min(LONGEST_S),
        None if call.sql_mode().is_strict() => {
            return Err(Error::new(ErrorCode::WrongArguments, WRONG_SLEEP));
        }
        None => {
            call.warn(ErrorCode::WrongArguments, || WRONG_SLEEP.to_owned());
            0.0
        }
    };
    let mut left = Duration::from_secs_f64(seconds);
    let is_over = || call.context.is_some_and(Context::is_over);
    run_blocking(|| {
        while !left.is_zero() && !is_over() {
            let step = left.min(STEP);
            thread::sleep(step);
            left -= step;
        }
    });
    Ok(SqlValue::truth(!left.is_zero()))
}

/// MySQL's function: 0 if the set is applied, 1 on timeout. Without a timeout, or with 0, it waits
/// without limit.
fn wait_for_executed<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let set = args.first().and_then(SqlValue::string);
    let Some(set) = set else { return Err(malformed("NULL")) };
    let seconds = args.get(1).map_or(0.0, |value| value.double(call));
    if seconds < 0.0 {
        let message = "Incorrect arguments to WAIT_FOR_EXECUTED_GTID_SET.";
        return Err(Error::new(ErrorCode::WrongArguments, message));
    }
    let reached = applied(call, &set, (seconds > 0.0).then_some(seconds))?;
    Ok(SqlValue::Int(i64::from(!reached)))
}

/// MariaDB's function: 0 if the set is applied, -1 on timeout. Without a timeout, or with a
/// negative one, it waits without limit.
fn master_gtid_wait<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(set) = args.first().and_then(SqlValue::string) else { return Ok(SqlValue::Null) };
    let seconds = args.get(1).filter(|value| !value.is_null()).map(|value| value.double(call));
    let reached = applied(call, &set, seconds.filter(|seconds| *seconds >= 0.0))?;
    Ok(SqlValue::Int(if reached { 0 } else { -1 }))
}

/// Waits until a followed source has applied the set; returns whether it has.
fn applied(call: &Call<'_>, set: &str, seconds: Option<f64>) -> Result<bool> {
    let Some(context) = call.context else { return Ok(false) };
    if set.trim().is_empty() {
        return Ok(true);
    }
    let patience = seconds.map(|seconds| Duration::from_secs_f64(seconds.min(LONGEST_S)));
    let begun = Instant::now();
    run_blocking(|| {
        loop {
            let left = patience.map_or(STEP, |patience| patience.saturating_sub(begun.elapsed()));
            if context.shared.host.wait_for_gtids(None, set, left.min(STEP))? {
                return Ok(true);
            }
            if patience.is_some_and(|patience| begun.elapsed() >= patience) {
                return Ok(false);
            }
            if context.is_over() {
                return Err(crate::Error::interrupted());
            }
        }
    })
}

/// 1772: the set is malformed.
fn malformed(set: &str) -> Error {
    let message = messages::malformed_gtid_set(set);
    Error::new(ErrorCode::MalformedGtidSet, message)
}
