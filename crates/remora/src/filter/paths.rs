//! A condition on documents as one that indexed paths answer, as far as they do.

use std::ops::Bound;

use remora_engine::{Filter as EngineFilter, PathDef, PathTest, PathValue, texts_tell};

use super::{
    Condition, Field, Test,
    path_test::{path_test, scalar},
};

/// How deep the engine is asked at most; it allows a little more.
const MAX_DEPTH: usize = 24;
/// Most ranges of several paths that the engine is asked for: their lists of values, multiplied.
const MAX_RANGES: usize = 10_000;
/// Most bytes of the texts in each, where there are several.
const MAX_RANGE_BYTES: usize = 1_024;
/// Most values of all lists that an index of several paths is asked for.
const MAX_VALUES: usize = 100_000;

/// An index that all segments have.
pub(crate) struct ReadyPath<'s> {
    /// Its paths.
    pub path: &'s PathDef,
    /// Whether it has all that documents have there.
    pub is_whole: bool,
}

/// What a part of a condition asks of one path.
type Asks<'c> = (&'c Field, PathTest);

/// What indexed paths say of a condition.
pub(crate) struct ByPaths {
    /// It holds for all documents for which the condition does.
    pub filter: EngineFilter,
    /// Whether it holds for no others.
    pub is_exact: bool,
}

/// What the indexes of paths into the documents in `column` say of a condition; `None` if they do not help.
pub(crate) fn by_paths(
    condition: &Condition,
    column: &str,
    indexes: &[ReadyPath<'_>],
) -> Option<ByPaths> {
    Asked { column, indexes }.of(condition, 0)
}

struct Asked<'a> {
    column: &'a str,
    indexes: &'a [ReadyPath<'a>],
}

