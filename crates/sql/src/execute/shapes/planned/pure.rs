//! Expressions whose value depends only on the row, on literals and on [`super::PlanSettings`], or is computed anew by
//! each run. Only those may be in a cached plan. Values that planning computes from the session beside them are noticed
//! by its context (`Planning::has_read_session`).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Visitor};

use crate::{meaning::may_be_cached, parse::Visit};

/// Whether a query calls only functions that a cached plan may call.
pub(super) fn is_pure(query: &Query) -> bool {
    query.visit(&mut Seeking).is_continue()
}

struct Seeking;

impl Visitor for Seeking {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if !may_be_cached(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
