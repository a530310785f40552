//! Words of tables that are followed: by settings and by their owner, through schema changes, new copies and restarts.

use std::sync::Arc;

use remora_engine::{Database, KeywordQuery, Options, Selection, TextQuery, Value};
use remora_peers::Kind;
use remora_source::{Error, mysql::Follower, schema_file::DeclaredWords};

use crate::pair::Pair;

const ARTICLES: [&str; 2] = [
    "CREATE TABLE articles (id INT PRIMARY KEY, title VARCHAR(200), body TEXT, year INT)",
    "INSERT INTO articles VALUES (1, 'Coral reefs', 'Reefs of the sea', 2001), \
     (2, 'A wreck', 'Divers found a reef', 2002), (3, 'The sea', NULL, 2003)",
];
/// What is asked for in each field.
const ASKED: [&str; 7] = ["a", "coral", "found", "reef", "reefs", "sea", "wreck"];

fn declared(columns: &[&str], settings: &[(&str, &str)]) -> DeclaredWords {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    DeclaredWords {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        settings: settings.iter().map(pair).collect(),
        files: Vec::new(),
    }
}

fn by_settings(columns: &[&str], settings: &[(&str, &str)]) -> Vec<(String, DeclaredWords)> {
    vec![("shop.articles".to_owned(), declared(columns, settings))]
}

/// How many rows a query by keywords finds.
fn found(pair: &Pair, table: &str, query: &str) -> u64 {
    let query = KeywordQuery { text: query.to_owned(), ..KeywordQuery::default() };
    let text = Some(TextQuery::Keywords(Arc::new(query)));
    let selection = Selection { table: format!("shop.{table}"), text, ..Selection::default() };
    pair.database().count(&selection).unwrap().count
}

/// The number of a table's words and the columns that they are of.
fn fields(pair: &Pair, table: &str) -> Option<(u32, Vec<String>)> {
    let schema = pair.database().schema(&format!("shop.{table}")).unwrap();
    let words = schema.words.as_ref()?;
    let names = words.columns.iter().map(|&place| schema.columns[place].name.clone());
    Some((words.id, names.collect()))
}

/// Checks that the table has words of these columns, and that each word is found in the rows that reading them all
/// finds; the number of the words.
fn holds(pair: &Pair, table: &str, columns: &[&str]) -> u32 {
    let (number, names) = fields(pair, table).unwrap_or_else(|| panic!("no words of {table}"));
    assert_eq!(names, columns, "{table}");
    let schema = pair.database().schema(&format!("shop.{table}")).unwrap();
    for name in columns {
        let place = schema.columns.iter().position(|column| column.name == *name).unwrap();
        let mut texts = Vec::new();
        let visit = &mut |row: Vec<Value>| {
            if let Value::Text(text) = &row[place] {
                texts.push(text.to_lowercase());
            }
            Ok(())
        };
        pair.database().scan(&schema.name, visit).unwrap();
        for asked in ASKED {
            let has = |text: &&String| text.split(' ').any(|word| word == asked);
            let expected = texts.iter().filter(has).count() as u64;
            let query = format!("@{name} {asked}");
            assert_eq!(found(pair, table, &query), expected, "{table}: {query} in {texts:?}");
        }
    }
    number
}

/// What the status tells of the table's words, and how often it was copied.
fn state_of(pair: &Pair, table: &str) -> (String, u64) {
    let name = format!("shop.{table}");
    let tables = pair.status().tables;
    // It is not shown for a moment where a new copy begins.
    let status = tables.into_iter().find(|status| status.table == name);
    status.map_or_else(Default::default, |status| {
        let copies = status.copied.map_or(0, |copied| copied.times);
        (status.words_missing.unwrap_or_default(), copies)
    })
}

fn words_by_settings_follow_the_source(kind: Kind) {
    let mut pair = Pair::start_with(kind, &[], &ARTICLES, |settings| {
        settings.words = by_settings(&["title", "body"], &[]);
    });
    pair.compare();
    let number = holds(&pair, "articles", &["title", "body"]);
    assert_eq!((found(&pair, "articles", "reef"), found(&pair, "articles", "sea")), (1, 2));
    for statement in [
        "INSERT INTO articles VALUES (4, 'Reef fish', 'sea', 2004), (5, 'a', 'a wreck', 2005)",
        "UPDATE articles SET body = 'found no reef' WHERE id = 3",
        "DELETE FROM articles WHERE id = 2",
        // One column more before the others, and another name: the words stand.
        "ALTER TABLE articles ADD COLUMN note TEXT FIRST",
        "UPDATE articles SET note = 'reef' WHERE id < 4",
    ] {
        pair.run(statement);
        pair.compare();
        assert_eq!(holds(&pair, "articles", &["title", "body"]), number, "{statement}");
    }
    assert_eq!(state_of(&pair, "articles"), (String::new(), 1));
    pair.run("ALTER TABLE articles CHANGE title headline VARCHAR(200)");
    pair.run("INSERT INTO articles VALUES (NULL, 6, 'Coral', 'sea', 2006)");
    pair.compare();
    assert_eq!(holds(&pair, "articles", &["headline", "body"]), number);
    assert!(state_of(&pair, "articles").0.contains("\"title\" is \"headline\""));
    columns_go_and_come(&mut pair, number);
    names_keep_words(&mut pair);
}

