//! Shapes that are answered without planning: by key, by keys, search, count, facet.
//!
//! A text is told apart from its literals ([`lift`]); what is left names a plan that was made
//! before ([`cache`]) or has a shape ([`shape`]) that becomes one ([`plan`]). A plan is filled with
//! the literals ([`constant`]) and asked of the engine ([`run`]). Whatever has no shape, or a
//! literal that would need one of MySQL's conversions, goes the general way: both ways give the
//! same columns and rows.

mod cache;
mod condition;
mod constant;
mod explain;
mod keys;
mod lift;
mod output;
mod parse;
mod plan;
mod run;
mod shape;
mod table;
#[cfg(test)]
mod tests;

use std::{cell::Cell, sync::Arc};

pub(crate) use cache::Plans;
pub(crate) use explain::explain;
use lift::Lifted;
use remora_engine::Value;

use self::{plan::Plan, shape::Shape};
use crate::{
    Outcome, Prepared, Reply, Result,
    session::{Reader, SessionState},
    statement::Statement,
};

/// What is kept of a prepared statement that has such a shape.
#[derive(Default)]
pub(crate) struct PreparedShape {
    prepared: Option<PreparedPlan>,
}

struct PreparedPlan {
    lifted: Lifted,
    shape: Arc<Shape>,
    database: Option<String>,
    /// The newest plan.
    plan: parking_lot::Mutex<Option<Arc<Plan>>>,
}

thread_local! {
    /// The memory of the last statement of the thread.
    static LIFTED: Cell<Option<Box<Lifted>>> = const { Cell::new(None) };
}

/// Answers a text as it came, before anything is made of it; `None` if it has none of the shapes.
pub(crate) async fn run_text<R: Reply>(
    session: &mut SessionState,
    text: &[u8],
    reply: &mut R,
) -> Result<Option<Outcome>> {
    if !is_select(text) || !answers(session) {
        return Ok(None);
    }
    let mut lifted = LIFTED.take().unwrap_or_default();
    let outcome = run_lifted(session, text, &mut lifted, reply).await;
    if lifted.is_small() {
        LIFTED.set(Some(lifted));
    }
    outcome
}

async fn run_lifted<R: Reply>(
    session: &mut SessionState,
    text: &[u8],
    lifted: &mut Lifted,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let mode = session.lex_mode();
    if !lifted.read(text, mode, session.database.as_deref()) || lifted.has_parameters() {
        return Ok(None);
    }
    let reader = session.reader();
    let plans = &session.shared.plans;
    let known = if lifted.has_key { plans.get(&lifted.key) } else { None };
    let plan = match known {
        Some(cache::Known::Plan(plan)) if is_current(&plan, &reader) => plan,
        Some(cache::Known::NoShape) => return Ok(None),
        _ => {
            let Some(shape) = parse::shape(text, mode, &lifted.pieces) else {
                plans.put(lifted, cache::Known::NoShape);
                return Ok(None);
            };
            let database = session.database.as_deref();
            let Some(plan) = Plan::new(&shape, database, &session.shared, &reader) else {
                return Ok(None);
            };
            let plan = Arc::new(plan);
            plans.put(lifted, cache::Known::Plan(Arc::clone(&plan)));
            plan
        }
    };
    run::run(session, &reader, &plan, &lifted.constants(text, mode, &[]), reply).await
}

/// Answers a SELECT; `None` if it has none of the shapes.
pub(crate) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    if !answers(session) {
        return Ok(None);
    }
    let source = &statement.source;
    let mut lifted = Lifted::default();
    if !lifted.read(&source.text, source.mode, session.database.as_deref()) {
        return Ok(None);
    }
    let Some(shape) = parse::shape(&source.text, source.mode, &lifted.pieces) else {
        return Ok(None);
    };
    let reader = session.reader();
    let database = session.database.as_deref();
    let Some(plan) = Plan::new(&shape, database, &session.shared, &reader) else {
        return Ok(None);
    };
    let constants = lifted.constants(&source.text, source.mode, statement.parameters);
    run::run(session, &reader, &plan, &constants, reply).await
}

/// What is to be kept of a prepared statement.
pub(crate) fn prepare(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<PreparedShape> {
    let source = &statement.source;
    let database = session.database.clone();
    let mut lifted = Lifted::default();
    if !lifted.read(&source.text, source.mode, database.as_deref()) {
        return Ok(PreparedShape::default());
    }
    let shape = parse::shape(&source.text, source.mode, &lifted.pieces);
    let prepared = shape.map(|shape| PreparedPlan {
        lifted,
        shape: Arc::new(shape),
        database,
        plan: parking_lot::Mutex::new(None),
    });
    Ok(PreparedShape { prepared })
}

/// Answers a prepared statement; `None` if it has none of the shapes.
pub(crate) async fn run_prepared<R: Reply>(
    session: &mut SessionState,
    prepared: &Prepared,
    parameters: &[Value],
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let Some(known) = &prepared.shape.prepared else { return Ok(None) };
    if !answers(session) {
        return Ok(None);
    }
    let reader = session.reader();
    let plan = known.plan.lock().clone().filter(|plan| is_current(plan, &reader));
    let plan = match plan {
        Some(plan) => plan,
        None => {
            let database = known.database.as_deref();
            let plan = Plan::new(&known.shape, database, &session.shared, &reader);
            let Some(plan) = plan else { return Ok(None) };
            let plan = Arc::new(plan);
            *known.plan.lock() = Some(Arc::clone(&plan));
            plan
        }
    };
    let source = &prepared.source;
    let constants = known.lifted.constants(&source.text, source.mode, parameters);
    run::run(session, &reader, &plan, &constants, reply).await
}

/// Whether the table is still the one that the plan was made for.
fn is_current(plan: &Plan, reader: &Reader) -> bool {
    reader.schema(&plan.table.engine_name).is_ok_and(|schema| Arc::ptr_eq(&schema, plan.schema()))
}

/// Whether the text may be a SELECT.
fn is_select(text: &[u8]) -> bool {
    let trimmed = text.trim_ascii_start();
    let verb = trimmed.get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case(b"SELECT"));
    verb || matches!(trimmed.first(), Some(b'(' | b'/' | b'-' | b'#'))
}

/// Whether what the session set leaves rows as they are answered here.
fn answers(session: &SessionState) -> bool {
    session.variables.sql_select_limit == u64::MAX
}
