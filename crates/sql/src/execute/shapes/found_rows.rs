//! The rows that a statement changes or locks, found by a cached plan.

use std::sync::Arc;

use remora_engine::Value;

use super::{AnyPlan, answers, parameterize::ParameterizedText, planned::ShapePlans};
use crate::{
    Result,
    parse::{Statement, write::SoughtRows},
    shared::CachedStatement,
    state::SessionState,
};

/// The rows of a query that finds rows for a statement; `None` if the query takes the general path: it is new, or no plan
/// of it can be kept.
pub(crate) async fn found_rows(
    session: &mut SessionState,
    statement: &Statement<'_>,
    found: &SoughtRows,
) -> Result<Option<Vec<Vec<Value>>>> {
    // A run forgets the warnings before it.
    if !answers(session) || session.warnings.count() > 0 {
        return Ok(None);
    }
    let source = &statement.source;
    let mut parameterized = ParameterizedText::default();
    let is_read = parameterized.read_found(source, found, session.database.as_deref());
    if !is_read || !parameterized.has_key {
        return Ok(None);
    }
    let plans = &session.shared.plans;
    let plan = match plans.get(&parameterized.key) {
        None => {
            plans.put(&parameterized.key, CachedStatement::Seen);
            return Ok(None);
        }
        Some(CachedStatement::Plan(plan)) => plan.downcast::<AnyPlan>().ok(),
        Some(CachedStatement::Seen) => {
            let plan = Arc::new(AnyPlan::Planned(ShapePlans::default()));
            let kept = CachedStatement::Plan(Arc::<AnyPlan>::clone(&plan));
            plans.put(&parameterized.key, kept);
            Some(plan)
        }
    };
    let Some(AnyPlan::Planned(kept)) = plan.as_deref() else { return Ok(None) };
    let reader = session.reader();
    let constants =
        parameterized.constants(&source.text, source.mode, statement.parameters, session);
    kept.rows(session, &reader, &constants, source, found).await
}
