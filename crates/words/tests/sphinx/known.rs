//! The differences from Sphinx that are known. Each has an exact condition: what the query must have, and what may
//! differ. `run.rs` bounds how many answers may fit them, and how many none of them.

use super::{
    collection,
    compare::{self, Difference, Kind},
    corpus::Corpus,
    engine::{Found, Options, Ranker},
};

/// Sphinx reads hits in blocks of so many. Operators that read ahead forget hits of a document that lies in two.
const BLOCK: u64 = 512;

/// A query, and what both sides said.
pub struct Asked<'a> {
    corpus: &'a Corpus,
    query: &'a str,
    options: &'a Options,
    theirs: &'a Result<Found, String>,
    ours: &'a Result<Found, String>,
}

impl<'a> Asked<'a> {
    pub fn new(
        corpus: &'a Corpus,
        query: &'a str,
        options: &'a Options,
        theirs: &'a Result<Found, String>,
        ours: &'a Result<Found, String>,
    ) -> Self {
        Self { corpus, query, options, theirs, ours }
    }

    fn has(&self, mark: &str) -> bool {
        self.query.contains(mark)
    }

    /// Whether words have other forms beside them.
    fn expands(&self) -> bool {
        self.corpus.setting("expand_keywords").is_some()
    }

    fn has_unit(&self) -> bool {
        self.has("SENTENCE") || self.has("PARAGRAPH")
    }

    /// The hits of all keywords.
    fn hits(&self) -> u64 {
        self.theirs.iter().flat_map(|found| &found.words).map(|(_, _, hits)| hits).sum()
    }

    fn warnings(&self) -> [Option<&str>; 2] {
        let warning = |side: &'a Result<Found, String>| side.as_ref().ok()?.warning.as_deref();
        [warning(self.theirs), warning(self.ours)]
    }

    /// Words that may be too short for wildcards, of which the last is told, quorums that may ask for too many, weights of
    /// unknown fields.
    fn possible_warnings(&self) -> usize {
        let is_unknown = |(name, _): &&(String, u32)| !self.corpus.fields.contains(name);
        let weights = self.options.field_weights.iter().filter(is_unknown).count();
        let spans = usize::from(self.has("ZONESPAN") && self.has("<<"));
        wildcards(self.query).min(1) + quorum_words(self.query).count() + weights + spans
    }

    /// Whether the analysis drops one of the words.
    fn drops(&self, words: &str) -> bool {
        let analyzer = collection::analyzer(self.corpus);
        let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
        words.map(str::to_lowercase).any(|word| analyzer.keyword(&word, false).is_none())
    }

    fn is_expression(&self) -> bool {
        matches!(self.options.ranker, Ranker::Expression(_))
    }
}

/// A known difference.
struct Case {
    name: &'static str,
    /// The kinds of differences that it may have.
    kinds: &'static [Kind],
    fits: fn(&Asked, &Difference) -> bool,
}

/// Rows and weights, but no errors, warnings or counts of words.
const ROWS: &[Kind] = &[Kind::Count, Kind::Ids, Kind::Weights, Kind::Order];
/// What an answer consists of.
const ANSWER: &[Kind] = &[Kind::Count, Kind::Ids, Kind::Weights, Kind::Order, Kind::Words];
/// Everything.
const ALL: &[Kind] =
    &[Kind::Error, Kind::Warning, Kind::Count, Kind::Ids, Kind::Weights, Kind::Order, Kind::Words];

