//! A table whose rows lie in several databases, as if in several servers, is one table with the same rows.

use std::{cmp::Ordering, collections::BTreeMap, path::Path, sync::Arc};

use parking_lot::Mutex;
use proptest::prelude::*;

use super::{
    random::Random,
    ranked,
    table::{BODY, TITLE},
};
use crate::{
    Answer, BestRows, Change, ChangeBatch, Database, Durability, Error, FacetRequest,
    GatheredTable, IndexColumn, IndexDef, InterruptCheck, KeywordQuery, KeywordStatistics,
    LocalPart, Options, Part, PartRows, PartValues, PartsCache, Reader, RemoteTables, Result, Row,
    ScanRequest, Schema, Selection, SortBy, SortKey, TableChanges, TextQuery, Value,
    WantedStatistics, decode_rows, encode_rows,
};

pub(super) const WHOLE: &str = "whole";
pub(super) const PART: &str = "part";
pub(super) const ALL: &str = "all";

fn open(path: &Path) -> Database {
    let options = Options { durability: Durability::None, ..Options::default() };
    Database::open(path, options).unwrap()
}

pub(super) fn apply(database: &Database, table: &str, changes: Vec<Change>) {
    let tables = vec![TableChanges { table: table.into(), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

/// What a part is made to do wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// It answers nothing.
    Silent,
    /// It counts more than there is.
    Counts,
    /// Its rows are in a wrong order.
    Order,
    /// Its rows have too few columns.
    Columns,
    /// It gives keys that it has not.
    Keys,
    /// Its weights are none.
    Weights,
    /// It does not hide what it is told to.
    Hide,
    /// It claims more rows than can be.
    Rows,
    /// It breaks off behind its first rows.
    Middle,
}

/// The servers around a database, whose parts are asked through bytes.
#[derive(Default)]
struct Servers {
    databases: Vec<Database>,
    /// One whose table lies in others too.
    middle: Option<Database>,
    shared: PartsCache,
    fault: Fault,
    /// What was opened.
    opened: Mutex<BTreeMap<String, Arc<GatheredTable>>>,
}

impl RemoteTables for Servers {
    fn table(&self, declared: &Schema, reader: &Reader) -> Result<Arc<GatheredTable>> {
        if let Some(known) = self.opened.lock().get(&declared.name) {
            return Ok(Arc::clone(known));
        }
        let mut parts: Vec<Arc<dyn Part>> = Vec::new();
        for part in declared.parts() {
            parts.push(Arc::new(LocalPart::new(reader, part)?));
        }
        for agent in declared.agents() {
            let (reader, table) = match agent.parse::<usize>() {
                Ok(number) => (self.databases[number].reader(), PART),
                Err(_) => {
                    let databases = self.databases.clone();
                    let behind = Servers { databases, ..Servers::default() };
                    let middle = self.middle.as_ref().unwrap();
                    (middle.reader().with_remote_tables(Arc::new(behind)), ALL)
                }
            };
            let part = Arc::new(LocalPart::new(&reader, table)?);
            parts.push(Arc::new(Faulty {
                part,
                name: format!("server {agent}"),
                fault: self.fault,
            }));
        }
        let opened = GatheredTable::open(declared, parts, &self.shared, &InterruptCheck::NEVER);
        let opened = opened.map_err(|unopened| *unopened.error)?;
        let opened = Arc::new(opened);
        self.opened.lock().insert(declared.name.clone(), Arc::clone(&opened));
        Ok(opened)
    }
}

/// A part of another server; rows go through bytes.
struct Faulty {
    part: Arc<dyn Part>,
    name: String,
    fault: Fault,
}

impl Faulty {
    fn check(&self) -> Result<()> {
        match self.fault {
            Fault::Silent => Err(Error::RemoteServer(format!("{} is silent", self.name))),
            _ => Ok(()),
        }
    }
}

impl Part for Faulty {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        self.part.schema()
    }

    fn rows(&self) -> u64 {
        if self.fault == Fault::Rows { 1 << 63 } else { self.part.rows() }
    }

    fn version(&self) -> &str {
        &self.name
    }

    fn ends(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.part.ends()
    }

    fn keys_from(&self, from: &[u8], unless: &InterruptCheck) -> Result<Vec<Vec<u8>>> {
        let mut keys = self.part.keys_from(from, unless)?;
        if self.fault == Fault::Keys {
            keys.reverse();
        }
        Ok(keys)
    }

    fn hide(&self, keys: &[Vec<u8>], unless: &InterruptCheck) -> Result<Arc<dyn Part>> {
        if self.fault == Fault::Hide {
            return Err(Error::RemoteServer(format!("{} broke off", self.name)));
        }
        let (part, name) = (self.part.hide(keys, unless)?, self.name.clone());
        Ok(Arc::new(Self { part, name, fault: self.fault }))
    }

    fn statistics<'a>(
        &'a self,
        asked: &'a KeywordQuery,
        wanted: &'a WantedStatistics,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, KeywordStatistics> {
        let answer = self.part.statistics(asked, wanted, unless);
        Box::new(move || {
            self.check()?;
            let mut counted = answer()?;
            if self.fault == Fault::Counts {
                counted.counts.values_mut().for_each(|counts| counts.0 = self.rows() + 1);
            }
            Ok(counted)
        })
    }

    fn count<'a>(&'a self, selection: Selection, unless: &'a InterruptCheck) -> Answer<'a, u64> {
        let answer = self.part.count(selection, unless);
        Box::new(move || {
            self.check()?;
            answer()
        })
    }

    fn facet<'a>(
        &'a self,
        request: FacetRequest,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, PartValues> {
        let answer = self.part.facet(request, unless);
        Box::new(move || {
            self.check()?;
            let mut values = answer()?;
            match (self.fault, &mut values) {
                (Fault::Counts, Some(values)) => {
                    values.iter_mut().for_each(|(_, count)| *count = self.rows() + 1);
                }
                (Fault::Order, Some(values)) => {
                    values.iter_mut().for_each(|(_, count)| *count = 1);
                    values.extend(values.clone());
                }
                (Fault::Columns, Some(values)) => {
                    values.iter_mut().for_each(|(value, _)| *value = Value::Text("x".into()));
                }
                _ => {}
            }
            Ok(values)
        })
    }

    fn scan(&self, request: ScanRequest, unless: &InterruptCheck) -> Result<PartRows> {
        self.check()?;
        let (fault, scores) = (self.fault, request.scores.len());
        let columns = request.columns.len() + scores;
        let rows = self.part.scan(request, unless)?;
        let (mut page, name) = (0, self.name.clone());
        Ok(Box::new(rows.map(move |rows| {
            page += 1;
            if fault == Fault::Middle && page > 1 {
                return Err(Error::RemoteServer(format!("{name} broke off")));
            }
            let mut rows = decode_rows(&encode_rows(&rows?), columns, usize::MAX)?;
            match fault {
                Fault::Order => rows.reverse(),
                Fault::Columns => rows.iter_mut().for_each(|row| drop(row.pop())),
                Fault::Weights => {
                    rows.iter_mut()
                        .flat_map(|row| row.last_mut())
                        .for_each(|value| *value = Value::Null);
                }
                _ => {}
            }
            Ok(rows)
        })))
    }
}

