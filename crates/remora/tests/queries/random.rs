//! Random collections: whatever was written, indexed, merged and reopened, queries answer as the model does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use remora::{Collection, Database};
use remora_engine::{Database as Engine, Durability, Options};
use serde_json::{Value as Json, json};

use crate::model::{Cond, DATES, INSTANTS, Sign, facet, found, reduced};

/// The paths with values in documents, and one without.
const PATHS: [&str; 8] =
    ["a", "b", "a.b", "items", "items.a", "items.0.b", "items.items.b", "none"];
/// The paths that are indexed alone or together.
const INDEXES: [&[&str]; 9] = [
    &["a"],
    &["b"],
    &["a.b"],
    &["items.a"],
    &["items.items.b"],
    &["a", "b"],
    &["b", "a", "a.b"],
    &["items.a", "items.b"],
    &["a", "items.a"],
];

fn scalar() -> BoxedStrategy<Json> {
    let others = vec![
        json!(null),
        json!(false),
        json!(true),
        json!(1.0),
        json!(0.5),
        json!(u64::MAX),
        json!(1e300),
    ];
    prop_oneof![
        4 => prop::sample::select(others),
        3 => (-1..3_i64).prop_map(Json::from),
        2 => prop::sample::select(vec!["", "x", "xy", "1"]).prop_map(Json::from),
        3 => prop::sample::select(DATES.to_vec()).prop_map(|(text, _)| Json::from(text)),
    ]
    .boxed()
}

fn members(value: BoxedStrategy<Json>) -> impl Strategy<Value = Json> {
    prop::collection::vec((prop::sample::select(vec!["a", "b"]), value), 0..3).prop_map(|members| {
        Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

/// An element of `items`, or something else in its place.
fn element() -> BoxedStrategy<Json> {
    let plain = prop_oneof![4 => members(scalar()), 1 => scalar()].boxed();
    let nested = (plain.clone(), prop::collection::vec(plain.clone(), 0..3)).prop_map(
        |(mut element, items)| {
            if let Json::Object(members) = &mut element {
                members.insert("items".to_owned(), Json::from(items));
            }
            element
        },
    );
    prop_oneof![
        5 => plain.clone(),
        2 => nested,
        1 => prop::collection::vec(plain, 0..2).prop_map(Json::from),
    ]
    .boxed()
}

/// A document; without arrays, so that indexes can sort, if `is_plain`.
fn document(is_plain: bool) -> BoxedStrategy<Json> {
    let inner = prop_oneof![4 => scalar(), 1 => members(scalar())].boxed();
    if is_plain {
        return members(inner).boxed();
    }
    let items = prop_oneof![
        5 => prop::collection::vec(element(), 0..4).prop_map(Json::from),
        1 => element(),
    ];
    let list = prop::collection::vec(scalar(), 0..3).prop_map(Json::from);
    let whole = (members(prop_oneof![5 => inner, 1 => list].boxed()), items).prop_map(
        |(mut document, items)| {
            document["items"] = items;
            document
        },
    );
    prop_oneof![12 => whole, 1 => scalar(), 1 => prop::collection::vec(element(), 0..3).prop_map(Json::from)]
        .boxed()
}

fn sign() -> impl Strategy<Value = Sign> {
    use Sign::*;
    prop::sample::select(vec![Equal, Equal, NotEqual, Less, AtMost, Greater, AtLeast])
}

fn condition() -> BoxedStrategy<Cond> {
    let path = || prop::sample::select(PATHS.to_vec());
    let instant = || prop::sample::select(INSTANTS.to_vec());
    let one = prop_oneof![
        6 => (path(), sign(), scalar()).prop_map(|(path, sign, value)| Cond::Compare(path, sign, value)),
        3 => (path(), sign(), instant()).prop_map(|(path, sign, it)| Cond::CompareDate(path, sign, it)),
        1 => (path(), instant(), instant()).prop_map(|(path, from, to)| Cond::BetweenDates(path, from, to)),
        2 => (path(), prop::collection::vec(scalar(), 0..3)).prop_map(|(path, all)| Cond::In(path, all)),
        1 => path().prop_map(|path| Cond::Begins(path, "x")),
        1 => path().prop_map(Cond::Exists),
    ];
    one.prop_recursive(4, 12, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        let array = prop::sample::select(vec!["items", "items", "items.items", "a", "items.0"]);
        prop_oneof![
            2 => several().prop_map(Cond::And),
            1 => several().prop_map(Cond::Or),
            1 => inner.clone().prop_map(|inner| Cond::Not(Box::new(inner))),
            3 => (array, inner).prop_map(|(path, inner)| Cond::Has(path, Box::new(inner))),
        ]
    })
    .boxed()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<Json>),
    Replace(usize, Json),
    Delete(usize),
    DeleteWhere(Cond),
    PatchWhere(Cond, Json),
    Index(&'static [&'static str]),
    Drop(&'static [&'static str]),
    Optimize,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    any::<bool>().prop_flat_map(|is_plain| {
        let paths = || prop::sample::select(INDEXES.to_vec());
        let document = move || document(is_plain);
        let patch = members(scalar());
        let step = prop_oneof![
            6 => prop::collection::vec(document(), 1..20).prop_map(Step::Insert),
            3 => (any::<usize>(), document()).prop_map(|(at, document)| Step::Replace(at, document)),
            2 => any::<usize>().prop_map(Step::Delete),
            1 => condition().prop_map(Step::DeleteWhere),
            1 => (condition(), patch).prop_map(|(condition, patch)| Step::PatchWhere(condition, patch)),
            6 => paths().prop_map(Step::Index),
            1 => paths().prop_map(Step::Drop),
            1 => Just(Step::Optimize),
            1 => Just(Step::Reopen),
        ];
        prop::collection::vec(step, 1..20)
    })
}

