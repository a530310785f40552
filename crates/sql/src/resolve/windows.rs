//! Windows that build on named ones: `OVER (w ORDER BY id) … WINDOW w AS (PARTITION BY dept)` becomes
//! `OVER (PARTITION BY dept ORDER BY id)`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, Query, Select, VisitorMut,
    WindowSpec, WindowType,
};
use remora_mysql::ErrorCode;

use crate::{
    Error, Result,
    parse::{VisitMut, visit_expressions},
};

/// The most named windows of a SELECT.
const MOST: usize = 256;
/// The most nodes of all copies of their expressions.
const MOST_NODES: usize = 200_000;

/// Replaces references to windows within the windows of a SELECT, and of the ORDER BY of its query. Errors 3579 to 3583
/// and 3591 as MySQL's.
pub(super) fn unfold(select: &mut Select, order: &mut [OrderByExpr]) -> Result<()> {
    let all = &mut select.named_window;
    if all.len() > MOST {
        let message =
            format!("A SELECT has more than {MOST} named windows: use several statements");
        return Err(Error::new(ErrorCode::OutOfMemory, message));
    }
    for (at, NamedWindowDefinition(name, _)) in all.iter().enumerate() {
        if all.iter().take(at).any(|earlier| is_same(&earlier.0, name)) {
            let message = format!("Window '{}' is defined twice.", name.value);
            return Err(Error::new(ErrorCode::WindowDuplicate, message));
        }
    }
    let given = all.clone();
    let mut copied = 0;
    for NamedWindowDefinition(name, window) in all.iter_mut() {
        if let NamedWindowExpr::WindowSpec(window) = window
            && window.window_name.is_some()
        {
            *window = unfolded(window, &name.value, &given, given.len(), &mut copied)?;
        }
    }
    let mut each = EachWindow { named: &select.named_window, depth: 0, copied };
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

/// A window without references to others. Each step names another window, or there is a circle. `copied` counts the nodes
/// of the expressions that the statement copies; error 1038 if they are too many.
fn unfolded(
    window: &WindowSpec,
    name: &str,
    named: &[NamedWindowDefinition],
    most_steps: usize,
    copied: &mut usize,
) -> Result<WindowSpec> {
    let Some(base_name) = &window.window_name else {
        check_copy(window, copied)?;
        return Ok(window.clone());
    };
    let NamedWindowDefinition(base_name, base) = found(base_name, named)?;
    let Some(most_steps) = most_steps.checked_sub(1) else {
        let message = "There is a circularity in the window dependency graph.";
        return Err(Error::new(ErrorCode::WindowCircle, message));
    };
    let base = match base {
        NamedWindowExpr::WindowSpec(base) => {
            unfolded(base, &base_name.value, named, most_steps, copied)?
        }
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

fn check_copy(window: &WindowSpec, copied: &mut usize) -> Result<()> {
    let counted = visit_expressions(window, |_| {
        *copied += 1;
        if *copied > MOST_NODES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if counted.is_break() {
        let message = "The statement builds too many windows on too large ones";
        return Err(Error::new(ErrorCode::OutOfMemory, message));
    }
    Ok(())
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
    /// As for [`unfolded`].
    copied: usize,
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
                let most_steps = self.named.len() + 1;
                unfolded(window, "<unnamed window>", self.named, most_steps, &mut self.copied)
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
