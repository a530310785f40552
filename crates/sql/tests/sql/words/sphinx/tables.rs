//! A corpus in tables of every kind, as an engine of the comparison.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use remora_sql::Session;
use tokio::{runtime::Runtime, task::JoinSet};

use super::{
    super::support::{Answer, Server, run},
    collection::Collection,
    corpus::{Corpus, Document},
    engine::{Engine, Found, Idf, Make, Options, Ranker, Sort},
};

/// The numbers of parts of distributed tables.
const PARTS: [usize; 3] = [2, 3, 8];
/// How many sessions ask at the same time.
const SESSIONS: [usize; 3] = [1, 2, 4];
/// Rows of one INSERT.
const BATCH: usize = 200;
/// The id of the first row that is deleted again. A corpus has greater ones now and then, and none near it.
const GONE: u64 = 1 << 50;

/// Tables with the same rows.
pub struct Tables {
    runtime: Arc<Runtime>,
    server: Server,
    /// A session outside of transactions.
    session: RefCell<Session>,
    /// One whose transaction has written the rows of the table `own`.
    writing: RefCell<Session>,
    /// Sessions that ask at the same time.
    others: RefCell<Vec<Session>>,
    model: Collection,
}

/// Tables for each corpus.
pub fn make() -> Box<Make> {
    let runtime = Arc::new(Runtime::new().unwrap());
    Box::new(move |corpora: &[Rc<Corpus>]| {
        let tables =
            |corpus: &Rc<Corpus>| Box::new(Tables::new(&runtime, corpus)) as Box<dyn Engine>;
        corpora.iter().map(tables).collect()
    })
}

impl Tables {
    fn new(runtime: &Arc<Runtime>, corpus: &Corpus) -> Self {
        let server = Server::new();
        let [mut session, mut writing] = [server.session(), server.session()];
        let others = (0..SESSIONS[2]).map(|_| server.session()).collect();
        runtime.block_on(async {
            fill(&mut session, corpus).await;
            let own = transaction(corpus);
            for (place, statement) in own.iter().enumerate() {
                // The first ones are committed before.
                let session = if place < 2 { &mut session } else { &mut writing };
                all(session, &[statement]).await;
            }
            for session in [&mut session, &mut writing] {
                all(session, &["SET sql_dialect = 'sphinx'"]).await;
            }
        });
        let this = Self {
            runtime: Arc::clone(runtime),
            server,
            session: RefCell::new(session),
            writing: RefCell::new(writing),
            others: RefCell::new(others),
            model: Collection::new(corpus),
        };
        for session in this.others.borrow_mut().iter_mut() {
            this.runtime.block_on(all(session, &["SET sql_dialect = 'sphinx'"]));
        }
        this
    }

    /// The answers of all tables, each with its name.
    fn answers(&self, query: &str, options: &Options) -> Vec<(String, Result<Found, String>)> {
        let mut names: Vec<String> = ["one", "several"].map(str::to_owned).to_vec();
        names.extend(PARTS.map(|parts| format!("d{parts}")));
        let mut session = self.session.borrow_mut();
        let mut answers: Vec<(String, Result<Found, String>)> = names
            .into_iter()
            .map(|name| {
                let found = self.runtime.block_on(ask(&mut session, &name, query, options));
                (name, found)
            })
            .collect();
        let mut writing = self.writing.borrow_mut();
        let own = self.runtime.block_on(ask(&mut writing, "own", query, options));
        answers.push(("own".to_owned(), own));
        answers.extend(self.at_once(query, options));
        answers
    }

    /// The answers of some sessions that ask at the same time; how many depends on the query.
    fn at_once(&self, query: &str, options: &Options) -> Vec<(String, Result<Found, String>)> {
        let count = SESSIONS[query.len() % SESSIONS.len()];
        let mut others = self.others.borrow_mut();
        let asking: Vec<Session> = others.drain(..count).collect();
        let (back, answers): (Vec<Session>, Vec<_>) = self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for mut session in asking {
                let (query, options) = (query.to_owned(), options.clone());
                tasks.spawn(async move {
                    let found = ask(&mut session, "several", &query, &options).await;
                    (session, (format!("one of {count} sessions"), found))
                });
            }
            tasks.join_all().await.into_iter().unzip()
        });
        others.extend(back);
        answers
    }
}

