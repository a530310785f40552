//! kill -9 of a process whose transactions write documents and SQL rows, whose batches write several documents, and
//! whose single calls do, while indexes of paths are made and dropped.
//!
//! A child process, which runs this same binary, has a thread for each way of writing. Each of its steps writes
//! documents, a row and the number of the step into a counting document, and takes away what an earlier step wrote, all
//! in one commit, or in one for each call; then it prints the number. One more thread makes and drops indexes. The
//! parent kills the child, opens the directory, and finds every step that was printed, every step whole, and nothing of
//! the one that was under way unless it is all there (of single calls: of each call). Every index finds what a look at
//! each document gives. `REMORA_CRASH_ROUNDS` sets the number of rounds, `REMORA_SEED` the times of the kills:
//! `REMORA_CRASH_ROUNDS=200 cargo test --workspace --test library -- mixed_kills`.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use remora::{Collection, Database, Error, Result, Table, params};
use serde_json::{Value as Json, json};

use crate::Tested;

const DIRECTORY: &str = "REMORA_MIXED_DIRECTORY";
/// How many steps of a writer are there at once.
const KEPT: i64 = 20;
/// What tells the ids of one writer from those of another.
const OF_WRITER: i64 = 1_000_000_000;

/// The ways of writing, each with its thread.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A transaction of statements and documents.
    Transaction,
    /// The same, with documents of which SQL declared keys.
    TransactionWithKeys,
    /// A batch of documents and of a row of the library.
    Batch,
    /// The same, with documents of which SQL declared keys.
    BatchWithKeys,
    /// Single calls, each a commit of its own, over paths whose indexes come and go.
    Calls,
}

const WAYS: [Way; 5] =
    [Way::Transaction, Way::TransactionWithKeys, Way::Batch, Way::BatchWithKeys, Way::Calls];
/// How long an index may take to be made.
const PATIENCE: Duration = Duration::from_secs(60);

struct Opened {
    db: Database,
    plain: Collection,
    keyed: Collection,
    changing: Collection,
    log: Table,
}

fn open(path: &Path) -> Result<Opened> {
    let db = Database::open(path)?;
    let rows = "CREATE TABLE IF NOT EXISTS ledger (w INT, n BIGINT, UNIQUE KEY (n, w), PRIMARY KEY (w, n))";
    db.execute(rows, [])?;
    let (plain, keyed) = (db.collection("plain")?, db.collection("keyed")?);
    let changing = db.collection("changing")?;
    for documents in [&plain, &changing] {
        documents.index_unique("u")?;
        documents.index_text("text")?;
        documents.index(["w", "of"])?;
    }
    let log = db.create_table("log", |t| t.int("w").key().int("n").key())?;
    let keys = [
        "CREATE UNIQUE INDEX u ON keyed ((CAST(doc->>'$.u' AS SIGNED)))",
        "CREATE INDEX n ON keyed ((CAST(doc->>'$.of' AS SIGNED)))",
    ];
    if keyed.is_empty()? && db.query("SHOW INDEX FROM keyed", [])?.len() == 1 {
        for key in keys {
            db.execute(key, [])?;
        }
    }
    Ok(Opened { db, plain, keyed, changing, log })
}

/// Makes and drops indexes, over and over.
fn change_indexes(documents: &Collection) -> Result<()> {
    loop {
        documents.index("of")?;
        documents.index_unique("v.w")?;
        thread::sleep(Duration::from_millis(3));
        documents.index_text(["text", "w"])?;
        documents.drop_index("v.w")?;
        documents.index(["of", "u"])?;
        documents.drop_index("of")?;
        thread::sleep(Duration::from_millis(3));
        documents.drop_index(["of", "u"])?;
        documents.drop_index_text(["text", "w"])?;
    }
}

/// A document of a step.
fn document(w: i64, n: i64, u: i64) -> Json {
    json!({"u": u, "of": n, "w": w, "v": [{"w": u}, {"w": format!("{u}")}], "text": format!("step {n} of {w}")})
}

