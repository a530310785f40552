//! Runs a join and sends its rows.

use remora_engine::Value;

use super::{
    plan::{JoinOutput, JoinPlan},
    read::JoinRun,
};
use crate::{
    Cell, Outcome, Reply, Result,
    catalog::Reader,
    execute::shapes::{output::send, parameterize::Constants},
    state::SessionState,
};

/// Rows that are sent before waiting for the client.
const CHUNK: usize = 1_024;

/// Runs a plan; `None` if the statement takes the general path.
pub(in crate::execute::shapes) async fn run<R: Reply>(
    session: &mut SessionState,
    reader: &Reader,
    plan: &JoinPlan,
    constants: &Constants<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let tables = plan.chain.tables();
    if tables.iter().any(|table| table.is_changed_by(session)) {
        return Ok(None);
    }
    plan.check(session)?;
    let reading = JoinRun { session: &*session, reader, constants, noted: None };
    let Some(rows) = reading.rows(&plan.chain)? else { return Ok(None) };
    reply.columns(&plan.columns)?;
    let count = |count: usize| Cell::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let mut sent = 1;
    match &plan.output {
        JoinOutput::Count => reply.row(&[count(rows.count)])?,
        JoinOutput::CountDistinct(slot) => reply.row(&[count(rows.distinct(*slot).len())])?,
        JoinOutput::Slots(slots) => {
            let zone = session.variables.time_zone.zone.clone();
            let mut values: Vec<Value> = Vec::with_capacity(slots.len());
            for (number, row) in rows.iter().enumerate() {
                values.clear();
                let of_row = |slot: &usize| row.get(*slot).cloned().unwrap_or(Value::Null);
                values.extend(slots.iter().map(of_row));
                send(reply, &plan.columns, &values, &zone)?;
                if number % CHUNK == CHUNK - 1 {
                    reply.drain().await?;
                }
            }
            sent = rows.count as u64;
        }
    }
    session.warnings.clear();
    session.found_rows = sent;
    Ok(Some(Outcome::default()))
}
