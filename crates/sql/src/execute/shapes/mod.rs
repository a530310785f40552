//! Statements answered without planning (shapes): by key, by keys, search, count, facet, joins by key.
//!
//! [`parameterize`] separates a text from its literals. The rest of the text finds a cached plan ([`crate::shared::Plans`]), or
//! is parsed as any statement ([`normalize`]). From its syntax tree ([`of_tree`]) comes a shape ([`shape`]; of several tables
//! [`join`]) that becomes a plan ([`plan`]). The plan is filled with the literals ([`constant`]) and sent to the engine
//! ([`run`]). A statement without a shape, or with a literal that needs one of MySQL's conversions, takes the general
//! path: it is planned by DataFusion. Both paths return the same columns and rows. A table with rows in other servers is
//! opened first ([`agents`]).

mod agents;
mod compared_column;
mod condition;
mod constant;
mod explain;
mod found_rows;
mod join;
#[cfg(test)]
mod join_order_tests;
mod keys;
mod leaves;
mod normalize;
mod of_condition;
mod of_tree;
#[cfg(test)]
mod of_tree_tests;
mod output;
mod parameterize;
mod plan;
mod planned;
mod run;
mod shape;
mod table;
#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use agents::Way;
pub(crate) use explain::{analyze, explain};
pub(crate) use found_rows::found_rows;
use normalize::ItemsOfChanged;
use parameterize::{Constants, ParameterizedText, TextPiece};
use remora_engine::{KeyValues, Value};
use remora_mysql::{Collation, LexMode};

use self::{
    plan::{ShapePlan, ShapeWork},
    shape::Shape,
};
use crate::{
    Outcome, Reply, Result,
    blocking::run_blocking_if_long,
    catalog::{Reader, TableName},
    parse::{LONG_BYTES, Source, Statement, StatementKind, split, write::ChangedRows},
    shared::CachedStatement,
    state::SessionState,
};

/// A shape of one table or of several.
enum AnyShape {
    One(Box<Shape>),
    Joined(join::JoinShape),
}

/// A plan of one table or of several, or the cached plans of statements without a shape.
enum AnyPlan {
    One(Box<ShapePlan>),
    Joined(join::JoinPlan),
    Planned(planned::ShapePlans),
}

/// The part of a prepared statement that is kept for its shape.
#[derive(Default)]
pub(crate) struct PreparedShape {
    prepared: Option<PreparedPlan>,
}

struct PreparedPlan {
    parameterized: ParameterizedText,
    /// The shape, if it has one.
    shape: Option<AnyShape>,
    database: Option<String>,
    /// The newest plan.
    plan: parking_lot::Mutex<Option<Arc<AnyPlan>>>,
}

thread_local! {
    /// The buffers of this thread's last statement, for reuse.
    static PARAMETERIZED: Cell<Option<Box<ParameterizedText>>> = const { Cell::new(None) };
}

/// Answers a text as the client sent it, before it is parsed; `None` if it has no known shape.
pub(crate) async fn run_text<R: Reply>(
    session: &mut SessionState,
    text: &[u8],
    reply: &mut R,
) -> Result<Option<Outcome>> {
    if !is_select(text) || !answers(session) {
        return Ok(None);
    }
    let mut parameterized = PARAMETERIZED.take().unwrap_or_default();
    let outcome = run_parameterized(session, text, &mut parameterized, reply).await;
    if parameterized.is_small() {
        PARAMETERIZED.set(Some(parameterized));
    }
    outcome
}

