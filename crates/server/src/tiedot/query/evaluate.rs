//! Evaluates a query over one snapshot, as sorted sets of ids.
//!
//! Parts without limits and differences become one engine condition; only the rest is combined here.

use remora::{Collection, Filter, Find, Moment, Value, path};

use super::parse::{Lookup, Query, Test};
use crate::{limits::BufferShare, tiedot::reply::Refusal};

/// Up to this integer, doubles are exact and may have fractions.
const MAX_EXACT: u64 = 1 << 53;
/// The precision with which fractions between two integers are searched for a limit.
const FRACTION_BITS: u32 = 53;

/// A request's memory, taken from that of all connections' buffers.
pub(in crate::tiedot) struct Budget {
    share: BufferShare,
    most: usize,
    taken: usize,
}

impl Budget {
    /// Nothing is used yet. All connections together may use `most` bytes.
    pub fn new(share: BufferShare, most: usize) -> Self {
        Self { share, most, taken: 0 }
    }

    /// Reserves bytes.
    pub fn take(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.taken = self.taken.saturating_add(bytes);
        // More than the total is refused before it affects others.
        if self.taken <= self.most && self.share.resize(self.taken, self.most) {
            return Ok(());
        }
        Err(Refusal::new(
            axum::http::StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "The query finds more than there is memory for, the limit of limits.buffered_bytes \
                 ({}): ask for fewer documents",
                self.most
            ),
        ))
    }

    /// Reserves the bytes of this many ids.
    pub fn take_ids(&mut self, count: u64) -> Result<(), Refusal> {
        let bytes = count.saturating_mul(size_of::<i64>() as u64);
        self.take(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn give_back_ids(&mut self, count: usize) {
        self.taken = self.taken.saturating_sub(count.saturating_mul(size_of::<i64>()));
        self.share.resize(self.taken, self.most);
    }
}

/// The evaluation of a query over a snapshot of a collection.
pub(in crate::tiedot) struct Evaluation<'e> {
    pub collection: &'e Collection,
    pub moment: &'e Moment,
    pub budget: &'e mut Budget,
}

