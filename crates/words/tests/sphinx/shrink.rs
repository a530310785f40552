//! Shrinks a failing case to a small one.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use super::{
    broken::tokens,
    corpus::{Corpus, Document},
    engine::{Idf, Options, Ranker, Sort},
    trial::Case,
};

/// Smaller corpora tried at once, each of which is indexed.
const CORPORA_AT_ONCE: usize = 12;
/// Rounds, each of which may make the case smaller.
const ROUNDS: usize = 3;
/// The time limit for shrinking.
const PATIENCE: Duration = Duration::from_secs(30);

/// Determines which of several cases fail.
pub type Fails<'a> = dyn FnMut(&[Case]) -> Vec<bool> + 'a;

/// A smaller case that fails as well: fewer tokens, plainer options, fewer documents and words.
pub fn shrunk(mut case: Case, fails: &mut Fails) -> Case {
    let begin = Instant::now();
    let fails: &mut Fails = &mut |cases: &[Case]| match begin.elapsed() < PATIENCE {
        true => fails(cases),
        false => vec![false; cases.len()],
    };
    for _ in 0..ROUNDS {
        let before = size(&case);
        case = with_less_query(case, fails);
        case = with_plainer_options(case, fails);
        case = with_fewer_documents(case, fails);
        case = with_fewer_words(case, fails);
        if size(&case) == before {
            break;
        }
    }
    case
}

fn size(case: &Case) -> usize {
    let words = |document: &Document| document.fields.iter().map(String::len).sum::<usize>() + 1;
    let documents = case.corpus.documents.iter().map(words).sum::<usize>();
    documents + case.query.len() + format!("{:?}", case.options).len()
}

/// The items without an unneeded part: halves are tried first, single items last.
fn reduced<T: Clone>(
    mut items: Vec<T>,
    at_once: usize,
    first_failing: &mut dyn FnMut(&[Vec<T>]) -> Option<usize>,
) -> Vec<T> {
    let mut length = items.len().div_ceil(2);
    while length > 0 && !items.is_empty() {
        let mut start = 0;
        while start < items.len() {
            let starts: Vec<usize> = (start..items.len()).step_by(length).take(at_once).collect();
            let without = |from: &usize| {
                let to = (from + length).min(items.len());
                [&items[..*from], &items[to..]].concat()
            };
            let candidates: Vec<Vec<T>> = starts.iter().map(without).collect();
            match first_failing(&candidates) {
                Some(number) => {
                    items.clone_from(&candidates[number]);
                    start = starts[number];
                }
                None => start += length * starts.len(),
            }
        }
        length = if length == 1 { 0 } else { length.div_ceil(2) };
    }
    items
}

fn first(fails: &mut Fails, cases: &[Case]) -> Option<usize> {
    fails(cases).into_iter().position(|failed| failed)
}

fn with_less_query(case: Case, fails: &mut Fails) -> Case {
    let smaller = |tokens: &Vec<String>| Case { query: tokens.concat(), ..case.clone() };
    let mut try_all = |candidates: &[Vec<String>]| {
        let cases: Vec<Case> = candidates.iter().map(smaller).collect();
        first(fails, &cases)
    };
    smaller(&reduced(tokens(&case.query), usize::MAX, &mut try_all))
}

fn with_plainer_options(mut case: Case, fails: &mut Fails) -> Case {
    let changes: [fn(&mut Options); 7] = [
        |options| options.ranker = Ranker::ProximityBm25,
        |options| options.field_weights.clear(),
        |options| options.field_weights.truncate(1),
        |options| options.index_weight = None,
        |options| options.idf = Idf::default(),
        |options| (options.offset, options.limit) = (0, Options::default().limit),
        |options| options.sort = Sort::Relevance,
    ];
    for change in changes {
        let mut plainer = case.clone();
        change(&mut plainer.options);
        if plainer.options != case.options && first(fails, std::slice::from_ref(&plainer)).is_some()
        {
            case = plainer;
        }
    }
    case
}

fn with_fewer_documents(case: Case, fails: &mut Fails) -> Case {
    let smaller = |documents: &Vec<Document>| {
        let corpus = Corpus { documents: documents.clone(), ..(*case.corpus).clone() };
        Case { corpus: Rc::new(corpus), ..case.clone() }
    };
    let mut try_all = |candidates: &[Vec<Document>]| {
        // The indexer takes no empty collection.
        let filled = |documents: &Vec<Document>| match documents.is_empty() {
            true => case.clone(),
            false => smaller(documents),
        };
        let cases: Vec<Case> = candidates.iter().map(filled).collect();
        let found = first(fails, &cases)?;
        (!candidates[found].is_empty()).then_some(found)
    };
    smaller(&reduced(case.corpus.documents.clone(), CORPORA_AT_ONCE, &mut try_all))
}

/// A word of a document with its position.
type WordPosition = (usize, usize, String);

fn with_fewer_words(case: Case, fails: &mut Fails) -> Case {
    let mut places: Vec<WordPosition> = Vec::new();
    for (number, document) in case.corpus.documents.iter().enumerate() {
        for (field, text) in document.fields.iter().enumerate() {
            places.extend(text.split(' ').map(|word| (number, field, word.to_owned())));
        }
    }
    let smaller = |places: &Vec<WordPosition>| {
        let mut corpus = (*case.corpus).clone();
        corpus.documents.iter_mut().for_each(|each| each.fields.iter_mut().for_each(String::clear));
        for (number, field, word) in places {
            let text = &mut corpus.documents[*number].fields[*field];
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        }
        Case { corpus: Rc::new(corpus), ..case.clone() }
    };
    let mut try_all = |candidates: &[Vec<WordPosition>]| {
        let cases: Vec<Case> = candidates.iter().map(smaller).collect();
        first(fails, &cases)
    };
    smaller(&reduced(places, CORPORA_AT_ONCE, &mut try_all))
}