#[derive(Clone, Debug)]
struct Query {
    condition: Option<Cond>,
    sort: Vec<(&'static str, bool)>,
    fields: Option<Vec<&'static str>>,
    page: usize,
    most: usize,
}

fn query() -> impl Strategy<Value = Query> {
    let path = || prop::sample::select(PATHS.to_vec());
    let sort = prop_oneof![
        2 => prop::collection::vec((path(), any::<bool>()), 0..3),
        // What an index of several paths sorts.
        1 => (any::<bool>(), any::<bool>()).prop_map(|(one, other)| vec![("a", one), ("b", other)]),
    ];
    let fields = prop::option::of(prop::collection::vec(path(), 0..3));
    (prop::option::of(condition()), sort, fields, 1..6_usize, 0..4_usize).prop_map(
        |(condition, sort, fields, page, most)| Query { condition, sort, fields, page, most },
    )
}

struct Tables {
    engine: Engine,
    db: Database,
    all: Collection,
    model: BTreeMap<i64, Json>,
}

impl Tables {
    fn open(directory: &std::path::Path, model: BTreeMap<i64, Json>) -> Self {
        let options = Options { durability: Durability::None, ..Options::default() };
        let engine = Engine::open(directory, options).unwrap();
        let db = Database::over(engine.clone());
        let all = db.collection("all").unwrap();
        Self { engine, db, all, model }
    }