/// Rows in several databases, and one table that has what they have together.
pub(super) struct Spread {
    _directory: tempfile::TempDir,
    head: Database,
    /// Between the head and the first server, with rows of its own.
    middle: Option<Database>,
    pub(super) servers: Vec<Database>,
    parts: Vec<BTreeMap<i64, Row>>,
}

/// Some of the indexes that have orders of [`first_asked`] and of [`Random::order`].
fn indexes(random: &mut Random) -> Vec<IndexDef> {
    let part = |column, descending| IndexColumn { column, descending, order: None, prefix: None };
    let all = [vec![part(1, false)], vec![part(2, true)], vec![part(1, true), part(2, false)]];
    let some = all.into_iter().filter(|_| random.chance(50));
    some.map(|columns| IndexDef { columns }).collect()
}

impl Spread {
    pub(super) fn new(random: &mut Random) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let schema = Schema { indexes: indexes(random), ..ranked::ranked_schema(random) };
        let named = |name: &str| Schema { name: name.to_owned(), ..schema.clone() };
        let head = open(&directory.path().join("head"));
        let count = random.one(&[1, 2, 4]);
        let servers: Vec<Database> =
            (0..count).map(|number| open(&directory.path().join(number.to_string()))).collect();
        servers.iter().for_each(|server| server.create_table(named(PART)).unwrap());
        let locals: Vec<String> = (0..random.below(3)).map(|it| format!("local{it}")).collect();
        locals.iter().for_each(|name| head.create_table(named(name)).unwrap());
        head.create_table(named(WHOLE)).unwrap();
        let mut agents: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        let middle = random.chance(50).then(|| open(&directory.path().join("middle")));
        if let Some(middle) = &middle {
            middle.create_table(named(PART)).unwrap();
            let behind = vec![std::mem::replace(&mut agents[0], "middle".to_owned())];
            let parts = vec![PART.to_owned()];
            let all = Schema::distributed(ALL, parts).with_agents(behind, Vec::new());
            middle.create_table(all).unwrap();
        }
        let count = locals.len() + count + usize::from(middle.is_some());
        let parts = vec![BTreeMap::new(); count];
        let all = Schema::distributed(ALL, locals).with_agents(agents, Vec::new());
        head.create_table(all).unwrap();
        Self { _directory: directory, head, middle, servers, parts }
    }

    /// The database and the table of a part: those of the head, that of the middle, those of the servers.
    fn place(&self, at: usize) -> (&Database, String) {
        let others = self.servers.len() + usize::from(self.middle.is_some());
        let Some(other) = at.checked_sub(self.parts.len() - others) else {
            return (&self.head, format!("local{at}"));
        };
        let all: Vec<&Database> = self.middle.iter().chain(&self.servers).collect();
        (all[other], PART.to_owned())
    }

    pub(super) fn change(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(8) {
            let at = random.below(self.parts.len());
            let mut changes = Vec::new();
            for _ in 0..random.below(40) {
                let id = random.below(300) as i64;
                if random.chance(20) {
                    self.parts[at].remove(&id);
                    changes.push(Change::Delete(vec![Value::Int(id)]));
                } else {
                    let mut row = random.row(id);
                    row[TITLE] = Value::Text(ranked::text(random).into());
                    row[BODY] = Value::Text(ranked::text(random).into());
                    self.parts[at].insert(id, row.clone());
                    changes.push(Change::Put(row));
                }
            }
            let (database, table) = self.place(at);
            apply(database, &table, changes);
        }
        let mut merged = BTreeMap::new();
        self.parts.iter().for_each(|part| merged.extend(part.clone()));
        let gone = (0..300).filter(|id| !merged.contains_key(id));
        let mut changes: Vec<Change> =
            gone.map(|id| Change::Delete(vec![Value::Int(id)])).collect();
        changes.extend(merged.into_values().map(Change::Put));
        apply(&self.head, WHOLE, changes);
    }

    pub(super) fn reader(&self, fault: Fault) -> Reader {
        let (databases, middle) = (self.servers.clone(), self.middle.clone());
        let servers = Servers { databases, middle, fault, ..Servers::default() };
        self.head.reader().with_remote_tables(Arc::new(servers))
    }
}