impl Asked<'_> {
    fn of(&self, condition: &Condition, depth: usize) -> Option<ByPaths> {
        if depth >= MAX_DEPTH {
            return None;
        }
        match condition {
            Condition::And(parts) => self.all_of(parts, depth),
            Condition::Or(parts) => {
                let found: Vec<ByPaths> =
                    parts.iter().map(|part| self.of(part, depth + 1)).collect::<Option<_>>()?;
                let is_exact = found.iter().all(|it| it.is_exact);
                let filters = found.into_iter().map(|it| it.filter).collect();
                Some(ByPaths { filter: EngineFilter::Or(filters), is_exact })
            }
            Condition::Not(inner) => {
                // What is not among too many may be missing.
                let inner = self.of(inner, depth + 1).filter(|it| it.is_exact)?;
                Some(ByPaths { filter: EngineFilter::Not(Box::new(inner.filter)), is_exact: true })
            }
            Condition::Compare(field, Test::NotEqual, value) => {
                let equal = self.path(field, PathTest::In(scalar(value)?));
                let equal = equal.filter(|it| it.is_exact)?;
                Some(ByPaths { filter: EngineFilter::Not(Box::new(equal.filter)), is_exact: true })
            }
            Condition::Matches(fields, text) => self.texts(fields, text),
            one => path_test(one).and_then(|(field, test)| self.path(field, test)),
        }
    }

    /// By the indexes of several paths that answer several of these parts at once, and by others for the rest.
    fn all_of(&self, parts: &[Condition], depth: usize) -> Option<ByPaths> {
        let mut left: Vec<usize> = (0..parts.len()).collect();
        let mut found = Vec::new();
        if self.indexes.iter().any(|index| index.path.is_joint()) {
            let tests: Vec<_> = parts.iter().map(path_test).collect();
            while let Some((by_paths, answered)) = self.best_joint(&tests, &left) {
                left.retain(|at| !answered.contains(at));
                found.push(by_paths);
            }
        }
        let others = left.iter().filter_map(|&at| self.of(parts.get(at)?, depth + 1));
        let others: Vec<ByPaths> = others.collect();
        let is_all = others.len() == left.len();
        found.extend(others);
        if found.is_empty() {
            return None;
        }
        let is_exact = is_all && found.iter().all(|it| it.is_exact);
        let filters = found.into_iter().map(|it| it.filter).collect();
        Some(ByPaths { filter: EngineFilter::And(filters), is_exact })
    }

    /// The index of several paths that answers the most of these tests, if that is more than one; and which it does.
    fn best_joint(
        &self,
        tests: &[Option<Asks<'_>>],
        left: &[usize],
    ) -> Option<(ByPaths, Vec<usize>)> {
        let joint = self.indexes.iter().filter(|index| index.path.is_joint());
        let mut best: Option<(ByPaths, Vec<usize>)> = None;
        for index in joint {
            let (by_paths, answered) = self.by_joint(index, tests, left);
            let most = best.as_ref().map_or(1, |(_, answered)| answered.len());
            if answered.len() > most {
                best = Some((by_paths, answered));
            }
        }
        best
    }

    /// What an index of several paths answers: lists of values for its first paths, and whatever is asked of the next.
    fn by_joint(
        &self,
        index: &ReadyPath<'_>,
        tests: &[Option<Asks<'_>>],
        left: &[usize],
    ) -> (ByPaths, Vec<usize>) {
        let (mut leading, mut answered, mut filters) = (Vec::new(), Vec::new(), Vec::new());
        let mut lists = Lists::NONE;
        let mut named = 0_usize;
        let last = index.path.further.len();
        for (nth, names) in index.path.paths().enumerate() {
            let of_path = |&at: &usize| {
                let (field, test) = tests.get(at)?.as_ref()?;
                (field.parts == names).then_some((at, test))
            };
            let here: Vec<(usize, &PathTest)> = left.iter().filter_map(of_path).collect();
            let longer = here.iter().find_map(|(at, test)| {
                let is_list = matches!(test, PathTest::In(_)) && nth < last;
                Some((*at, *test, lists.with(test).filter(|_| is_list)?))
            });
            if let Some((at, test, longer)) = longer {
                lists = longer;
                leading.push(test.clone());
                answered.push(at);
                continue;
            }
            for (at, test) in here {
                let Some(all) = lists.with(test).filter(|all| named + all.values <= MAX_VALUES)
                else {
                    continue;
                };
                named += all.values;
                let tests = leading.iter().chain([test]).cloned().collect();
                filters.push(self.together(index, tests));
                answered.push(at);
            }
            break;
        }
        if filters.is_empty() && !leading.is_empty() {
            filters.push(self.together(index, leading));
        }
        (ByPaths { filter: EngineFilter::And(filters), is_exact: index.is_whole }, answered)
    }

    fn together(&self, index: &ReadyPath<'_>, tests: Vec<PathTest>) -> EngineFilter {
        let paths = index.path.paths().map(<[String]>::to_vec).collect();
        EngineFilter::PathsTogether(self.column.to_owned(), paths, tests)
    }

    /// By the indexes of texts of no other paths than these, or by one that has other paths too.
    fn texts(&self, fields: &[Field], text: &str) -> Option<ByPaths> {
        if fields.is_empty() {
            return None;
        }
        let is_asked = |path: &[String]| fields.iter().any(|field| field.parts == path);
        let has = |index: &PathDef, field: &Field| index.paths().any(|path| path == field.parts);
        let of_texts = || self.indexes.iter().map(|index| index.path).filter(|path| path.texts);
        let mut within: Vec<&PathDef> =
            of_texts().filter(|index| index.paths().all(is_asked)).collect();
        within.sort_by_key(|index| std::cmp::Reverse(index.paths().count()));
        let mut chosen: Vec<&PathDef> = Vec::new();
        for index in within {
            let is_new = |path: &[String]| {
                chosen.iter().all(|other| other.paths().all(|known| known != path))
            };
            if index.paths().any(is_new) {
                chosen.push(index);
            }
        }
        if fields.iter().all(|field| chosen.iter().any(|index| has(index, field))) {
            let filters = chosen.iter().map(|index| self.texts_of(index, text)).collect();
            return Some(ByPaths { filter: one_of(filters), is_exact: texts_tell(text) });
        }
        let wider = of_texts().filter(|index| fields.iter().all(|field| has(index, field)));
        let wider = wider.min_by_key(|index| index.paths().count())?;
        Some(ByPaths { filter: self.texts_of(wider, text), is_exact: false })
    }

    fn texts_of(&self, index: &PathDef, text: &str) -> EngineFilter {
        let paths = index.paths().map(<[String]>::to_vec).collect();
        EngineFilter::PathTexts(self.column.to_owned(), paths, text.to_owned())
    }

    fn path(&self, field: &Field, test: PathTest) -> Option<ByPaths> {
        let mut plain = self.indexes.iter().filter(|index| index.path.is_plain());
        if plain.any(|index| index.path.names == field.parts) {
            let filter = EngineFilter::Path(self.column.to_owned(), field.parts.clone(), test);
            return Some(ByPaths { filter, is_exact: true });
        }
        let mut joint = self.indexes.iter().filter(|index| index.path.is_joint());
        let index = joint.find(|index| index.path.names == field.parts)?;
        Lists::NONE.with(&test)?;
        Some(ByPaths { filter: self.together(index, vec![test]), is_exact: index.is_whole })
    }
}

/// The tests of several paths, one after the other: what the engine makes of them.
#[derive(Clone, Copy)]
struct Lists {
    /// The numbers of their values, multiplied.
    ranges: usize,
    /// Most bytes of texts in one of the ranges.
    bytes: usize,
    /// Their values, added.
    values: usize,
}

impl Lists {
    /// No test.
    const NONE: Self = Self { ranges: 1, bytes: 0, values: 0 };

    /// With one more; `None` if that is too many.
    fn with(self, test: &PathTest) -> Option<Self> {
        let (count, longest) = match test {
            PathTest::In(values) => (values.len(), values.iter().map(bytes_of).max()),
            PathTest::Begins(text) => (1, Some(text.len())),
            PathTest::Within(low, high) => {
                let bytes = |bound: &Bound<PathValue>| match bound {
                    Bound::Included(value) | Bound::Excluded(value) => bytes_of(value),
                    Bound::Unbounded => 0,
                };
                (1, Some(bytes(low).max(bytes(high))))
            }
            PathTest::Exists | PathTest::Nested => (1, None),
        };
        let ranges = self.ranges.saturating_mul(count.max(1));
        let bytes = self.bytes + longest.unwrap_or_default();
        let fits = ranges <= MAX_RANGES && (ranges == 1 || bytes <= MAX_RANGE_BYTES);
        fits.then_some(Self { ranges, bytes, values: self.values + count })
    }
}

fn bytes_of(value: &PathValue) -> usize {
    match value {
        PathValue::Text(text) => text.len(),
        _ => 0,
    }
}

/// The condition that one of these holds; none of none.
fn one_of(mut filters: Vec<EngineFilter>) -> EngineFilter {
    match filters.pop() {
        Some(only) if filters.is_empty() => only,
        last => {
            filters.extend(last);
            EngineFilter::Or(filters)
        }
    }
}
