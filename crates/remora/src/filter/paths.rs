//! Converts a condition on documents to one that indexed paths can answer, as far as possible.

use std::{
    cell::Cell,
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use remora_engine::{Filter as EngineFilter, PathDef, PathTest, texts_tell};

use super::{
    Condition, Field, Test,
    cost::{Cost, Lists, Size},
    dates::date_test,
    elements::on_documents,
    path_test::{path_test, scalar},
};

/// The deepest nesting of a filter for the engine, which permits slightly more.
const MAX_DEPTH: usize = 24;
/// The most indexes of several paths that are chosen for the parts of an AND. Other parts are
/// answered separately.
const MAX_JOINT: usize = 8;
/// The approximate memory of a name in a path, in addition to its bytes.
const NAME_BYTES: usize = 48;
/// The most values, in all lists together, that one index of several paths looks up.
const MAX_VALUES: usize = 100_000;

/// An index of paths that all segments have.
pub(crate) struct ReadyPath<'s> {
    /// The indexed paths.
    pub path: &'s PathDef,
    /// Whether the index has all values that documents have at these paths. This does not matter if the condition does
    /// not constrain the first path.
    pub is_whole: bool,
}

/// A part of an AND as a test of one path.
struct PathCondition {
    /// The number of the part.
    place: usize,
    test: PathTest,
    size: Size,
    /// Whether the test holds for no document for which the part does not.
    is_exact: bool,
}

/// The tests of the parts of an AND, by path.
type ConditionsByPath<'c> = HashMap<&'c [String], Vec<PathCondition>>;

/// The parts of an AND that one index of several paths answers together.
struct JointIndexPlan<'t> {
    index: &'t ReadyPath<'t>,
    /// One list of values for each of the first paths of the index.
    leading: Vec<&'t PathCondition>,
    /// The size of the ranges that the engine makes of these lists.
    lists: Lists,
    /// The tests of the next path, each with the size of its ranges together with the lists before.
    last: Vec<(&'t PathCondition, Lists)>,
}

/// The part of a condition that indexed paths answer.
pub(crate) struct PathFilter {
    /// A condition of the engine that holds for every document for which the original condition holds.
    pub filter: EngineFilter,
    /// Whether it holds for no other documents, so that nothing has to be tested again.
    pub is_exact: bool,
}

/// Whether a condition tests the values at this path, in a part of it that indexes can answer.
pub(crate) fn constrains(condition: &Condition, names: &[String]) -> bool {
    constrains_within(condition, names, 0)
}

fn constrains_within(condition: &Condition, names: &[String], depth: usize) -> bool {
    match condition {
        _ if depth >= MAX_DEPTH => false,
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().any(|part| constrains_within(part, names, depth + 1))
        }
        Condition::Not(inner) => constrains_within(inner, names, depth + 1),
        Condition::Compare(field, ..)
        | Condition::In(field, _)
        | Condition::Between(field, ..)
        | Condition::Begins(field, _)
        | Condition::Exists(field)
        | Condition::IsFilled(field)
        | Condition::IsNull(field) => field.parts == names,
        // An index of texts answers it.
        Condition::Matches(..) => false,
        Condition::Has(field, inner) => on_documents(field, inner, MAX_DEPTH)
            .is_some_and(|(condition, _)| constrains_within(&condition, names, depth + 1)),
    }
}

/// The path of a condition, a test of its values that holds if the condition does, and whether it holds for nothing
/// else.
fn any_path_test(condition: &Condition) -> Option<(&Field, PathTest, bool)> {
    let exact = path_test(condition).map(|(field, test)| (field, test, true));
    exact.or_else(|| date_test(condition).map(|(field, test)| (field, test, false)))
}

/// The part of a condition that the indexes of paths of the documents in `column` answer; `None` if they answer
/// nothing.
pub(crate) fn path_filter(
    condition: &Condition,
    column: &str,
    indexes: &[ReadyPath<'_>],
) -> Option<PathFilter> {
    PathSearch { column, indexes, left: Cell::new(Cost::MOST) }.of(condition, 0)
}

struct PathSearch<'a> {
    column: &'a str,
    indexes: &'a [ReadyPath<'a>],
    /// The rest of what the whole filter may cost. A test that costs more is left out.
    left: Cell<Cost>,
}

