//! Window frames. The planner requires literals as offsets. `INTERVAL 1 DAY` becomes a text, which
//! is parsed once the type of the sort key is known (`meaning/frames.rs`).

use datafusion::sql::sqlparser::ast::{
    Expr, Function, Interval, NamedWindowDefinition, NamedWindowExpr, Value, WindowFrameBound,
    WindowFrameUnits, WindowSpec, WindowType,
};
use remora_mysql::{ErrorCode, messages};

use super::{
    super::{decimal::Dec, frames::SPAN},
    arguments, literal,
};
use crate::{Error, Result};

/// Turns the offsets of a call's window back into literals.
pub(super) fn plain_offsets(function: &mut Function) -> Result<()> {
    match &mut function.over {
        Some(WindowType::WindowSpec(window)) => of_window(window),
        _ => Ok(()),
    }
}

/// Does the same for a named window.
pub(super) fn plain_offsets_of(named: &mut NamedWindowDefinition) -> Result<()> {
    match &mut named.1 {
        NamedWindowExpr::WindowSpec(window) => of_window(window),
        NamedWindowExpr::NamedWindow(_) => Ok(()),
    }
}

fn of_window(window: &mut WindowSpec) -> Result<()> {
    let Some(frame) = &mut window.window_frame else { return Ok(()) };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        let (WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset))) =
            bound
        else {
            continue;
        };
        if let Some(digits) = digits_of(offset) {
            **offset = literal(Value::Number(digits, false));
        } else if is_interval(offset) {
            if frame.units != WindowFrameUnits::Range {
                let message =
                    "Window '<unnamed window>': INTERVAL can only be used with RANGE frames.";
                return Err(Error::new(ErrorCode::WindowRowsInterval, message));
            }
            **offset = span_of(offset)?;
        }
    }
    Ok(())
}

/// The digits of a number literal that was rewritten to a call.
fn digits_of(offset: &Expr) -> Option<String> {
    let Expr::Function(function) = offset else { return None };
    let literals = ["decimal_literal", "double_literal", "integer_literal"];
    let is_number = literals.iter().any(|name| arguments::is_named(function, name));
    if !is_number {
        return None;
    }
    match arguments::arguments(function).into_iter().next()? {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(digits) => Some(digits),
            _ => None,
        },
        _ => None,
    }
}

fn is_interval(offset: &Expr) -> bool {
    matches!(offset, Expr::Function(function) if arguments::is_named(function, "interval"))
}

/// A rewritten interval as a text literal.
fn span_of(offset: &Expr) -> Result<Expr> {
    let illegal = || Error::new(ErrorCode::WindowFrameIllegal, messages::WINDOW_FRAME_ILLEGAL);
    let Expr::Function(function) = offset else { return Err(illegal()) };
    let plain = |expr: &Expr| match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => Some(text.clone()),
            _ => None,
        },
        other => digits_of(other),
    };
    let args = arguments::arguments(function);
    let [size, unit] = args.as_slice() else { return Err(illegal()) };
    let (Some(size), Some(unit)) = (plain(size), plain(unit)) else {
        return Err(match size {
            Expr::Value(_) | Expr::UnaryOp { .. } => illegal(),
            _ => Error::unsupported("a frame of an INTERVAL whose size is no literal"),
        });
    };
    let is_text =
        matches!(args.first(), Some(Expr::Value(size)) if !matches!(size.value, Value::Number(..)));
    let size = if is_text { size } else { whole(&size, &unit).ok_or_else(illegal)? };
    let value = Box::new(literal(Value::SingleQuotedString(format!("{SPAN}{unit} {size}"))));
    Ok(Expr::Interval(Interval {
        value,
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

/// A numeric size rounded to an integer as `DATE_ADD` rounds it: only seconds may have a fraction.
fn whole(size: &str, unit: &str) -> Option<String> {
    let units = ["week", "day", "hour", "minute", "microsecond"];
    if !units.iter().any(|name| unit.eq_ignore_ascii_case(name)) {
        return Some(size.to_owned());
    }
    if size.contains(['e', 'E']) {
        let number: f64 = size.parse().ok()?;
        return Some(format!("{:.0}", number.round_ties_even()));
    }
    let rounded = Dec::parse_prefix(size).0.rescaled(0)?;
    Some(rounded.units.to_i128()?.to_string())
}