/// Compares what the indexes find with a look at each document.
fn compare(documents: &Collection) -> Tested {
    let begun = Instant::now();
    while documents.indexes()?.iter().any(|index| !index.is_ready) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", documents.indexes()?);
        thread::sleep(Duration::from_millis(1));
    }
    let ids = documents.all().ids()?;
    let mut all: Vec<(i64, Json)> = Vec::with_capacity(ids.len());
    for id in ids {
        all.push((id, documents.get(id)?.ok_or("a document that is listed is not there")?));
    }
    let agree = |filter: String, test: &dyn Fn(&Json) -> bool| -> Tested {
        let found = documents.find(filter.as_str()).ids()?;
        let matching = all.iter().filter(|(_, document)| test(document));
        let expected: Vec<i64> = matching.map(|(id, _)| *id).collect();
        assert_eq!(found, expected, "{}: {filter}", documents.name());
        Ok(())
    };
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for (_, document) in &all {
        let (Some(w), Some(n)) = (document["w"].as_i64(), document["of"].as_i64()) else {
            continue;
        };
        steps.push((w, n));
        let u = &document["u"];
        agree(format!("u = {u}"), &|it| it["u"] == *u)?;
        agree(format!("v.w = {u}"), &|it| it["u"] == *u)?;
        agree(format!("of = {n} AND u = {u}"), &|it| it["u"] == *u)?;
    }
    steps.sort_unstable();
    steps.dedup();
    for (w, n) in steps {
        agree(format!("w = {w} AND of = {n}"), &|it| it["w"] == w && it["of"] == n)?;
        agree(format!("of = {n}"), &|it| it["of"] == n)?;
        let text = format!("step {n} of {w}");
        agree(format!("text MATCHES '{text}'"), &|it| {
            it["text"].as_str().is_some_and(|it| it.contains(&text))
        })?;
    }
    if let Some((_, twice)) = all.iter().find(|(_, document)| document["u"].is_i64()) {
        let refused = documents.insert(&json!({"u": twice["u"]}));
        assert!(matches!(refused, Err(Error::Exists(_))), "{twice}: {refused:?}");
    }
    Ok(())
}

impl Way {
    fn collection(self, of: &Opened) -> &Collection {
        match self {
            Self::Transaction | Self::Batch => &of.plain,
            Self::TransactionWithKeys | Self::BatchWithKeys => &of.keyed,
            Self::Calls => &of.changing,
        }
    }

    /// The number of the last step that was committed.
    fn last(self, of: &Opened) -> Result<i64> {
        let counter = self.collection(of).get(self as i64)?;
        Ok(counter.and_then(|counter| counter["last"].as_i64()).unwrap_or(0))
    }

    /// One step: all of it, or nothing.
    fn step(self, of: &Opened, n: i64) -> Result<()> {
        let (w, documents) = (self as i64, self.collection(of));
        let id = w * OF_WRITER + n * 10;
        let parts = [0, 1].map(|part| (id + part, document(w, n, id + part)));
        let counter = json!({"last": n});
        let old = format!("w = {w} AND of <= {}", n - KEPT);
        match self {
            Self::Transaction | Self::TransactionWithKeys => of.db.transaction(|tx| {
                tx.execute("INSERT INTO ledger VALUES (?, ?)", params![w, n])?;
                tx.execute("DELETE FROM ledger WHERE w = ? AND n <= ?", params![w, n - KEPT])?;
                let mut open = tx.documents(documents)?;
                let [(first, one), (second, other)] = &parts;
                open.insert_as(*first, one)?;
                open.delete_found(&old)?;
                open.upsert(w, &counter)?;
                // The one text by a statement, the other by the library.
                let text = "INSERT INTO {} VALUES (?, ?)".replace("{}", documents.name());
                tx.execute(&text, params![*second, other.to_string()])?;
                Ok::<_, Error>(())
            }),
            Self::Batch | Self::BatchWithKeys => {
                let mut batch = of.db.batch();
                batch.insert(&of.log, &json!({"w": w, "n": n}))?;
                batch.delete(&of.log, (w, n - KEPT))?;
                for (id, document) in &parts {
                    batch.insert_document_as(documents, *id, &json!({"w": w}))?;
                    batch.merge_patch_document(documents, *id, document)?;
                }
                batch.delete_found_documents(documents, &old)?;
                batch.upsert_document(documents, w, &counter)?;
                batch.commit()
            }
            Self::Calls => calls(documents, (w, n), id, &parts),
        }
    }

