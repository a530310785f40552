//! MATCH … AGAINST without an index: a function over a row's own texts.
//!
//! It returns how many of the sought words and phrases the texts contain, and 0 if they do not
//! match. Rows found through an index get a BM25 score instead.

use std::{
    hash::Hash,
    sync::{Arc, LazyLock},
};

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, Float64Array},
        compute::cast,
        datatypes::DataType,
    },
    common::{DataFusionError, ScalarValue},
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use remora_engine::{Normalization, Piece, PieceMatch, TextQuery, WordPattern};

use super::{
    KEYWORDS_MODE,
    boolean::{is_boolean, parsed},
};
use crate::parse::MATCH;
use remora_mysql::messages;

/// The function, with the arguments mode, query and texts.
pub(crate) fn match_function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(MatchFunction { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MatchFunction {
    signature: Signature,
}

impl ScalarUDFImpl for MatchFunction {
    fn name(&self) -> &str {
        MATCH
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let [mode, query, texts @ ..] = args.args.as_slice() else {
            return Err(DataFusionError::Execution("MATCH has no columns".to_owned()));
        };
        let (Some(mode), Some(query)) = (constant(mode), constant(query)) else {
            let message = messages::incorrect_arguments("AGAINST");
            return Err(DataFusionError::Execution(message));
        };
        if mode.starts_with(KEYWORDS_MODE) {
            let message = "MATCH('…') is answered by a table's words, not for rows of a \
                           derived table or of an outer query";
            return Err(DataFusionError::Execution(message.to_owned()));
        }
        let query = parsed(&query, is_boolean(&mode))
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let prepared = PreparedQuery::new(&query);
        let columns: Vec<ArrayRef> = texts
            .iter()
            .map(|column| {
                cast(&column.to_array(args.number_rows)?, &DataType::Utf8View).map_err(Into::into)
            })
            .collect::<PlanResult<_>>()?;
        let normalization = Normalization::default();
        let scores = (0..args.number_rows).map(|row| {
            let present = columns.iter().filter(|column| !column.is_null(row));
            let texts: Vec<String> = present
                .map(|column| normalization.apply(column.as_string_view().value(row)).into_owned())
                .collect();
            prepared.score(&texts)
        });
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from_iter_values(scores))))
    }
}

pub(super) fn constant(value: &ColumnarValue) -> Option<String> {
    match value {
        ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
        ) => Some(text.clone()),
        _ => None,
    }
}

/// A query prepared for matching texts one by one.
pub(crate) enum PreparedQuery {
    /// Words or a phrase; `None` matches nothing.
    Words(Option<Box<WordPattern>>),
    /// All parts must match.
    All(Vec<PreparedQuery>),
    /// At least one part must match.
    Any(Vec<PreparedQuery>),
    /// The part must not match.
    Not(Box<PreparedQuery>),
}

impl PreparedQuery {
    pub(crate) fn new(query: &TextQuery) -> Self {
        let several = |parts: &[TextQuery]| parts.iter().map(Self::new).collect();
        match query {
            TextQuery::And(parts) => Self::All(several(parts)),
            TextQuery::Or(parts) => Self::Any(several(parts)),
            TextQuery::Not(part) => Self::Not(Box::new(Self::new(part))),
            TextQuery::Piece(piece) => Self::Words(words(piece).map(Box::new)),
            TextQuery::Term(_) | TextQuery::Keywords(_) => Self::Words(None),
        }
    }

    /// How many of the words the texts contain; 0 if they do not match.
    pub(super) fn score(&self, texts: &[String]) -> f64 {
        match self {
            Self::Words(Some(words)) => {
                f64::from(u8::from(texts.iter().any(|text| words.occurs_in(text))))
            }
            Self::Words(None) => 0.0,
            Self::Any(parts) => parts.iter().map(|part| part.score(texts)).sum(),
            Self::All(parts) => {
                let scores: Vec<f64> = parts.iter().map(|part| part.score(texts)).collect();
                if scores.iter().all(|score| *score > 0.0) { scores.iter().sum() } else { 0.0 }
            }
            Self::Not(part) => f64::from(u8::from(part.score(texts) == 0.0)),
        }
    }
}

fn words(piece: &Piece) -> Option<WordPattern> {
    let normalization = Normalization::default();
    match piece.matching {
        PieceMatch::Substring => None,
        PieceMatch::Words => WordPattern::new(&piece.text, &normalization, false),
        PieceMatch::WordPrefix => WordPattern::new(&piece.text, &normalization, true),
        PieceMatch::Near(apart) => WordPattern::near(&piece.text, &normalization, apart),
    }
}
