//! Looks up functions by name: MySQL's first, then DataFusion's where they mean the same.

use std::sync::{Arc, LazyLock};

use datafusion::{
    execution::SessionStateDefaults,
    logical_expr::{AggregateUDF, ScalarUDF, WindowUDF},
};
use rustc_hash::FxHashMap;

use super::{recursive, run_literals};
use crate::{
    meaning::{self, RUN_LITERAL},
    parse::{MATCH, MATCH_AT_PATHS},
    search,
    state::Context,
};

type ByName<F> = LazyLock<FxHashMap<String, Arc<F>>>;

static AGGREGATES: ByName<AggregateUDF> = LazyLock::new(|| {
    let all = SessionStateDefaults::default_aggregate_functions();
    all.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});

static WINDOWS: ByName<WindowUDF> = LazyLock::new(|| {
    let all = SessionStateDefaults::default_window_functions();
    all.into_iter().map(|function| (function.name().to_owned(), function)).collect()
});

/// The scalar function of this name.
pub(super) fn scalar(name: &str, context: &Context) -> Option<Arc<ScalarUDF>> {
    let name = name.to_lowercase();
    match name.as_str() {
        MATCH => return Some(search::match_function()),
        MATCH_AT_PATHS => return Some(search::match_at_paths_function()),
        recursive::NAME => return Some(recursive::function()),
        RUN_LITERAL => return Some(run_literals::function()),
        _ => {}
    }
    meaning::scalar_function_in(&name, context)
}

/// The aggregate function of this name.
pub(super) fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    let name = name.to_lowercase();
    meaning::aggregate_function(&name).or_else(|| AGGREGATES.get(&name).cloned())
}

/// The window function of this name.
pub(super) fn window(name: &str) -> Option<Arc<WindowUDF>> {
    WINDOWS.get(&name.to_lowercase()).cloned()
}