impl PathSearch<'_> {
    fn of(&self, condition: &Condition, depth: usize) -> Option<PathFilter> {
        let left = self.left.get();
        let found = self.answer(condition, depth);
        if found.is_none() {
            // A part without a result is not counted.
            self.left.set(left);
        }
        found
    }

    fn answer(&self, condition: &Condition, depth: usize) -> Option<PathFilter> {
        if depth >= MAX_DEPTH {
            return None;
        }
        match condition {
            Condition::And(parts) => self.all_of(parts, depth),
            Condition::Or(parts) => {
                let found: Vec<PathFilter> =
                    parts.iter().map(|part| self.of(part, depth + 1)).collect::<Option<_>>()?;
                let is_exact = found.iter().all(|it| it.is_exact);
                let filters = found.into_iter().map(|it| it.filter).collect();
                Some(PathFilter { filter: EngineFilter::Or(filters), is_exact })
            }
            Condition::Not(inner) => {
                // The negation of a superset would exclude documents that satisfy the condition.
                let inner = self.of(inner, depth + 1).filter(|it| it.is_exact)?;
                Some(PathFilter {
                    filter: EngineFilter::Not(Box::new(inner.filter)),
                    is_exact: true,
                })
            }
            Condition::Compare(field, Test::NotEqual, value) => {
                let equal = self.path(field, PathTest::In(scalar(value)?));
                let equal = equal.filter(|it| it.is_exact)?;
                Some(PathFilter {
                    filter: EngineFilter::Not(Box::new(equal.filter)),
                    is_exact: true,
                })
            }
            Condition::Matches(fields, text) => self.texts(fields, text),
            Condition::Has(field, inner) => {
                let (condition, is_exact) = on_documents(field, inner, MAX_DEPTH)?;
                let found = self.of(&condition, depth + 1)?;
                Some(PathFilter { is_exact: found.is_exact && is_exact, ..found })
            }
            one => {
                let (field, test, is_exact) = any_path_test(one)?;
                let found = self.path(field, test)?;
                Some(PathFilter { is_exact: found.is_exact && is_exact, ..found })
            }
        }
    }

    /// Answers an AND: first by indexes of several paths that answer several parts at once, then part by part.
    fn all_of(&self, parts: &[Condition], depth: usize) -> Option<PathFilter> {
        let (mut found, mut answered) = (Vec::new(), HashSet::<usize>::new());
        if self.indexes.iter().any(|index| index.path.is_joint()) {
            let mut asks = conditions_by_path(parts);
            for _ in 0..MAX_JOINT {
                let best = self.best_joint(&asks).and_then(|best| self.asked_together(&best));
                let Some((path_filter, places)) = best else { break };
                found.push(path_filter);
                answered.extend(places);
                let is_left = |ask: &PathCondition| !answered.contains(&ask.place);
                asks.values_mut().for_each(|asks| asks.retain(is_left));
            }
        }
        let left = parts.iter().enumerate().filter(|(place, _)| !answered.contains(place));
        let mut is_exact = true;
        for (_, part) in left {
            match self.of(part, depth + 1) {
                Some(path_filter) => found.push(path_filter),
                None => is_exact = false,
            }
        }
        if found.is_empty() {
            return None;
        }
        let is_exact = is_exact && found.iter().all(|it| it.is_exact);
        let filters = found.into_iter().map(|it| it.filter).collect();
        Some(PathFilter { filter: EngineFilter::And(filters), is_exact })
    }

    /// The index of several paths that answers the most tests, if it answers tests of more than one path. Indexes that
    /// have all values are preferred.
    fn best_joint<'t>(&'t self, asks: &'t ConditionsByPath<'_>) -> Option<JointIndexPlan<'t>> {
        let joint = self.indexes.iter().filter(|index| index.path.is_joint());
        let together = joint.map(|index| by_joint(index, asks));
        let better = together.filter(|it| it.paths() > 1 && !self.is_worse_than_plain(it));
        better.min_by_key(|it| (!it.index.is_whole, Reverse(it.answered())))
    }

    /// Whether the documents that this index finds would have to be tested again, while the paths' own indexes are
    /// exact.
    fn is_worse_than_plain(&self, together: &JointIndexPlan<'_>) -> bool {
        let has_own = |names: &[String]| {
            let mut plain = self.indexes.iter().filter(|index| index.path.is_plain());
            plain.any(|index| index.path.names == names)
        };
        let index = together.index;
        !index.is_whole && index.path.paths().take(together.paths()).all(has_own)
    }

    /// The conditions of the engine, as far as their cost is allowed, and the numbers of the parts that they answer;
    /// `None` if they answer none.
    fn asked_together(&self, together: &JointIndexPlan<'_>) -> Option<(PathFilter, Vec<usize>)> {
        let (index, leading) = (together.index, &together.leading);
        let (mut filters, mut answered) = (Vec::new(), Vec::new());
        let mut is_exact = index.is_whole && leading.iter().all(|ask| ask.is_exact);
        for (ask, lists) in &together.last {
            let tests = leading.iter().copied().chain([*ask]).map(|ask| &ask.test);
            if let Some(filter) = self.together(index, tests, *lists) {
                filters.push(filter);
                answered.push(ask.place);
                is_exact &= ask.is_exact;
            }
        }
        if together.last.is_empty() {
            let tests = leading.iter().map(|ask| &ask.test);
            filters.extend(self.together(index, tests, together.lists));
        }
        if filters.is_empty() {
            return None;
        }
        answered.extend(leading.iter().map(|ask| ask.place));
        Some((PathFilter { filter: EngineFilter::And(filters), is_exact }, answered))
    }

    fn together<'t>(
        &self,
        index: &ReadyPath<'_>,
        tests: impl Iterator<Item = &'t PathTest>,
        lists: Lists,
    ) -> Option<EngineFilter> {
        let names = index.path.paths().flatten();
        self.pay(lists.cost(names.map(|name| name.len() + NAME_BYTES).sum()))?;
        let paths = index.path.paths().map(<[String]>::to_vec).collect();
        let tests = tests.cloned().collect();
        Some(EngineFilter::PathsTogether(self.column.to_owned(), paths, tests))
    }

    /// Takes this cost from what the filter may cost; `None` if less is left.
    fn pay(&self, cost: Cost) -> Option<()> {
        self.left.set(self.left.get().without(cost)?);
        Some(())
    }

    /// Answers MATCHES: by text indexes whose paths are all among these, or by one that has these and other paths.
    fn texts(&self, fields: &[Field], text: &str) -> Option<PathFilter> {
        if fields.is_empty() {
            return None;
        }
        let is_asked = |path: &[String]| fields.iter().any(|field| field.parts == path);
        let has = |index: &PathDef, field: &Field| index.paths().any(|path| path == field.parts);
        let of_texts = || self.indexes.iter().map(|index| index.path).filter(|path| path.texts);
        let mut within: Vec<&PathDef> =
            of_texts().filter(|index| index.paths().all(is_asked)).collect();
        within.sort_by_key(|index| Reverse(index.paths().count()));
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
            return Some(PathFilter { filter: one_of(filters), is_exact: texts_tell(text) });
        }
        let wider = of_texts().filter(|index| fields.iter().all(|field| has(index, field)));
        let wider = wider.min_by_key(|index| index.paths().count())?;
        Some(PathFilter { filter: self.texts_of(wider, text), is_exact: false })
    }

    fn texts_of(&self, index: &PathDef, text: &str) -> EngineFilter {
        let paths = index.paths().map(<[String]>::to_vec).collect();
        EngineFilter::PathTexts(self.column.to_owned(), paths, text.to_owned())
    }

    fn path(&self, field: &Field, test: PathTest) -> Option<PathFilter> {
        let size = Size::of(&test);
        let mut plain = self.indexes.iter().filter(|index| index.path.is_plain());
        if plain.any(|index| index.path.names == field.parts) {
            self.pay(Cost { ranges: 0, bytes: 0, values: size.values })?;
            let filter = EngineFilter::Path(self.column.to_owned(), field.parts.clone(), test);
            return Some(PathFilter { filter, is_exact: true });
        }
        let joint = self.indexes.iter().filter(|index| index.path.is_joint());
        let joint = joint.filter(|index| index.path.names == field.parts);
        let index = joint.min_by_key(|index| !index.is_whole)?;
        let lists = Lists::NONE.with(size)?;
        let filter = self.together(index, std::iter::once(&test), lists)?;
        Some(PathFilter { filter, is_exact: index.is_whole })
    }
}

