//! Reports about the server: variables, status counters, engines, plugins.

use remora_engine::{DateTime, Value};

use super::{
    grid::{text, yes},
    tables::ENGINE,
};
use crate::{
    Result,
    meaning::temporal::local_of_utc,
    state::SessionState,
    variables::{DEFINITIONS, VariableScope},
};

/// Names and values for SHOW VARIABLES.
pub(super) fn variables(session: &SessionState, global: bool) -> Result<Vec<Vec<Value>>> {
    let shown = DEFINITIONS.iter().filter(|each| !global || each.scope != VariableScope::Session);
    let rows = shown.map(|each| {
        let name = match (global, each.scope) {
            (true, VariableScope::Both) => format!("global.{}", each.name),
            _ => each.name.to_owned(),
        };
        let value = session.system_variable(&name)?;
        Ok(vec![text(each.name), text(each.shown(&value))])
    });
    rows.collect()
}

/// Names and values for SHOW STATUS, sorted by name.
pub(super) fn status(session: &SessionState) -> Vec<Vec<Value>> {
    let mut figures = session.shared.host.status();
    let tables = super::tables::count(session);
    let mut more = |name: &str, value: String| {
        if !figures.iter().any(|(known, _)| known == name) {
            figures.push((name.to_owned(), value));
        }
    };
    let resources = &session.shared.resources;
    more("Remora_statements_running", resources.running().to_string());
    more("Remora_statement_memory_bytes", resources.memory_bytes().to_string());
    more("Remora_spilled_bytes", resources.disk_bytes().to_string());
    more("Open_tables", tables.to_string());
    more("Prepared_stmt_count", "0".to_owned());
    more("Slow_queries", "0".to_owned());
    let encryption = session.encryption.as_ref();
    more("Ssl_cipher", encryption.map_or_else(String::new, |tls| tls.cipher.clone()));
    more("Ssl_version", encryption.map_or_else(String::new, |tls| tls.version.clone()));
    more("Uptime", "0".to_owned());
    figures.sort();
    figures.into_iter().map(|(name, value)| vec![text(name), text(value)]).collect()
}

/// When the server started. Tables report it as their creation time, which is not stored.
pub(super) fn started(session: &SessionState) -> Value {
    let figures = session.shared.host.status();
    let uptime = figures.iter().find(|(name, _)| name == "Uptime");
    let uptime = uptime.and_then(|(_, seconds)| seconds.parse::<i64>().ok()).unwrap_or(0);
    let second = session.clock.micros.div_euclid(1_000_000).saturating_sub(uptime);
    let micros = second.saturating_mul(1_000_000);
    let moment = local_of_utc(micros, &session.variables.time_zone.zone);
    moment.map_or(Value::Null, |moment| {
        let date = remora_engine::Date { year: moment.year, month: moment.month, day: moment.day };
        Value::DateTime(DateTime { date, micros: moment.micros.unsigned_abs() })
    })
}

/// The rows of ENGINES.
pub(super) fn engines() -> Vec<Vec<Value>> {
    let comment = "Remora's tables under the name that tools expect: transactions, snapshots, \
                   full-text search";
    let row = |name: &str, support: &str| {
        vec![text(name), text(support), text(comment), yes(true), yes(false), yes(true)]
    };
    vec![row(ENGINE, "DEFAULT"), row("Remora", "YES")]
}

/// The rows of PLUGINS.
pub(super) fn plugins() -> Vec<Vec<Value>> {
    let row = |name: &str, kind: &str| {
        let mut row = vec![text(name), text("1.0"), text("ACTIVE"), text(kind), text("1.0")];
        row.extend([Value::Null, Value::Null, text("Remora"), text(""), text("Apache-2.0")]);
        row.push(text("FORCE"));
        row
    };
    vec![
        row("mysql_native_password", "AUTHENTICATION"),
        row("caching_sha2_password", "AUTHENTICATION"),
        row(ENGINE, "STORAGE ENGINE"),
        row("Remora", "STORAGE ENGINE"),
    ]
}