const CASES: &[Case] = &[
    Case {
        name: "a document in two blocks of hits, of an operator that reads ahead",
        kinds: ROWS,
        fits: |asked, difference| {
            let operators = ["<<", "MAYBE", "NEAR/", "SENTENCE", "PARAGRAPH"];
            let reads_ahead =
                operators.iter().any(|it| asked.has(it)) || compare::has_quorum(asked.query);
            reads_ahead && difference.rows as u64 <= 1 + asked.hits() / BLOCK
        },
    },
    Case {
        name: "which of several warnings is told",
        kinds: &[Kind::Warning],
        fits: |asked, _| {
            asked.possible_warnings() > 1 && asked.warnings().iter().all(Option::is_some)
        },
    },
    Case {
        name: "a warning of modifiers",
        kinds: &[Kind::Warning],
        fits: |asked, _| {
            let told = asked.warnings();
            told.iter().flatten().any(|it| it.contains("modifiers must be applied to keywords"))
        },
    },
    Case {
        name: "the words of an error",
        kinds: &[Kind::Error],
        fits: |asked, _| asked.theirs.is_err() && asked.ours.is_err(),
    },
    Case {
        name: "? or % in front where beginnings are indexed",
        kinds: ANSWER,
        fits: |asked, _| {
            asked.corpus.setting("min_prefix_len").is_some() && begins_with_wildcard(asked.query)
        },
    },
    Case {
        name: "a star that touches no word",
        kinds: ALL,
        fits: |asked, _| has_lone_star(asked.query),
    },
    Case {
        name: "dropped words in a quorum or beside one",
        kinds: ALL,
        fits: |asked, _| compare::has_quorum(asked.query) && asked.drops(asked.query),
    },
    // Once the first words of such a quorum are enough, Sphinx does not go on to the document in the hits of the others: it
    // passes over them if one of these words stands in an earlier document that it did not find. What matches does not
    // depend on that.
    Case {
        name: "forgotten hits of a quorum that merges words",
        kinds: &[Kind::Weights, Kind::Order],
        fits: |asked, _| {
            let has_hits = !matches!(asked.options.ranker, Ranker::Bm25 | Ranker::None);
            has_hits && quorum_words(asked.query).any(|words| is_reduced(asked.corpus, &words))
        },
    },
    Case {
        name: "words that are one in a quorum, where words expand",
        kinds: ALL,
        fits: |asked, _| {
            let mut quorums = quorum_words(asked.query);
            asked.expands() && quorums.any(|words| is_reduced(asked.corpus, &words))
        },
    },
    Case {
        name: "a limit of positions with wildcards",
        kinds: ROWS,
        fits: |asked, _| asked.has("[") && (asked.expands() || compare::has_wildcard(asked.query)),
    },
    Case {
        name: "a word twice in a proximity",
        kinds: ANSWER,
        fits: |asked, _| compare::repeats(asked.query),
    },
    Case {
        name: "NEAR of composed parts or units, or beside a dropped word",
        kinds: &[Kind::Warning, Kind::Count, Kind::Ids, Kind::Weights, Kind::Order, Kind::Words],
        fits: |asked, difference| {
            let [theirs, ours] = asked.warnings();
            let is_told = theirs.is_some_and(|it| it.contains("hitlists unavailable"));
            let may_warn = !difference.kinds.contains(&Kind::Warning) || is_told && ours.is_none();
            let is_dropped = asked.has("NEAR/") && asked.drops(asked.query);
            let is_unit = asked.has("NEAR/") && asked.has_unit();
            may_warn && (is_near_composed(asked.query) || is_dropped || is_unit)
        },
    },
    Case {
        name: "a star in a proximity, or in a phrase with a dropped or repeated word",
        kinds: ROWS,
        fits: |asked, _| {
            let parts: Vec<&str> = asked.query.split('"').collect();
            parts.windows(2).skip(1).step_by(2).any(|pair| {
                let is_proximity = pair[1].trim_start().starts_with('~');
                let has_star = pair[0].split_whitespace().any(|it| it == "*");
                has_star && (is_proximity || asked.drops(pair[0]) || has_repeats(pair[0]))
            })
        },
    },
    Case {
        name: "a word that another one's wildcards stand for",
        kinds: ANSWER,
        fits: |asked, _| shares_expansion(asked.corpus, asked.query),
    },
    Case {
        name: "a word repeated in <<",
        kinds: ROWS,
        fits: |asked, _| asked.has("<<") && has_repeats(asked.query),
    },
    Case {
        name: "= before an operator, a dot without a number, << behind a threshold",
        kinds: &[Kind::Error],
        fits: |asked, _| has_odd_mark(asked.query),
    },
    Case {
        name: "MAYBE beside composed parts",
        kinds: ANSWER,
        fits: |asked, _| asked.has("MAYBE") && ["(", "<<", "\""].iter().any(|it| asked.has(it)),
    },
    Case {
        name: "stars in a phrase of a unit",
        kinds: ANSWER,
        fits: |asked, _| asked.has_unit() && asked.has(" * "),
    },
    Case {
        name: "a word excluded and asked for, in an expression",
        kinds: ROWS,
        fits: |asked, _| {
            let excludes = asked.has("-") || asked.has("!");
            asked.is_expression() && excludes && has_repeats(asked.query)
        },
    },
    Case {
        name: "a query of one word at an end of its field, with other forms",
        kinds: &[Kind::Weights, Kind::Order],
        fits: |asked, _| {
            let is_one = !asked.query.trim().contains(|c: char| c.is_whitespace() || c == '|');
            asked.expands() && is_one && (asked.has("^") || asked.has("$"))
        },
    },
    Case {
        name: "the order in which words are told beside an exclusion, with other forms",
        kinds: &[Kind::Words],
        fits: |asked, _| {
            let sorted = |side: &Result<Found, String>| {
                let mut words = side.as_ref().map_or_else(|_| Vec::new(), |it| it.words.clone());
                words.sort();
                words
            };
            let excludes = asked.has("-") || asked.has("!");
            asked.expands() && excludes && sorted(asked.theirs) == sorted(asked.ours)
        },
    },
    Case {
        name: "a word repeated beside a unit or with another boost",
        kinds: ROWS,
        fits: |asked, _| has_repeats(asked.query) && (asked.has_unit() || asked.has("^")),
    },
];