pub(super) fn rows(reader: &Reader, table: &str, request: &ScanRequest) -> Result<Vec<Row>> {
    let request = ScanRequest { table: table.to_owned(), ..request.clone() };
    let batches: Vec<_> = reader.scan(request)?.collect::<Result<_>>()?;
    Ok(batches.iter().flat_map(|batch| batch.to_rows()).collect())
}

pub(super) fn asked(random: &mut Random) -> ScanRequest {
    let request = ranked::request(random);
    let text = request.selection.text.filter(|_| random.chance(80));
    let mut columns: Vec<usize> = (0..6).filter(|_| random.chance(60)).collect();
    columns.reverse();
    ScanRequest {
        scores: text.iter().cloned().collect(),
        text: text.filter(|_| random.chance(80)),
        filter: request.selection.filter,
        columns,
        batch_rows: 1 + random.below(50),
        batch_bytes: random.one(&[None, Some(0), Some(40), Some(400)]),
        in_key_order: true,
        limit: random.chance(30).then(|| random.below(20) as u64),
        ..ScanRequest::default()
    }
}

/// A request for the first rows alone, in an order that all rows tell.
fn first_asked(random: &mut Random) -> ScanRequest {
    let request = ScanRequest { columns: vec![0, 1, 2], limit: None, ..asked(random) };
    let by = |name: &str| SortBy::Column(name.to_owned());
    let mut sort: Vec<SortKey> = Vec::new();
    for _ in 0..random.below(3) {
        let all = [SortBy::Score, SortBy::Score, by("number"), by("price")];
        let by = all[random.below(all.len())].clone();
        let by = if request.scores.is_empty() && by == SortBy::Score { SortBy::Key } else { by };
        sort.push(SortKey { by, descending: random.chance(70) });
    }
    sort.push(SortKey { by: SortBy::Key, descending: random.chance(20) });
    let best = BestRows { sort, score: 0, rows: 1 + random.below(30) };
    ScanRequest { best: Some(best), ..request }
}