impl JointIndexPlan<'_> {
    /// The number of paths whose tests it answers. They are the first paths of the index.
    fn paths(&self) -> usize {
        self.leading.len() + usize::from(!self.last.is_empty())
    }

    /// The number of parts that it answers.
    fn answered(&self) -> usize {
        self.leading.len() + self.last.len()
    }
}

fn conditions_by_path(parts: &[Condition]) -> ConditionsByPath<'_> {
    let mut asks = ConditionsByPath::new();
    for (place, part) in parts.iter().enumerate() {
        if let Some((field, test, is_exact)) = any_path_test(part) {
            let size = Size::of(&test);
            let condition = PathCondition { place, test, size, is_exact };
            asks.entry(field.parts.as_slice()).or_default().push(condition);
        }
    }
    asks
}

/// The parts that an index of several paths answers: lists of values for its first paths, and any tests of the next
/// one.
fn by_joint<'t>(index: &'t ReadyPath<'t>, asks: &'t ConditionsByPath<'_>) -> JointIndexPlan<'t> {
    let mut found =
        JointIndexPlan { index, leading: Vec::new(), lists: Lists::NONE, last: Vec::new() };
    let mut named = 0_usize;
    let last = index.path.further.len();
    for (nth, names) in index.path.paths().enumerate() {
        let here = asks.get(names).map(Vec::as_slice).unwrap_or_default();
        let before = found.lists;
        let is_list = |ask: &&PathCondition| matches!(ask.test, PathTest::In(_)) && nth < last;
        let longer = |ask: &'t PathCondition| Some((ask, before.with(ask.size)?));
        if let Some((ask, lists)) = here.iter().filter(is_list).find_map(longer) {
            found.lists = lists;
            found.leading.push(ask);
            continue;
        }
        for ask in here {
            let all = before.with(ask.size).filter(|all| named + all.values <= MAX_VALUES);
            let Some(all) = all else { continue };
            named += all.values;
            found.last.push((ask, all));
        }
        break;
    }
    found
}

