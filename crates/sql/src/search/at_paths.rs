//! MATCH … AGAINST of the texts at paths in documents: a function over a row's own document.
//!
//! It returns how many of the sought words and phrases the texts contain, and 0 if they do not
//! match. The texts are the ones that a text index of the paths would hold: for an array its
//! elements, and a path enters all elements of an array on its way.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::{
        array::{Array, AsArray, Float64Array},
        compute::cast,
        datatypes::DataType,
    },
    common::DataFusionError,
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use parking_lot::Mutex;
use remora_engine::{PATH_TEXTS, walk_path};
use serde_json::Value as Json;

use super::{
    boolean::asked,
    function::{PreparedQuery, constant},
};
use crate::{Error, Result, meaning::json::Path, parse::MATCH_AT_PATHS, state::Context};
use remora_mysql::messages;

/// The interrupt is checked after this many rows.
const ROWS_BETWEEN_CHECKS: usize = 64;

/// The function, with the arguments mode, query, document and paths. Each plan gets a new one,
/// which caches the plan's query.
pub(crate) fn match_at_paths_function() -> Arc<ScalarUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(ScalarUDF::from(MatchAtPaths { signature, last: LastQuery::default() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MatchAtPaths {
    signature: Signature,
    last: LastQuery,
}

/// The parsed query of the last batch: all batches of a run have the same. It does not count in
/// comparisons of functions.
#[derive(Default)]
struct LastQuery(Mutex<Option<Arc<KeptQuery>>>);

struct KeptQuery {
    mode: String,
    text: String,
    prepared: PreparedQuery,
}

impl LastQuery {
    /// The parsed query of this text and mode; from the cache if it is the last one.
    fn prepared(&self, mode: String, text: String) -> Result<Arc<KeptQuery>> {
        let last = self.0.lock().clone();
        if let Some(kept) = last.filter(|kept| kept.mode == mode && kept.text == text) {
            return Ok(kept);
        }
        let prepared = PreparedQuery::new(&asked(&text, &mode)?);
        let kept = Arc::new(KeptQuery { mode, text, prepared });
        *self.0.lock() = Some(Arc::clone(&kept));
        Ok(kept)
    }
}

impl fmt::Debug for LastQuery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LastQuery").finish_non_exhaustive()
    }
}

impl PartialEq for LastQuery {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for LastQuery {}

impl Hash for LastQuery {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl ScalarUDFImpl for MatchAtPaths {
    fn name(&self) -> &str {
        MATCH_AT_PATHS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let wrong = || DataFusionError::Execution(messages::incorrect_arguments("AGAINST"));
        let [mode, query, document, paths @ ..] = args.args.as_slice() else {
            return Err(wrong());
        };
        let (mode, query) = (constant(mode).ok_or_else(wrong)?, constant(query).ok_or_else(wrong)?);
        let names = |path: &ColumnarValue| Path::parse(&constant(path)?).ok()?.names();
        let paths: Vec<Vec<String>> =
            paths.iter().map(names).collect::<Option<_>>().ok_or_else(wrong)?;
        let query = self.last.prepared(mode, query).map_err(external)?;
        let documents = cast(&document.to_array(args.number_rows)?, &DataType::Utf8View)?;
        let documents = documents.as_string_view();
        let caller = Context::of_caller();
        let context = caller.as_deref().or_else(|| Context::of_options(&args.config_options));
        let mut scores = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            if row.is_multiple_of(ROWS_BETWEEN_CHECKS) && context.is_some_and(Context::is_over) {
                return Err(external(Error::interrupted()));
            }
            scores.push(match documents.is_null(row) {
                true => 0.0,
                false => query.prepared.score(&texts(documents.value(row), &paths)),
            });
        }
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from(scores))))
    }
}

/// The normalised texts at paths in a document; none if the document is not JSON.
fn texts(document: &str, paths: &[Vec<String>]) -> Vec<String> {
    let Ok(document) = serde_json::from_str::<Json>(document) else { return Vec::new() };
    let mut texts = Vec::new();
    let mut add = |value: &Json| {
        if let Json::String(text) = value {
            texts.push(PATH_TEXTS.apply(text).into_owned());
        }
    };
    for path in paths {
        walk_path(path, &document, &mut |found| {
            add(found);
            found.as_array().into_iter().flatten().for_each(&mut add);
            false
        });
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_an_index() {
        let document =
            r#"{"a": "One", "b": [{"c": "Two"}, {"c": ["Three", 4, ["x"]]}, 5], "d": {"e": 6}}"#;
        let of =
            |path: &[&str]| texts(document, &[path.iter().map(|&name| name.to_owned()).collect()]);
        assert_eq!(of(&["a"]), ["one"]);
        assert_eq!(of(&["b", "c"]), ["two", "three"]);
        assert_eq!(of(&["b", "1", "c"]), ["three"]);
        assert!(of(&["d"]).is_empty() && of(&["d", "e"]).is_empty() && of(&[]).is_empty());
        assert!(texts("{", &[vec!["a".to_owned()]]).is_empty());
    }
}
