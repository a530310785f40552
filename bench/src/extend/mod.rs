//! More rows than there are documents, with natural term statistics.
//!
//! Plain repetition would keep word frequencies but freeze the vocabulary: every rare word would become several times
//! as frequent. So a generated row combines real sentences of neighbouring documents, and its rare words are renamed;
//! each replica of the corpus has its own names.
//!
//! Row `n` depends on the seed and `n` alone, so rows can be generated in any order.

mod check;
mod pool;
mod rename;

use rustc_hash::FxHashMap;

use crate::{corpus::Document, measure::processors, random::SplitMix64};
use pool::Pool;

pub use check::corpus_check;

/// Generated rows are English and Japanese in this ratio: it takes 200,000 English and 66,450 Japanese documents to
/// 1,000,000 and 100,000.
const GROWTH: [(&str, u64); 2] = [("en", 800_000), ("ja", 33_550)];
/// The seed of the random stream.
const SEED: u64 = 20_261_121;
/// Added to a row's number to make its page number; no real page number is as large.
const FIRST_PAGE_ID: u64 = 100_000_000;

/// Generates rows beyond the real ones.
pub struct Extender {
    /// The largest real id; generated rows continue after it.
    last_real: u64,
    pools: Vec<(u64, Pool)>,
}

/// The real documents, followed by generated ones up to `rows` in all.
pub fn extend(mut documents: Vec<Document>, rows: usize) -> Vec<Document> {
    let missing = rows.saturating_sub(documents.len()) as u64;
    let extender = Extender::new(&documents, &GROWTH);
    let numbers: Vec<u64> = (1..=missing).map(|nth| extender.last_real + nth).collect();
    let chunk = numbers.len().div_ceil(processors()).max(1);
    let generated: Vec<Document> = std::thread::scope(|scope| {
        let extender = &extender;
        let workers: Vec<_> = numbers
            .chunks(chunk)
            .map(|part| scope.spawn(|| part.iter().filter_map(|n| extender.row(*n)).collect()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or(Vec::new())).collect()
    });
    documents.extend(generated);
    documents
}

impl Extender {
    /// Learns from real documents; the weights set how often each language is generated.
    pub fn new(documents: &[Document], weights: &[(&str, u64)]) -> Self {
        let mut by_language = FxHashMap::<&str, Vec<&Document>>::default();
        for document in documents {
            by_language.entry(&document.language).or_default().push(document);
        }
        let pools = weights.iter().filter_map(|(language, weight)| {
            by_language.remove(language).map(|documents| (*weight, Pool::new(documents)))
        });
        let last_real = documents.iter().map(|document| document.id).max().unwrap_or(0);
        Self { last_real, pools: pools.collect() }
    }

    /// Row `n`, which must be beyond the real ones; `None` if there is nothing to make it from.
    pub fn row(&self, n: u64) -> Option<Document> {
        let (pool, nth) = self.place(n.checked_sub(self.last_real + 1)?)?;
        let mut random = SplitMix64::new(SEED ^ n);
        let replica = pool.replica(nth);
        let (anchor, text) = pool.compose(nth, &mut random);
        Some(Document {
            id: n,
            language: anchor.language.clone(),
            title: pool.names.rename(&anchor.title, replica),
            text: pool.names.rename(&text, replica),
            year: anchor.year,
            category: anchor.category.clone(),
            page_id: Some(FIRST_PAGE_ID + n),
        })
    }

    /// The pool of the `index`th generated row, and how many of that pool's rows precede it. The languages are spread
    /// evenly.
    fn place(&self, index: u64) -> Option<(&Pool, u64)> {
        let total: u64 = self.pools.iter().map(|(weight, _)| weight).sum();
        // Rows before `index` that belong to the pools after the first.
        let mut rest_before = 0;
        for (weight, pool) in self.pools.iter().skip(1) {
            let up_to =
                |index: u64| (u128::from(index) * u128::from(*weight) / u128::from(total)) as u64;
            if up_to(index + 1) > up_to(index) {
                return Some((pool, up_to(index)));
            }
            rest_before += up_to(index);
        }
        self.pools.first().map(|(_, pool)| (pool, index - rest_before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of eight letters, unique to its number.
    fn word(number: u64) -> String {
        let letter = |digit: u8| char::from(b'a' + digit % 26);
        crate::random::mix(number).to_le_bytes().into_iter().map(letter).collect()
    }

    /// A small corpus of two languages with rare and frequent words.
    fn documents() -> Vec<Document> {
        let sentence = |n: u64| format!("The river {} flows by town number {}.", word(n), n * 7919);
        (1..=60)
            .map(|id| Document {
                id,
                language: if id % 4 == 0 { "ja".into() } else { "en".into() },
                title: format!("River {}", word(id)),
                text: if id % 4 == 0 {
                    format!("川はカワ{}である。日本の川。", "ラ".repeat(id as usize % 7 + 1))
                } else {
                    format!("{} {} It is long.", sentence(id), sentence(id + 100))
                },
                year: Some(1900 + id as i64 % 3),
                ..Default::default()
            })
            .collect()
    }

    #[test]
    fn a_row_depends_on_its_number_alone() {
        let all = extend(documents(), 300);
        let fewer = extend(documents(), 200);
        assert_eq!(all.len(), 300);
        assert_eq!(all[..200], fewer[..]);
        let extender = Extender::new(&documents(), &GROWTH);
        assert_eq!(extender.row(250).as_ref(), all.get(249));
        assert_eq!(extender.row(60), None);
    }

    #[test]
    fn real_rows_come_first_and_ids_go_on() {
        let all = extend(documents(), 100);
        assert_eq!(all[..60], documents()[..]);
        assert!(all.iter().zip(1..).all(|(document, id)| document.id == id));
        assert!(all[60..].iter().all(|d| d.page_id == Some(FIRST_PAGE_ID + d.id)));
    }

    #[test]
    fn languages_keep_their_proportion() {
        let weights = [("en", 3), ("ja", 1)];
        let extender = Extender::new(&documents(), &weights);
        let rows: Vec<Document> = (61..=460).filter_map(|n| extender.row(n)).collect();
        let japanese = rows.iter().filter(|row| row.language == "ja").count();
        assert_eq!((rows.len(), japanese), (400, 100));
    }

    #[test]
    fn rare_words_get_other_names() {
        let all = extend(documents(), 120);
        let real: Vec<&str> = all[..60].iter().map(|document| document.title.as_str()).collect();
        let renamed = all[60..].iter().filter(|d| !real.contains(&d.title.as_str())).count();
        assert!(renamed > 40, "{renamed}");
        assert!(all[60..].iter().all(|d| d.language == "ja" || d.text.starts_with("The river ")));
    }
}
