//! Random queries of the whole query language, most of them valid.

use super::{
    corpus::Corpus,
    engine::{Idf, Options, Ranker},
    expressions, marked,
    random::Random,
};

/// Words that no document has.
const UNKNOWN: [&str; 4] = ["quux", "xyzzy", "plugh", "qqqq"];
const BOOSTS: [&str; 7] = ["2", "0.5", "1.7", "3.", ".25", "1000", "0"];
const WEIGHTS: [u32; 7] = [0, 1, 2, 3, 7, 10, 100];
const NAMED_RANKERS: [Ranker; 8] = [
    Ranker::ProximityBm25,
    Ranker::Bm25,
    Ranker::None,
    Ranker::WordCount,
    Ranker::Proximity,
    Ranker::MatchAny,
    Ranker::FieldMask,
    Ranker::Sph04,
];
/// The number of words in a long quorum.
const MANY: usize = 40;

/// The kind of queries to generate.
#[derive(Clone, Copy, PartialEq)]
pub enum QueryStyle {
    /// No keyword twice in a query.
    Distinct,
    /// Two or three words, each repeated.
    Repeated,
    /// Some keywords with wildcards.
    Wildcards,
    /// Many operators for sentences and paragraphs, and limits to zones.
    Marked,
}

/// A random query over the words and fields of a corpus.
pub fn query(random: &mut Random, corpus: &Corpus, wanted: QueryStyle) -> String {
    let mut words: Vec<&str> = Vec::new();
    if wanted == QueryStyle::Repeated {
        let count = random.between(1, 3);
        words = (0..count).map(|_| frequent(random, corpus)).collect();
    }
    let mut writer = Writer { random, corpus, wanted, words, used: Vec::new(), relaxed: false };
    if writer.random.once_in(40) {
        writer.relaxed = true;
        return format!("@@relaxed {}", writer.and(2));
    }
    if writer.random.once_in(60) {
        return writer.long_quorum();
    }
    writer.and(2)
}

/// A random quorum of words some of which are one: the same, or forms of one stem. At times beside another word.
pub fn merged_quorum(random: &mut Random, corpus: &Corpus) -> String {
    let stems: Vec<&str> = (0..random.between(1, 3)).map(|_| frequent(random, corpus)).collect();
    let word = |random: &mut Random| {
        let stem = stems[random.below(stems.len())];
        let exact = if random.once_in(15) { "=" } else { "" };
        let ending = random.pick(&["", "", "", "s", "ing", "ed"]);
        let (start, end) = [("", ""), ("^", ""), ("", "$")][random.below(30).saturating_sub(27)];
        format!("{exact}{start}{stem}{ending}{end}")
    };
    let count = random.between(2, 6);
    let words: Vec<String> = (0..count).map(|_| word(random)).collect();
    let threshold = match random.below(3) {
        0 => format!("0.{:02}", random.between(1, 99)),
        _ => random.between(1, count).to_string(),
    };
    let quorum = format!("\"{}\"/{threshold}", words.join(" "));
    match random.below(8) {
        0 => format!("{quorum} | {}", word(random)),
        1 => format!("{} {quorum}", word(random)),
        2 => format!("@{} {quorum}", corpus.fields[random.below(corpus.fields.len())]),
        _ => quorum,
    }
}

/// Random options with one of the named rankers.
pub fn options(random: &mut Random, corpus: &Corpus) -> Options {
    // The default one is half of all.
    let ranker = match random.once_in(2) {
        true => Ranker::ProximityBm25,
        false => NAMED_RANKERS[random.below(NAMED_RANKERS.len())].clone(),
    };
    let mut options = Options { ranker, ..Options::default() };
    if random.once_in(3) {
        options.field_weights = field_weights(random, corpus);
    }
    if random.once_in(6) {
        options.idf = Idf { plain: random.once_in(2), divided: random.once_in(2), local_df: false };
    }
    if random.once_in(20) {
        options.index_weight = Some(random.between(1, 20) as u32);
    }
    if random.once_in(20) {
        options.offset = random.below(20) as u32;
        options.limit = random.below(50) as u32;
    }
    options
}

/// Random options with a ranking expression.
pub fn ranked_options(random: &mut Random, corpus: &Corpus) -> Options {
    let expression = expressions::expression(random, corpus);
    Options { ranker: Ranker::Expression(expression), ..options(random, corpus) }
}

