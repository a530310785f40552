//! The answers to all queries: compared, and written in the format that `remora compare` reads.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result};
use serde::Serialize;

use super::{
    client::{Client, values},
    queries::{Kind, Query, statement},
    servers::{REMORA, Server},
};

/// A server's answer.
#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    query: String,
    total_found: u64,
    /// Ids and weights; Sphinx's weights are unsigned 32-bit numbers.
    rows: Vec<(u64, u32)>,
}

/// A server and how to query it.
pub struct SearchTarget<'s> {
    /// The server.
    pub server: &'s Server,
    /// The table or index that is queried.
    pub index: &'s str,
    /// The statement's `OPTION` clause.
    pub options: String,
    /// The name in file names.
    pub label: &'s str,
}

/// The agreement of one side's answers with the first side's.
#[derive(Debug, Serialize)]
pub struct Agreement {
    /// The kind of query.
    pub kind: Kind,
    /// The second side.
    pub side: String,
    /// The number of queries.
    pub queries: usize,
    /// Queries with different answers: number found, ids, order or weights.
    pub different: usize,
    /// A description of the first of them.
    pub first: Option<String>,
}

impl Agreement {
    /// Whether answers that must not differ were compared: a Remora's, whatever its parts, or those of one table.
    pub fn is_own(&self) -> bool {
        let Self { side, .. } = self;
        side.starts_with(REMORA) || side.ends_with("-processes") || side.ends_with("one table")
    }

    /// Prints the figures.
    pub fn print(&self) {
        let Self { kind, side, queries, different, first } = self;
        println!(
            "{}, {side}: {different} of {queries} answers differ from those of one index",
            kind.name()
        );
        if let Some(first) = first.as_ref().filter(|_| self.is_own()) {
            println!("  {first}");
        }
    }
}

/// Sends the same queries to all sides, and writes the answers of each to a file in the directory.
/// Returns how far the other sides agree with the first one.
pub fn compare(
    kind: Kind,
    queries: &[Query],
    sides: &[SearchTarget<'_>],
    directory: &Path,
) -> Result<Vec<Agreement>> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut opened = Vec::new();
    for side in sides {
        let path = directory.join(format!("{}-{}.jsonl", kind.name(), side.label));
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        opened.push((side, side.server.connect()?, BufWriter::new(file)));
    }
    let agreement = |side: &SearchTarget<'_>| Agreement {
        kind,
        side: side.label.to_owned(),
        queries: queries.len(),
        different: 0,
        first: None,
    };
    let mut agreements: Vec<Agreement> = sides.iter().skip(1).map(agreement).collect();
    for query in queries {
        let text = kind.text(query);
        let mut answers = Vec::with_capacity(opened.len());
        for (side, client, file) in &mut opened {
            let answer = query_server(client, side, &text)?;
            serde_json::to_writer(&mut *file, &answer)?;
            file.write_all(b"\n")?;
            answers.push(answer);
        }
        let Some((expected, given)) = answers.split_first() else { continue };
        for (agreement, given) in agreements.iter_mut().zip(given) {
            if expected != given {
                agreement.different += 1;
                agreement.first.get_or_insert_with(|| difference(expected, given));
            }
        }
    }
    for (_, _, file) in &mut opened {
        file.flush()?;
    }
    Ok(agreements)
}

/// One side's answers.
pub fn of(kind: Kind, queries: &[Query], side: &SearchTarget<'_>) -> Result<Vec<Answer>> {
    let mut client = side.server.connect()?;
    queries.iter().map(|query| query_server(&mut client, side, &kind.text(query))).collect()
}

/// How far answers agree with the expected ones to the same queries.
pub fn agreement(kind: Kind, side: String, expected: &[Answer], given: &[Answer]) -> Agreement {
    let differing: Vec<_> =
        expected.iter().zip(given).filter(|(expected, given)| expected != given).collect();
    let first = differing.first().map(|(expected, given)| difference(expected, given));
    Agreement { kind, side, queries: expected.len(), different: differing.len(), first }
}

