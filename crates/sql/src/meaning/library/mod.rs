//! MySQL's functions, by subject.

mod arithmetic;
mod bits;
mod calls;
mod casts;
mod ciphers;
mod comparison;
mod compressed;
mod control;
mod date_comparison;
mod dates;
mod distance;
mod groups;
mod gtid;
mod highlight;
mod intervals;
mod json;
mod json_truth;
mod json_value;
mod literals;
mod locks;
mod multi;
mod net;
mod number_format;
mod numeric;
mod regexp;
mod search;
mod session;
mod snippet;
mod spatial;
mod text;
mod units;
mod waiting;

use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;
use rustc_hash::FxHashMap;

use super::function::{Caching, Definition, Dialect, Function};

pub(crate) use calls::{converted, typed, with_representation};
pub(crate) use comparison::{compared_sides, text_key};
pub(crate) use control::common_type;
pub(crate) use dates::INSTANT;
pub(crate) use groups::GROUP_KEY;
pub(crate) use intervals::interval_of_text;
pub(crate) use json::{JSON_ROWS, ROWS_MAY_HAVE, extracted, extracted_type, rows_may_have};
pub(crate) use json_truth::IN_DOCUMENT;
pub(crate) use multi::{EACH, NUMBERS_OF, UNFOLD, check_sought};
pub(crate) use session::{ASSIGN_VARIABLE, GIVE_LAST_INSERT_ID, READ_VARIABLE};

/// All function definitions.
pub(crate) const TABLES: &[&[Definition]] = &[
    arithmetic::FUNCTIONS,
    bits::FUNCTIONS,
    casts::FUNCTIONS,
    ciphers::FUNCTIONS,
    comparison::FUNCTIONS,
    compressed::FUNCTIONS,
    control::FUNCTIONS,
    dates::FUNCTIONS,
    distance::FUNCTIONS,
    groups::FUNCTIONS,
    gtid::FUNCTIONS,
    highlight::FUNCTIONS,
    intervals::FUNCTIONS,
    json::FUNCTIONS,
    json_truth::FUNCTIONS,
    json_value::FUNCTIONS,
    literals::FUNCTIONS,
    locks::FUNCTIONS,
    multi::FUNCTIONS,
    net::FUNCTIONS,
    number_format::FUNCTIONS,
    numeric::FUNCTIONS,
    regexp::FUNCTIONS,
    search::FUNCTIONS,
    session::FUNCTIONS,
    snippet::FUNCTIONS,
    spatial::FUNCTIONS,
    text::FUNCTIONS,
    units::FUNCTIONS,
    waiting::FUNCTIONS,
];

/// The definition of this lower-case name.
pub(crate) fn definition(name: &str) -> Option<&'static Definition> {
    static BY_NAME: LazyLock<FxHashMap<&str, &Definition>> = LazyLock::new(|| {
        let tables = TABLES.iter().flat_map(|table| table.iter());
        tables.map(|definition| (definition.name, definition)).collect()
    });
    BY_NAME.get(name).copied()
}

/// Whether a function gives the same value throughout a statement, and maybe another one in the next.
pub(crate) fn is_per_statement(name: &str) -> bool {
    definition(name).is_some_and(|definition| definition.caching == Caching::PerStatement)
}

/// The DataFusion function of this lower-case name.
pub(crate) fn function(name: &str, dialect: Dialect) -> Option<Arc<ScalarUDF>> {
    Some(Arc::new(ScalarUDF::from(Function::new(definition(name)?, dialect))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of all functions that a cached plan may call in this way.
    fn names(is_it: impl Fn(Caching) -> bool) -> Vec<&'static str> {
        let all = TABLES.iter().flat_map(|table| table.iter());
        let mut names: Vec<_> =
            all.filter(|each| is_it(each.caching)).map(|each| each.name).collect();
        names.sort_unstable();
        names
    }

    /// Whoever adds a function decides: all others have the same value for the same arguments.
    #[test]
    fn what_cached_plans_may_call_is_decided_for_every_function() {
        let per_statement = [
            "connection_id",
            "current_date",
            "current_time",
            "found_rows",
            "last_insert_id",
            "now",
            "row_count",
            "unix_timestamp",
            "user",
            "utc_date",
            "utc_time",
            "utc_timestamp",
        ];
        assert_eq!(names(|it| it == Caching::PerStatement), per_statement);
        let by_length = ["lpad", "repeat", "rpad", "space"];
        assert_eq!(names(|it| matches!(it, Caching::ByLength(_))), by_length);
        let volatile = TABLES.iter().flat_map(|table| table.iter()).filter(|each| each.volatile);
        assert!(volatile.clone().count() > 15);
        for function in volatile {
            assert_eq!(function.caching, Caching::Never, "{}", function.name);
        }
        for name in ["aes_decrypt", "aes_encrypt", "match_score", "sysdate", "rand", "uuid"] {
            assert!(names(|it| it == Caching::Never).contains(&name), "{name}");
        }
        for name in ["sleep", "get_lock", GIVE_LAST_INSERT_ID, READ_VARIABLE, ASSIGN_VARIABLE] {
            assert!(names(|it| it == Caching::Never).contains(&name), "{name}");
        }
    }
}