impl Engine for Tables {
    fn search(&self, query: &str, options: &Options) -> Result<Found, String> {
        let mut session = self.session.borrow_mut();
        self.runtime.block_on(ask(&mut session, "one", query, options))
    }

    fn check(&self, query: &str, options: &Options) -> Result<(), String> {
        let expected = self.model.search(query, options);
        for (name, found) in self.answers(query, options) {
            if found != expected {
                return Err(format!("{name}: {found:?}\n  the model: {expected:?}"));
            }
        }
        Ok(())
    }
}

/// The same rows in tables of one segment, of several, and in parts.
async fn fill(session: &mut Session, corpus: &Corpus) {
    let definition = definition(corpus);
    all(session, &[&format!("CREATE TABLE one {definition}")]).await;
    insert(session, "one", corpus.documents.iter()).await;
    all(session, &["OPTIMIZE TABLE one", &format!("CREATE TABLE several {definition}")]).await;
    let (old, gone) = others(corpus);
    for (place, part) in corpus.documents.chunks(BATCH).enumerate() {
        // Every second batch has other contents first, and rows that are deleted again.
        if place % 2 == 0 {
            let ids = part.iter().map(|document| document.id);
            let before: Vec<Document> = ids.zip(&old).map(|(id, it)| with_id(it, id)).collect();
            insert(session, "several", before.iter().chain(&gone)).await;
        }
        insert(session, "several", part.iter()).await;
        all(session, &[&format!("DELETE FROM several WHERE id >= {GONE}")]).await;
    }
    for parts in PARTS {
        let mut create = format!("CREATE TABLE d{parts} type='distributed'");
        for part in 0..parts {
            let name = format!("d{parts}p{part}");
            all(session, &[&format!("CREATE TABLE {name} {definition}")]).await;
            insert(session, &name, corpus.documents.iter().skip(part).step_by(parts)).await;
            create += &format!(" local='{name}'");
        }
        all(session, &[&create]).await;
    }
    all(session, &[&format!("CREATE TABLE own {definition}")]).await;
}

/// Statements after which a transaction has the rows of the corpus: some were there, some are changed, some are new,
/// and others are deleted.
fn transaction(corpus: &Corpus) -> Vec<String> {
    let (old, gone) = others(corpus);
    let kept = corpus.documents.iter().enumerate().filter(|(place, _)| place % 3 == 0);
    let changed = corpus.documents.iter().enumerate().filter(|(place, _)| place % 3 == 1);
    let before: Vec<Document> =
        changed.zip(old.iter().cycle()).map(|((_, it), old)| with_id(old, it.id)).collect();
    let committed = kept.map(|(_, document)| document).chain(&before).chain(&gone);
    let committed: Vec<&Document> = committed.collect();
    let written: Vec<&Document> = corpus
        .documents
        .iter()
        .enumerate()
        .filter(|(place, _)| place % 3 != 0)
        .map(|(_, document)| document)
        .collect();
    let mut statements = vec![replace("own", &committed), "DO 0".to_owned(), "BEGIN".to_owned()];
    statements.push(format!("DELETE FROM own WHERE id >= {GONE}"));
    if !written.is_empty() {
        statements.push(replace("own", &written));
    }
    statements
}

/// Contents that rows had before, and rows that are deleted again, of the same words.
fn others(corpus: &Corpus) -> (Vec<Document>, Vec<Document>) {
    let fields = |from: usize| -> Vec<String> {
        let word = |place: usize| corpus.vocabulary[place % corpus.vocabulary.len()].clone();
        (0..corpus.fields.len()).map(|field| [word(from + field), word(field)].join(" ")).collect()
    };
    let document = |number: usize| Document { id: GONE + number as u64, fields: fields(number) };
    ((0..BATCH).map(document).collect(), (0..9).map(document).collect())
}

fn with_id(document: &Document, id: u64) -> Document {
    Document { id, ..document.clone() }
}

/// The columns and settings of a table.
fn definition(corpus: &Corpus) -> String {
    let columns: String = corpus.fields.iter().map(|field| format!("{field} TEXT, ")).collect();
    let mut text = format!(
        "(id BIGINT UNSIGNED PRIMARY KEY, {columns}attribute INT UNSIGNED NOT NULL, share FLOAT NOT NULL, \
         large BIGINT NOT NULL) words='{}'",
        corpus.fields.join(",")
    );
    for line in &corpus.settings {
        let (name, value) = line.split_once(" = ").unwrap();
        text += &format!(" {name}='{value}'");
    }
    text
}

