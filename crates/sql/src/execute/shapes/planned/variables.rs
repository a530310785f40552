//! The variables of the session that a statement reads. A cached plan holds their values, as it holds its literals, and
//! serves only sessions in which they are the same.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Visitor};
use remora_engine::Value;

use crate::{parse::Visit, resolve::plain_name, state::SessionState};

/// Variables that tell how the last statement ended, which a run has forgotten when it looks for its plan.
const OF_LAST_STATEMENT: [&str; 2] = ["warning_count", "error_count"];

/// A variable as the statement names it, with its value.
pub(super) type ReadVariable = (String, Value);

/// The variables of a query that reads no table; `None` if a cached plan cannot hold one.
pub(super) fn read_by(query: &Query, session: &SessionState) -> Option<Vec<ReadVariable>> {
    let mut seeking = Seeking { session, found: Vec::new() };
    query.visit(&mut seeking).is_continue().then_some(seeking.found)
}

/// The value of a variable; `None` if it has none that a plan can hold.
fn value_of(name: &str, session: &SessionState) -> Option<Value> {
    let Some(of_system) = name.strip_prefix("@@") else {
        return Some(session.user_variable(&plain_name(name)));
    };
    let plain = of_system.rsplit('.').next().unwrap_or(of_system);
    if OF_LAST_STATEMENT.iter().any(|it| it.eq_ignore_ascii_case(plain)) {
        return None;
    }
    session.system_variable(of_system).ok()
}

/// Whether the variables still have these values.
pub(super) fn are_same(read: &[ReadVariable], session: &SessionState) -> bool {
    read.iter().all(|(name, value)| match (value_of(name, session), value) {
        // 0 and -0 are equal, and shown differently.
        (Some(Value::Float(now)), Value::Float(then)) => now.to_bits() == then.to_bits(),
        (now, then) => now.as_ref() == Some(then),
    })
}

struct Seeking<'a> {
    session: &'a SessionState,
    found: Vec<ReadVariable>,
}

impl Visitor for Seeking<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Identifier(ident) = expr else { return ControlFlow::Continue(()) };
        if ident.quote_style.is_some() || !ident.value.starts_with('@') {
            return ControlFlow::Continue(());
        }
        match value_of(&ident.value, self.session) {
            Some(value) => {
                self.found.push((ident.value.clone(), value));
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}
