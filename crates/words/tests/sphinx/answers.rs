//! What Sphinx answered to queries of every form, valid and broken, over a few documents.

use std::{fmt::Write as _, rc::Rc};

use crate::{
    collection,
    corpus::{Corpus, Document},
    engine::{Found, Options},
};

const ANSWERS: &str = include_str!("../answers/answers.txt");

#[test]
fn queries_mean_what_they_mean_to_sphinx() {
    let (documents, sections) =
        ANSWERS.split_once("[documents]\n").unwrap().1.split_once('[').unwrap();
    let documents: Vec<Document> = documents.lines().map(document).collect();
    let (mut wrong, mut count) = (String::new(), 0);
    for section in sections.split("\n[") {
        let (settings, queries) = section.split_once("]\n").unwrap();
        let settings = settings.trim_start_matches('[').trim_start_matches("settings").split(' ');
        let settings = settings.filter(|setting| !setting.is_empty()).map(str::to_owned).collect();
        let corpus = Corpus {
            fields: vec!["title".to_owned(), "body".to_owned()],
            settings,
            files: Vec::new(),
            documents: documents.clone(),
            vocabulary: Vec::new(),
        };
        let engine = collection::make(&[Rc::new(corpus)]).remove(0);
        let mut lines = queries.lines();
        while let (Some(query), Some(answer)) = (lines.next(), lines.next()) {
            count += 1;
            let ours = match engine.search(query, &Options::default()) {
                Ok(found) => shown(&found),
                Err(error) => format!("error {error}"),
            };
            let theirs = answer.strip_prefix("=> ").unwrap().trim_end();
            if ours.trim_end() != theirs {
                write!(wrong, "{query}\n   theirs {theirs}\n   ours   {ours}\n").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{wrong}", wrong.lines().count() / 3);
}

fn document(line: &str) -> Document {
    let mut parts = line.split('\t').map(str::to_owned);
    let id = parts.next().unwrap().parse().unwrap();
    Document { id, fields: parts.collect() }
}

fn shown(found: &Found) -> String {
    let mut out = "rows ".to_owned();
    let rows: Vec<String> =
        found.rows.iter().map(|(id, weight)| format!("{id}:{weight}")).collect();
    let words = found.words.iter();
    let words: Vec<String> = words.map(|(word, n, hits)| format!("{word}/{n}/{hits}")).collect();
    write!(out, "{} words {}", rows.join(" "), words.join(" ")).unwrap();
    if let Some(warning) = &found.warning {
        write!(out, "  WARN {warning}").unwrap();
    }
    out
}