async fn insert<'d>(
    session: &mut Session,
    table: &str,
    documents: impl Iterator<Item = &'d Document>,
) {
    let documents: Vec<&Document> = documents.collect();
    for part in documents.chunks(BATCH * 5) {
        all(session, &[&replace(table, part)]).await;
    }
}

fn replace(table: &str, documents: &[&Document]) -> String {
    let row = |document: &&Document| {
        let [attribute, share, large] = document.columns();
        let fields: String = document.fields.iter().map(|text| format!("'{text}', ")).collect();
        format!("({}, {fields}{attribute}, {share}, {large})", document.id)
    };
    let rows: Vec<String> = documents.iter().map(row).collect();
    format!("REPLACE INTO {table} VALUES {}", rows.join(", "))
}

async fn all(session: &mut Session, statements: &[&str]) {
    for statement in statements {
        if let Err(error) = run(session, statement).await {
            let start: String = statement.chars().take(300).collect();
            panic!("{start}: {error}");
        }
    }
}

/// The answer of a table and of SHOW META after it.
async fn ask(
    session: &mut Session,
    table: &str,
    query: &str,
    options: &Options,
) -> Result<Found, String> {
    let prefix = format!("table {table}: ");
    let bare = |error: remora_sql::Error| {
        error.message.strip_prefix(&prefix).unwrap_or(&error.message).to_owned()
    };
    let rows = run(session, &statement(table, query, options)).await.map_err(bare)?;
    let meta = run(session, "SHOW META").await.map_err(bare)?;
    let mut found = Found { rows: pairs(&rows.sets[0]), ..Found::default() };
    for row in &meta.sets[0].rows {
        let [name, value] = &row[..] else { panic!("{row:?}") };
        let number = || value.parse::<u64>().unwrap();
        match name.split('[').next().unwrap() {
            "total" => found.total = number(),
            "total_found" => found.total_found = number(),
            "warning" => found.warning = Some(value.clone()),
            "keyword" => found.words.push((value.clone(), 0, 0)),
            "docs" => found.words.last_mut().unwrap().1 = number(),
            "hits" => found.words.last_mut().unwrap().2 = number(),
            _ => {}
        }
    }
    Ok(found)
}

fn pairs(answer: &Answer) -> Vec<(u64, u32)> {
    let pair = |row: &Vec<String>| (row[0].parse().unwrap(), row[1].parse::<i64>().unwrap() as u32);
    answer.rows.iter().map(pair).collect()
}

fn statement(table: &str, query: &str, options: &Options) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let Options { ranker, offset, limit, max_matches, cutoff, .. } = options;
    let mut text = format!(
        "SELECT id, WEIGHT() FROM {table} WHERE MATCH('{}') LIMIT {offset}, {limit} OPTION max_matches={max_matches}",
        quoted(query)
    );
    assert_eq!((*cutoff, &options.sort), (0, &Sort::Relevance));
    text += &match ranker {
        Ranker::Expression(expression) => format!(", ranker=expr('{}')", quoted(expression)),
        named => format!(", ranker={}", name(named)),
    };
    if !options.field_weights.is_empty() {
        let weights = options.field_weights.iter().map(|(name, weight)| format!("{name}={weight}"));
        text += &format!(", field_weights=({})", weights.collect::<Vec<_>>().join(", "));
    }
    if let Some(weight) = options.index_weight {
        text += &format!(", index_weights=({table}={weight})");
    }
    let Idf { plain, divided, .. } = options.idf;
    let idf = if plain { "plain" } else { "normalized" };
    let division = if divided { "tfidf_normalized" } else { "tfidf_unnormalized" };
    text + &format!(", idf='{idf},{division}'")
}

fn name(ranker: &Ranker) -> &'static str {
    match ranker {
        Ranker::ProximityBm25 => "proximity_bm25",
        Ranker::Bm25 => "bm25",
        Ranker::None => "none",
        Ranker::WordCount => "wordcount",
        Ranker::Proximity => "proximity",
        Ranker::MatchAny => "matchany",
        Ranker::FieldMask => "fieldmask",
        Ranker::Sph04 | Ranker::Expression(_) => "sph04",
    }
}