impl Evaluation<'_> {
    /// The number of matching documents.
    pub fn count(&mut self, query: &Query) -> Result<u64, Refusal> {
        if let Query::All = query {
            return Ok(self.moment.len()?);
        }
        match filter(query) {
            Some(filter) => Ok(self.find(filter).count()?),
            None => Ok(self.ids(query)?.len() as u64),
        }
    }

    /// The sorted ids of the matching documents.
    pub fn ids(&mut self, query: &Query) -> Result<Vec<i64>, Refusal> {
        if let Some(filter) = filter(query) {
            return self.find_ids(filter, None);
        }
        match query {
            Query::All => {
                let count = self.moment.len()?;
                self.budget.take_ids(count)?;
                Ok(self.moment.ids(0, usize::try_from(count).unwrap_or(usize::MAX))?)
            }
            Query::Id(id) => Ok(self.moment.known(&[*id])?),
            Query::Lookup(lookup) => match (&lookup.test, lookup.limit) {
                (Test::Range(from, to), Some(limit)) => {
                    self.range(&lookup.path, (*from, *to), limit)
                }
                (_, limit) => self.find_ids(condition(lookup), limit),
            },
            Query::Union(parts) => self.union(parts),
            Query::Intersection(parts) => {
                let mut parts = parts.iter();
                let Some(first) = parts.next() else { return Ok(Vec::new()) };
                let mut found = self.ids(first)?;
                for part in parts {
                    if found.is_empty() {
                        break;
                    }
                    let other = self.ids(part)?;
                    found = self.combine(found, other, |left, right| left && right)?;
                }
                Ok(found)
            }
            Query::Difference(parts) => {
                let mut found = Vec::new();
                for part in parts {
                    let other = self.ids(part)?;
                    found = self.combine(found, other, |left, right| left != right)?;
                }
                Ok(found)
            }
        }
    }

    fn union(&mut self, parts: &[Query]) -> Result<Vec<i64>, Refusal> {
        let id = |part: &Query| if let Query::Id(id) = part { Some(*id) } else { None };
        let ids: Vec<i64> = parts.iter().filter_map(id).collect();
        self.budget.take_ids(ids.len() as u64)?;
        let mut found = self.moment.known(&ids)?;
        // All parts that are engine conditions are combined into one.
        let (conditions, others): (Vec<_>, Vec<_>) =
            parts.iter().filter(|part| id(part).is_none()).partition(|part| filter(part).is_some());
        let conditions = conditions.into_iter().filter_map(filter);
        if let Some(any) = conditions.reduce(|left, right| left | right) {
            let other = self.find_ids(any, None)?;
            found = self.combine(found, other, |left, right| left || right)?;
        }
        for part in others {
            let other = self.ids(part)?;
            found = self.combine(found, other, |left, right| left || right)?;
        }
        Ok(found)
    }

    fn find(&self, filter: Filter) -> Find {
        self.collection.find(filter).at(self.moment)
    }

    /// The first ids of documents that satisfy a condition.
    fn find_ids(&mut self, filter: Filter, limit: Option<usize>) -> Result<Vec<i64>, Refusal> {
        let count = self.find(filter.clone()).count()?;
        self.budget.take_ids(limit.map_or(count, |limit| count.min(limit as u64)))?;
        Ok(self.find(filter).limit(limit.unwrap_or(usize::MAX)).ids()?)
    }

    /// This many documents with values nearest to the start of a range; equal values are in id order.
    fn range(
        &mut self,
        names: &[String],
        (from, to): (i64, i64),
        limit: usize,
    ) -> Result<Vec<i64>, Refusal> {
        let between = |end: &Value| {
            let field = path(names.iter().map(String::as_str));
            if from <= to { field.between(from, end) } else { field.between(end, from) }
        };
        if self.find(between(&Value::Int(to))).count()? <= limit as u64 {
            return self.find_ids(between(&Value::Int(to)), None);
        }
        let is_few = |end: &Value| Ok(self.find(between(end)).count()? < limit as u64);
        let (few, enough) = threshold((from, to), &is_few)?;
        let nearest = match few {
            Some(few) => self.find_ids(between(&few), None)?,
            None => Vec::new(),
        };
        let wanted = limit.saturating_sub(nearest.len());
        let all = self.find_ids(between(&enough), None)?;
        self.budget.take_ids(nearest.len() as u64)?;
        let mut rest = self.combine(all, nearest.clone(), |left, right| left && !right)?;
        rest.truncate(wanted);
        self.combine(rest, nearest, |left, right| left || right)
    }

    /// Combines two sets by `keep`, which gets for each id whether each set has it.
    fn combine(
        &mut self,
        left: Vec<i64>,
        right: Vec<i64>,
        keep: fn(bool, bool) -> bool,
    ) -> Result<Vec<i64>, Refusal> {
        let most = left.len() + right.len();
        self.budget.take_ids(most as u64)?;
        let joined = join(&left, &right, keep);
        self.budget.give_back_ids(2 * most - joined.len().min(most));
        Ok(joined)
    }
}

