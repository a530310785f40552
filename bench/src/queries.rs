//! The queries: eleven that are hard in different ways, those of the search-benchmark game, and terms drawn from the
//! corpus by language and frequency. `substrings.rs` draws pieces of any kind.

use std::path::Path;

use anyhow::Result;
use remora_engine::TextQuery;
use rustc_hash::FxHashSet;

use crate::{
    corpus::{Corpus, read_query_texts},
    oracle::rows_of_terms,
    random::SplitMix64,
};

/// The file of the search-benchmark game's queries.
const GAME_FILE: &str = "queries-sbg-en.jsonl.zst";
/// How many queries are drawn per language and frequency band.
const DRAWN_PER_BAND: usize = 200;
/// The number of terms per language that are counted to find terms for all bands.
const CANDIDATES_PER_LANGUAGE: usize = 8_000;
/// The frequency bands: the most rows that contain a term of the band, and the band's name.
const BANDS: [(u64, &str); 5] =
    [(10, "1-10"), (100, "11-100"), (1_000, "101-1k"), (10_000, "1k-10k"), (u64::MAX, ">10k")];
/// The seed of the drawn queries.
const SEED: u64 = 20_261_121;

/// The eleven fixed queries, and how many of the 301,450 rows contain each.
pub const ELEVEN: [(&str, u64); 11] = [
    ("quantum physics", 18),
    ("quantum", 325),
    ("algorithm", 473),
    ("fibonacci", 18),
    ("日本", 21_700),
    ("東京", 3_678),
    ("科学", 1_178),
    ("대한민국", 3_316),
    ("and", 181_519),
    ("the", 197_917),
    ("antikythera", 3),
];

/// A set of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum QuerySet {
    /// Eleven fixed queries.
    Eleven,
    /// The queries of the search-benchmark game.
    Game,
    /// Random queries from the texts.
    Drawn,
    /// 2,000 runs of characters and pairs of words from the texts, by frequency.
    Substrings,
}

/// One query of the suite.
#[derive(Clone, Debug)]
pub struct Query {
    /// The set that the query belongs to.
    pub set: QuerySet,
    /// The part of the set: a tag, or a language and a band.
    pub group: String,
    /// The text as a user would type it.
    pub name: String,
    /// The query.
    pub expression: TextQuery,
}

/// What a query of [`QuerySet::Substrings`] asks for.
#[derive(Clone, Copy)]
pub enum Substring {
    /// Characters behind each other, wherever they begin in a word.
    Run,
    /// Two words with a space between them.
    Pair,
}

impl Substring {
    /// The beginning of its group's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Pair => "pair",
        }
    }
}

/// Whether a group of queries is a class of substrings.
pub fn is_class(group: &str) -> bool {
    let kinds = [Substring::Run, Substring::Pair].map(Substring::name);
    kinds.iter().any(|kind| group.strip_prefix(kind).is_some_and(|rest| rest.starts_with(' ')))
}

/// The queries of the chosen sets over this corpus, but for [`QuerySet::Substrings`].
pub fn queries(sets: &[QuerySet], data: &Path, corpus: &Corpus) -> Result<Vec<Query>> {
    let mut all = Vec::new();
    if sets.contains(&QuerySet::Eleven) {
        all.extend(eleven());
    }
    if sets.contains(&QuerySet::Game) && data.join(GAME_FILE).exists() {
        let texts = read_query_texts(&data.join(GAME_FILE))?;
        all.extend(texts.iter().filter_map(|text| game_query(text)));
    }
    if sets.contains(&QuerySet::Drawn) {
        all.extend(drawn(corpus)?);
    }
    Ok(all)
}

fn eleven() -> impl Iterator<Item = Query> {
    ELEVEN.into_iter().map(|(text, _)| Query {
        set: QuerySet::Eleven,
        group: "eleven".into(),
        name: text.into(),
        expression: TextQuery::Term(text.into()),
    })
}

fn game_query(text: &str) -> Option<Query> {
    let (group, expression) = game_expression(text)?;
    let group = format!("game {group}");
    Some(Query { set: QuerySet::Game, group, name: text.into(), expression })
}

/// The game's query language with substring terms: `+a` is required, `-a` is excluded, `"a b"` is one text. Words
/// without a sign are alternatives; next to a required term they would only affect ranking, and are dropped.
pub fn game_expression(text: &str) -> Option<(&'static str, TextQuery)> {
    let (mut must, mut may, mut must_not) = (Vec::new(), Vec::new(), Vec::new());
    for (sign, term) in signed_terms(text) {
        let list = match sign {
            Some('+') => &mut must,
            Some(_) => &mut must_not,
            None => &mut may,
        };
        list.push(TextQuery::Term(term.to_owned()));
    }
    let group = match (must.len(), may.len(), must_not.is_empty()) {
        (_, _, false) => "negated",
        (0, 1, _) => "term or phrase",
        (0, _, _) => "union",
        _ => "intersection",
    };
    let mut positive = if must.is_empty() { vec![one_or(may, TextQuery::Or)?] } else { must };
    if !must_not.is_empty() {
        positive.push(TextQuery::Not(Box::new(one_or(must_not, TextQuery::Or)?)));
    }
    Some((group, one_or(positive, TextQuery::And)?))
}

/// The only one of `parts`, or all of them combined; `None` if there is none.
fn one_or(
    mut parts: Vec<TextQuery>,
    combine: impl Fn(Vec<TextQuery>) -> TextQuery,
) -> Option<TextQuery> {
    if parts.len() > 1 { Some(combine(parts)) } else { parts.pop() }
}

