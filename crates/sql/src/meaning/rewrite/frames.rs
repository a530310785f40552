//! Frames of windows: their offsets are literals, as the planner wants them.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, NamedWindowDefinition, NamedWindowExpr, Value, WindowFrameBound, WindowSpec,
    WindowType,
};

use super::{literal, special};

/// Makes the offsets of a call's window literals again.
pub(super) fn plain_offsets(function: &mut Function) {
    if let Some(WindowType::WindowSpec(window)) = &mut function.over {
        of_window(window);
    }
}

/// The same for a window that has a name.
pub(super) fn plain_offsets_of(named: &mut NamedWindowDefinition) {
    if let NamedWindowExpr::WindowSpec(window) = &mut named.1 {
        of_window(window);
    }
}

fn of_window(window: &mut WindowSpec) {
    let Some(frame) = &mut window.window_frame else { return };
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) =
            bound
            && let Some(digits) = digits_of(offset)
        {
            **offset = literal(Value::Number(digits, false));
        }
    }
}

/// The digits of a number that became a call.
fn digits_of(offset: &Expr) -> Option<String> {
    let Expr::Function(function) = offset else { return None };
    let is_number =
        ["decimal_literal", "double_literal"].iter().any(|name| special::is_named(function, name));
    if !is_number {
        return None;
    }
    match special::arguments(function).into_iter().next()? {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(digits) => Some(digits),
            _ => None,
        },
        _ => None,
    }
}