/// Columns that are renamed, dropped, no text and made again.
fn columns_go_and_come(pair: &mut Pair, number: u32) {
    // As it is after a restart: the settings have the old name.
    pair.close();
    pair.open();
    pair.compare();
    assert_eq!(holds(pair, "articles", &["headline", "body"]), number);
    pair.run("ALTER TABLE articles DROP COLUMN body");
    pair.compare();
    assert_ne!(holds(pair, "articles", &["headline"]), number);
    let (missing, copies) = state_of(pair, "articles");
    assert!(missing.contains("no column \"body\""), "{missing}");
    assert_eq!(copies, 0);
    // Types for which stored rows cannot stay: the table is copied beside.
    pair.run("UPDATE articles SET headline = id");
    pair.run("ALTER TABLE articles MODIFY headline INT");
    pair.compare();
    assert_eq!(fields(pair, "articles"), None);
    let (missing, copies) = state_of(pair, "articles");
    assert!(missing.contains("no text") && missing.contains("no column is left"), "{missing}");
    assert_eq!(copies, 1);
    pair.run("ALTER TABLE articles MODIFY headline VARCHAR(300) CHARACTER SET utf8mb4");
    pair.compare();
    holds(pair, "articles", &["headline"]);
    pair.run("ALTER TABLE articles ADD COLUMN body TEXT");
    pair.run("TRUNCATE TABLE articles");
    pair.run("INSERT INTO articles VALUES (NULL, 1, 'Coral reefs', 2001, 'a wreck')");
    pair.compare();
    holds(pair, "articles", &["headline", "body"]);
}

/// A table is renamed, and another made under its name.
fn names_keep_words(pair: &mut Pair) {
    // A name keeps its words, and gives them to the table that had it.
    pair.run("RENAME TABLE articles TO old");
    pair.run("CREATE TABLE articles (id INT PRIMARY KEY, body TEXT, title TEXT)");
    pair.run("INSERT INTO articles VALUES (1, 'found a reef', 'sea')");
    pair.compare();
    holds(pair, "old", &["headline", "body"]);
    holds(pair, "articles", &["title", "body"]);
    assert_eq!(state_of(pair, "articles").0, "");
}

#[test]
fn words_by_settings_follow_a_mariadb() {
    words_by_settings_follow_the_source(Kind::MariaDb1011);
}

#[test]
fn words_by_settings_follow_a_mysql() {
    words_by_settings_follow_the_source(Kind::MySql97);
}

#[test]
fn changed_settings_reindex_existing_rows() {
    let mut pair = Pair::start(Kind::MariaDb1011, &ARTICLES);
    pair.compare();
    assert_eq!(fields(&pair, "articles"), None);
    for (settings, columns, infix, missing) in [
        (by_settings(&["title", "body"], &[]), &["title", "body"][..], 0, ""),
        (by_settings(&["body", "title"], &[]), &["body", "title"], 0, ""),
        (by_settings(&["body"], &[("min_infix_len", "2")]), &["body"], 2, ""),
        (by_settings(&["text", "body"], &[]), &["body"], 0, "no column \"text\""),
        (by_settings(&["year", "title"], &[]), &["title"], 0, "\"year\" is Int(32) and no text"),
    ] {
        pair.close();
        pair.run("UPDATE articles SET body = CONCAT(body, ' a') WHERE id = 1");
        pair.settings.words = settings;
        pair.open();
        pair.compare();
        holds(&pair, "articles", columns);
        assert_eq!(found(&pair, "articles", "*ee*"), infix, "{columns:?}");
        let (told, copies) = state_of(&pair, "articles");
        assert!(told.contains(missing) && told.is_empty() == missing.is_empty(), "{told}");
        assert_eq!(copies, 0, "rows were copied for {columns:?}");
    }
    pair.close();
    pair.settings.words = Vec::new();
    pair.open();
    pair.compare();
    assert_eq!(fields(&pair, "articles"), None);
    // Who begins to follow is told at once.
    pair.settings.words = by_settings(&["text", "body"], &[]);
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    let error = Follower::start(database, pair.settings.clone()).err().unwrap().to_string();
    assert!(error.contains("shop.articles") && error.contains("\"text\""), "{error}");
}