fn query_server(client: &mut Client, side: &SearchTarget<'_>, text: &str) -> Result<Answer> {
    let mut rows = Vec::new();
    client.query_server(&statement(side.index, text, &side.options), &mut |packet| {
        rows.push(row(&values(packet)?)?);
        Ok(())
    })?;
    let told = client.rows("SHOW META LIKE 'total_found'")?;
    let total =
        told.first().and_then(|row| row.get(1)).context("SHOW META tells no total_found")?;
    Ok(Answer { query: text.to_owned(), total_found: total.parse()?, rows })
}

/// Id and weight. Sphinx returns a negative weight modulo 2^32.
fn row(values: &[String]) -> Result<(u64, u32)> {
    let [id, weight] = values else { anyhow::bail!("{} columns, not two", values.len()) };
    let weight: i64 = weight.parse().with_context(|| format!("the weight {weight:?}"))?;
    Ok((id.parse().with_context(|| format!("the id {id:?}"))?, weight as u32))
}

/// Describes the first difference of two answers.
fn difference(expected: &Answer, given: &Answer) -> String {
    let place = expected.rows.iter().zip(&given.rows).position(|(one, other)| one != other);
    let place = place.unwrap_or(expected.rows.len().min(given.rows.len()));
    let at = |answer: &Answer| match answer.rows.get(place) {
        Some((id, weight)) => format!("{id} with {weight}"),
        None => "nothing".to_owned(),
    };
    format!(
        "{}: row {} is {}, not {}; found {}, not {}",
        expected.query,
        place + 1,
        at(given),
        at(expected),
        given.total_found,
        expected.total_found
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(total_found: u64, rows: &[(u64, u32)]) -> Answer {
        Answer { query: "a".into(), total_found, rows: rows.to_vec() }
    }

    #[test]
    fn the_first_row_that_differs_is_told() {
        let expected = answer(3, &[(1, 9), (2, 8)]);
        let said = |given: &Answer| difference(&expected, given);
        assert_eq!(
            said(&answer(3, &[(1, 9), (2, 7)])),
            "a: row 2 is 2 with 7, not 2 with 8; found 3, not 3"
        );
        assert_eq!(
            said(&answer(1, &[(1, 9)])),
            "a: row 2 is nothing, not 2 with 8; found 1, not 3"
        );
        assert_eq!(
            said(&answer(4, &[(1, 9), (2, 8)])),
            "a: row 3 is nothing, not nothing; found 4, not 3"
        );
    }

    #[test]
    fn answers_of_remora_and_of_one_table_must_agree() {
        let expected = [answer(1, &[(1, 9)]), answer(1, &[(2, 9)])];
        let given = [answer(1, &[(1, 9)]), answer(1, &[(2, 8)])];
        let made = |side: &str| agreement(Kind::Any, side.to_owned(), &expected, &given);
        let agreement = made("Remora locals of 4 parts");
        assert_eq!((agreement.queries, agreement.different), (2, 1));
        assert_eq!(
            agreement.first.as_deref(),
            Some("a: row 1 is 2 with 8, not 2 with 9; found 1, not 1")
        );
        let own =
            ["Remora", "8-processes", "searchd one table", "searchd locals of 4 parts", "shards"];
        assert_eq!(own.map(|side| made(side).is_own()), [true, true, true, false, false]);
    }

    #[test]
    fn a_negative_weight_is_sphinxs_modulo() {
        let values = |weight: &str| ["7".to_owned(), weight.to_owned()];
        assert_eq!(row(&values("-1")).unwrap(), row(&values("4294967295")).unwrap());
        assert_eq!(row(&values("1500")).unwrap(), (7, 1_500));
        assert!(row(&values("x")).is_err() && row(&["7".to_owned()]).is_err());
    }

    #[test]
    fn an_answer_is_a_line_that_can_be_compared() {
        let line = serde_json::to_string(&answer(3, &[(1, 9)])).unwrap();
        assert_eq!(line, "{\"query\":\"a\",\"total_found\":3,\"rows\":[[1,9]]}");
    }
}
