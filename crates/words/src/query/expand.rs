//! Adds to the words of a query the other forms that a search looks for: `expand_keywords`.

use super::{
    options::QueryOptions,
    tree::{Node, Word},
};
use crate::settings::{Settings, WordExpansion};

/// Applies the options to the words of a query.
pub(super) fn expand(root: &mut Node, options: &QueryOptions, settings: &Settings) {
    let forms = options.expand_keywords.unwrap_or_else(|| settings.expand_keywords());
    let is_unstemmed = options.is_unstemmed && settings.index_exact_words();
    if forms == WordExpansion::NONE && !is_unstemmed && options.expansion_limit == 0 {
        return;
    }
    for_each_word(root, &mut |word, is_quoted| {
        word.is_exact |= is_unstemmed && !word.text.contains(['*', '?', '%']);
        // As in Sphinx, words with a mark at an end are left alone only outside of quotes.
        let is_marked = word.is_exact || word.text.starts_with('*') || word.text.ends_with('*');
        if word.others.is_empty() && (is_quoted || !is_marked) {
            word.others = other_forms(word, forms, settings);
        }
        word.most_expansions = options.expansion_limit;
        for other in &mut word.others {
            other.is_exact |= word.is_exact;
            other.most_expansions = options.expansion_limit;
        }
    });
}

/// The other forms of a word.
fn other_forms(word: &Word, forms: WordExpansion, settings: &Settings) -> Vec<Word> {
    let mut others = Vec::new();
    let (takes_inner, takes_prefix) = (settings.min_infix_len() > 0, settings.min_prefix_len() > 0);
    let text = format!("{}{}", if word.is_exact { "=" } else { "" }, word.text);
    if forms.has_parts && (takes_inner || takes_prefix) {
        let star = if takes_inner { "*" } else { "" };
        others.push(Word { text: format!("{star}{text}*"), is_exact: false, ..word.clone() });
    }
    if forms.has_exact && settings.index_exact_words() {
        others.push(Word { text, is_exact: true, ..word.clone() });
    }
    others
}

/// Calls `each` with each word and whether it stands within quotes.
fn for_each_word(node: &mut Node, each: &mut impl FnMut(&mut Word, bool)) {
    match node {
        Node::Every => {}
        Node::Word(word) => each(word, false),
        Node::Quoted(quoted) => quoted.words.iter_mut().for_each(|word| each(word, true)),
        Node::And(parts)
        | Node::Or(parts)
        | Node::Maybe(parts)
        | Node::Before(parts)
        | Node::Unit(parts, _)
        | Node::Near { parts, .. } => {
            parts.iter_mut().for_each(|part| for_each_word(part, each));
        }
        Node::AndNot(wanted, unwanted) => {
            for_each_word(wanted, each);
            for_each_word(unwanted, each);
        }
        Node::NotNear { wanted, unwanted, .. } => {
            for_each_word(wanted, each);
            unwanted.iter_mut().for_each(|part| for_each_word(part, each));
        }
    }
}