fn declare(pair: &Pair, words: Option<DeclaredWords>) {
    pair.follower().declare_words("shop.articles", words).unwrap();
}

fn refused(pair: &Pair, table: &str, words: DeclaredWords, part: &str) {
    let error = pair.follower().declare_words(table, Some(words)).err();
    let is_told = matches!(&error, Some(Error::Setting(message)) if message.contains(part));
    assert!(is_told, "{error:?} / {part}");
}

fn owners_declare_words(kind: Kind) {
    let mut pair = Pair::start(kind, &ARTICLES);
    pair.compare();
    let words = declared(&["title", "body"], &[("morphology", "stem_en")]);
    refused(&pair, "shop.articles", declared(&["text"], &[]), "\"text\"");
    refused(&pair, "shop.articles", declared(&["year"], &[]), "\"year\" is Int(32)");
    refused(&pair, "shop.articles", declared(&["title"], &[("morphology", "x")]), "morphology");
    refused(&pair, "shop.others", words.clone(), "shop.others is not followed");
    assert_eq!(fields(&pair, "articles"), None);
    pair.run("INSERT INTO articles VALUES (4, 'reef', 'reefs', 2004)");
    declare(&pair, Some(words.clone()));
    pair.compare();
    // Stemmed: `reefs` is `reef`.
    assert_eq!(found(&pair, "articles", "reef"), 3);
    pair.run("INSERT INTO articles VALUES (5, 'the reefs', NULL, 2005)");
    pair.compare();
    assert_eq!(found(&pair, "articles", "reef"), 4);
    assert_eq!(state_of(&pair, "articles"), (String::new(), 1));
    // Where nothing is applied meanwhile.
    pair.follower().stop().unwrap();
    declare(&pair, Some(declared(&["body", "title"], &[])));
    holds(&pair, "articles", &["body", "title"]);
    pair.follower().resume().unwrap();
    pair.run("ALTER TABLE articles CHANGE body content TEXT");
    pair.compare();
    holds(&pair, "articles", &["content", "title"]);
    pair.close();
    pair.open();
    pair.compare();
    holds(&pair, "articles", &["content", "title"]);
    assert_eq!(state_of(&pair, "articles"), (String::new(), 0));
    pair.follower().sync("shop.articles").unwrap();
    pair.wait("a new copy", |_| state_of(&pair, "articles").1 == 1);
    pair.compare();
    holds(&pair, "articles", &["content", "title"]);
    another_takes_the_name(&mut pair);
    settings_count_before(&mut pair);
}

/// As tools change schemas.
fn another_takes_the_name(pair: &mut Pair) {
    pair.run("CREATE TABLE _articles_new LIKE articles");
    pair.run("ALTER TABLE _articles_new ADD COLUMN more INT, MODIFY id BIGINT");
    pair.run("INSERT INTO _articles_new SELECT *, 7 FROM articles");
    pair.compare();
    assert_eq!(fields(pair, "_articles_new"), None);
    pair.run("RENAME TABLE articles TO _articles_old, _articles_new TO articles");
    pair.run("UPDATE articles SET content = 'found coral' WHERE id = 2");
    pair.compare();
    holds(pair, "articles", &["content", "title"]);
    holds(pair, "_articles_old", &["content", "title"]);
}

/// What settings say counts before that, and nobody changes it here; without them it counts again.
fn settings_count_before(pair: &mut Pair) {
    pair.close();
    pair.settings.words = by_settings(&["title"], &[]);
    pair.open();
    pair.compare();
    holds(pair, "articles", &["title"]);
    refused(pair, "shop.articles", declared(&["content"], &[]), "declared in the settings");
    pair.close();
    pair.settings.words = Vec::new();
    pair.open();
    pair.compare();
    holds(pair, "articles", &["content", "title"]);
    declare(pair, None);
    assert_eq!(fields(pair, "articles"), None);
    pair.close();
    pair.open();
    pair.compare();
    assert_eq!(fields(pair, "articles"), None);
    holds(pair, "_articles_old", &["content", "title"]);
}

#[test]
fn ranked_search_is_declared_locally_for_a_mariadb() {
    owners_declare_words(Kind::MariaDb1011);
}

#[test]
fn ranked_search_is_declared_locally_for_a_mysql() {
    owners_declare_words(Kind::MySql97);
}
