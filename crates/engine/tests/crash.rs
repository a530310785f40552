//! kill -9 at random moments of a write load, and a disk that fills up.
//!
//! A child process, this same binary, writes batches and prints each one that was acknowledged.
//! The parent kills it and opens the directory: what was acknowledged must be there whole, what was
//! under way whole or not at all, the check must find nothing, and a watcher is told of each change once.
//! `REMORA_CRASH_ROUNDS` sets the number of rounds, `REMORA_SEED` the moments.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails, in its helpers as well"
)]

mod common;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use common::*;
use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Comparison, Database, Definition, Durability,
    Error, Filter, IndexColumn, IndexDef, Literal, Options, PathDef, PathTest, PathValue, Row,
    Schema, SearchRequest, Selection, SortBy, SortKey, TableChanges, Value,
};

const DIRECTORY: &str = "REMORA_CRASH_DIRECTORY";
/// Whether the child makes and drops indexes while it writes.
const INDEXES: &str = "REMORA_CRASH_INDEXES";
const PHASE: &str = "REMORA_CRASH_PHASE";
/// What gives the full disk room.
const FREE: &str = "REMORA_CRASH_FREE";
/// Threads that write small batches; one more writes large ones, and one batches in parts.
const SMALL_WRITERS: i64 = 3;
/// The one of them whose batches are transactions.
const TRANSACTION_WRITER: i64 = 1;
const LARGE_WRITER: i64 = SMALL_WRITERS;
const PARTS_WRITER: i64 = SMALL_WRITERS + 1;
const WRITERS: usize = PARTS_WRITER as usize + 1;
const SLOTS: i64 = 10;
const ROWS_OF_A_SLOT: i64 = 4;
const ROWS_OF_A_LARGE_BATCH: i64 = 1_100;

fn options() -> Options {
    // A tiny limit makes the child write checkpoints all the time, and another index paths in many steps.
    Options {
        durability: Durability::Always,
        checkpoint_bytes: 60_000,
        path_index_bytes: 16_000,
        ..Options::default()
    }
}

/// The table of documents whose paths are indexed and dropped.
const NOTES: &str = "notes";
const DOCUMENTS: i64 = 2_000;

fn notes_paths() -> Vec<PathDef> {
    let names = |name: &str| vec![name.to_owned()];
    vec![
        PathDef::new(1, names("n")),
        PathDef::of_texts(1, vec![names("text")]).unwrap(),
        PathDef::together(1, vec![names("list"), names("n")]).unwrap(),
        PathDef::new(1, names("u")),
    ]
}

/// The same, the last of them unique.
fn unique_paths() -> Vec<PathDef> {
    let mut paths = notes_paths();
    paths.iter_mut().next_back().unwrap().unique = true;
    paths
}

