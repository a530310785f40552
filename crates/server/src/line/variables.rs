//! SET and SHOW VARIABLES.

use std::sync::Arc;

use remora_protocol::line::{
    LineError, code,
    reply::{self, VariableRow},
};

use crate::{
    requests::Answer,
    settings::{Change, Settings, VARIABLES, Variable, find_variable},
    shared::ServerState,
};

/// SET: applies all assignments or none.
pub(super) fn set(
    shared: &ServerState,
    assignments: &[(String, String)],
    out: &mut Vec<u8>,
) -> Answer {
    let _changing = shared.changing.lock();
    let mut settings = (**shared.settings.load()).clone();
    for (name, value) in assignments {
        let variable =
            find_variable(name).ok_or_else(|| refusal(format!("Unknown variable: {name}")))?;
        if variable.change != Change::Set {
            return Err(refusal(format!("Variable '{name}' is immutable (requires restart)")));
        }
        variable
            .set(&mut settings, value)
            .map_err(|error| refusal(format!("Invalid value for '{name}': {error}")))?;
    }
    let settings = settings.finish().map_err(|error| refusal(error.to_string()))?;
    if let Some(log) = &shared.log {
        log.apply(&settings.logging).map_err(|error| refusal(error.to_string()))?;
    }
    shared.settings.store(Arc::new(settings));
    shared.cache.clear(None);
    reply::write_set(out, assignments);
    Ok(())
}

/// SHOW VARIABLES.
pub(super) fn show(settings: &Settings, like: Option<&str>, out: &mut Vec<u8>) -> Answer {
    let all: Vec<(String, String)> = match &settings.mygramdb {
        Some(file) => file.variables(),
        None => {
            let shown = |variable: &Variable| (variable.name.to_owned(), variable.show(settings));
            VARIABLES.iter().map(shown).collect()
        }
    };
    let is_mutable =
        |name: &str| find_variable(name).is_some_and(|variable| variable.change == Change::Set);
    let wanted = all.into_iter().filter(|(name, _)| like.is_none_or(|like| is_like(name, like)));
    let mut rows: Vec<VariableRow> = wanted
        .map(|(name, value)| VariableRow { mutable: is_mutable(&name), name, value })
        .collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    reply::write_variables(out, &rows);
    Ok(())
}

fn refusal(message: String) -> LineError {
    LineError::new(code::INVALID_ARGUMENT, message)
}

/// SQL's LIKE without case: `%` is any text, `_` any character. Backtracks to the last `%` only, so the cost is at most
/// the product of the lengths.
fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let (mut at, mut wanted) = (0, 0);
    let mut retry = None;
    while let Some(letter) = text.get(at) {
        match pattern.get(wanted) {
            Some('%') => {
                retry = Some((at, wanted + 1));
                wanted += 1;
            }
            Some(expected) if *expected == '_' || expected == letter => {
                at += 1;
                wanted += 1;
            }
            _ => match &mut retry {
                None => return false,
                Some((start, behind)) => {
                    *start += 1;
                    (at, wanted) = (*start, *behind);
                }
            },
        }
    }
    pattern.get(wanted..).is_some_and(|rest| rest.iter().all(|letter| *letter == '%'))
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn patterns() {
        for (text, pattern, expected) in [
            ("cache.enabled", "cache%", true),
            ("cache.enabled", "%ENABLED", true),
            ("cache.enabled", "cache", false),
            ("cache.enabled", "cache_enabled", true),
            ("cache.enabled", "%a%e%d", true),
            ("cache.enabled", "%x%", false),
            ("", "%", true),
            ("", "_", false),
            ("aab", "%ab", true),
        ] {
            assert_eq!(is_like(text, pattern), expected, "{text} {pattern}");
        }
    }
}