    fn take(mut self, step: Step, directory: &std::path::Path) -> Self {
        let key = |model: &BTreeMap<i64, Json>, at: usize| {
            model.keys().nth(at % model.len().max(1)).copied()
        };
        match step {
            Step::Insert(documents) => {
                let ids = self.all.insert_many(&documents).unwrap();
                self.model.extend(ids.into_iter().zip(documents));
            }
            Step::Replace(at, document) => {
                if let Some(id) = key(&self.model, at) {
                    self.all.replace(id, &document).unwrap();
                    self.model.insert(id, document);
                }
            }
            Step::Delete(at) => {
                if let Some(id) = key(&self.model, at) {
                    assert!(self.all.delete(id).unwrap());
                    self.model.remove(&id);
                }
            }
            Step::DeleteWhere(condition) => {
                let before = self.model.len();
                self.model.retain(|_, document| !condition.holds(document));
                let deleted = self.all.delete_where(condition.filter()).unwrap();
                assert_eq!(deleted, (before - self.model.len()) as u64, "{condition:?}");
            }
            Step::PatchWhere(condition, patch) => {
                let mut patched = 0;
                for document in self.model.values_mut().filter(|it| condition.holds(it)) {
                    merge(document, &patch);
                    patched += 1;
                }
                let done = self.all.merge_patch_where(condition.filter(), &patch).unwrap();
                assert_eq!(done, patched, "{condition:?}");
            }
            Step::Index(paths) => _ = self.all.index(paths.to_vec()).unwrap(),
            Step::Drop(paths) => _ = self.all.drop_index(paths.to_vec()).unwrap(),
            Step::Optimize => self.engine.optimize(Some("all")).unwrap(),
            Step::Reopen => {
                let Self { engine, db, all, model } = self;
                drop((db, all));
                engine.close().unwrap();
                return Self::open(directory, model);
            }
        }
        self
    }

    fn wait_until_ready(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.all.indexes().unwrap().iter().all(|index| index.is_ready) {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn compare(&self, query: &Query) {
        let expected = found(&self.model, query.condition.as_ref(), &query.sort);
        let (mut cursor, mut pages) = (None::<String>, Vec::new());
        let find = || {
            let find = match &query.condition {
                Some(condition) => self.all.find(condition.filter()),
                None => self.all.all(),
            };
            query.sort.iter().fold(find, |find, (path, descending)| match descending {
                true => find.sort_by_desc(path),
                false => find.sort_by(path),
            })
        };
        loop {
            let mut page = find().limit(query.page);
            if let Some(fields) = &query.fields {
                page = page.fields(fields.clone());
            }
            if let Some(cursor) = &cursor {
                page = page.after(cursor);
            }
            if query.most > 0 {
                page = page.facet_of("a", query.most).facet_of("items.a", query.most);
            }
            let page = page.run().unwrap();
            assert_eq!(page.total, expected.len() as u64, "{query:?}");
            for (facet_found, path) in page.facets.iter().zip(["a", "items.a"]) {
                let (values, distinct) = facet(&expected, path, query.most);
                assert_eq!(facet_found.values, values, "{path} {query:?}");
                assert_eq!(facet_found.distinct, distinct, "{path} {query:?}");
            }
            pages.extend(page.documents.into_iter().map(|document| (document.id, document.doc)));
            cursor = page.cursor;
            if cursor.is_none() || pages.len() > expected.len() {
                break;
            }
        }
        let wanted: Vec<(i64, Json)> = expected
            .iter()
            .map(|(id, document)| match &query.fields {
                Some(fields) => (*id, reduced(document, fields)),
                None => (*id, (*document).clone()),
            })
            .collect();
        assert_eq!(pages, wanted, "{query:?} {:?}", find().limit(1).explain());
        let ids: Vec<i64> = expected.iter().map(|(id, _)| *id).collect();
        assert_eq!(find().ids().unwrap(), ids, "{query:?}");
        assert_eq!(find().count().unwrap(), ids.len() as u64, "{query:?}");
    }
}

fn merge(document: &mut Json, patch: &Json) {
    let Json::Object(changes) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = json!({});
    }
    let members = document.as_object_mut().unwrap();
    for (name, change) in changes {
        match change {
            Json::Null => _ = members.remove(name),
            change => merge(members.entry(name.clone()).or_insert(Json::Null), change),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn queries_answer_as_the_model_does(
        steps in steps(),
        queries in prop::collection::vec(query(), 1..12),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("db");
        let mut tables = Tables::open(&directory, BTreeMap::new());
        for step in steps {
            tables = tables.take(step, &directory);
        }
        for is_ready in [false, true] {
            if is_ready {
                tables.wait_until_ready();
            }
            queries.iter().for_each(|query| tables.compare(query));
        }
        tables.engine.close().unwrap();
    }
}