/// Splits a query into terms and the signs before them.
fn signed_terms(text: &str) -> Vec<(Option<char>, &str)> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let sign = matches!(first, '+' | '-').then_some(first);
        rest = &rest[sign.map_or(0, char::len_utf8)..];
        let (term, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        if !term.is_empty() {
            terms.push((sign, term));
        }
        rest = behind.trim_start();
    }
    terms
}

/// Words (of scripts with spaces) and character runs (of the others) from the corpus, up to [`DRAWN_PER_BAND`] for each
/// language and band.
fn drawn(corpus: &Corpus) -> Result<Vec<Query>> {
    let mut languages: Vec<&str> =
        corpus.documents.iter().map(|document| document.language.as_str()).collect();
    languages.sort_unstable();
    languages.dedup();
    let candidates: Vec<(String, &str)> =
        languages.into_iter().flat_map(|language| candidates(corpus, language)).collect();
    let terms: Vec<String> = candidates.iter().map(|(term, _)| term.clone()).collect();
    let rows = rows_of_terms(&corpus.texts, &terms)?;
    let mut taken = rustc_hash::FxHashMap::<String, usize>::default();
    let mut queries = Vec::new();
    for ((term, language), rows) in candidates.into_iter().zip(rows) {
        let group = format!("{language} {}", band(rows.len() as u64));
        let count = taken.entry(group.clone()).or_default();
        if *count < DRAWN_PER_BAND {
            *count += 1;
            let expression = TextQuery::Term(term.clone());
            queries.push(Query { set: QuerySet::Drawn, group, name: term, expression });
        }
    }
    Ok(queries)
}

/// The frequency band of a term in so many rows.
pub fn band(rows: u64) -> &'static str {
    BANDS.iter().find(|(most, _)| rows <= *most).map_or("", |(_, name)| name)
}

/// Distinct terms from random places of one language's texts.
fn candidates<'c>(corpus: &Corpus, language: &'c str) -> Vec<(String, &'c str)> {
    let rows: Vec<usize> =
        (0..corpus.texts.len()).filter(|row| corpus.documents[*row].language == language).collect();
    let mut random = SplitMix64::new(SEED ^ u64::from(language.bytes().next().unwrap_or(0)));
    let mut seen = FxHashSet::default();
    let mut terms = Vec::new();
    for _ in 0..CANDIDATES_PER_LANGUAGE * 4 {
        let text = &corpus.texts[rows[random.below(rows.len())]];
        if let Some(term) = random_term(text, &mut random)
            && seen.insert(term.clone())
        {
            terms.push((term, language));
        }
        if terms.len() == CANDIDATES_PER_LANGUAGE {
            break;
        }
    }
    terms
}

/// A word of at least two letters, or a run of one to four characters of a script without spaces.
fn random_term(text: &str, random: &mut SplitMix64) -> Option<String> {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let word = words.get(random.below(words.len().max(1)))?;
    let characters: Vec<char> = word.chars().collect();
    if characters.iter().all(|c| !is_unspaced(*c)) {
        return (characters.len() > 1).then(|| (*word).to_owned());
    }
    let length = [1, 2, 2, 2, 3, 3, 4][random.below(7)].min(characters.len());
    let start = random.below(characters.len() - length + 1);
    characters.get(start..start + length).map(|run| run.iter().collect())
}

/// Han, Kana and Hangul: scripts whose runs may be split anywhere.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Document;

    fn term(text: &str) -> TextQuery {
        TextQuery::Term(text.into())
    }

    fn mapped(text: &str) -> TextQuery {
        game_expression(text).unwrap().1
    }

    #[test]
    fn maps_the_games_query_language() {
        assert_eq!(mapped("the"), term("the"));
        assert_eq!(mapped("\"care a lot\""), term("care a lot"));
        assert_eq!(mapped("+a +\"b c\""), TextQuery::And(vec![term("a"), term("b c")]));
        assert_eq!(mapped("a b"), TextQuery::Or(vec![term("a"), term("b")]));
        assert_eq!(mapped("+a b"), term("a"));
        let neither = TextQuery::Or(vec![term("b"), term("c")]);
        let expected = TextQuery::And(vec![term("a"), TextQuery::Not(Box::new(neither))]);
        assert_eq!(mapped("+a -b -c"), expected);
        assert_eq!(game_expression("  "), None);
    }

    #[test]
    fn draws_the_same_terms_every_time_and_they_occur() {
        let texts = ["the quick brown fox", "日本語の文章です", "the lazy dog"];
        let documents = texts.iter().zip(1..).map(|(text, id)| Document {
            id,
            language: if id == 2 { "ja".into() } else { "en".into() },
            text: (*text).into(),
            ..Default::default()
        });
        let corpus = Corpus::new(documents.collect());
        let first = drawn(&corpus).unwrap();
        let second = drawn(&corpus).unwrap();
        let names = |queries: &[Query]| queries.iter().map(|q| q.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&first), names(&second));
        assert!(first.iter().any(|query| query.group == "ja 1-10"));
        assert!(first.iter().all(|query| corpus.texts.iter().any(|t| t.contains(&query.name))));
    }

    #[test]
    fn bands_are_split_at_powers_of_ten() {
        assert_eq!(
            [1, 10, 11, 1_000, 10_000, 10_001].map(band),
            ["1-10", "1-10", "11-100", "101-1k", "1k-10k", ">10k"]
        );
    }
}