async fn run_parameterized<R: Reply>(
    session: &mut SessionState,
    text: &[u8],
    parameterized: &mut ParameterizedText,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let mode = session.lex_mode();
    let is_read = run_blocking_if_long(text.len() > LONG_BYTES, || {
        parameterized.read(text, mode, session.database.as_deref())
    });
    if !is_read || parameterized.has_parameters() {
        return Ok(None);
    }
    // The kind is Select even if comments come first.
    session.begin_reading(StatementKind::Select).await?;
    let reader = session.reader();
    let known = cached(session, parameterized);
    let constants = parameterized.constants(text, mode, &[], session);
    let way = Way::of_plan(known.as_deref(), session, &reader, &constants)?;
    let (plan, way) = match known {
        Some(plan) if plan.is_current(way.reader(&reader)) => (plan, way),
        known => match plan_again(session, parameterized, known, &reader, &constants)? {
            Some(planned) => planned,
            None => return Ok(None),
        },
    };
    match &*plan {
        AnyPlan::Planned(kept) => {
            let source = |session: &SessionState| planned_source(session, text, mode);
            kept.run(session, &reader, &constants, source, reply).await
        }
        plan => plan.run(session, way.reader(&reader), &constants, reply).await,
    }
}

/// The new plan of a text's shape, or the cached plans of the text if it has none, and how its tables are read. `None` if
/// it takes the general path.
fn plan_again(
    session: &SessionState,
    parameterized: &ParameterizedText,
    known: Option<Arc<AnyPlan>>,
    reader: &Reader,
    constants: &Constants<'_>,
) -> Result<Option<(Arc<AnyPlan>, Way)>> {
    let Constants { text, mode, .. } = *constants;
    let planned = known.filter(|known| known.is_planned());
    let shape = match &planned {
        Some(known) if known.has_no_shape() => None,
        _ => AnyShape::of(text, mode, &parameterized.pieces, None, &session.interrupted),
    };
    let has_no_shape = shape.is_none() && !session.interrupted.load(Relaxed);
    if let Some(AnyPlan::Planned(kept)) = planned.as_deref()
        && has_no_shape
    {
        kept.say_that_no_shape_is_there();
    }
    let database = session.database.as_deref();
    let way = Way::of_shape(shape.as_ref(), session, reader, database, constants)?;
    if way.is_general() {
        return Ok(None);
    }
    let made = shape.and_then(|shape| AnyPlan::new(&shape, session, way.reader(reader), database));
    let plan = made.map(Arc::new).or(planned);
    let known = match &plan {
        Some(plan) if plan.is_planned() || plan.is_current(way.reader(reader)) => {
            Some(CachedStatement::Plan(Arc::<AnyPlan>::clone(plan)))
        }
        Some(_) => None,
        // A SELECT with FACET is several statements.
        None if parameterized.has_word(text, "FACET") => None,
        None if has_no_shape => Some(CachedStatement::Plan(AnyPlan::without_shape())),
        None => Some(CachedStatement::Seen),
    };
    if let Some(known) = known.filter(|_| parameterized.has_key) {
        session.shared.plans.put(&parameterized.key, known);
    }
    Ok(plan.map(|plan| (plan, way)))
}

/// Answers a SELECT; `None` if it has no known shape.
pub(crate) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    run_part(session, statement, statement.source.text.len(), reply).await
}

/// Answers a SELECT with a locking clause, whose rows are protected already.
pub(crate) async fn run_protected<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let Some(clause) = lock_clause(&statement.source) else { return Ok(None) };
    match run_part(session, statement, clause, reply).await? {
        Some(outcome) => Ok(Some(outcome)),
        None => run_planned_part(session, statement, clause, reply).await,
    }
}

/// Answers the text before `end` by a cached plan.
async fn run_planned_part<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    end: usize,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    if !answers(session) {
        return Ok(None);
    }
    let Source { text, mode, .. } = &*statement.source;
    let text = text.get(..end).unwrap_or_default();
    let mut parameterized = ParameterizedText::default();
    if !parameterized.read(text, *mode, session.database.as_deref()) {
        return Ok(None);
    }
    let known = cached(session, &parameterized);
    let Some(AnyPlan::Planned(kept)) = known.as_deref() else { return Ok(None) };
    let reader = session.reader();
    let constants = parameterized.constants(text, *mode, statement.parameters, session);
    let source = |session: &SessionState| planned_source(session, text, *mode);
    kept.run(session, &reader, &constants, source, reply).await
}

