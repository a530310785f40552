//! Random searches, answered here and by reading every text that the source has.

use std::collections::BTreeMap;

use remora_engine::{Database, Schema, SearchRequest, Selection, TextQuery};

use crate::{
    random::Random,
    rows::{Rows, written},
};

/// Asks `count` random searches of every table and compares all rows of every answer.
pub fn check(
    engine: &Database,
    source: &BTreeMap<String, Rows>,
    random: &mut Random,
    count: usize,
) -> Option<String> {
    // Rows without a key have no name here and there.
    let has_key =
        |name: &str| engine.schema(name).is_ok_and(|schema| schema.hidden_key().is_none());
    source.iter().filter(|(name, _)| has_key(name)).find_map(|(name, rows)| {
        let schema = engine.schema(name).unwrap();
        let texts = Texts::new(&schema, rows);
        if texts.all.is_empty() {
            return None;
        }
        (0..count).find_map(|_| {
            let query = texts.random_query(random, 2);
            let expected = texts.matches(&query);
            let found = answer(engine, &schema, &query);
            (found != expected).then(|| {
                format!(
                    "{name}: {query:?} has {} rows, by reading all {}",
                    found.len(),
                    expected.len()
                )
            })
        })
    })
}

/// The keys that the engine finds, sorted.
fn answer(engine: &Database, schema: &Schema, query: &TextQuery) -> Vec<Vec<u8>> {
    let selection =
        Selection { table: schema.name.clone(), text: Some(query.clone()), ..Selection::default() };
    let request = SearchRequest { selection, limit: 1000, ..SearchRequest::default() };
    let mut keys = Vec::new();
    loop {
        let reply =
            engine.search(&SearchRequest { offset: keys.len(), ..request.clone() }).unwrap();
        for hit in &reply.hits {
            let parts: Vec<_> = hit.key.iter().map(|part| written(part).unwrap()).collect();
            keys.push(parts.join(&0));
        }
        if reply.hits.is_empty() || keys.len() as u64 >= reply.total {
            assert_eq!(keys.len() as u64, reply.total, "{query:?}");
            keys.sort();
            return keys;
        }
    }
}

/// The normalised texts of a table: of each row its key, and the texts of each index.
struct Texts {
    keys: Vec<Vec<u8>>,
    /// By row: every text that a term may lie in.
    of_rows: Vec<Vec<String>>,
    /// All that are not empty.
    all: Vec<String>,
    schema: Schema,
}

impl Texts {
    fn new(schema: &Schema, rows: &Rows) -> Self {
        let place = |column: usize| {
            let name = schema.columns[column].name.to_lowercase();
            rows.columns.iter().position(|column| *column == name).unwrap()
        };
        let key: Vec<_> = schema.primary_key.iter().map(|&column| place(column)).collect();
        let mut texts =
            Self { keys: Vec::new(), of_rows: Vec::new(), all: Vec::new(), schema: schema.clone() };
        for row in &rows.rows {
            let parts: Vec<_> = key.iter().map(|&part| row[part].clone().unwrap()).collect();
            texts.keys.push(parts.join(&0));
            let columns = schema.texts.iter().flat_map(|text| {
                text.columns.iter().map(|&column| (&text.normalization, place(column)))
            });
            let of_row: Vec<_> = columns
                .filter_map(|(normalization, place)| {
                    let text = String::from_utf8(row[place].clone()?).unwrap();
                    Some(normalization.apply(&text).into_owned())
                })
                .collect();
            texts.all.extend(of_row.iter().filter(|text| !text.trim().is_empty()).cloned());
            texts.of_rows.push(of_row);
        }
        texts
    }

    fn random_query(&self, random: &mut Random, depth: usize) -> TextQuery {
        let part = |random: &mut Random| self.random_query(random, depth - 1);
        match random.below(if depth == 0 { 1 } else { 6 }) {
            0..=2 => TextQuery::Term(self.random_term(random)),
            3 => TextQuery::And(vec![part(random), part(random)]),
            4 => TextQuery::Or(vec![part(random), part(random)]),
            _ => TextQuery::And(vec![part(random), TextQuery::Not(Box::new(part(random)))]),
        }
    }

    /// A piece of some text, now and then one that nothing has.
    fn random_term(&self, random: &mut Random) -> String {
        let characters: Vec<char> = random.pick(&self.all).chars().collect();
        let start = random.below(characters.len());
        let length = 1 + random.below(8);
        let mut term: String = characters[start..].iter().take(length).collect();
        if random.chance(5) {
            term.push('ж');
        }
        if term.trim().is_empty() { "coral".to_owned() } else { term }
    }

    fn matches(&self, query: &TextQuery) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = (0..self.keys.len())
            .filter(|&row| self.holds(query, row))
            .map(|row| self.keys[row].clone())
            .collect();
        keys.sort();
        keys
    }

    fn holds(&self, query: &TextQuery, row: usize) -> bool {
        match query {
            TextQuery::Term(term) => {
                let term = self.schema.texts[0].normalization.apply(term).into_owned();
                self.of_rows[row].iter().any(|text| text.contains(&term))
            }
            TextQuery::And(parts) => parts.iter().all(|part| self.holds(part, row)),
            TextQuery::Or(parts) => parts.iter().any(|part| self.holds(part, row)),
            TextQuery::Not(part) => !self.holds(part, row),
            TextQuery::Piece(_) | TextQuery::Keywords(_) => {
                unreachable!("neither pieces nor keywords are asked for here")
            }
        }
    }
}
