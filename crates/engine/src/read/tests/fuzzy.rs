//! FUZZY against its definition.

use proptest::prelude::*;

use remora_index::text::{AtomKind, Normalization, atoms};

use super::{
    oracle::{id, texts},
    random::Random,
    searches::{answer, ids, term},
    table::{row, schema, single, view},
};
use crate::{Row, Schema};

fn distance(a: &[char], b: &[char]) -> usize {
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut current = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let exchanged = previous[j] + usize::from(x != y);
            current.push(exchanged.min(previous[j + 1] + 1).min(current[j] + 1));
        }
        previous = current;
    }
    previous[b.len()]
}

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn words_and_runs(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut words, mut runs) = (Vec::new(), vec![String::new()]);
    for (kind, atom) in atoms(text) {
        match kind {
            AtomKind::Word => words.push(atom.to_owned()),
            AtomKind::Character => runs.last_mut().unwrap().push_str(atom),
            AtomKind::Separator => {}
        }
        if kind != AtomKind::Character {
            runs.push(String::new());
        }
    }
    runs.retain(|run| !run.is_empty());
    (words, runs)
}

fn is_alike(schema: &Schema, row: &Row, term: &str, edits: usize) -> bool {
    let term = Normalization::default().apply(term);
    let (words, runs) = words_and_runs(&term);
    schema.texts.iter().any(|index| {
        let texts = texts(index, row);
        if words.is_empty() && runs.is_empty() {
            return texts.iter().any(|text| text.contains(&*term));
        }
        let there: Vec<String> = texts.iter().flat_map(|text| words_and_runs(text).0).collect();
        let near_word = |word: &String| {
            there.iter().any(|other| distance(&letters(word), &letters(other)) <= edits)
        };
        let near_run = |run: &String| {
            texts.iter().any(|text| {
                let (run_letters, text_letters) = (letters(run), letters(text));
                if run_letters.len() <= edits {
                    return text.contains(run);
                }
                let ends = |start| (start..=text_letters.len()).map(move |end| (start, end));
                (0..text_letters.len()).flat_map(ends).any(|(start, end)| {
                    end - start <= run_letters.len() + edits
                        && distance(&run_letters, &text_letters[start..end]) <= edits
                })
            })
        };
        words.iter().all(near_word) && runs.iter().all(near_run)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_fuzzy_search_equals_a_scan(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(30));
        let rows = random.rows(50);
        let segments = 1 + random.below(3);
        let view = view(schema.clone(), random.spread(&rows, segments));
        for _ in 0..12 {
            let text = random.term(&rows);
            let edits = 1 + random.below(2);
            let mut request = term(&text);
            request.limit = 1000;
            request.selection.fuzzy = Some(edits as u8);
            let alike = rows.iter().filter(|row| is_alike(&schema, row, &text, edits));
            let mut expected: Vec<i64> = alike.map(id).collect();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(ids(&answer(&view, &request)), expected, "{:?} {}", text, edits);
        }
    }
}

#[test]
fn misspelled_word_is_found() {
    let rows = vec![row(1, "antikythera", ""), row(2, "東京都庁", ""), row(3, "other", "")];
    let view = single(schema(false), rows);
    let mut request = term("antikithera");
    request.selection.fuzzy = Some(1);
    assert_eq!(ids(&answer(&view, &request)), [1]);
    request = term("東亰都");
    request.selection.fuzzy = Some(1);
    assert_eq!(ids(&answer(&view, &request)), [2]);
}