pub fn field_weights(random: &mut Random, corpus: &Corpus) -> Vec<(String, u32)> {
    let mut weights = Vec::new();
    for field in &corpus.fields {
        if random.once_in(2) {
            weights.push((field.clone(), WEIGHTS[random.below(WEIGHTS.len())]));
        }
    }
    if random.once_in(20) {
        weights.push(("nosuch".to_owned(), 5));
    }
    weights
}

fn frequent<'a>(random: &mut Random, corpus: &'a Corpus) -> &'a str {
    let share = random.share();
    let rank = corpus.vocabulary.len() as f64 * share * share * share;
    &corpus.vocabulary[rank as usize]
}

/// Writes one query.
struct Writer<'a> {
    random: &'a mut Random,
    corpus: &'a Corpus,
    wanted: QueryStyle,
    /// All words that a query of repeated words may have.
    words: Vec<&'a str>,
    /// The words that it has already.
    used: Vec<&'a str>,
    relaxed: bool,
}

impl<'a> Writer<'a> {
    /// `a (b | c) -d`.
    fn and(&mut self, depth: usize) -> String {
        let count = [1, 1, 1, 1, 2, 2, 2, 2, 3, 4][self.random.below(10)];
        let excluding = if self.random.once_in(40) { 1 } else { 8 };
        let wanted = self.random.below(count);
        let mut parts = Vec::new();
        for number in 0..count {
            let excluded = number != wanted && self.random.once_in(excluding);
            let part = if excluded { self.not(depth) } else { self.ordered(depth) };
            parts.push(part);
        }
        parts.join(if self.random.once_in(30) { "  " } else { " " })
    }

    fn not(&mut self, depth: usize) -> String {
        let limit = if self.random.once_in(20) { self.limit() } else { String::new() };
        let sign = self.random.pick(&["-", "-", "-", "!", "! ", "- "]);
        format!("{limit}{sign}{}", self.or(depth))
    }

    /// `a << b`, `a NEAR/3 b`, or one of their operands.
    fn ordered(&mut self, depth: usize) -> String {
        let kind = self.random.below(9);
        if kind > 1 {
            return self.or(depth);
        }
        let count = [2, 2, 2, 3, 3, 4][self.random.below(6)];
        let mut text = self.operand(depth);
        for _ in 1..count {
            // Mixed chains are rare.
            let is_near = (kind == 0) != self.random.once_in(12);
            let operator = match is_near {
                true => format!("NEAR/{}", [1, 2, 3, 5, 10, 30, 100][self.random.below(7)]),
                false => "<<".to_owned(),
            };
            text = format!("{text} {operator} {}", self.operand(depth));
        }
        text
    }

    /// An operand that is not excluded.
    fn operand(&mut self, depth: usize) -> String {
        match self.random.below(10) {
            0..=5 => self.keyword(),
            6 => self.phrase(),
            7 => self.or(depth),
            _ => self.item(depth),
        }
    }

    fn or(&mut self, depth: usize) -> String {
        let mut text = self.item(depth);
        while self.random.once_in(5) {
            let operator = self.random.pick(&[" | ", " | ", " | ", "|", " MAYBE "]);
            text = format!("{text}{operator}{}", self.item(depth));
        }
        text
    }

    fn item(&mut self, depth: usize) -> String {
        let limit = if self.random.once_in(10) { self.limit() } else { String::new() };
        if self.wanted == QueryStyle::Marked && self.random.once_in(4) {
            return limit + &self.unit();
        }
        let atom = match self.random.below(20) {
            0..=10 => self.keyword(),
            11..=13 if depth > 0 => format!("({})", self.and(depth - 1)),
            14 | 15 => self.phrase(),
            16 => format!("{}~{}", self.phrase(), self.random.between(1, 12)),
            17 | 18 => self.quorum(),
            19 if self.random.once_in(3) => self.unit(),
            _ => self.keyword(),
        };
        limit + &atom
    }

    /// `"a b c"`, sometimes with gaps.
    fn phrase(&mut self) -> String {
        let count = self.random.between(1, 4);
        let mut words = Vec::new();
        for _ in 0..count {
            while !words.is_empty() && self.random.once_in(8) {
                words.push("*".to_owned());
            }
            let word = if self.random.once_in(6) { self.keyword() } else { self.word() };
            words.push(word);
        }
        let exact = if self.random.once_in(25) { "=" } else { "" };
        format!("{exact}\"{}\"", words.join(" "))
    }