/// Compares rows of columns 0, 1 and 2 and a score.
fn compared(sort: &[SortKey], a: &Row, b: &Row) -> Ordering {
    let number = |value: &Value| match value {
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        _ => f64::NEG_INFINITY,
    };
    let ordering = |key: &SortKey| {
        let at = match &key.by {
            SortBy::Key => 0,
            SortBy::Column(name) => {
                if name == "number" {
                    1
                } else {
                    2
                }
            }
            SortBy::Score | SortBy::TextKey(..) => 3,
        };
        let ordering = number(&a[at]).total_cmp(&number(&b[at]));
        if key.descending { ordering.reverse() } else { ordering }
    };
    sort.iter().map(ordering).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

/// Parts leave out no row that is among the first, and most others. Returns how many they left out.
fn compare_first(reader: &Reader, parts: usize, random: &mut Random) -> usize {
    let request = first_asked(random);
    let every = ScanRequest { best: None, ..request.clone() };
    let (given, all) = (rows(reader, ALL, &request), rows(reader, WHOLE, &every));
    let (Ok(given), Ok(all)) = (&given, &all) else {
        assert_eq!(given.is_err(), all.is_err(), "{request:?} {given:?}");
        return 0;
    };
    let best = request.best.as_ref().unwrap();
    let mut expected = all.clone();
    expected.sort_by(|a, b| compared(&best.sort, a, b));
    expected.truncate(best.rows);
    for row in &expected {
        assert!(given.contains(row), "{row:?} is missing: {request:?}");
    }
    assert!(given.iter().all(|row| all.contains(row)), "{request:?}");
    assert!(given.is_sorted_by(|a, b| compared(&[KEY], a, b).is_lt()), "{request:?}");
    assert!(given.len() <= best.rows * parts, "{} rows: {request:?}", given.len());
    all.len() - given.len()
}

pub(super) const KEY: SortKey = SortKey { by: SortBy::Key, descending: false };

fn compare(spread: &Spread, random: &mut Random) -> usize {
    let reader = spread.reader(Fault::None);
    let count = |table: &str| reader.row_count(table).unwrap();
    assert_eq!(count(ALL), count(WHOLE));
    let (mine, theirs) = (reader.schema(ALL).unwrap(), reader.schema(WHOLE).unwrap());
    assert_eq!(mine.columns.len(), theirs.columns.len());
    let mut found = 0;
    for _ in 0..25 {
        let request = asked(random);
        let (mine, theirs) = (rows(&reader, ALL, &request), rows(&reader, WHOLE, &request));
        let (Ok(mine), Ok(theirs)) = (&mine, &theirs) else {
            assert_eq!(mine.is_err(), theirs.is_err(), "{request:?} {mine:?}");
            continue;
        };
        assert_eq!(mine, theirs, "{request:?}");
        found += mine.len();
        let selection = |table: &str| Selection {
            table: table.to_owned(),
            text: request.text.clone(),
            filter: request.filter.clone(),
            ..Selection::default()
        };
        let count = |table: &str| reader.count(&selection(table)).unwrap().count;
        assert_eq!(count(ALL), count(WHOLE), "{request:?}");
        if let Some(TextQuery::Keywords(query)) = &request.text {
            let report = |table| format!("{:?}", reader.keywords(table, query));
            assert_eq!(report(ALL), report(WHOLE), "{request:?}");
            let warning = |table| reader.keyword_warning(table, query).ok().map(|it| it.0);
            assert_eq!(warning(ALL), warning(WHOLE), "{request:?}");
        }
    }
    let keys = |table| reader.keys_from(table, &[0x80], 10_000).unwrap();
    // Pages end where that of a part does.
    assert!(keys(WHOLE).starts_with(&keys(ALL)));
    assert_eq!(keys(ALL).is_empty(), keys(WHOLE).is_empty());
    let counts = |table| reader.keyword_counts(table, "often").unwrap();
    assert_eq!(counts(ALL), counts(WHOLE));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn servers_leave_out_only_rows_that_are_not_first(seed: u64) {
        let mut random = Random::new(seed);
        let mut spread = Spread::new(&mut random);
        let mut left_out = 0;
        for _ in 0..3 {
            spread.change(&mut random);
            let reader = spread.reader(Fault::None);
            let parts = spread.parts.len();
            left_out += (0..40).map(|_| compare_first(&reader, parts, &mut random)).sum::<usize>();
        }
        prop_assert!(left_out > 0, "all rows were read");
    }

    #[test]
    fn tables_of_several_servers_are_one_table(seed: u64) {
        let mut random = Random::new(seed);
        let mut spread = Spread::new(&mut random);
        let mut found = 0;
        for _ in 0..3 {
            spread.change(&mut random);
            found += compare(&spread, &mut random);
        }
        prop_assert!(found > 0, "nothing was found");
    }
}

pub(super) fn failure<T: std::fmt::Debug>(answer: Result<T>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::RemoteServer(_)), "{error:?}");
    error.to_string()
}