/// The disjunction of these. Without any, it holds for no document.
fn one_of(mut filters: Vec<EngineFilter>) -> EngineFilter {
    match filters.pop() {
        Some(only) if filters.is_empty() => only,
        last => {
            filters.extend(last);
            EngineFilter::Or(filters)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{field, filter::parse::parse};

    /// What indexes of these paths say, which have commas between them; each may be whole.
    fn asked(condition: &Condition, indexes: &[(&str, bool)]) -> Option<PathFilter> {
        let names = |path: &str| vec![path.to_owned()];
        let def = |paths: &str| PathDef::together(1, paths.split(',').map(names).collect());
        let of = |(paths, is_whole): &(&str, bool)| (def(paths).unwrap(), *is_whole);
        let defs: Vec<(PathDef, bool)> = indexes.iter().map(of).collect();
        let ready = defs.iter().map(|(path, is_whole)| ReadyPath { path, is_whole: *is_whole });
        path_filter(condition, "doc", &ready.collect::<Vec<_>>())
    }

    fn choose_index(filter: &str, indexes: &[(&str, bool)]) -> Option<PathFilter> {
        asked(&parse(filter).unwrap(), indexes)
    }

    /// The tests that indexes are asked for, one after the other, each of one path or several.
    fn tests_of(filter: &EngineFilter) -> Vec<Vec<PathTest>> {
        match filter {
            EngineFilter::And(parts) | EngineFilter::Or(parts) => {
                parts.iter().flat_map(tests_of).collect()
            }
            EngineFilter::Path(_, _, test) => vec![vec![test.clone()]],
            EngineFilter::PathsTogether(_, _, tests) => vec![tests.clone()],
            other => panic!("{other:?}"),
        }
    }

    fn count(test: &PathTest) -> usize {
        match test {
            PathTest::In(values) => values.len(),
            _ => 1,
        }
    }

    /// The ranges of several paths, and the values of all lists.
    fn ranges_and_values(found: &PathFilter) -> (usize, usize) {
        let tests = tests_of(&found.filter);
        let several = tests.iter().filter(|tests| tests.len() > 1);
        let ranges = several.map(|tests| tests.iter().map(count).product::<usize>()).sum();
        (ranges, tests.iter().flatten().map(count).sum())
    }

    #[test]
    fn many_conditions_are_planned_in_one_pass() {
        let text = vec!["a=1 AND b=1"; 65_000].join(" AND ");
        let found = choose_index(&text, &[("a,b,c", true)]).unwrap();
        let tests = tests_of(&found.filter);
        let of_two = tests.iter().filter(|tests| tests.len() == 2).count();
        assert_eq!((tests.len(), of_two, found.is_exact), (65_000, MAX_JOINT, false));
    }

    #[test]
    fn ranges_of_a_filter_are_bounded_together() {
        let list: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let list = format!("({})", list.join(","));
        let lists = vec![format!("b IN {list}"); 500].join(" AND ");
        let text = format!("a IN {list} AND {lists}");
        let found = choose_index(&text, &[("a,b", true)]).unwrap();
        assert_eq!((ranges_and_values(&found), found.is_exact), ((100_000, 2_000), false));
        // The others are answered by the index of the path itself.
        let found = choose_index(&text, &[("a,b", true), ("b", true)]).unwrap();
        assert_eq!((ranges_and_values(&found), found.is_exact), ((100_000, 51_000), true));
        // The first branch leaves nothing of the budget for the other.
        let either = format!("({text}) OR ({text})");
        assert!(choose_index(&either, &[("a,b", true)]).is_none());
        // Beside two values nine lists fit, and of the other branch the first path alone.
        let found =
            choose_index(&format!("({either}) AND a = 1 AND b = 1"), &[("a,b", true)]).unwrap();
        assert_eq!((ranges_and_values(&found), found.is_exact), ((90_001, 1_902), false));
        // Long texts in few ranges.
        let long = format!("a = '{}'", "x".repeat(400_000));
        let tests = ["b > 1"; 100].join(" AND ");
        let found = choose_index(&format!("{long} AND {tests}"), &[("a,b", true)]).unwrap();
        assert_eq!((ranges_and_values(&found), found.is_exact), ((20, 40), false));
    }

    #[test]
    fn indexes_that_are_exact_come_first() {
        let plain = [("a", true), ("b", true)];
        let joint_paths = |filter: &str, joint: &[(&str, bool)]| {
            let found = choose_index(filter, &[joint, &plain].concat()).unwrap();
            let EngineFilter::And(parts) = &found.filter else { panic!("{:?}", found.filter) };
            let of_several = |filter: &EngineFilter| match filter {
                EngineFilter::And(parts) => match &parts[..] {
                    [EngineFilter::PathsTogether(_, paths, _), ..] => {
                        Some(paths.concat().join(","))
                    }
                    _ => None,
                },
                EngineFilter::PathsTogether(..) => Some("alone".to_owned()),
                _ => None,
            };
            (parts.iter().filter_map(of_several).collect::<Vec<_>>(), found.is_exact)
        };
        let none = Vec::<String>::new;
        // For two tests of one path, an index of several paths has no advantage.
        for is_whole in [false, true] {
            let joint = [("a,c", is_whole)];
            assert_eq!(joint_paths("a > 1 AND a < 5", &joint), (none(), true));
        }
        assert_eq!(joint_paths("a = 1 AND b = 1", &[("a,b", false)]), (none(), true));
        assert_eq!(
            joint_paths("a = 1 AND b = 1", &[("a,b", true)]),
            (vec!["a,b".to_owned()], true)
        );
        // One path has no index of its own.
        let joint = [("a,c", false)];
        assert_eq!(joint_paths("a = 1 AND c = 1", &joint), (vec!["a,c".to_owned()], false));
        let joint = [("a,c,b", false), ("c,a", true)];
        let all = "a = 1 AND b = 1 AND c = 1";
        assert_eq!(joint_paths(all, &joint), (vec!["c,a".to_owned()], true));
        // Of those of one path too.
        let joint = [("c,a", false), ("c,b", true)];
        assert_eq!(joint_paths("c > 1 AND c < 5", &joint), (vec!["alone".to_owned(); 2], true));
    }

    #[test]
    fn conditions_tell_what_they_ask_for() {
        let condition = parse(
            "a = 1 AND (b IN (1) OR NOT c BETWEEN 1 AND 2) AND d BEGINS 'x' AND e EXISTS AND f IS NULL \
             AND g MATCHES 'x' AND h.i != 1",
        )
        .unwrap();
        let asks = |path: &str| constrains(&condition, field(path).names());
        for path in ["a", "b", "c", "d", "e", "f", "h.i"] {
            assert!(asks(path), "{path}");
        }
        for path in ["g", "h", "i", "a.b"] {
            assert!(!asks(path), "{path}");
        }
        let deep = (0..1_000).fold(field("a").equals(1), |inner, _| !inner);
        assert!(!constrains(&deep.0, field("a").names()));
    }

    #[test]
    fn values_of_a_filter_are_as_many_as_the_engine_takes() {
        let list = || field("a").is_in(0..100_000_i64);
        let all = (0..10).fold(list(), |all, _| all & list());
        let found = asked(&all.0, &[("a", true)]).unwrap();
        assert_eq!((ranges_and_values(&found), found.is_exact), ((0, 1_000_000), false));
    }
}