/// Makes all paths of the notes, then the last of them unique. Another thread's writes may come between.
fn make_unique(database: &Database) {
    let alter = |paths| Definition::Alter { schema: notes_schema(paths), fills: Vec::new() };
    if database.schema(NOTES).unwrap().paths.iter().any(|path| path.unique) {
        return;
    }
    database.define(vec![alter(notes_paths())], Vec::new()).unwrap();
    loop {
        notes_paths().iter().for_each(|path| database.wait_for_path(NOTES, path).unwrap());
        match database.define(vec![alter(unique_paths())], Vec::new()) {
            Ok(_) => return,
            Err(Error::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn notes_schema(paths: Vec<PathDef>) -> Schema {
    let mut columns = schema().columns;
    columns.truncate(2);
    columns[1] = ColumnDef {
        name: "doc".to_owned(),
        kind: ColumnType::Json,
        nullable: false,
        indexed: false,
        ..columns[1].clone()
    };
    Schema { name: NOTES.to_owned(), columns, texts: Vec::new(), paths, ..schema() }
}

/// A document that is another with each `version`.
fn note(id: i64, version: i64) -> Change {
    let (n, list) = ((id + version) % 7, (0..id % 4).collect::<Vec<i64>>());
    // Of one document only, in one of its versions or another.
    let u = id + DOCUMENTS * (version % 3);
    let text = format!(
        "{{\"n\": {n}, \"list\": {list:?}, \"u\": [{u}, {u}], \"text\": \"note {}\"}}",
        id % 5
    );
    Change::Put(vec![Value::Int(id), Value::Json(text.into())])
}

fn apply_notes(database: &Database, changes: Vec<Change>) {
    let tables = vec![TableChanges { table: NOTES.into(), changes }];
    database.apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

/// What paths find, and what a look at every document gives.
fn compare_notes(database: &Database) {
    if database.schema(NOTES).is_err() {
        return;
    }
    make_unique(database);
    notes_paths().iter().for_each(|path| database.wait_for_path(NOTES, path).unwrap());
    let mut documents: Vec<serde_json::Value> = Vec::new();
    let mut push = |row: Row| {
        let Value::Json(text) = &row[1] else { panic!("{row:?}") };
        documents.push(serde_json::from_str(text).unwrap());
        Ok(())
    };
    database.scan(NOTES, &mut push).unwrap();
    let compare = |filter: Filter, test: &dyn Fn(&serde_json::Value) -> bool| {
        let filter = Some(filter);
        let selection = Selection { table: NOTES.to_owned(), filter, ..Selection::default() };
        let found = database.count(&selection).unwrap().count;
        let expected = documents.iter().filter(|document| test(document)).count();
        assert_eq!(found, expected as u64, "{:?}", selection.filter);
    };
    for document in documents.iter().step_by(97) {
        let u = document["u"][0].as_i64().unwrap();
        let one = PathTest::In(vec![PathValue::Int(u)]);
        compare(Filter::Path("doc".to_owned(), vec!["u".to_owned()], one), &|it| it["u"][0] == u);
        let twice = Value::Json(format!("{{\"u\": {u}}}").into());
        let changes = vec![Change::Put(vec![Value::Int(-1), twice])];
        let tables = vec![TableChanges { table: NOTES.into(), changes }];
        let refused = database.apply(ChangeBatch { tables, positions: Vec::new() });
        assert!(matches!(refused, Err(Error::NotUnique { .. })), "{u}: {refused:?}");
    }
    let (doc, n, list) = ("doc".to_owned(), vec!["n".to_owned()], vec!["list".to_owned()]);
    for number in 0..7_i64 {
        let one = || PathTest::In(vec![PathValue::Int(number)]);
        let has = |document: &serde_json::Value| document["n"] == number;
        compare(Filter::Path(doc.clone(), n.clone(), one()), &has);
        let text = format!("note {number}");
        let texts = Filter::PathTexts(doc.clone(), vec![vec!["text".to_owned()]], text.clone());
        compare(texts, &|document| document["text"] == text.as_str());
        let both = vec![PathTest::In(vec![PathValue::Int(0)]), one()];
        let together = Filter::PathsTogether(doc.clone(), vec![list.clone(), n.clone()], both);
        compare(together, &|document| {
            document["list"].as_array().unwrap().iter().any(|it| *it == 0) && has(document)
        });
    }
}

/// Batch `number` of a writer: the rows of one slot, replaced or deleted, and its number as the
/// position of a source.
fn batch_of(writer: i64, number: i64) -> ChangeBatch {
    let slot = number % SLOTS;
    let (first, rows) = match writer {
        LARGE_WRITER => (1_000_000, ROWS_OF_A_LARGE_BATCH),
        PARTS_WRITER => (2_000_000, ROWS_OF_A_LARGE_BATCH),
        _ => (writer * 1_000 + slot * 10, ROWS_OF_A_SLOT),
    };
    let ids = first..first + rows;
    let changes = match number % 7 {
        0 => ids.map(delete).collect(),
        _ => ids.map(|id| put(id, number, &format!("writer{writer} batch{number}."))).collect(),
    };
    let positions = vec![(format!("writer{writer}"), number.to_string())];
    ChangeBatch { positions, ..batch(changes) }
}

/// The rows after batches `1..=last` of each writer, worked out without a database.
fn expected_rows(last: &[i64]) -> BTreeMap<i64, Row> {
    let mut rows = BTreeMap::new();
    for (writer, &last) in last.iter().enumerate() {
        for number in (last - SLOTS + 1).max(1)..=last {
            for change in &batch_of(writer as i64, number).tables[0].changes {
                match change {
                    remora_engine::Change::Put(row) | remora_engine::Change::Insert(row) => {
                        rows.insert(id_of(row), row.clone());
                    }
                    remora_engine::Change::Delete(key) => _ = rows.remove(&id_of(key)),
                }
            }
        }
    }
    rows
}

fn last_batch(database: &Database, writer: i64) -> i64 {
    let position = database.source_position(&format!("writer{writer}")).unwrap();
    position.map_or(0, |number| number.parse().unwrap())
}

/// The child: does nothing unless it is told where to write.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let database = open(Path::new(&directory), options());
    std::thread::scope(|scope| {
        if std::env::var(INDEXES).is_ok() {
            scope.spawn(|| define_indexes(&database));
        }
        for writer in (0..WRITERS as i64).filter(|writer| writes(*writer)) {
            let database = &database;
            scope.spawn(move || {
                let first = last_batch(database, writer) + 1;
                for number in first.. {
                    write(database, writer, number);
                    // One write, so that a kill leaves no half line behind a whole one.
                    let line = format!("ack {writer} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Whether the child has a writer: transactions and batches in parts end where the table is altered.
fn writes(writer: i64) -> bool {
    std::env::var(INDEXES).is_err() || ![TRANSACTION_WRITER, PARTS_WRITER].contains(&writer)
}

/// Declares and drops indexes, over and over; the merges make them meanwhile.
fn define_indexes(database: &Database) {
    let by = |columns: &[(usize, bool)]| IndexDef {
        columns: columns
            .iter()
            .map(|&(column, descending)| IndexColumn {
                column,
                descending,
                order: None,
                prefix: None,
            })
            .collect(),
    };
    let all = [by(&[(1, false)]), by(&[(1, true), (0, false)]), by(&[(1, false), (0, true)])];
    database.create_table(notes_schema(notes_paths())).unwrap_or_default();
    apply_notes(database, (0..DOCUMENTS).map(|id| note(id, 0)).collect());
    for number in 0_usize.. {
        let paths = notes_paths().into_iter().enumerate().filter(|(at, _)| (number >> at) % 8 > 2);
        let paths = paths.map(|(_, path)| path).collect();
        let altered = Definition::Alter { schema: notes_schema(paths), fills: Vec::new() };
        database.define(vec![altered], Vec::new()).unwrap();
        if number % 4 == 1 {
            make_unique(database);
        }
        apply_notes(database, vec![note(number as i64 * 13 % DOCUMENTS, number as i64)]);
        let indexes = all.iter().enumerate().filter(|(at, _)| (number >> at) % 2 == 0);
        let indexes = indexes.map(|(_, index)| index.clone()).collect();
        let altered =
            Definition::Alter { schema: Schema { indexes, ..schema() }, fills: Vec::new() };
        database.define(vec![altered], Vec::new()).unwrap();
        std::thread::sleep(Duration::from_millis(3));
    }
}

fn write(database: &Database, writer: i64, number: i64) {
    if writer == TRANSACTION_WRITER {
        return write_transaction(database, writer, number);
    }
    let ChangeBatch { mut tables, positions } = batch_of(writer, number);
    if writer != PARTS_WRITER {
        database.apply(ChangeBatch { tables, positions }).unwrap();
        return;
    }
    let mut large = database.begin_large().unwrap();
    let table = tables.remove(0);
    for changes in table.changes.chunks(ROWS_OF_A_LARGE_BATCH as usize / 10) {
        let part = TableChanges { table: table.table.clone(), changes: changes.to_vec() };
        large.add(vec![part]).unwrap();
    }
    large.commit(positions).unwrap();
}

/// A batch in parts collides with every transaction on its table, so it may take several.
fn write_transaction(database: &Database, writer: i64, number: i64) {
    loop {
        let mut transaction = database.begin();
        transaction.protect(TABLE, &[Value::Int(writer * 1_000)]).unwrap();
        match transaction.commit(batch_of(writer, number)) {
            Ok(_) => return,
            Err(Error::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn spawn_child(directory: &Path, with_indexes: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .envs(with_indexes.then_some((INDEXES, "yes")))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child write for a random time, kills it, and notes the last acknowledged batch of each
/// writer. One child in four is killed while it starts; each other one has been told of a batch.
fn run_and_kill(
    directory: &Path,
    random: &mut Random,
    acknowledged: &mut [i64],
    with_indexes: bool,
) {
    let mut child = spawn_child(directory, with_indexes);
    let output = BufReader::new(child.stdout.take().unwrap());
    let patience = Duration::from_millis(random.below(200));
    let at_start = random.below(4) == 0;
    let (writes, first_write) = std::sync::mpsc::channel();
    let killer = std::thread::spawn(move || {
        // An error means that the child ended by itself.
        let wrote = at_start || first_write.recv().is_ok();
        std::thread::sleep(patience);
        child.kill().unwrap();
        child.wait().unwrap();
        wrote
    });
    for line in output.lines().map_while(Result::ok) {
        // The harness prints the test's name without a line end before the first one.
        let Some((_, acknowledgement)) = line.split_once("ack ") else { continue };
        let numbers: Vec<i64> =
            acknowledgement.split(' ').filter_map(|part| part.parse().ok()).collect();
        if let [writer, number] = numbers[..] {
            acknowledged[writer as usize] = number;
            let _ = writes.send(());
        }
    }
    assert!(killer.join().unwrap(), "nothing was acknowledged before the kill");
}

fn verify(directory: &Path, acknowledged: &[i64], replay: &mut Replay, saves: bool) -> Vec<i64> {
    let database = open(directory, options());
    replay.follow(&database, saves);
    assert_eq!(replay.all(), rows(&database), "what a watcher was told gives other rows");
    let last: Vec<i64> = (0..WRITERS as i64).map(|writer| last_batch(&database, writer)).collect();
    for (last, acknowledged) in last.iter().zip(acknowledged) {
        let whole = *last == *acknowledged || *last == acknowledged + 1;
        assert!(whole, "batch {acknowledged} was acknowledged, batch {last} is there");
    }
    let expected = expected_rows(&last);
    assert_eq!(rows(&database), expected.values().cloned().collect::<Vec<_>>());
    assert_eq!(count(&database), expected.len() as u64);
    for (writer, number) in last.iter().enumerate() {
        let ids = |term: &str| -> Vec<i64> {
            let has = |row: &Row| matches!(&row[2], Value::Text(t) if t.contains(term));
            expected.iter().filter(|(_, row)| has(row)).map(|(id, _)| *id).collect()
        };
        for term in [format!("writer{writer} "), format!("r{writer} batch{number}.")] {
            assert_eq!(find(&database, &term), ids(&term), "{term}");
        }
    }
    compare_by_score(&database, &expected);
    compare_notes(&database);
    check_is_clean(database);
    last
}

/// What indexes answer, whichever there are, and what a look at every row gives.
fn compare_by_score(database: &Database, expected: &BTreeMap<i64, Row>) {
    let scores: Vec<(i64, i64)> =
        expected.iter().map(|(id, row)| (id_of(&row[1..]), *id)).collect();
    let mut values: Vec<i64> = scores.iter().map(|(score, _)| *score).collect();
    values.dedup();
    values.push(-1);
    for value in values {
        let of_value = Filter::Compare {
            column: "score".to_owned(),
            comparison: Comparison::Equal,
            literal: Literal::Value(Value::Int(value)),
        };
        let filter = Some(of_value);
        let selection = Selection { table: TABLE.to_owned(), filter, ..Selection::default() };
        let found = database.count(&selection).unwrap().count;
        let expected = scores.iter().filter(|(score, _)| *score == value).count();
        assert_eq!(found, expected as u64, "score {value}");
    }
    for descending in [false, true] {
        let request = SearchRequest {
            selection: Selection { table: TABLE.to_owned(), ..Selection::default() },
            sort: vec![SortKey { by: SortBy::Column("score".to_owned()), descending }],
            limit: 50,
            ..SearchRequest::default()
        };
        let mut sorted = scores.clone();
        sorted.sort_unstable();
        if descending {
            sorted.reverse();
        }
        let sorted: Vec<i64> = sorted.into_iter().map(|(_, id)| id).take(50).collect();
        let hits = database.search(&request).unwrap().hits;
        assert_eq!(hits.iter().map(|hit| id_of(&hit.key)).collect::<Vec<_>>(), sorted);
    }
}

#[test]
fn acknowledged_batches_survive_kill_9() {
    repeated_kills_lose_no_acknowledged_batch(12, false);
}

/// The same while indexes are declared, made and dropped.
#[test]
fn indexes_survive_kill_9() {
    repeated_kills_lose_no_acknowledged_batch(8, true);
}

fn repeated_kills_lose_no_acknowledged_batch(rounds: u64, with_indexes: bool) {
    let told = std::env::var("REMORA_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds = told.unwrap_or(rounds);
    let mut random = Random::seeded();
    let mut directory = tempfile::tempdir().unwrap();
    let mut acknowledged = vec![0; WRITERS];
    let mut replay = Replay::default();
    for round in 0..rounds {
        if round % 25 == 24 {
            directory = tempfile::tempdir().unwrap();
            acknowledged.fill(0);
            replay = Replay::default();
        }
        run_and_kill(directory.path(), &mut random, &mut acknowledged, with_indexes);
        let saves = random.below(2) == 0;
        acknowledged = verify(directory.path(), &acknowledged, &mut replay, saves);
        println!("round {round}: batches {acknowledged:?}, {} changes told", replay.told);
    }
}

/// The child of the full disk: fills it, goes on when there is room, or verifies what it left.
#[test]
fn child_that_fills_the_disk() {
    let Ok(phase) = std::env::var(PHASE) else { return };
    let directory = std::env::var(DIRECTORY).unwrap();
    // Beside the full disk, not on it.
    let acknowledged = Path::new("acknowledged");
    let database = open(Path::new(&directory), options());
    if phase == "limit" {
        meet_limit(&database);
        check_is_clean(database);
    } else if phase == "fill" {
        let batches = fill(&database);
        std::fs::write(acknowledged, batches.to_string()).unwrap();
        if let Ok(free) = std::env::var(FREE) {
            let freed = Command::new("sh").args(["-c", &free]).status().unwrap();
            assert!(freed.success(), "{free}");
            go_on(&database, batches);
            check_is_clean(database);
        }
    } else {
        let batches: i64 = std::fs::read_to_string(acknowledged).unwrap().parse().unwrap();
        assert_eq!(find(&database, "kept"), ids(batches));
        apply(&database, vec![put(-1, 0, "taken again")]).unwrap();
        check_is_clean(database);
    }
    println!("phase {phase} done");
}

/// The keys of so many batches.
fn ids(batches: i64) -> Vec<i64> {
    (0..batches * 20).collect()
}

fn noisy_batch(number: i64) -> Vec<Change> {
    let noise = |id: i64| -> String {
        let mut random = Random(id as u64);
        (0..2_000).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    let ids = number * 20..(number + 1) * 20;
    ids.map(|id| put(id, number, &format!("kept {}", noise(id)))).collect()
}

/// Fills the disk; answers how many batches were taken.
fn fill(database: &Database) -> i64 {
    let refused = (0i64..20_000)
        .find_map(|number| Some((number, apply(database, noisy_batch(number)).err()?)));
    let (batches, error) = refused.unwrap();
    let said = error.to_string();
    println!("after {batches} batches: {said}");
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(said.contains("the disk is full") && said.contains("MiB are free"), "{said}");
    assert!(batches > 0, "{said}");
    for _ in 0..3 {
        let again = apply(database, vec![put(-1, 0, "refused")]);
        assert!(matches!(again, Err(Error::Full(_))), "{again:?}");
        assert_eq!(database.write_refusal(), Some(said.clone()));
    }
    // Reads go on, and find nothing of what was refused.
    assert_eq!(count(database), batches as u64 * 20);
    assert_eq!(find(database, "kept"), ids(batches));
    assert_eq!(rows(database).len() as i64, batches * 20);
    batches
}

/// Batches of rows that no index has, the fourth of which makes the journal larger than a file may be.
fn meet_limit(database: &Database) {
    let ballast = Schema { name: "ballast".to_owned(), texts: Vec::new(), ..schema() };
    database.create_table(ballast).unwrap();
    let large_batch = |number: i64| {
        let noise = |id: i64| -> String {
            let mut random = Random(id as u64 + 1);
            (0..1 << 20).map(|_| char::from(b'!' + random.below(90) as u8)).collect()
        };
        let rows = (number * 20..(number + 1) * 20).map(|id| put(id, number, &noise(id)));
        let changes = TableChanges { table: "ballast".into(), changes: rows.collect() };
        ChangeBatch { tables: vec![changes], positions: Vec::new() }
    };
    let mut batches = (0..6i64).map(|number| (number, database.apply(large_batch(number))));
    let (taken, refused) = batches.find(|(_, applied)| applied.is_err()).unwrap();
    println!("after {taken} batches: {refused:?}");
    assert!(matches!(refused, Err(Error::Full(_))), "{refused:?}");
    let rows = |table: &str| database.reader().row_count(table).unwrap();
    assert_eq!(rows("ballast"), taken as u64 * 20, "the batch is refused whole");
    wait_until(|| apply(database, noisy_batch(0)).is_ok());
    assert_eq!((find(database, "kept"), rows(TABLE)), (ids(1), 20));
    assert_eq!(rows("ballast"), taken as u64 * 20);
}

/// Batches that are written once there is room.
const MORE: i64 = 100;

/// There is room: writing goes on by itself, in the same process.
fn go_on(database: &Database, batches: i64) {
    let reader = database.reader();
    wait_until(|| database.write_refusal().is_none());
    for number in batches..batches + MORE {
        apply(database, noisy_batch(number)).unwrap();
    }
    assert_eq!(find(database, "kept"), ids(batches + MORE));
    assert_eq!(rows(database).len() as i64, (batches + MORE) * 20);
    assert_eq!(reader.row_count(TABLE).unwrap(), batches as u64 * 20);
}

/// On a small file system of its own. The disks are so large that a batch finds none, that rows in memory
/// cannot be brought to it, and that files cannot be made one.
#[test]
fn a_full_disk_loses_nothing() {
    if !can_mount_or_says_so() {
        return;
    }
    for size in ["12m", "29m", "48m"] {
        let outside = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o size={size} tmpfs disk && export REMORA_CRASH_DIRECTORY=$PWD/disk/db \
             && REMORA_CRASH_PHASE=fill $CHILD && mount -o remount,size=500m disk \
             && REMORA_CRASH_PHASE=verify $CHILD"
        );
        let (ended_well, output) = run_script(outside.path(), &["unshare", "-rm"], &script);
        println!("{output}");
        assert!(ended_well && output.contains("phase verify done"), "{output}");
    }
}

/// The same, with room made for the process that has met the full disk.
#[test]
fn writes_resume_after_a_full_disk_without_restart() {
    if !can_mount_or_says_so() {
        return;
    }
    for size in ["12m", "29m", "48m"] {
        let outside = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o size={size} tmpfs disk && export REMORA_CRASH_DIRECTORY=$PWD/disk/db \
             REMORA_CRASH_FREE='mount -o remount,size=900m disk' && REMORA_CRASH_PHASE=fill $CHILD"
        );
        let (ended_well, output) = run_script(outside.path(), &["unshare", "-rm"], &script);
        println!("{output}");
        assert!(ended_well && output.contains("phase fill done"), "{size}: {output}");
    }
}

/// What can be had without a file system of our own: the kernel's answer to a file that is too large,
/// which comes in the same place. There is room for smaller batches behind that.
#[test]
fn file_size_limit_refuses_only_the_batch_that_met_it() {
    let outside = tempfile::tempdir().unwrap();
    let script = "export REMORA_CRASH_DIRECTORY=$PWD/disk/db; \
        (trap '' XFSZ; ulimit -f 140000; REMORA_CRASH_PHASE=limit $CHILD)";
    let (ended_well, output) = run_script(outside.path(), &[], script);
    println!("{output}");
    assert!(ended_well && output.contains("phase limit done"), "{output}");
}

/// Whether a file system can be mounted. If not that is told past the test's own output, which nobody
/// sees of a test that passes; where `REMORA_REQUIRE_MOUNT` is set it fails.
fn can_mount_or_says_so() -> bool {
    let outside = tempfile::tempdir().unwrap();
    let (can_mount, why) = run_script(outside.path(), &["unshare", "-rm"], "mount -t tmpfs t disk");
    if !can_mount {
        assert!(std::env::var("REMORA_REQUIRE_MOUNT").is_err(), "nothing can be mounted: {why}");
        let said =
            "NOT TESTED ON A FULL DISK: nothing can be mounted here, a limit of files stands in\n";
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    can_mount
}

fn run_script(directory: &Path, wrapper: &[&str], script: &str) -> (bool, String) {
    std::fs::create_dir_all(directory.join("disk")).unwrap();
    let child = std::env::current_exe().unwrap();
    let child = format!("{} --exact child_that_fills_the_disk --nocapture", child.display());
    let mut words = wrapper.to_vec();
    words.extend(["sh", "-c", script]);
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(directory)
        .env("CHILD", child)
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) => (output.status.success(), String::from_utf8_lossy(&output.stdout).into()),
        Err(error) => (false, error.to_string()),
    }
}