/// The known case of a difference. If another warning is known, the rest may be another case.
pub fn case(asked: &Asked, difference: &Difference) -> Option<&'static str> {
    let fitting = |difference: &Difference| {
        let fits = |case: &&Case| {
            difference.kinds.iter().all(|kind| case.kinds.contains(kind))
                && (case.fits)(asked, difference)
        };
        CASES.iter().find(fits).map(|case| case.name)
    };
    fitting(difference).or_else(|| {
        let (warning, others): (Vec<Kind>, Vec<Kind>) =
            difference.kinds.iter().copied().partition(|kind| *kind == Kind::Warning);
        let of = |kinds: Vec<Kind>| Difference { kinds, ..difference.clone() };
        if warning.is_empty() || others.is_empty() {
            return None;
        }
        fitting(&of(warning))?;
        fitting(&of(others))
    })
}

/// Whether Sphinx would write behind its arrays: chains of NEARs.
pub fn crashes(query: &str) -> bool {
    query.matches("NEAR/").count() > 1
}

/// Whether a query may have a known difference of its hits, so that nothing of them is compared.
pub fn is_loose(query: &str) -> bool {
    let has = |mark: &str| query.contains(mark);
    let composed = has("(") || has("<<") || has("\"");
    compare::repeats(query)
        || has("NEAR/")
        || has("MAYBE") && composed
        || has_lone_star(query)
        || has(" * ")
}

/// The words with wildcards.
fn wildcards(query: &str) -> usize {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || "*?%".contains(c)));
    words.filter(|word| word.contains(['*', '?', '%']) && word.len() > 1).count()
}

/// A word that begins with `?` or `%`.
fn begins_with_wildcard(query: &str) -> bool {
    let mut words = query.split(|c: char| !(c.is_ascii_alphanumeric() || "*?%".contains(c)));
    words.any(|word| word.starts_with(['?', '%']))
}

/// A `*` outside of quotes with no letter beside it.
fn has_lone_star(query: &str) -> bool {
    query.split('"').step_by(2).any(|part| {
        let bytes = part.as_bytes();
        let touches = |at: usize| {
            bytes.get(at).is_some_and(|it| it.is_ascii_alphanumeric() || b"@?%".contains(it))
        };
        (0..bytes.len())
            .any(|at| bytes[at] == b'*' && !touches(at + 1) && !touches(at.wrapping_sub(1)))
    })
}

