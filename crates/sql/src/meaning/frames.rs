//! RANGE frames over dates or times: `RANGE INTERVAL 1 DAY PRECEDING`. Rows are sorted by
//! microseconds instead, and a fixed interval becomes a number of them.

use datafusion::{
    common::ScalarValue,
    error::Result as PlanResult,
    logical_expr::{
        Expr, WindowFrame, WindowFrameBound, WindowFrameUnits,
        expr::{ScalarFunction, Sort},
    },
};
use remora_mysql::{ErrorCode, messages};

use super::{
    function::{Dialect, external},
    library::{self, interval_of_text},
    temporal::{DAY, Interval},
    types::ExprType,
};
use crate::{Error, Result, parse::Unit};

/// The prefix of a frame offset that is an interval. Its unit and size follow.
pub(super) const SPAN: &str = "interval ";

/// Replaces intervals by microseconds, and the sort key with them. Errors 3587 to 3589 if the kind
/// of offset does not fit the sort key.
pub(super) fn measure(
    frame: &mut WindowFrame,
    order_by: &mut [Sort],
    type_of: impl FnOnce(&Expr) -> PlanResult<ExprType>,
) -> PlanResult<()> {
    let bounds = [&mut frame.start_bound, &mut frame.end_bound];
    let mut offsets: Vec<&mut String> = bounds.into_iter().filter_map(offset).collect();
    if frame.units != WindowFrameUnits::Range || offsets.is_empty() {
        return Ok(());
    }
    let has_span = offsets.iter().any(|offset| offset.starts_with(SPAN));
    let refused = |code, what: &str| {
        Err(external(Error::new(code, format!("Window '<unnamed window>' with RANGE {what}"))))
    };
    let [only] = order_by else {
        return if has_span { refused(ErrorCode::WindowRangeOrder, ONE_ORDER) } else { Ok(()) };
    };
    let kind = type_of(&only.expr)?;
    if !kind.is_temporal() {
        return match has_span {
            true if kind.is_number() => refused(
                ErrorCode::WindowRangeNumeric,
                "frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.",
            ),
            true => refused(ErrorCode::WindowRangeOrder, ONE_ORDER),
            false => Ok(()),
        };
    }
    for offset in &mut offsets {
        let Some(span) = offset.strip_prefix(SPAN) else {
            let what = "frame has ORDER BY expression of datetime type. Only INTERVAL bound value \
                        allowed.";
            return refused(ErrorCode::WindowRangeTemporal, what);
        };
        **offset = micros_of(span).map_err(external)?.to_string();
    }
    if let Some(udf) = library::function("linear_time", Dialect::default()) {
        let sorted = vec![only.expr.clone()];
        only.expr = Expr::ScalarFunction(ScalarFunction::new_udf(udf, sorted));
    }
    Ok(())
}

const ONE_ORDER: &str = "N PRECEDING/FOLLOWING frame requires exactly one deterministic ORDER BY \
                         expression, of numeric or temporal type";

/// The text of a bound with an offset.
fn offset(bound: &mut WindowFrameBound) -> Option<&mut String> {
    match bound {
        WindowFrameBound::Preceding(ScalarValue::Utf8(Some(offset)))
        | WindowFrameBound::Following(ScalarValue::Utf8(Some(offset))) => Some(offset),
        _ => None,
    }
}

/// The microseconds of an interval such as `DAY 1`.
fn micros_of(span: &str) -> Result<i64> {
    let illegal = || Error::new(ErrorCode::WindowFrameIllegal, messages::WINDOW_FRAME_ILLEGAL);
    let (unit, size) = span.split_once(' ').ok_or_else(illegal)?;
    let unit = Unit::by_name(unit).ok_or_else(illegal)?;
    let micros = match interval_of_text(size, unit).ok_or_else(illegal)? {
        Interval::Months(_) => {
            let what =
                "a frame of an INTERVAL of months, quarters or years, which are not equally long";
            return Err(Error::unsupported(what));
        }
        Interval::Days(days) => i128::from(days) * i128::from(DAY),
        Interval::Micros(micros) => micros,
    };
    match i64::try_from(micros) {
        Ok(micros) if micros >= 0 => Ok(micros),
        _ => Err(illegal()),
    }
}
