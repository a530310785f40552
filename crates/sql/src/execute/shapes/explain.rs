//! What EXPLAIN says of the shapes.

use remora_engine::{KeyValues, Value};

use super::{
    AnyPlan, AnyShape,
    condition::Tests,
    lift::{Constants, Lifted},
    plan::{Plan, Work},
};
use crate::{catalog::Reader, search, state::SessionState};

/// One table's part in the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// What the statement calls the table.
    pub table: String,
    /// MySQL's word for the way: `const`, `range`, `fulltext`, `ALL`.
    pub kind: &'static str,
    /// The index that answers.
    pub key: Option<String>,
    /// How many rows are looked at, about.
    pub rows: u64,
    /// What happens, in words.
    pub extra: String,
}

/// How a text would be answered, table by table; `None` if it has none of the shapes.
pub(crate) fn explain(
    session: &SessionState,
    text: &[u8],
    parameters: &[Value],
) -> Option<Vec<Access>> {
    let mode = session.lex_mode();
    let mut lifted = Lifted::default();
    let database = session.database.as_deref();
    if !lifted.read(text, mode, database) {
        return None;
    }
    let shape = AnyShape::of(text, mode, &lifted.pieces)?;
    let reader = session.reader();
    let constants = lifted.constants(text, mode, parameters, session);
    let plan = AnyPlan::new(&shape, session, &reader, database)?;
    // What may not be read is refused where it is planned.
    plan.check(&session.identity).ok()?;
    Some(match plan {
        AnyPlan::One(plan) => vec![access(&plan, &reader, &constants)?],
        AnyPlan::Joined(plan) => plan.accesses(),
        AnyPlan::Planned(_) => return None,
    })
}

fn access(plan: &Plan, reader: &Reader, constants: &Constants<'_>) -> Option<Access> {
    let table = plan.table.called().to_owned();
    let all = reader.row_count(&plan.table.engine_name).ok()?;
    let access = |kind, key: Option<&str>, rows, extra: String| Access {
        table: table.clone(),
        kind,
        key: key.map(str::to_owned),
        rows,
        extra,
    };
    let searched = |tests: &Tests, what: &str| {
        let selected = tests.fill(constants, &plan.table)?;
        let words = search::selection(selected.text.as_ref(), selected.filter.as_ref());
        let (kind, key) = match (&selected.text, &selected.filter) {
            (Some(_), _) => ("fulltext", Some("text index")),
            (None, Some(_)) => ("range", None),
            (None, None) => ("index", Some("PRIMARY")),
        };
        Some(access(kind, key, all, format!("{what}: {words}")))
    };
    match &plan.work {
        Work::Keys(work) => {
            let mut keys: Vec<KeyValues> = Vec::new();
            work.test.fill(constants, work.branches, &mut keys)?;
            let kind = if work.test.is_single { "const" } else { "range" };
            let extra = format!("Look-up of {} keys in the primary key", keys.len());
            Some(access(kind, Some("PRIMARY"), keys.len() as u64, extra))
        }
        Work::Page(work) => searched(&work.tests, "One page of a search"),
        Work::Count(tests) => searched(tests, "Count, no row is read"),
        Work::Facet(work) => searched(&work.tests, "Counts of each value, no row is read"),
        Work::Ends(tests, _) => searched(tests, "First and last key, no row is read"),
    }
}