/// The words of each quorum.
fn quorum_words(query: &str) -> impl Iterator<Item = Vec<String>> {
    let parts: Vec<String> = query.split('"').map(str::to_lowercase).collect();
    let count = parts.len();
    (1..count.saturating_sub(1)).step_by(2).filter_map(move |at| {
        let is_quorum = parts[at + 1].trim_start().starts_with('/');
        let words = parts[at].split(|c: char| !c.is_ascii_alphanumeric());
        is_quorum.then(|| words.filter(|it| !it.is_empty()).map(str::to_owned).collect())
    })
}

/// Whether words are the same behind the analysis.
fn is_reduced(corpus: &Corpus, words: &[String]) -> bool {
    let analyzer = collection::analyzer(corpus);
    let mut keywords: Vec<String> =
        words.iter().filter_map(|word| analyzer.keyword(word, false)).collect();
    let count = keywords.len();
    keywords.sort();
    keywords.dedup();
    keywords.len() < count
}

/// Whether two words of a query stand for a common word of the documents, and one of them has wildcards.
fn shares_expansion(corpus: &Corpus, query: &str) -> bool {
    let words: Vec<String> = query
        .split(|c: char| !(c.is_ascii_alphanumeric() || "*?%".contains(c)))
        .filter(|it| it.chars().any(|c| c.is_ascii_alphabetic()))
        .map(str::to_lowercase)
        .collect();
    let is_pattern = |word: &str| word.contains(['*', '?', '%']);
    words.iter().enumerate().any(|(place, one)| {
        words.iter().skip(place + 1).filter(|other| is_pattern(one) || is_pattern(other)).any(
            |other| {
                let common = |word: &String| {
                    stands_for(one.as_bytes(), word.as_bytes())
                        && stands_for(other.as_bytes(), word.as_bytes())
                };
                corpus.vocabulary.iter().any(common)
            },
        )
    })
}

/// Whether a word with wildcards stands for another word.
fn stands_for(pattern: &[u8], word: &[u8]) -> bool {
    match (pattern.split_first(), word.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', behind)), rest) => {
            stands_for(behind, word) || rest.is_some_and(|(_, rest)| stands_for(pattern, rest))
        }
        (Some((b'%', behind)), rest) => {
            stands_for(behind, word) || rest.is_some_and(|(_, rest)| stands_for(behind, rest))
        }
        (Some((b'?', behind)), Some((_, rest))) => stands_for(behind, rest),
        (Some((one, behind)), Some((other, rest))) => one == other && stands_for(behind, rest),
        (Some(_), None) => false,
    }
}

/// A mark at a place where the grammars differ.
fn has_odd_mark(query: &str) -> bool {
    let bytes = query.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let is_operator = |rest: &str| {
        ["MAYBE", "NEAR", "SENTENCE", "PARAGRAPH"].iter().any(|it| rest.starts_with(it))
    };
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'=' => {
            let rest = &query[at + 1..];
            is_operator(rest) || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        }
        b'.' => !(is_word(at + 1) && is_word(at.wrapping_sub(1))),
        b'<' => is_word(at.wrapping_sub(1)) && bytes[at - 1].is_ascii_digit(),
        _ => false,
    })
}

/// A NEAR next to a parenthesis, a quote or another operator.
fn is_near_composed(query: &str) -> bool {
    let parts: Vec<&str> = query.split("NEAR/").collect();
    let before = parts.iter().take(parts.len() - 1).any(|it| {
        let last = it.trim_end().rsplit([' ', '(']).next().unwrap_or_default();
        last.contains(['"', ')', '|', '/', '~']) || it.contains("<<") || it.contains('"')
    });
    let behind = parts.iter().skip(1).any(|it| {
        let next = it.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        next.starts_with(['(', '"', '=', '@']) || it.contains("<<") || it.contains('"')
    });
    parts.len() > 1 && (before || behind)
}

/// A word that stands in the query twice.
fn has_repeats(query: &str) -> bool {
    let mut words: Vec<String> = query
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|it| it.chars().any(|c| c.is_ascii_alphabetic()))
        .map(str::to_lowercase)
        .collect();
    let count = words.len();
    words.sort();
    words.dedup();
    words.len() < count
}