/// A table of 40 rows in two servers, of which some share keys.
pub(super) fn halves() -> Spread {
    let mut random = Random::new(11);
    let mut spread = Spread::new(&mut random);
    while spread.servers.len() != 2 || spread.parts.len() != 2 {
        spread = Spread::new(&mut random);
    }
    let row = |id| super::table::row(id, "often", "often a");
    apply(&spread.servers[0], PART, (0..25).map(|id| Change::Put(row(id))).collect());
    apply(&spread.servers[1], PART, (20..40).map(|id| Change::Put(row(id))).collect());
    spread
}

fn often() -> ScanRequest {
    let query = KeywordQuery { text: "often".to_owned(), ..KeywordQuery::default() };
    let text = TextQuery::Keywords(query.into());
    let (scores, text) = (vec![text.clone()], Some(text));
    ScanRequest { text, scores, columns: vec![0], batch_rows: 8, ..ScanRequest::default() }
}

#[test]
fn a_wrong_answer_of_a_part_is_an_error() {
    let spread = halves();
    let reader = |fault| spread.reader(fault);
    assert_eq!(reader(Fault::None).row_count(ALL).unwrap(), 40);
    assert_eq!(rows(&reader(Fault::None), ALL, &often()).unwrap().len(), 40);
    let scanned = |fault| failure(rows(&reader(fault), ALL, &often()));
    let expected = [
        (Fault::Silent, "is silent"),
        (Fault::Counts, "sent impossible counts"),
        (Fault::Order, "not in the order of their keys"),
        (Fault::Columns, "other columns than asked"),
        (Fault::Weights, "a weight has a wrong type"),
        (Fault::Keys, "sent keys that it cannot have"),
    ];
    for (fault, message) in expected {
        let error = scanned(fault);
        assert!(error.contains(message), "{fault:?}: {error}");
        assert!(error.contains("server "), "{fault:?}: {error}");
    }
}

