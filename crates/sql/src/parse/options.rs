//! `OPTION` of a SELECT: the known options and their effects.

use remora_mysql::ErrorCode;

use super::Source;
use crate::{Error, Result};

/// Options of ranking, which keyword queries read.
const WEIGHING: [&str; 4] = ["field_weights", "idf", "index_weights", "ranker"];

/// Numeric options without effect here, except on requests to other servers: results are always complete and exact,
/// with statistics of the whole table.
const HARMLESS: [&str; 8] = [
    "agent_query_timeout",
    "boolean_simplify",
    "columns",
    "local_df",
    "retry_count",
    "retry_delay",
    "reverse_scan",
    "threads",
];

/// Options that are accepted if they are off and refused otherwise.
const OFF: [&str; 9] = [
    "cutoff",
    "distance",
    "expand_keywords",
    "expansion_limit",
    "fuzzy",
    "global_idf",
    "max_predicted_time",
    "not_terms_only_allowed",
    "scroll",
];

/// The name of the option that limits the rows of the whole statement.
pub(crate) const MAX_MATCHES: &str = "max_matches";
/// Whether other servers that do not answer are left out.
pub(crate) const PARTIAL: &str = "partial";
/// Milliseconds that a statement may take.
pub(crate) const MAX_QUERY_TIME: &str = "max_query_time";

/// Whether it is an option of ranking.
pub(crate) fn is_weighing(name: &str) -> bool {
    WEIGHING.contains(&name)
}

/// Checks an option that is not one of ranking.
///
/// # Errors
/// 1064 in Sphinx's words if there is no such option or its value is none, 1235 if it is not acted on here.
pub(crate) fn check_option(name: &str, value: &str) -> Result<()> {
    let refused = |message: String| Err(Error::new(ErrorCode::ParseError, message));
    let number = value.parse::<u64>().ok();
    match (name, number) {
        ("comment", _) => Ok(()),
        (MAX_MATCHES, Some(0)) => refused("max_matches can not be less than one".to_owned()),
        (MAX_MATCHES | MAX_QUERY_TIME | "rand_seed", Some(_)) | (PARTIAL, Some(0 | 1)) => Ok(()),
        ("sort_method", _) if matches!(value, "pq" | "kbuffer") => Ok(()),
        ("sort_method", _) => {
            refused(format!("unknown sort_method={value} (known values are pq, kbuffer)"))
        }
        ("boolean_mode", _) if value.eq_ignore_ascii_case("and") => Ok(()),
        ("boolean_mode" | "morphology", _) => {
            Err(Error::unsupported(format!("OPTION {name}={value}")))
        }
        (name, Some(_)) if HARMLESS.contains(&name) => Ok(()),
        (name, Some(0)) if OFF.contains(&name) => Ok(()),
        (name, Some(_)) if OFF.contains(&name) => {
            Err(Error::unsupported(format!("OPTION {name}={value}")))
        }
        _ => refused(format!("unknown option '{name}' (or bad argument type)")),
    }
}

/// Checks an option of a statement, except those that keyword queries read.
pub(super) fn check(source: &Source, name: &str, value: &str) -> Result<()> {
    if is_weighing(name) {
        return Ok(());
    }
    let has_chance =
        || (0..source.tokens.len()).any(|at| source.is_word(at, "RAND") && source.is(at + 1, "("));
    if name == "rand_seed" && has_chance() {
        return Err(Error::unsupported("OPTION rand_seed with RAND(): say RAND(seed)"));
    }
    check_option(name, value)
}