/// The source of a text that is to be planned.
fn planned_source(session: &SessionState, text: &[u8], mode: LexMode) -> Option<Arc<Source>> {
    let source = split(text, false, mode).ok()?.pop()?;
    Some(Arc::new(Source { interrupted: Arc::clone(&session.interrupted), ..source }))
}

/// Where the locking clause begins, if it is the end of a statement.
fn lock_clause(source: &Source) -> Option<usize> {
    const CLAUSES: [&[&str]; 3] =
        [&["FOR", "UPDATE"], &["FOR", "SHARE"], &["LOCK", "IN", "SHARE", "MODE"]];
    let ends_with = |clause: &&[&str]| {
        let start = source.tokens.len().checked_sub(clause.len())?;
        let mut words = (start..).zip(clause.iter());
        words.all(|(at, word)| source.is_word(at, word)).then_some(start)
    };
    let clause = CLAUSES.iter().find_map(ends_with)?;
    source.tokens.get(clause).map(|token| token.start)
}

/// Answers the text before `end`.
async fn run_part<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    end: usize,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    // The same statement was tried before it was parsed, or as a prepared one, and other servers need not be asked twice.
    if session.take_given_up() || !answers(session) {
        return Ok(None);
    }
    let source = &statement.source;
    let text = source.text.get(..end).unwrap_or_default();
    let mut parameterized = ParameterizedText::default();
    if !parameterized.read(text, source.mode, session.database.as_deref()) {
        return Ok(None);
    }
    let reader = session.reader();
    let constants = parameterized.constants(text, source.mode, statement.parameters, session);
    let found = plan_of_shape(session, &parameterized, None, &reader, &constants)?;
    let Some((plan, way)) = found else { return Ok(None) };
    let outcome = plan.run(session, way.reader(&reader), &constants, reply).await?;
    // The FACETs behind have not been given up.
    let _ = session.take_given_up();
    Ok(outcome)
}

/// What the cache has for a text.
fn cached(session: &SessionState, parameterized: &ParameterizedText) -> Option<Arc<AnyPlan>> {
    if !parameterized.has_key {
        return None;
    }
    match session.shared.plans.get(&parameterized.key)? {
        CachedStatement::Plan(plan) => plan.downcast::<AnyPlan>().ok(),
        CachedStatement::Seen => Some(Arc::new(AnyPlan::Planned(planned::ShapePlans::default()))),
    }
}

/// The plan of a statement's shape, cached or new, and how its tables are read.
fn plan_of_shape(
    session: &SessionState,
    parameterized: &ParameterizedText,
    items: Option<ItemsOfChanged<'_>>,
    reader: &Reader,
    constants: &Constants<'_>,
) -> Result<Option<(Arc<AnyPlan>, Way)>> {
    let known = cached(session, parameterized);
    let way = Way::of_plan(known.as_deref(), session, reader, constants)?;
    match known {
        Some(plan) if !plan.is_planned() && plan.is_current(way.reader(reader)) => {
            return Ok(Some((plan, way)));
        }
        Some(plan) if plan.has_no_shape() => return Ok(None),
        _ => {}
    }
    let Constants { text, mode, .. } = *constants;
    let shape = AnyShape::of(text, mode, &parameterized.pieces, items, &session.interrupted);
    let Some(shape) = shape else {
        let is_kept = parameterized.has_key && !parameterized.has_word(text, "FACET");
        if is_kept && !session.interrupted.load(Relaxed) {
            session
                .shared
                .plans
                .put(&parameterized.key, CachedStatement::Plan(AnyPlan::without_shape()));
        }
        return Ok(None);
    };
    let database = session.database.as_deref();
    let way = Way::of_shape(Some(&shape), session, reader, database, constants)?;
    if way.is_general() {
        return Ok(None);
    }
    let plan = AnyPlan::new(&shape, session, way.reader(reader), database).map(Arc::new);
    if let Some(plan) = &plan
        && parameterized.has_key
        && plan.is_current(way.reader(reader))
    {
        let plan = CachedStatement::Plan(Arc::<AnyPlan>::clone(plan));
        session.shared.plans.put(&parameterized.key, plan);
    }
    Ok(plan.map(|plan| (plan, way)))
}