/// The part that a server of two has.
fn part_of(spread: &Spread, number: usize, fault: Fault) -> Arc<dyn Part> {
    let part = Arc::new(LocalPart::new(&spread.servers[number].reader(), PART).unwrap());
    Arc::new(Faulty { part, name: format!("server {number}"), fault })
}

#[test]
fn the_error_of_an_opening_names_the_part() {
    let spread = halves();
    let declared = spread.head.reader().schema(ALL).unwrap();
    let shared = PartsCache::default();
    for (lost, fault) in [(0, Fault::Keys), (1, Fault::Keys), (0, Fault::Hide)] {
        let fault_of = |number| if number == lost { fault } else { Fault::None };
        let parts = (0..2).map(|number| part_of(&spread, number, fault_of(number))).collect();
        let unopened = GatheredTable::open(&declared, parts, &shared, &InterruptCheck::NEVER);
        let unopened = unopened.err().unwrap();
        assert_eq!(unopened.part, Some(lost), "{fault:?} {unopened:?}");
        // Without it the other has all its rows, those too whose keys the lost one has.
        let parts = vec![part_of(&spread, 1 - lost, Fault::None)];
        let rest = GatheredTable::open(&declared, parts, &shared, &InterruptCheck::NEVER).unwrap();
        assert_eq!(rest.rows(), if lost == 0 { 20 } else { 25 });
    }
    // Who claims more rows than can be is found out before they are added.
    let parts = vec![part_of(&spread, 0, Fault::Rows), part_of(&spread, 1, Fault::Rows)];
    let unopened =
        GatheredTable::open(&declared, parts, &shared, &InterruptCheck::NEVER).err().unwrap();
    assert!(unopened.error.to_string().contains("more rows than possible"), "{unopened:?}");
}

#[test]
fn parts_that_fail_in_the_middle_fail_the_scan() {
    let spread = halves();
    let error = failure(rows(&spread.reader(Fault::Middle), ALL, &often()));
    assert!(error.contains("broke off"), "{error}");
    // A count without columns is asked for as one.
    let request = ScanRequest { batch_rows: 7, ..ScanRequest::default() };
    let request = |table: &str| ScanRequest { table: table.to_owned(), ..request.clone() };
    let batches: Vec<_> =
        spread.reader(Fault::Middle).scan(request(ALL)).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), 40);
    assert!(batches.iter().all(|batch| batch.rows <= 7 && batch.columns.is_empty()));
}

/// All keys of a table, page by page.
fn all_keys(reader: &Reader, table: &str) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    loop {
        let from = keys.last().map_or_else(Vec::new, |last| [&last[..], &[0]].concat());
        let page = reader.keys_from(table, &from, 100).unwrap();
        if page.is_empty() {
            return keys;
        }
        keys.extend(page);
    }
}

#[test]
fn repeated_deletes_share_the_base_bitmap() {
    let spread = halves();
    for (reader, table, rows) in
        [(spread.servers[0].reader(), PART, 25), (spread.reader(Fault::None), ALL, 40)]
    {
        let keys = all_keys(&reader, table);
        let mut narrowed = reader.clone();
        for _ in 0..100 {
            for key in &keys[..9] {
                narrowed = narrowed.without_keys(table, std::slice::from_ref(key)).unwrap();
            }
        }
        assert_eq!(narrowed.row_count(table).unwrap(), rows - 9);
        assert_eq!(all_keys(&narrowed, table), keys[9..]);
        let scanned = ScanRequest { columns: vec![0, 2], ..ScanRequest::default() };
        assert_eq!(self::rows(&narrowed, table, &scanned).unwrap().len() as u64, rows - 9);
        let other = narrowed.without_keys("another", &keys).err().unwrap().to_string();
        assert!(other.contains("are hidden already"), "{other}");
        let many: Vec<Vec<u8>> = (0..4 * 4_096 + 1_u32).map(|n| n.to_be_bytes().to_vec()).collect();
        let error = reader.without_keys(table, &many).err().unwrap().to_string();
        assert!(error.contains("too many to hide"), "{error}");
    }
}

