//! Facets: how many documents have which values at a path.

use std::collections::HashMap;

use remora_engine::{PathFacetRequest, PathValue, walk_path};
use serde_json::{Number, Value as Json};

use super::{DOC, prepared::PreparedFind};
use crate::{Error, Field, Result, filter::order};

/// The most bytes of the distinct values of a facet.
const MAX_BYTES: usize = 256 << 20;
/// The approximate memory of a value, in addition to its text.
const VALUE_BYTES: usize = 48;
/// If fewer than one in this many documents is found, reading these is cheaper than all values of
/// an index.
const FEW: u64 = 100;

/// The values at a path in the documents that satisfy a filter.
///
/// ```
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let birds = db.collection("birds")?;
/// birds.insert_many([json!({"tags": ["sea", "big"]}), json!({"tags": ["sea"]})])?;
/// let found = birds.find("tags EXISTS").facet("tags").run()?;
/// let facet = &found.facets[0];
/// assert_eq!((facet.path.to_string().as_str(), facet.distinct), ("tags", 2));
/// assert_eq!(facet.values, [(json!("sea"), 2), (json!("big"), 1)]);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacet {
    /// The path.
    pub path: Field,
    /// Values with the numbers of documents that have them, the most frequent first; then in the
    /// order of values. A whole number of 64 bits is an integer, however it was written.
    pub values: Vec<(Json, u64)>,
    /// The number of distinct values.
    pub distinct: u64,
}

/// A scalar, so that equal ones are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Scalar {
    Null,
    Bool(bool),
    Whole(i128),
    /// The bits of a double that is no integer of 64 bits.
    Float(u64),
    Text(String),
}

/// A facet that is counted.
pub(super) struct Tally {
    path: Field,
    limit: usize,
    counts: HashMap<Scalar, u64>,
    bytes: usize,
    /// The result, if an index has given it.
    done: Option<PathFacet>,
}

impl Tally {
    pub fn new(path: Field, limit: usize) -> Self {
        Self { path, limit, counts: HashMap::new(), bytes: 0, done: None }
    }

    /// Whether documents have to be counted.
    pub fn is_open(&self) -> bool {
        self.done.is_none()
    }

    /// Lets the index of the path count, if there is one, it answers the filter exactly, and that is cheaper than
    /// reading the documents found.
    pub fn ask_index(&mut self, asked: &PreparedFind) -> Result<()> {
        let is_indexed = asked.has_plain_index(self.path.names());
        if !is_indexed || !asked.is_exact() {
            return Ok(());
        }
        if asked.has_condition()
            && asked.count()? < asked.reader.row_count(&asked.collection)? / FEW
        {
            return Ok(());
        }
        let request = PathFacetRequest {
            table: asked.collection.to_string(),
            column: DOC.to_owned(),
            path: self.path.names().to_vec(),
            filter: asked.filter(),
            limit: self.limit,
        };
        let Some(reply) = asked.reader.path_facet(&request)? else { return Ok(()) };
        let values = reply.values.into_iter().map(|(value, count)| (json(value), count)).collect();
        self.done = Some(PathFacet { path: self.path.clone(), values, distinct: reply.distinct });
        Ok(())
    }

    /// Counts a document once for each of its distinct values.
    ///
    /// # Errors
    /// [`Error::Busy`] if the distinct values take more memory than the limit.
    pub fn add(&mut self, document: &Json) -> Result<()> {
        if !self.is_open() {
            return Ok(());
        }
        let mut found = Vec::new();
        walk_path(self.path.names(), document, &mut |value| {
            match value {
                Json::Array(elements) => found.extend(elements.iter().filter_map(Scalar::of)),
                one => found.extend(Scalar::of(one)),
            }
            false
        });
        found.sort_unstable();
        found.dedup();
        for scalar in found {
            if let Some(count) = self.counts.get_mut(&scalar) {
                *count += 1;
                continue;
            }
            self.bytes += VALUE_BYTES + scalar.text_bytes();
            if self.bytes > MAX_BYTES {
                let message = format!(
                    "the distinct values at {:?} take more than {} MiB, which is the limit of a facet",
                    self.path.shown(),
                    MAX_BYTES >> 20
                );
                return Err(Error::Busy(message.into()));
            }
            self.counts.insert(scalar, 1);
        }
        Ok(())
    }

    /// The most frequent values.
    pub fn finish(self) -> PathFacet {
        if let Some(done) = self.done {
            return done;
        }
        let distinct = self.counts.len() as u64;
        let counts = self.counts.into_iter();
        let mut values: Vec<(Json, u64)> =
            counts.map(|(scalar, count)| (scalar.into_json(), count)).collect();
        values.sort_unstable_by(|(a, many), (b, more)| {
            more.cmp(many).then_with(|| order(Some(a), Some(b)))
        });
        values.truncate(self.limit);
        PathFacet { path: self.path, values, distinct }
    }
}

impl Scalar {
    /// The scalar of a value; `None` of an array or object.
    fn of(value: &Json) -> Option<Self> {
        Some(match value {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::String(text) => Self::Text(text.clone()),
            Json::Number(number) => {
                let whole = number.as_i64().map(i128::from);
                let whole = whole.or_else(|| number.as_u64().map(i128::from));
                whole.map_or_else(
                    || Self::of_float(number.as_f64().unwrap_or_default()),
                    Self::Whole,
                )
            }
            Json::Array(_) | Json::Object(_) => return None,
        })
    }

    fn of_float(float: f64) -> Self {
        // The cast keeps within the range of i128, which is beyond that of both integers.
        let whole = float as i128;
        let is_whole =
            float.fract() == 0.0 && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&whole);
        if is_whole { Self::Whole(whole) } else { Self::Float(float.to_bits()) }
    }

    fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }

    fn into_json(self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(truth) => Json::Bool(truth),
            Self::Whole(whole) => {
                let number = i64::try_from(whole).map(Number::from);
                let number = number.or_else(|_| u64::try_from(whole).map(Number::from));
                number.map_or(Json::Null, Json::Number)
            }
            Self::Float(bits) => float(f64::from_bits(bits)),
            Self::Text(text) => Json::String(text),
        }
    }
}

fn json(value: PathValue) -> Json {
    match value {
        PathValue::Null => Json::Null,
        PathValue::Bool(truth) => Json::Bool(truth),
        PathValue::Int(number) => number.into(),
        PathValue::Uint(number) => number.into(),
        PathValue::Float(number) => float(number),
        PathValue::Text(text) => Json::String(text),
    }
}

fn float(number: f64) -> Json {
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}