    /// Checks that exactly the last steps are there, each whole, and that `printed` was one of them.
    fn check(self, of: &Opened, printed: i64) -> Result<i64> {
        let (w, documents, last) = (self as i64, self.collection(of), self.last(of)?);
        assert!(last >= printed, "{self:?}: step {printed} was acknowledged, {last} is the last");
        if let Self::Calls = self {
            check_calls(documents, w, last)?;
            return Ok(last);
        }
        let steps: Vec<i64> = ((last - KEPT + 1).max(1)..=last).collect();
        let ids = |n: &i64| [0, 1].map(|part| w * OF_WRITER + n * 10 + part);
        let expected: Vec<i64> = steps.iter().flat_map(ids).collect();
        let found = documents.find(format!("w = {w}").as_str()).ids()?;
        assert_eq!(found, expected, "{self:?}: other documents than those of whole steps");
        let rows: Vec<i64> = match self {
            Self::Transaction | Self::TransactionWithKeys => {
                let asked = "SELECT n FROM ledger WHERE w = ? ORDER BY n";
                of.db.query(asked, params![w])?.deserialize()?
            }
            Self::Batch | Self::BatchWithKeys => {
                let asked = "SELECT n FROM log WHERE w = ? ORDER BY n";
                of.db.query(asked, params![w])?.deserialize()?
            }
            Self::Calls => steps.clone(),
        };
        assert_eq!(rows, steps, "{self:?}: other rows than those of whole steps");
        Ok(last)
    }
}

/// A step of single calls. What is left of one that was broken off is taken away first.
fn calls(
    documents: &Collection,
    (w, n): (i64, i64),
    id: i64,
    parts: &[(i64, Json); 2],
) -> Result<()> {
    documents.delete_where(format!("w = {w} AND of >= {n}").as_str())?;
    documents.insert_many([2, 3].map(|part| document(w, n, id + part)))?;
    documents.upsert_many(parts.clone())?;
    documents.patch(id, &json!([{"op": "add", "path": "/patched", "value": n}]))?;
    documents.insert(&document(w, n, id + 4))?;
    documents.delete_where(format!("w = {w} AND of <= {}", n - KEPT).as_str())?;
    documents.upsert(w, &json!({"last": n}))
}

/// Checks the steps of single calls: the last ones are whole, and of each call all is there or nothing.
fn check_calls(documents: &Collection, w: i64, last: i64) -> Result<()> {
    let mut found: std::collections::BTreeMap<i64, Vec<i64>> = std::collections::BTreeMap::new();
    for id in documents.find(format!("w = {w}").as_str()).ids()? {
        let document = documents.get(id)?.unwrap_or_default();
        let (n, u) = (document["of"].as_i64().unwrap_or(0), document["u"].as_i64().unwrap_or(0));
        found.entry(n).or_default().push(u - w * OF_WRITER - n * 10);
        let is_patched = document["patched"] == n;
        assert!(is_patched || u % 10 != 0 || n > last, "{document} was not patched");
    }
    for (n, parts) in &mut found {
        parts.sort_unstable();
        let pairs = [[0, 1], [2, 3]].map(|pair| pair.map(|part| parts.contains(&part)));
        // The step after the last was under way, and may have begun to take away the first.
        match *n > last {
            true => assert!(pairs.iter().all(|[one, other]| one == other), "{n}: {parts:?}"),
            false => assert!(*n > last - KEPT, "{n} was taken away before {last}"),
        }
        assert!(*n <= last + 1, "{n} came behind {last}");
    }
    for n in (last - KEPT + 2).max(1)..=last {
        assert_eq!(found.get(&n), Some(&vec![0, 1, 2, 3, 4]), "step {n}, the last is {last}");
    }
    Ok(())
}