#[test]
fn weight_of_the_only_local_part_counts() {
    let random = &mut Random::new(5);
    let mut spread = Spread::new(random);
    while spread.head.tables().iter().filter(|name| name.starts_with("local")).count() != 1 {
        spread = Spread::new(random);
    }
    let row = |id| super::table::row(id, "often", "often a");
    apply(&spread.head, "local0", (0..25).map(|id| Change::Put(row(id))).collect());
    let (database, table) = spread.place(1);
    apply(database, &table, (20..40).map(|id| Change::Put(row(id))).collect());
    let asked = |part_weights: Vec<(String, i32)>| {
        let query =
            KeywordQuery { text: "often".to_owned(), part_weights, ..KeywordQuery::default() };
        let scores = vec![TextQuery::Keywords(Arc::new(query))];
        ScanRequest { scores, columns: vec![0], batch_rows: 50, ..ScanRequest::default() }
    };
    let reader = spread.reader(Fault::None);
    let plain = rows(&reader, ALL, &asked(Vec::new())).unwrap();
    let weighed = rows(&reader, ALL, &asked(vec![("local0".to_owned(), 3)])).unwrap();
    assert_eq!((plain.len(), weighed.len()), (40, 40));
    for (plain, weighed) in plain.iter().zip(&weighed) {
        let (Value::Int(id), Value::Float(before), Value::Float(after)) =
            (&plain[0], &plain[1], &weighed[1])
        else {
            panic!("{plain:?} {weighed:?}");
        };
        // Of the keys from 20 on the rows of the other part are there.
        assert!(*before > 0.0, "{plain:?}");
        assert_eq!(*after, if *id < 20 { before * 3.0 } else { *before }, "{id}");
    }
}

#[test]
fn unsupported_requests_over_servers_are_refused_by_name() {
    let spread = halves();
    let reader = spread.reader(Fault::None);
    let refused = [
        reader.get(ALL, &[Value::Int(1)]).unwrap_err(),
        reader.version(ALL).unwrap_err(),
        spread.head.reader().row_count(ALL).unwrap_err(),
        reader.row_count(&crate::united_name([WHOLE, ALL])).unwrap_err(),
    ];
    for error in refused {
        assert!(error.to_string().contains("rows on other servers (agents)"), "{error}");
    }
    // As it was declared it can be told of.
    assert_eq!(spread.head.schema(ALL).unwrap().agents(), ["0", "1"]);
}

#[test]
fn too_many_keys_of_two_parts_are_refused() {
    let spread = halves();
    for server in &spread.servers {
        let rows = (0..5_000).map(|id| Change::Put(super::table::row(id, "a", "b")));
        apply(server, PART, rows.collect());
    }
    let error = spread.reader(Fault::None).row_count(ALL).unwrap_err();
    assert!(error.to_string().contains("have keys that later parts have too"), "{error}");
}

#[test]
fn foreign_keywords_of_a_word_are_refused() {
    let mut random = Random::new(11);
    let pattern = "often*".to_owned();
    let wanted =
        WantedStatistics { patterns: vec![pattern.clone()], ..WantedStatistics::default() };
    let mut seen = 0;
    for _ in 0..200 {
        let schema = ranked::ranked_schema(&mut random);
        let is_right = |keyword: &str| {
            let found = vec![(keyword.to_owned(), 1, 1)];
            let expansions = [(pattern.clone(), found)].into();
            let told = KeywordStatistics { expansions, ..KeywordStatistics::default() };
            crate::read::ranked::Ranked::are_expansions(&schema, &wanted, &told)
        };
        // Not all tables have such words.
        if is_right("often").is_ok_and(|is_right| is_right) {
            seen += 1;
            assert!(!is_right("rare").unwrap());
            assert!(!is_right("xoften").unwrap());
        }
    }
    assert!(seen > 0, "no table has words with wildcards");
}