/// What to keep of a prepared statement.
pub(crate) fn prepare(
    session: &mut SessionState,
    statement: &Statement<'_>,
) -> Result<PreparedShape> {
    let source = &statement.source;
    let database = session.database.clone();
    let mut parameterized = ParameterizedText::default();
    if !parameterized.read(&source.text, source.mode, database.as_deref()) {
        return Ok(PreparedShape::default());
    }
    let pieces = &parameterized.pieces;
    let shape = AnyShape::of(&source.text, source.mode, pieces, None, &session.interrupted);
    let plan = parking_lot::Mutex::new(None);
    Ok(PreparedShape { prepared: Some(PreparedPlan { parameterized, shape, database, plan }) })
}

/// Answers a prepared statement; `None` if it has no known shape.
pub(crate) async fn run_prepared<R: Reply>(
    session: &mut SessionState,
    shape: &PreparedShape,
    source: &Arc<Source>,
    parameters: &[Value],
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let Some(known) = &shape.prepared else { return Ok(None) };
    if !answers(session) {
        return Ok(None);
    }
    let reader = session.reader();
    let constants = known.parameterized.constants(&source.text, source.mode, parameters, session);
    let plan = known.plan.lock().clone();
    let mut way = Way::of_plan(plan.as_deref(), session, &reader, &constants)?;
    let plan = match plan {
        Some(plan) if plan.is_current(way.reader(&reader)) => plan,
        plan => {
            let database = known.database.as_deref();
            let shape = known.shape.as_ref();
            way = Way::of_shape(shape, session, &reader, database, &constants)?;
            if way.is_general() {
                return Ok(None);
            }
            let made = |shape| AnyPlan::new(shape, session, way.reader(&reader), database);
            let made = shape.and_then(made);
            let planned = plan.filter(|plan| plan.is_planned());
            let plan = made.map(Arc::new).or(planned);
            let plan =
                plan.unwrap_or_else(|| Arc::new(AnyPlan::Planned(planned::ShapePlans::default())));
            *known.plan.lock() = Some(Arc::clone(&plan));
            plan
        }
    };
    match &*plan {
        AnyPlan::Planned(kept) => {
            let source = |_: &SessionState| Some(Arc::clone(source));
            kept.run(session, &reader, &constants, source, reply).await
        }
        plan => plan.run(session, way.reader(&reader), &constants, reply).await,
    }
}

/// The distinct keys of the rows that a statement changes, in key order, if its condition does nothing but name keys. Rows
/// with these keys need not exist. `key` makes the columns of the table's key.
pub(crate) fn named_keys(
    session: &SessionState,
    statement: &Statement<'_>,
    rows: &ChangedRows,
    key: ItemsOfChanged<'_>,
) -> Result<Option<Vec<KeyValues>>> {
    let source = &statement.source;
    let mut parameterized = ParameterizedText::default();
    if !parameterized.read_changed(source, rows, session.database.as_deref()) {
        return Ok(None);
    }
    let text = (source.text.as_slice(), source.mode);
    let found = table_and_keys(session, &parameterized, Some(key), text, statement.parameters)?;
    Ok(found.map(|(_, keys)| keys))
}

/// The same of a SELECT that ends with a locking clause, with the table.
pub(crate) fn locked_keys(
    session: &SessionState,
    statement: &Statement<'_>,
) -> Result<Option<(TableName, Vec<KeyValues>)>> {
    let source = &statement.source;
    let Some(end) = lock_clause(source) else { return Ok(None) };
    let text = source.text.get(..end).unwrap_or_default();
    let mut parameterized = ParameterizedText::default();
    if !parameterized.read(text, source.mode, session.database.as_deref()) {
        return Ok(None);
    }
    table_and_keys(session, &parameterized, None, (text, source.mode), statement.parameters)
}

