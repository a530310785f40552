//! `OPTION` of a SELECT: the known options and their effects.

use remora_mysql::ErrorCode;
use remora_words::settings::WordExpansion;

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
const OFF: [&str; 5] = ["distance", "fuzzy", "global_idf", "max_predicted_time", "scroll"];

/// The name of the option that limits the rows of the whole statement.
pub(crate) const MAX_MATCHES: &str = "max_matches";
/// Whether other servers that do not answer are left out.
pub(crate) const PARTIAL: &str = "partial";
/// Milliseconds that a statement may take.
pub(crate) const MAX_QUERY_TIME: &str = "max_query_time";

/// The most rows that a statement looks for.
pub(crate) const CUTOFF: &str = "cutoff";
/// The seed of RAND() without one.
pub(crate) const RAND_SEED: &str = "rand_seed";

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
    let is = |value: &str, names: &[&str]| names.iter().any(|it| value.eq_ignore_ascii_case(it));
    match (name, number) {
        ("comment", _) => Ok(()),
        (MAX_MATCHES, Some(0)) => refused("max_matches can not be less than one".to_owned()),
        (MAX_MATCHES | MAX_QUERY_TIME | CUTOFF | RAND_SEED, Some(_)) => Ok(()),
        (PARTIAL, Some(0 | 1)) => Ok(()),
        ("sort_method", _) if matches!(value, "pq" | "kbuffer") => Ok(()),
        ("sort_method", _) => {
            refused(format!("unknown sort_method={value} (known values are pq, kbuffer)"))
        }
        ("boolean_mode", _) if is(value, &["and", "or"]) => Ok(()),
        ("boolean_mode", _) => {
            refused(format!("unknown boolean_mode={value} (known values are and, or)"))
        }
        ("morphology", _) if is(value, &["none"]) => Ok(()),
        ("morphology", _) => Err(Error::unsupported(format!("OPTION {name}={value}"))),
        ("not_terms_only_allowed", Some(0 | 1)) | ("expansion_limit", Some(_)) => Ok(()),
        ("expand_keywords", _) => match WordExpansion::parse(value) {
            Ok(_) => Ok(()),
            Err(message) => refused(format!("expand_keywords: {message}")),
        },
        (name, Some(_)) if HARMLESS.contains(&name) => Ok(()),
        (name, Some(0)) if OFF.contains(&name) => Ok(()),
        (name, Some(_)) if OFF.contains(&name) => {
            Err(Error::unsupported(format!("OPTION {name}={value}")))
        }
        _ => refused(format!("unknown option '{name}' (or bad argument type)")),
    }
}

/// Checks an option of a statement, except those that keyword queries read.
pub(super) fn check(name: &str, value: &str) -> Result<()> {
    if is_weighing(name) {
        return Ok(());
    }
    check_option(name, value)
}