/// The nearest end of the range from `from` on that has enough documents, and an end before it with too few, if there
/// is one. The whole range has enough.
fn threshold(
    (from, to): (i64, i64),
    is_few: &dyn Fn(&Value) -> Result<bool, Refusal>,
) -> Result<(Option<Value>, Value), Refusal> {
    let (mut few, mut enough, mut next) = (None, to, from);
    while few != Some(next) && next != enough {
        match is_few(&Value::Int(next))? {
            true => few = Some(next),
            false => enough = next,
        }
        let begin = i128::from(few.unwrap_or(from));
        // Halfway between two 64-bit numbers, nearer to the first.
        next = (begin + (i128::from(enough) - begin) / 2) as i64;
    }
    let Some(few) = few else { return Ok((None, Value::Int(enough))) };
    // The two are neighbouring integers, so only fractions lie between them; beyond this size there are none.
    if few.unsigned_abs().max(enough.unsigned_abs()) > MAX_EXACT {
        return Ok((Some(Value::Int(few)), Value::Int(enough)));
    }
    let (mut low, mut high) = (few as f64, enough as f64);
    let last = if low < high { high.next_down() } else { high.next_up() };
    if is_few(&Value::Float(last))? {
        return Ok((Some(Value::Float(last)), Value::Int(enough)));
    }
    high = last;
    for _ in 0..FRACTION_BITS {
        let middle = low + (high - low) / 2.0;
        match is_few(&Value::Float(middle))? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok((Some(Value::Float(low)), Value::Float(high)))
}

/// Combines two sorted sets by whether each has an id.
fn join(left: &[i64], right: &[i64], keep: fn(bool, bool) -> bool) -> Vec<i64> {
    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    let mut joined = Vec::new();
    while let Some(id) = match (lefts.peek(), rights.peek()) {
        (Some(left), Some(right)) => Some(**left.min(right)),
        (left, right) => left.or(right).map(|id| **id),
    } {
        let is_left = lefts.next_if_eq(&&id).is_some();
        let is_right = rights.next_if_eq(&&id).is_some();
        if keep(is_left, is_right) {
            joined.push(id);
        }
    }
    joined
}

/// The query as one engine condition, if it can be.
fn filter(query: &Query) -> Option<Filter> {
    let all = |parts: &[Query]| parts.iter().map(filter).collect::<Option<Vec<Filter>>>();
    match query {
        Query::Lookup(lookup) if lookup.limit.is_none() => Some(condition(lookup)),
        Query::Union(parts) => all(parts)?.into_iter().reduce(|left, right| left | right),
        Query::Intersection(parts) => all(parts)?.into_iter().reduce(|left, right| left & right),
        _ => None,
    }
}

/// The condition of a lookup.
fn condition(lookup: &Lookup) -> Filter {
    let field = || path(lookup.path.iter().map(String::as_str));
    match &lookup.test {
        Test::Equal(value) => field().equals(value.clone()),
        Test::Range(from, to) => field().between(*from.min(to), *from.max(to)),
        Test::Has => field().is_filled(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use remora::Database;
    use serde_json::json;

    use super::*;
    use crate::limits::BufferBudget;

    fn run(collection: &Collection, query: &str, most: usize) -> Result<Vec<i64>, Refusal> {
        let (query, moment) = (Query::parse(query)?, collection.now());
        let fresh = || Budget::new(BufferShare::new(Arc::new(BufferBudget::default())), most);
        let (mut first, mut second) = (fresh(), fresh());
        let count = Evaluation { collection, moment: &moment, budget: &mut first }.count(&query)?;
        let ids = Evaluation { collection, moment: &moment, budget: &mut second }.ids(&query)?;
        assert_eq!(ids.len() as u64, count, "{query:?}");
        Ok(ids)
    }

    #[test]
    fn sets_are_joined() {
        let (left, right) = ([1, 2, 3, 9], [2, 4, 9]);
        assert_eq!(join(&left, &right, |left, right| left || right), [1, 2, 3, 4, 9]);
        assert_eq!(join(&left, &right, |left, right| left && right), [2, 9]);
        assert_eq!(join(&left, &right, |left, right| left != right), [1, 3, 4]);
    }

    #[test]
    fn range_limits_count_from_the_start_of_the_range() {
        let database = Database::in_memory().unwrap();
        let collection = database.collection("a").unwrap();
        collection.index("y").unwrap();
        // The value 5 occurs three times; an array has two values.
        for (id, value) in
            [(1, json!(5)), (2, json!(7)), (3, json!(5)), (4, json!(3)), (5, json!("4"))]
        {
            collection.insert_as(id, &json!({ "y": value })).unwrap();
        }
        collection.insert_as(6, &json!({"y": [5, 9]})).unwrap();
        collection.insert_as(7, &json!({"y": 5.5})).unwrap();
        let range = |from: i64, to: i64, limit: usize| {
            let query = json!({"int-from": from, "int-to": to, "in": ["y"], "limit": limit});
            run(&collection, &query.to_string(), 1 << 20).unwrap()
        };
        assert_eq!(range(0, 10, 1), [4]);
        assert_eq!(range(0, 10, 3), [1, 3, 4]);
        assert_eq!(range(0, 10, 5), [1, 3, 4, 6, 7]);
        assert_eq!(range(10, 0, 1), [6]);
        assert_eq!(range(10, 0, 2), [2, 6]);
        assert_eq!(range(10, 0, 3), [2, 6, 7]);
        assert_eq!(range(i64::MAX, i64::MIN, 4), [1, 2, 6, 7]);
        assert_eq!(range(i64::MIN, i64::MAX, 100), [1, 2, 3, 4, 6, 7]);
        assert_eq!(range(5, 5, 2), [1, 3]);
        assert!(range(6, 6, 2).is_empty());
    }

    /// Where tiedot's index has a value that is not null.
    #[test]
    fn has_finds_what_is_neither_null_nor_an_empty_array() {
        let database = Database::in_memory().unwrap();
        let collection = database.collection("a").unwrap();
        collection.index("y.z").unwrap();
        let values = json!([
            null, [], [null], [null, null], // not found
            false, 0, "", {}, [{}], [[]], [null, 1], {"b": 1}, [[null]], [""] // found
        ]);
        for (id, value) in (0..).zip(values.as_array().unwrap()) {
            collection.insert_as(id, &json!({"y": {"z": value}})).unwrap();
            // Within the elements of an array.
            let two = json!({"y": [{"z": []}, {"z": value}, {"x": 1}]});
            collection.insert_as(100 + id, &two).unwrap();
        }
        collection.insert_as(99, &json!({"y": []})).unwrap();
        let expected: Vec<i64> = (4..14).chain(104..114).collect();
        assert_eq!(run(&collection, r#"{"has":["y","z"]}"#, 1 << 20).unwrap(), expected);
        let limited = r#"{"has":["y","z"],"limit":3}"#;
        assert_eq!(run(&collection, limited, 1 << 20).unwrap(), [4, 5, 6]);
        // By a look at each document.
        let filter = path(["y", "z"]).is_filled();
        let all = collection.all().ids().unwrap();
        assert_eq!(collection.find(filter).ids().unwrap(), expected);
        assert_eq!(all.len(), 29);
    }

    #[test]
    fn every_form_agrees_with_a_scan_of_all_documents() {
        let database = Database::in_memory().unwrap();
        let collection = database.collection("a").unwrap();
        for path in ["a", "b"] {
            collection.index(path).unwrap();
        }
        for id in 0..60 {
            collection.insert_as(id, &json!({"a": id % 6, "b": {"text": id % 4}})).unwrap();
        }
        let eq = |value: i64| format!(r#"{{"eq":{value},"in":["a"]}}"#);
        let scan =
            |test: &dyn Fn(i64) -> bool| (0..60).filter(|id| test(*id)).collect::<Vec<i64>>();
        let cases: [(String, &dyn Fn(i64) -> bool); 8] = [
            ("\"all\"".into(), &|_| true),
            ("[]".into(), &|_| false),
            (r#"{"n":[]}"#.into(), &|_| false),
            (format!("[{},\"7\",\"99\",\"7\",{}]", eq(1), eq(2)), &|id| {
                id % 6 == 1 || id % 6 == 2 || id == 7
            }),
            (format!(r#"{{"c":["all",{}]}}"#, eq(3)), &|id| id % 6 != 3),
            (format!(r#"{{"c":["all",{},["3","1"]]}}"#, eq(3)), &|id| {
                (id % 6 != 3) ^ (id == 3 || id == 1)
            }),
            (
                format!(
                    r#"{{"n":[{{"int-from":4,"int-to":2,"in":["a"]}},{{"has":["b"]}},{{"c":["all",{}]}}]}}"#,
                    eq(3)
                ),
                &|id| matches!(id % 6, 2 | 4),
            ),
            (format!(r#"[{{"n":[{},"6"]}},{{"eq":5,"in":["a"],"limit":2}}]"#, eq(0)), &|id| {
                [6, 5, 11].contains(&id)
            }),
        ];
        for (query, test) in cases {
            assert_eq!(run(&collection, &query, 1 << 20).unwrap(), scan(test), "{query}");
        }
        let message = run(&collection, r#"{"c":["all","1"]}"#, 300).unwrap_err().text;
        assert!(message.contains("limits.buffered_bytes"), "{message}");
    }
}