fn table_and_keys(
    session: &SessionState,
    parameterized: &ParameterizedText,
    items: Option<ItemsOfChanged<'_>>,
    (text, mode): (&[u8], LexMode),
    parameters: &[Value],
) -> Result<Option<(TableName, Vec<KeyValues>)>> {
    let reader = session.reader();
    let constants = parameterized.constants(text, mode, parameters, session);
    let found = plan_of_shape(session, parameterized, items, &reader, &constants)?;
    let Some((plan, _)) = found else { return Ok(None) };
    let AnyPlan::One(plan) = &*plan else { return Ok(None) };
    if plan.limit.is_some() || plan.offset.is_some() {
        return Ok(None);
    }
    let ShapeWork::Keys(work) = &plan.work else { return Ok(None) };
    if work.test.by_bytes {
        return Ok(None);
    }
    plan.table.check(session)?;
    let mut named = Vec::new();
    let filled = work.test.fill(&constants, work.branches, &mut named);
    keys::sort(&mut named);
    Ok(filled.map(|()| (plan.table.name.clone(), named)))
}

impl AnyShape {
    /// The shape of a statement, if it has one.
    fn of(
        text: &[u8],
        mode: LexMode,
        pieces: &[TextPiece],
        items: Option<ItemsOfChanged<'_>>,
        interrupted: &Arc<AtomicBool>,
    ) -> Option<Self> {
        run_blocking_if_long(text.len() > LONG_BYTES, || {
            let parsed = normalize::parsed(text, mode, pieces, items, interrupted)?;
            let one = of_tree::shape(&parsed).map(|shape| Self::One(Box::new(shape)));
            one.or_else(|| join::shape(&parsed).map(Self::Joined))
        })
    }
}

impl AnyPlan {
    fn new(
        shape: &AnyShape,
        session: &SessionState,
        reader: &Reader,
        database: Option<&str>,
    ) -> Option<Self> {
        Some(match shape {
            AnyShape::One(shape) => {
                Self::One(Box::new(ShapePlan::new(shape, database, &session.shared, reader)?))
            }
            AnyShape::Joined(shape) => {
                Self::Joined(join::JoinPlan::new(shape, session, reader, database)?)
            }
        })
    }

    /// That a statement has no shape.
    fn without_shape() -> Arc<Self> {
        Arc::new(Self::Planned(planned::ShapePlans::without_shape()))
    }

    /// Whether the plan's tables are unchanged.
    fn is_current(&self, reader: &Reader) -> bool {
        match self {
            Self::One(plan) => plan.table.is_current(reader),
            Self::Joined(plan) => plan.is_current(reader),
            Self::Planned(kept) => kept.is_current(reader),
        }
    }

    /// Whether these are cached plans of statements without a shape.
    fn is_planned(&self) -> bool {
        matches!(self, Self::Planned(_))
    }

    /// Whether it is known that the statement has no shape.
    fn has_no_shape(&self) -> bool {
        matches!(self, Self::Planned(kept) if kept.has_no_shape())
    }

    async fn run<R: Reply>(
        &self,
        session: &mut SessionState,
        reader: &Reader,
        constants: &Constants<'_>,
        reply: &mut R,
    ) -> Result<Option<Outcome>> {
        match self {
            Self::One(plan) => run::run(session, reader, plan, constants, reply).await,
            Self::Joined(plan) => join::run(session, reader, plan, constants, reply).await,
            Self::Planned(_) => Ok(None),
        }
    }
}

/// Whether the text may be a SELECT.
fn is_select(text: &[u8]) -> bool {
    let trimmed = text.trim_ascii_start();
    let begins_with =
        |verb: &[u8]| trimmed.get(..verb.len()).is_some_and(|word| word.eq_ignore_ascii_case(verb));
    begins_with(b"SELECT")
        || begins_with(b"WITH")
        || matches!(trimmed.first(), Some(b'(' | b'/' | b'-' | b'#'))
}

/// Whether the session's variables permit the shapes' answers.
fn answers(session: &SessionState) -> bool {
    let variables = &session.variables;
    // With binary literals, texts would compare by bytes. Only the general path knows Sphinx's meaning of a statement.
    !variables.is_sphinx
        && variables.sql_select_limit == u64::MAX
        && variables.collation_connection != Collation::BINARY
}
