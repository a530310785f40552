//! Windows that build on named ones: `OVER (w ORDER BY id) … WINDOW w AS (PARTITION BY dept)` becomes
//! `OVER (PARTITION BY dept ORDER BY id)`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, Query, Select, VisitorMut,
    WindowSpec, WindowType,
};
use remora_mysql::ErrorCode;

use crate::{Error, Result, parse::VisitMut};

/// Replaces references to windows within the windows of a SELECT, and of the ORDER BY of its query. Errors 3579 to 3583
/// and 3591 as MySQL's.
pub(super) fn unfold(select: &mut Select, order: &mut [OrderByExpr]) -> Result<()> {
    let all = &mut select.named_window;
    for (at, NamedWindowDefinition(name, _)) in all.iter().enumerate() {
        if all.iter().take(at).any(|earlier| is_same(&earlier.0, name)) {
            let message = format!("Window '{}' is defined twice.", name.value);
            return Err(Error::new(ErrorCode::WindowDuplicate, message));
        }
    }
    let given = all.clone();
    for NamedWindowDefinition(name, window) in all.iter_mut() {
        if let NamedWindowExpr::WindowSpec(window) = window {
            *window = unfolded(window, &name.value, &given, given.len())?;
        }
    }
    let mut each = EachWindow { named: &select.named_window, depth: 0 };
    let mut ended = select.projection.visit(&mut each);
    for key in order {
        if ended.is_continue() {
            ended = key.visit(&mut each);
        }
    }
    match ended {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn is_same(a: &Ident, b: &Ident) -> bool {
    a.value.to_lowercase() == b.value.to_lowercase()
}

/// A window without references to others. Each step names another window, or there is a circle.
fn unfolded(
    window: &WindowSpec,
    name: &str,
    named: &[NamedWindowDefinition],
    most_steps: usize,
) -> Result<WindowSpec> {
    let Some(base_name) = &window.window_name else { return Ok(window.clone()) };
    let NamedWindowDefinition(base_name, base) = found(base_name, named)?;
    let Some(most_steps) = most_steps.checked_sub(1) else {
        let message = "There is a circularity in the window dependency graph.";
        return Err(Error::new(ErrorCode::WindowCircle, message));
    };
    let base = match base {
        NamedWindowExpr::WindowSpec(base) => unfolded(base, &base_name.value, named, most_steps)?,
        NamedWindowExpr::NamedWindow(_) => return Err(Error::unsupported(base_name)),
    };
    let base_name = &base_name.value;
    if !window.partition_by.is_empty() {
        let message = "A window which depends on another cannot define partitioning.";
        return Err(Error::new(ErrorCode::WindowPartition, message));
    }
    if base.window_frame.is_some() {
        let message = format!(
            "Window '{base_name}' has a frame definition, so cannot be referenced by another window."
        );
        return Err(Error::new(ErrorCode::WindowInheritsFrame, message));
    }
    if !window.order_by.is_empty() && !base.order_by.is_empty() {
        let message = format!(
            "Window '{name}' cannot inherit '{base_name}' since both contain an ORDER BY clause."
        );
        return Err(Error::new(ErrorCode::WindowOrder, message));
    }
    let order_by = if window.order_by.is_empty() { base.order_by } else { window.order_by.clone() };
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by,
        order_by,
        window_frame: window.window_frame.clone(),
    })
}

fn found<'n>(
    name: &Ident,
    named: &'n [NamedWindowDefinition],
) -> Result<&'n NamedWindowDefinition> {
    named.iter().find(|it| is_same(&it.0, name)).ok_or_else(|| {
        let message = format!("Window name '{}' is not defined.", name.value);
        Error::new(ErrorCode::WindowUnknown, message)
    })
}

/// The windows of a SELECT's expressions, without those of its subqueries.
struct EachWindow<'n> {
    named: &'n [NamedWindowDefinition],
    depth: usize,
}

impl VisitorMut for EachWindow<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let done = match &mut call.over {
            Some(WindowType::WindowSpec(window)) if window.window_name.is_some() => {
                unfolded(window, "<unnamed window>", self.named, self.named.len() + 1)
                    .map(|unfolded| *window = unfolded)
            }
            Some(WindowType::NamedWindow(name)) => {
                found(name, self.named).map(|known| name.value.clone_from(&known.0.value))
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
