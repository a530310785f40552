//! A table whose rows lie in several databases, as if in several servers, is one table with the same rows.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use parking_lot::Mutex;
use proptest::prelude::*;

use super::{
    random::Random,
    ranked,
    table::{BODY, TITLE},
};
use crate::{
    Answer, Change, ChangeBatch, Database, Durability, Elsewhere, Error, GatheredTable,
    KeywordQuery, KeywordStatistics, LocalPart, Lost, Options, Part, PartRows, Reader, Result, Row,
    ScanRequest, Schema, Selection, SharedKeys, TableChanges, TextQuery, Unless, Value,
    WantedStatistics, decode_rows, encode_rows,
};

const WHOLE: &str = "whole";
const PART: &str = "part";
const ALL: &str = "all";

fn open(path: &Path) -> Database {
    let options = Options { durability: Durability::None, ..Options::default() };
    Database::open(path, options).unwrap()
}

fn apply(database: &Database, table: &str, changes: Vec<Change>) {
    let tables = vec![TableChanges { table: table.into(), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

/// What a part is made to do wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fault {
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
}

/// The servers around a database, whose parts are asked through bytes.
#[derive(Default)]
struct Servers {
    databases: Vec<Database>,
    /// One whose table lies in others too.
    middle: Option<Database>,
    shared: SharedKeys,
    fault: Fault,
    lost: Option<Lost>,
    /// What was opened.
    opened: Mutex<BTreeMap<String, Arc<GatheredTable>>>,
}

impl Elsewhere for Servers {
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
                    (middle.reader().reaching(Arc::new(behind)), ALL)
                }
            };
            let part = Arc::new(LocalPart::new(&reader, table)?);
            parts.push(Arc::new(Faulty {
                part,
                name: format!("server {agent}"),
                fault: self.fault,
            }));
        }
        let (lost, unless) = (self.lost.clone(), Unless::NEVER);
        let opened = GatheredTable::open(declared, parts, &self.shared, lost, &unless)?;
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
            Fault::Silent => Err(Error::Elsewhere(format!("{} is silent", self.name))),
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
        self.part.rows()
    }

    fn version(&self) -> &str {
        &self.name
    }

    fn ends(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.part.ends()
    }

    fn keys_from(&self, from: &[u8], unless: &Unless) -> Result<Vec<Vec<u8>>> {
        let mut keys = self.part.keys_from(from, unless)?;
        if self.fault == Fault::Keys {
            keys.reverse();
        }
        Ok(keys)
    }

    fn hide(&self, keys: &[Vec<u8>], unless: &Unless) -> Result<Arc<dyn Part>> {
        let (part, name) = (self.part.hide(keys, unless)?, self.name.clone());
        Ok(Arc::new(Self { part, name, fault: self.fault }))
    }

    fn statistics<'a>(
        &'a self,
        asked: &'a KeywordQuery,
        wanted: &'a WantedStatistics,
        unless: &'a Unless,
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

    fn count<'a>(&'a self, selection: Selection, unless: &'a Unless) -> Answer<'a, u64> {
        let answer = self.part.count(selection, unless);
        Box::new(move || {
            self.check()?;
            answer()
        })
    }

    fn scan(&self, request: ScanRequest, unless: &Unless) -> Result<PartRows> {
        self.check()?;
        let (fault, scores) = (self.fault, request.scores.len());
        let columns = request.columns.len() + scores;
        let rows = self.part.scan(request, unless)?;
        Ok(Box::new(rows.map(move |rows| {
            let mut rows = decode_rows(&encode_rows(&rows?), columns)?;
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
struct Spread {
    _directory: tempfile::TempDir,
    head: Database,
    /// Between the head and the first server, with rows of its own.
    middle: Option<Database>,
    servers: Vec<Database>,
    parts: Vec<BTreeMap<i64, Row>>,
}

impl Spread {
    fn new(random: &mut Random) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let schema = ranked::ranked_schema(random);
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

    fn change(&mut self, random: &mut Random) {
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

    fn reader(&self, fault: Fault, lost: Option<Lost>) -> Reader {
        let (databases, middle) = (self.servers.clone(), self.middle.clone());
        let servers = Servers { databases, middle, fault, lost, ..Servers::default() };
        self.head.reader().reaching(Arc::new(servers))
    }
}

fn rows(reader: &Reader, table: &str, request: &ScanRequest) -> Result<Vec<Row>> {
    let request = ScanRequest { table: table.to_owned(), ..request.clone() };
    let batches: Vec<_> = reader.scan(request)?.collect::<Result<_>>()?;
    Ok(batches.iter().flat_map(|batch| batch.to_rows()).collect())
}

fn asked(random: &mut Random) -> ScanRequest {
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
        in_key_order: true,
        limit: random.chance(30).then(|| random.below(20) as u64),
        ..ScanRequest::default()
    }
}

fn compare(spread: &Spread, random: &mut Random) -> usize {
    let reader = spread.reader(Fault::None, None);
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
            let warning = |table| reader.keyword_warning(table, query).ok();
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

fn failure<T: std::fmt::Debug>(answer: Result<T>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Elsewhere(_)), "{error:?}");
    error.to_string()
}

/// A table of 40 rows in two servers, of which some share keys.
fn halves() -> Spread {
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
fn what_a_part_tells_wrongly_is_an_error() {
    let spread = halves();
    let reader = |fault| spread.reader(fault, None);
    assert_eq!(reader(Fault::None).row_count(ALL).unwrap(), 40);
    assert_eq!(rows(&reader(Fault::None), ALL, &often()).unwrap().len(), 40);
    let scanned = |fault| failure(rows(&reader(fault), ALL, &often()));
    let expected = [
        (Fault::Silent, "is silent"),
        (Fault::Counts, "counted what cannot be"),
        (Fault::Order, "not in the order of their keys"),
        (Fault::Columns, "other columns than those"),
        (Fault::Weights, "a weight is none"),
        (Fault::Keys, "gave keys that it cannot have"),
    ];
    for (fault, message) in expected {
        let error = scanned(fault);
        assert!(error.contains(message), "{fault:?}: {error}");
        assert!(error.contains("server "), "{fault:?}: {error}");
    }
}

#[test]
fn parts_that_do_not_answer_may_be_left_out() {
    let spread = halves();
    let told = Arc::new(Mutex::new(Vec::new()));
    let told_here = Arc::clone(&told);
    let lost: Lost = Arc::new(move |part, error| told_here.lock().push(format!("{part}: {error}")));
    // One of them is silent at the first question.
    let servers = Servers { databases: spread.servers.clone(), ..Servers::default() };
    let reader = spread.head.reader();
    let declared = reader.schema(ALL).unwrap();
    let part = |number: usize, fault| {
        let part = Arc::new(LocalPart::new(&spread.servers[number].reader(), PART).unwrap());
        Arc::new(Faulty { part, name: format!("server {number}"), fault }) as Arc<dyn Part>
    };
    let parts = vec![part(0, Fault::Silent), part(1, Fault::None)];
    let unless = Unless::NEVER;
    let table =
        GatheredTable::open(&declared, parts, &servers.shared, Some(lost), &unless).unwrap();
    servers.opened.lock().insert(ALL.to_owned(), Arc::new(table));
    let reader = reader.reaching(Arc::new(servers));
    assert_eq!(rows(&reader, ALL, &often()).unwrap().len(), 20);
    assert_eq!(*told.lock(), ["server 0: server 0 is silent"]);
    assert_eq!(reader.row_count(ALL).unwrap(), 20);
}

#[test]
fn what_is_not_answered_over_servers_is_refused_by_name() {
    let spread = halves();
    let reader = spread.reader(Fault::None, None);
    let refused = [
        reader.get(ALL, &[Value::Int(1)]).unwrap_err(),
        reader.version(ALL).unwrap_err(),
        spread.head.reader().row_count(ALL).unwrap_err(),
        reader.row_count(&crate::united_name([WHOLE, ALL])).unwrap_err(),
    ];
    for error in refused {
        assert!(error.to_string().contains("rows of other servers (agents)"), "{error}");
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
    let error = spread.reader(Fault::None, None).row_count(ALL).unwrap_err();
    assert!(error.to_string().contains("have keys that later parts have too"), "{error}");
}