    fn quorum(&mut self) -> String {
        let count = self.random.between(1, 6);
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        let threshold = match self.random.below(4) {
            0 => format!("0.{}", self.random.between(1, 99)),
            1 => "1".to_owned(),
            _ => self.random.between(1, count + 1).to_string(),
        };
        format!("\"{}\"/{threshold}", words.join(" "))
    }

    fn long_quorum(&mut self) -> String {
        let count = if self.random.once_in(4) { 256 + self.random.below(3) } else { MANY };
        let words: Vec<&str> = (0..count).map(|_| frequent(self.random, self.corpus)).collect();
        format!("\"{}\"/{}", words.join(" "), self.random.between(1, 6))
    }

    /// `a SENTENCE "b c"`.
    fn unit(&mut self) -> String {
        let operator = self.random.pick(&["SENTENCE", "PARAGRAPH"]);
        let other = if self.random.once_in(2) { self.keyword() } else { self.phrase() };
        let more = match self.wanted == QueryStyle::Marked && self.random.once_in(4) {
            true => format!(" {operator} {}", self.keyword()),
            false => String::new(),
        };
        format!("{} {operator} {other}{more}", self.keyword())
    }

    fn limit(&mut self) -> String {
        if self.wanted == QueryStyle::Marked && !self.random.once_in(4) {
            return marked::limit(self.random);
        }
        let (one, two) = (self.field(), self.field());
        let which = match self.random.below(12) {
            0..=4 => one,
            5 => format!("!{one}"),
            6 => return "@* ".to_owned(),
            7 => format!("({one},{two})"),
            8 => format!("!({one},{two})"),
            9 => format!("({one})"),
            10 if self.relaxed || self.random.once_in(10) => "nosuch".to_owned(),
            11 if self.relaxed || self.random.once_in(10) => format!("(nosuch,{one})"),
            _ => one,
        };
        let range = match self.random.once_in(4) {
            true => format!("[{}]", [1, 2, 3, 5, 10][self.random.below(5)]),
            false => String::new(),
        };
        format!("@{which}{range} ")
    }

    fn field(&mut self) -> String {
        let name = &self.corpus.fields[self.random.below(self.corpus.fields.len())];
        if self.random.once_in(20) { name.to_uppercase() } else { name.clone() }
    }

    /// A word with optional modifiers.
    fn keyword(&mut self) -> String {
        let word = match self.wanted {
            QueryStyle::Wildcards if self.random.once_in(2) => self.wildcard(),
            _ => self.word(),
        };
        let exact = if self.random.once_in(15) { "=" } else { "" };
        let start = if self.random.once_in(25) { "^" } else { "" };
        let end = if self.random.once_in(25) { "$" } else { "" };
        let boost = match self.random.once_in(12) {
            true => format!("^{}", self.random.pick(&BOOSTS)),
            false => String::new(),
        };
        format!("{exact}{start}{word}{end}{boost}")
    }

    fn word(&mut self) -> String {
        let word = self.plain_word();
        if self.random.once_in(25) { word.to_uppercase() } else { word.to_owned() }
    }

    fn plain_word(&mut self) -> &'a str {
        if self.wanted == QueryStyle::Repeated && !self.random.once_in(20) {
            return self.words[self.random.below(self.words.len())];
        }
        let unknown = self.random.once_in(30);
        for _ in 0..40 {
            let word = match unknown {
                true => self.random.pick(&UNKNOWN),
                false => frequent(self.random, self.corpus),
            };
            if !self.used.contains(&word) {
                self.used.push(word);
                return word;
            }
        }
        // A query longer than the vocabulary repeats words after all.
        frequent(self.random, self.corpus)
    }

    /// `al*`, `*pha`, `*lph*`, `al?ha` and the like of a word that documents have.
    fn wildcard(&mut self) -> String {
        let word = frequent(self.random, self.corpus);
        let from = self.random.below(word.len());
        let to = self.random.between(from + 1, word.len());
        let (before, part, behind) = (&word[..from], &word[from..to], &word[to..]);
        match self.random.below(8) {
            0 | 1 => format!("{before}{part}*"),
            2 => format!("*{part}{behind}"),
            3 => format!("*{part}*"),
            4 => format!("{before}?{}", &word[from + 1..]),
            5 => format!("{before}%{part}{behind}"),
            6 => format!("{before}{part}%"),
            _ => format!("{before}*{behind}"),
        }
    }
}
