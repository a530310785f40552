//! Finds patterns. A single term set is answered here, a sequence of several by positions in `phrase`.

use std::sync::Arc;

use super::{
    TextIndex,
    any_term::{is_dense, unite},
    element::{Element, TermMatch},
    lockstep::MatchDetail,
    neighbours,
    pattern::Pattern,
    phrase,
    postings::PostingsCursor,
    union_counts::PieceCounts,
};
use crate::{DocSet, Result};

/// Skipping through postings to the documents of a list pays if the term has this many times as many.
const SKIP_SHARE: usize = 8;

/// The documents that contain the pattern. Documents outside `among` may be omitted.
pub(crate) fn documents(
    text: &TextIndex,
    pattern: &Pattern,
    among: Option<&DocSet>,
) -> Result<DocSet> {
    if pattern.alternatives.is_empty() {
        return Ok(DocSet::all(text.doc_count));
    }
    if let Some(docs) = neighbours::documents(text, &pattern.chains)? {
        return Ok(docs);
    }
    let narrowed = neighbours::narrow(text, &pattern.chains, among)?;
    let among = narrowed.as_ref().or(among);
    let mut all: Option<DocSet> = None;
    for elements in &pattern.alternatives {
        let docs = match elements.as_slice() {
            [element] if element.space.is_none() => single(text, element)?,
            elements => sequence(text, elements, among)?,
        };
        all = Some(match all {
            Some(all) => all.union(&docs, text.doc_count),
            None => docs,
        });
    }
    Ok(all.unwrap_or_else(DocSet::empty))
}

/// The documents that contain the elements next to each other.
fn sequence(text: &TextIndex, elements: &[Element], among: Option<&DocSet>) -> Result<DocSet> {
    let mut docs = Vec::new();
    phrase::for_each(text, elements, among, MatchDetail::Document, &mut |doc, _| docs.push(doc))?;
    Ok(DocSet::ascending(docs, text.doc_count))
}

fn single(text: &TextIndex, element: &Element) -> Result<DocSet> {
    if let TermMatch::Contains(piece) = &element.terms
        && let Some(bits) = text.unions.get(piece)
    {
        return Ok(DocSet::Bits(Arc::new(bits)));
    }
    unite(text, &text.vocabulary.find(&element.terms))
}

/// See [`TextIndex::reads_postings`].
pub(crate) fn reads_postings(text: &TextIndex, pattern: &Pattern) -> bool {
    if pattern.is_sequence() {
        return true;
    }
    pattern.alternatives.iter().flatten().any(|Element { terms, .. }| match terms {
        TermMatch::Exact(_) | TermMatch::Word(_) => false,
        TermMatch::Contains(piece) => !text.unions.has(piece),
        TermMatch::Prefix(_) | TermMatch::Suffix(_) | TermMatch::Terms(_) => true,
    })
}

/// See [`TextIndex::count`].
pub(crate) fn count(text: &TextIndex, pattern: &Pattern) -> Result<Option<u32>> {
    if !pattern.verify
        && let Some(count) = neighbours::count(text, &pattern.chains)?
    {
        return Ok(Some(count));
    }
    let [elements] = pattern.alternatives.as_slice() else { return Ok(None) };
    let [Element { space: None, terms, .. }] = elements.as_slice() else { return Ok(None) };
    let ready = matches!(terms, TermMatch::Contains(piece) if text.unions.has(piece));
    if pattern.verify || ready {
        return Ok(None);
    }
    let terms = text.vocabulary.find(terms);
    let mut numbers = terms.iter().map(|(term, _)| term);
    match (numbers.next(), numbers.next()) {
        (None, _) => Ok(Some(0)),
        (Some(term), None) => Ok(Some(text.postings(term)?.df())),
        _ => unite(text, &terms).map(|docs| Some(docs.count())),
    }
}