/// The child process: does nothing without a directory in the environment.
#[test]
fn child_that_mixes_documents_and_rows_until_it_is_killed() -> Tested {
    let Ok(directory) = std::env::var(DIRECTORY) else { return Ok(()) };
    let opened = open(Path::new(&directory))?;
    thread::scope(|scope| {
        scope.spawn(|| change_indexes(&opened.changing).unwrap());
        for way in WAYS {
            let opened = &opened;
            scope.spawn(move || {
                for n in way.last(opened).unwrap() + 1.. {
                    way.step(opened, n).unwrap();
                    // One write, so that a kill leaves no half line behind a whole one.
                    let line = format!("step {} {n}\n", way as i64);
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
    Ok(())
}

/// Kills a child some time after its first steps; returns the last number that each thread printed.
fn one_round(
    directory: &Path,
    lifetime: Duration,
) -> Result<[i64; WAYS.len()], Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([
            "--exact",
            "mixed_kills::child_that_mixes_documents_and_rows_until_it_is_killed",
            "--nocapture",
        ])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let (begun, first) = std::sync::mpsc::channel();
    let reader = thread::spawn(move || {
        let mut printed = [0; WAYS.len()];
        for line in output.lines().map_while(std::io::Result::ok) {
            let mut words = line.split_whitespace().skip_while(|word| *word != "step").skip(1);
            let number = |word: Option<&str>| word.and_then(|word| word.parse::<i64>().ok());
            if let (Some(way), Some(n)) = (number(words.next()), number(words.next())) {
                if let Some(last) = usize::try_from(way).ok().and_then(|way| printed.get_mut(way)) {
                    *last = n;
                }
                // The parent may not wait any more.
                let _ = begun.send(());
            }
        }
        printed
    });
    // Nothing is sent if the child ends by itself, which the caller finds out.
    let _ = first.recv();
    thread::sleep(lifetime);
    child.kill()?;
    child.wait()?;
    Ok(reader.join().map_err(|_| "the reader broke off")?)
}

#[test]
fn transactions_and_batches_survive_kill_9_whole() -> Tested {
    let number = |name: &str| std::env::var(name).ok().and_then(|told| told.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let mut random = number("REMORA_SEED").unwrap_or(clock);
    println!("REMORA_SEED={random}");
    let directory = tempfile::tempdir()?;
    drop(open(directory.path())?);
    let mut steps = [0; WAYS.len()];
    for round in 0..number("REMORA_CRASH_ROUNDS").unwrap_or(4) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lifetime = Duration::from_millis((random >> 33) % 300);
        let printed = one_round(directory.path(), lifetime)?;
        assert!(printed.iter().any(|last| *last > 0), "round {round}: nothing was written");
        let opened = open(directory.path())?;
        for (way, printed) in WAYS.into_iter().zip(printed) {
            let last = way.check(&opened, printed)?;
            assert!(last >= steps[way as usize], "round {round}: {way:?} lost steps");
            steps[way as usize] = last;
        }
        compare(&opened.plain)?;
        compare(&opened.changing)?;
        // Each key finds every document.
        let all =
            opened.db.query("SELECT COUNT(*) FROM keyed WHERE doc->>'$.u' IS NOT NULL", [])?;
        let by_u = "SELECT COUNT(*) FROM keyed WHERE CAST(doc->>'$.u' AS SIGNED) >= 0";
        let by_of = "SELECT COUNT(*) FROM keyed WHERE CAST(doc->>'$.of' AS SIGNED) >= 0";
        for asked in [by_u, by_of] {
            assert_eq!(opened.db.query(asked, [])?, all, "round {round}: {asked}");
        }
        drop(opened);
        let report = remora_engine::Database::check(directory.path(), &mut |_| {})?;
        assert_eq!(report.problems, [], "round {round}");
        println!("round {round}: steps {steps:?}");
    }
    Ok(())
}
