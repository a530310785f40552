//! A FULLTEXT key over texts at paths of documents: what MATCH finds by it is what a look at every document finds, and what
//! is told of the key is true.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use remora_engine::{Definition, PathDef, Schema};
use remora_sql::Session;

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const WORDS: [&str; 10] =
    ["reef", "Reefs", "sea", "fish", "under", "the", "a", "coral", "École", "x1"];

/// The texts at `title` and at `parts.text` of a document.
struct Texts {
    id: u64,
    title: Vec<String>,
    parts: Vec<String>,
}

/// A text, and the words that it has in lower case.
fn text(random: &mut Random) -> String {
    let words: Vec<&str> = (0..random.below(5)).map(|_| random.choose(&WORDS)).collect();
    words.join(random.choose(&[" ", ", ", " - ", "/"]))
}

fn document(random: &mut Random, id: u64) -> (Texts, String) {
    let (title, title_json) = match random.below(8) {
        0 => (Vec::new(), "5".to_owned()),
        1 => (Vec::new(), "null".to_owned()),
        2 => {
            let texts = vec![text(random), text(random)];
            let json = serde_json::to_string(&texts).unwrap();
            (texts, json)
        }
        _ => {
            let one = text(random);
            let json = serde_json::to_string(&one).unwrap();
            (vec![one], json)
        }
    };
    let parts: Vec<String> = (0..random.below(4)).map(|_| text(random)).collect();
    let members = parts.iter().map(|it| serde_json::json!({ "text": it, "reef": "sea" }));
    let members = serde_json::Value::Array(members.collect());
    let json =
        format!("{{\"title\": {title_json}, \"parts\": {members}, \"other\": \"reef sea\"}}");
    (Texts { id, title, parts }, json)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// What is asked of texts, each by a look at all of them.
enum Asked {
    Any(Vec<String>),
    Both(String, String),
    Without(String, String),
    Beginning(String),
    Phrase(String, String),
}

impl Asked {
    fn random(random: &mut Random) -> Self {
        let mut word = || random.choose(&WORDS).to_owned();
        let (one, other) = (word(), word());
        match random.below(5) {
            0 => Self::Any(vec![one, other]),
            1 => Self::Both(one, other),
            2 => Self::Without(one, other),
            3 => Self::Beginning(one.chars().take(2).collect()),
            _ => Self::Phrase(one, other),
        }
    }

    fn against(&self) -> String {
        match self {
            Self::Any(words) => format!("'{}'", words.join(" ")),
            Self::Both(one, other) => format!("'+{one} +{other}' IN BOOLEAN MODE"),
            Self::Without(one, other) => format!("'+{one} -{other}' IN BOOLEAN MODE"),
            Self::Beginning(one) => format!("'{one}*' IN BOOLEAN MODE"),
            Self::Phrase(one, other) => format!("'\"{one} {other}\"' IN BOOLEAN MODE"),
        }
    }

    fn finds(&self, texts: &[&String]) -> bool {
        let has = |wanted: &String| {
            let wanted = wanted.to_lowercase();
            texts.iter().any(|text| words(text).contains(&wanted))
        };
        match self {
            Self::Any(words) => words.iter().any(has),
            Self::Both(one, other) => has(one) && has(other),
            Self::Without(one, other) => has(one) && !has(other),
            Self::Beginning(one) => {
                let begins = |word: &String| word.starts_with(&one.to_lowercase());
                texts.iter().any(|text| words(text).iter().any(begins))
            }
            Self::Phrase(one, other) => {
                let pair = [one.to_lowercase(), other.to_lowercase()];
                texts.iter().any(|text| words(text).windows(2).any(|two| two == pair))
            }
        }
    }
}

async fn compare(session: &mut Session, random: &mut Random, all: &[Texts], rounds: usize) {
    let (title, parts) = ("doc->>'$.title'", "JSON_UNQUOTE(JSON_EXTRACT(doc, '$.parts.text'))");
    for _ in 0..rounds {
        let asked = Asked::random(random);
        let both = random.below(2) == 0;
        let of = if both { format!("{parts}, {title}") } else { title.to_owned() };
        let found = all.iter().filter(|it| {
            let more = it.parts.iter().filter(|_| both);
            asked.finds(&it.title.iter().chain(more).collect::<Vec<_>>())
        });
        let mut expected: Vec<u64> = found.map(|texts| texts.id).collect();
        expected.sort_unstable();
        let expected: Vec<String> = expected.iter().map(u64::to_string).collect();
        let matching = format!("MATCH({of}) AGAINST({})", asked.against());
        for condition in [
            matching.clone(),
            format!("{matching} > 0 AND id >= 0"),
            format!("(id < 0 OR {matching})"),
        ] {
            let query = format!("SELECT id FROM books WHERE {condition} ORDER BY id");
            assert_eq!(rows(session, &query).await, expected.join("\n"), "{query}");
        }
        let unindexed = format!(
            "SELECT id FROM (SELECT id, doc FROM books LIMIT 100000) d WHERE {matching} ORDER BY id"
        );
        assert_eq!(rows(session, &unindexed).await, expected.join("\n"), "{unindexed}");
    }
}

async fn insert(session: &mut Session, random: &mut Random, all: &mut Vec<Texts>, count: u64) {
    let mut statement = "REPLACE INTO books VALUES ".to_owned();
    let first = all.len() as u64;
    for id in first..first + count {
        let (texts, json) = document(random, id);
        let comma = if id == first { "" } else { "," };
        write!(statement, "{comma}({id}, '{}')", json.replace('\\', "\\\\")).unwrap();
        all.push(texts);
    }
    run(session, &statement).await.unwrap();
}

/// Waits until all rows are in the indexes of the table's paths.
fn wait(server: &Server) {
    let name = server.database.tables().into_iter().find(|name| name.contains("books")).unwrap();
    let schema = server.database.schema(&name).unwrap();
    schema.paths.iter().for_each(|path| server.database.wait_for_path(&name, path).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_over_texts_at_paths_finds_what_a_look_at_all_documents_finds() {
    let server = Server::new();
    let session = &mut server.session();
    let mut random = Random::seeded();
    let mut all = Vec::new();
    run(session, "CREATE TABLE books (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    insert(session, &mut random, &mut all, 400).await;
    run(session, "CREATE FULLTEXT INDEX ft ON books ((doc->>'$.title'), (doc->>'$.parts.text'))")
        .await
        .unwrap();
    run(session, "ALTER TABLE books ADD FULLTEXT KEY one ((doc->>'$.title'))").await.unwrap();
    compare(session, &mut random, &all, 10).await;
    wait(&server);
    compare(session, &mut random, &all, 40).await;
    insert(session, &mut random, &mut all, 400).await;
    run(session, "DELETE FROM books WHERE id % 7 = 3").await.unwrap();
    all.iter_mut().filter(|it| it.id % 7 == 3).for_each(|it| {
        it.title.clear();
        it.parts.clear();
    });
    compare(session, &mut random, &all, 30).await;
    // Rows of an open transaction are in no index.
    run(session, "BEGIN").await.unwrap();
    run(session, "UPDATE books SET doc = '{\"title\": \"Reef sea\"}' WHERE id % 11 = 4")
        .await
        .unwrap();
    for texts in all.iter_mut().filter(|it| it.id % 11 == 4 && it.id % 7 != 3) {
        (texts.title, texts.parts) = (vec!["Reef sea".to_owned()], Vec::new());
    }
    compare(session, &mut random, &all, 20).await;
    run(session, "COMMIT").await.unwrap();
    run(session, "OPTIMIZE TABLE books").await.unwrap();
    compare(session, &mut random, &all, 30).await;
}

const KEY: &str = "FULLTEXT KEY `ft` ((doc->>'$.title'),(doc->>'$.parts.text')) COMMENT 'both'";
const ASKED: &str = "SELECT id FROM books WHERE MATCH(doc->>'$.parts.text', doc->>'$.title') \
                     AGAINST('+word77 +reef' IN BOOLEAN MODE)";

/// A table with the key, and a row for each number below 500.
async fn numbered(server: &Server) -> Session {
    let mut session = server.session();
    let create = format!("CREATE TABLE books (id INT PRIMARY KEY, doc JSON, t TEXT, {KEY})");
    run(&mut session, &create).await.unwrap();
    let mut insert = "INSERT INTO books (id, doc) VALUES (1000, '{\"title\": 77}')".to_owned();
    for id in 0..500 {
        write!(insert, ", ({id}, '{{\"title\": \"word{id} Reef\", \"n\": {id}}}')").unwrap();
    }
    run(&mut session, &insert).await.unwrap();
    wait(server);
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_told_of_a_key_over_texts_at_paths_is_true() {
    let server = Server::new();
    let session = &mut numbered(&server).await;
    let shown = rows(session, "SHOW CREATE TABLE books").await;
    assert!(shown.contains(KEY), "{shown}");
    let told = rows(
        session,
        "SELECT index_name, seq_in_index, index_type, column_name, expression, index_comment \
         FROM information_schema.statistics WHERE index_name = 'ft' ORDER BY seq_in_index",
    )
    .await;
    let expected = "ft|1|FULLTEXT|NULL|doc->>\\'$.title\\'|both\n\
                    ft|2|FULLTEXT|NULL|doc->>\\'$.parts.text\\'|both";
    assert_eq!(told, expected);
    let told = rows(session, "SHOW INDEX FROM books WHERE Index_type = 'FULLTEXT'").await;
    assert_eq!(told.lines().count(), 2, "{told}");
    let told = run(session, &format!("EXPLAIN {ASKED}")).await.unwrap();
    let answer = told.sets.first().unwrap();
    let column = |name: &str| {
        let place = answer.names().iter().position(|it| *it == name).unwrap();
        answer.rows[0][place].clone()
    };
    assert_eq!([column("type"), column("key"), column("rows")], ["fulltext", "ft", "1"]);
    assert_eq!(rows(session, ASKED).await, "77");
    let scored = "SELECT id, MATCH(doc->>'$.title', doc->>'$.parts.text') \
                  AGAINST('word7 word8 reef') s FROM books WHERE id IN (7, 9, 1000) ORDER BY s DESC, id";
    assert_eq!(rows(session, scored).await, "7|2\n9|1\n1000|0");
    // What SHOW CREATE TABLE prints makes the same table, and so does LIKE.
    run(session, "CREATE TABLE copied LIKE books").await.unwrap();
    let shown = rows(session, "SHOW CREATE TABLE copied").await;
    run(session, "DROP TABLE copied").await.unwrap();
    run(session, shown.split_once('|').unwrap().1).await.unwrap();
    let asked_there = ASKED.replace("books", "copied");
    assert_eq!(rows(session, &asked_there).await, "");
    run(session, "INSERT INTO copied SELECT * FROM books").await.unwrap();
    assert_eq!(rows(session, &asked_there).await, "77");
    // The argument may be an expression.
    run(session, "SET @w = 'word78'").await.unwrap();
    let matching = "MATCH(doc->>'$.title', doc->>'$.parts.text')";
    let asked = format!("SELECT id FROM books WHERE {matching} AGAINST(@w)");
    assert_eq!(rows(session, &asked).await, "78");
    let update = format!("UPDATE books SET t = 'found' WHERE {matching} AGAINST('word79')");
    run(session, &update).await.unwrap();
    assert_eq!(rows(session, "SELECT id FROM books WHERE t = 'found'").await, "79");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_over_texts_at_paths_stays_until_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    {
        let server = Server::at(directory.path());
        numbered(&server).await;
    }
    let server = Server::at(directory.path());
    let session = &mut server.session();
    assert_eq!(rows(session, ASKED).await, "77");
    let told = rows(session, &format!("EXPLAIN {ASKED}")).await;
    assert!(told.contains("fulltext"), "{told}");
    // Also where the table is made anew.
    run(session, "ALTER TABLE books ADD COLUMN f INT FIRST").await.unwrap();
    run(session, "ALTER TABLE books MODIFY id BIGINT").await.unwrap();
    assert_eq!(rows(session, ASKED).await, "77");
    run(session, "DROP INDEX ft ON books").await.unwrap();
    let missing = "1191 Can't find FULLTEXT index matching the column list";
    assert_eq!(rows(session, ASKED).await, missing);
    let name = server.database.tables().into_iter().find(|name| name.contains("books")).unwrap();
    let schema = server.database.schema(&name).unwrap();
    assert!(schema.paths.is_empty(), "{:?}", schema.paths);
}

#[tokio::test]
async fn what_a_text_index_of_documents_cannot_be_is_refused() {
    let server = Server::new();
    let session = &mut server.session();
    let create = "CREATE TABLE books (id INT PRIMARY KEY, doc JSON, other JSON, t TEXT, \
                  FULLTEXT KEY a ((doc->>'$.a')), FULLTEXT KEY t (t))";
    run(session, create).await.unwrap();
    for (parts, code) in [
        ("(LOWER(doc->>'$.a'))", "1235"),
        ("(doc->'$.a')", "1235"),
        ("(doc->>'$.a'), t", "1235"),
        ("(doc->>'$.a'), (other->>'$.a')", "1235"),
        ("(doc->>'$.a[0]')", "1235"),
        ("(doc->>'$.a'), (doc->>'$.\"a\"')", "1235"),
        ("(CAST(doc->>'$.a' AS CHAR(9)))", "1235"),
        ("(doc->>'a')", "3143"),
        ("(missing->>'$.a')", "1054"),
        ("(t->>'$.a')", "1283"),
    ] {
        let told = rows(session, &format!("CREATE FULLTEXT INDEX ft ON books ({parts})")).await;
        assert!(told.starts_with(code), "{parts}: {told}");
    }
    for (of, code) in [
        ("doc->>'$.b'", "1191"),
        ("doc->>'$.a', doc->>'$.b'", "1191"),
        ("other->>'$.a'", "1191"),
        ("doc->>'$.a', t", "1235"),
        ("doc->>'$.a', other->>'$.a'", "1235"),
        ("doc->'$.a'", "1235"),
        ("doc->>'$.a[0]'", "1235"),
        ("missing->>'$.a'", "1054"),
    ] {
        let told =
            rows(session, &format!("SELECT id FROM books WHERE MATCH({of}) AGAINST('x')")).await;
        assert!(told.starts_with(code), "{of}: {told}");
    }
    let told = rows(session, "SELECT 1 FROM books WHERE MATCH(doc->>'$.a') AGAINST(t)").await;
    assert!(told.starts_with("1210"), "{told}");
    let told = rows(
        session,
        "SELECT 1 FROM books WHERE MATCH(doc->>'$.a') AGAINST('x' WITH QUERY EXPANSION)",
    )
    .await;
    assert!(told.starts_with("1235"), "{told}");
    let view = "CREATE VIEW v AS SELECT id FROM books WHERE MATCH(doc->>'$.a') AGAINST('x')";
    let told = rows(session, view).await;
    assert!(told.starts_with("1235"), "{told}");
    let told = rows(session, "ALTER TABLE books DROP COLUMN doc").await;
    assert!(told.starts_with("3837"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_the_library_made_serves_match_and_outlives_the_key() {
    let server = Server::new();
    let session = &mut server.session();
    run(session, "CREATE TABLE books (id INT PRIMARY KEY, doc JSON)").await.unwrap();
    run(
        session,
        "INSERT INTO books VALUES (1, '{\"title\": \"Reef\"}'), (2, '{\"title\": \"Sea\"}')",
    )
    .await
    .unwrap();
    let name = server.database.tables().into_iter().find(|name| name.contains("books")).unwrap();
    let schema = server.database.reader().schema(&name).unwrap();
    let path = PathDef::of_texts(1, vec![vec!["title".to_owned()]]).unwrap();
    let schema = Schema { paths: vec![path.clone()], ..Schema::clone(&schema) };
    server
        .database
        .define(vec![Definition::Alter { schema, fills: Vec::new() }], Vec::new())
        .unwrap();
    let asked = "SELECT id FROM books WHERE MATCH(doc->>'$.title') AGAINST('reef')";
    assert_eq!(rows(session, asked).await, "1");
    run(session, "ALTER TABLE books ADD FULLTEXT KEY ft ((doc->>'$.title'))").await.unwrap();
    assert_eq!(server.database.schema(&name).unwrap().paths.len(), 1);
    assert_eq!(rows(session, asked).await, "1");
    run(session, "ALTER TABLE books DROP KEY ft").await.unwrap();
    assert_eq!(rows(session, asked).await, "1");
}