/// Appends the documents that contain the pattern with the number of places where it begins. Documents
/// outside `among` may be omitted.
pub(crate) fn occurrences(
    text: &TextIndex,
    pattern: &Pattern,
    among: Option<&DocSet>,
    out: &mut Vec<(u32, u32)>,
) -> Result<()> {
    let narrowed = neighbours::narrow(text, &pattern.chains, among)?;
    let among = narrowed.as_ref().or(among);
    if let [elements] = pattern.alternatives.as_slice() {
        return match elements.as_slice() {
            [element] if element.space.is_none() => single_occurrences(text, element, among, out),
            elements => {
                let mut visit = |doc, times| out.push((doc, times));
                phrase::for_each(text, elements, among, MatchDetail::Occurrences, &mut visit)
            }
        };
    }
    let mut counts = Vec::new();
    for elements in &pattern.alternatives {
        let mut visit = |doc, times| counts.push(packed(doc, times));
        phrase::for_each(text, elements, among, MatchDetail::Occurrences, &mut visit)?;
    }
    append_sums(counts, out);
    Ok(())
}

fn single_occurrences(
    text: &TextIndex,
    element: &Element,
    among: Option<&DocSet>,
    out: &mut Vec<(u32, u32)>,
) -> Result<()> {
    if let TermMatch::Contains(piece) = &element.terms
        && text.unions.occurrences(piece, among, out)?
    {
        return Ok(());
    }
    let terms = text.vocabulary.find(&element.terms);
    if let (1, Some((term, times))) = (terms.len(), terms.iter().next()) {
        let visit = |doc, tf: u32| out.push((doc, tf.saturating_mul(times)));
        return term_occurrences(text, term, among, visit);
    }
    if !is_dense(text, &terms) {
        let mut few = Vec::new();
        text.for_each_postings(&terms, |postings, times| {
            postings.for_each(|doc, tf| few.push(packed(doc, tf.saturating_mul(times))))
        })?;
        append_sums(few, out);
        return Ok(());
    }
    let mut counts = PieceCounts::new(text.doc_count);
    match among {
        // Testing each posting pays only for a short list.
        Some(DocSet::List(docs)) => {
            let among = DocSet::List(docs.clone()).into_bitmap(text.doc_count);
            text.for_each_postings(&terms, |postings, times| {
                postings.for_each(|doc, tf| {
                    if among.contains(doc) {
                        counts.add(doc, tf.saturating_mul(times));
                    }
                })
            })?;
        }
        _ => text.for_each_postings(&terms, |postings, times| {
            postings.for_each(|doc, tf| counts.add(doc, tf.saturating_mul(times)))
        })?,
    }
    counts.append_to(out);
    Ok(())
}

/// Visits the documents of one term with their frequencies; skips to the documents of a short list.
fn term_occurrences(
    text: &TextIndex,
    term: u32,
    among: Option<&DocSet>,
    mut visit: impl FnMut(u32, u32),
) -> Result<()> {
    let postings = text.postings(term)?;
    let docs = match among {
        Some(DocSet::List(docs)) if docs.len() * SKIP_SHARE < postings.df() as usize => docs,
        _ => return postings.for_each(visit),
    };
    let mut cursor = PostingsCursor::new(&postings, &text.positions)?;
    for &doc in docs {
        match cursor.advance(doc)? {
            Some(reached) if reached == doc => visit(doc, cursor.frequency()?),
            Some(_) => {}
            None => break,
        }
    }
    Ok(())
}

/// A document and a count packed into one number, which sorts twice as fast as a pair.
#[inline]
fn packed(doc: u32, times: u32) -> u64 {
    u64::from(doc) << 32 | u64::from(times)
}

/// Appends each document once with the sum of its counts. `counts` are [`packed`].
fn append_sums(mut counts: Vec<u64>, out: &mut Vec<(u32, u32)>) {
    counts.sort_unstable();
    for document in counts.chunk_by(|a, b| a >> 32 == b >> 32) {
        let doc = document.first().map_or(0, |first| first >> 32);
        let times = document.iter().fold(0, |sum: u32, one| sum.saturating_add(*one as u32));
        out.push((doc as u32, times));
    }
}
