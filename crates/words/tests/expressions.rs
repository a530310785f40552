//! Hostile ranking expressions, and documents with many hits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Instant};

use remora_words::{
    hits::{Found, Hit},
    rank::{Expression, MAX_EXPRESSION_DEPTH, Query, QueryWord, Ranker, Scorer},
};

const TOKENS: [&str; 48] = [
    "1",
    "2.5",
    ".5",
    "1e3",
    "99999999999999999999",
    "0",
    "-",
    "+",
    "*",
    "/",
    "%",
    "div",
    "mod",
    "(",
    ")",
    ",",
    "{",
    "}",
    "[",
    "]",
    "`",
    "<",
    ">=",
    "<>",
    "=",
    "and",
    "or",
    "not",
    "&",
    "|",
    "sum(",
    "top(",
    "lcs",
    "bm25",
    "bm25a(",
    "bm25f(",
    "max_window_hits(",
    "if(",
    "in(",
    "abs(",
    "interval(",
    "fibonacci(",
    "bitdot(",
    "'x'",
    "nosuch",
    "weight()",
    "é",
    "@",
];

/// Generates random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }
}

fn query(words: u32) -> Query {
    let word = |position: u32| match position {
        0 => QueryWord::default(),
        _ => QueryWord { idf: 0.01, is_first: true, first: Some(position) },
    };
    Query {
        field_weights: vec![1, 2],
        keywords: words as usize,
        has_repeats: false,
        last_position: words,
        words: (0..=words).map(word).collect(),
        field_names: vec!["title".to_owned(), "body".to_owned()],
        totals: vec![10, 20],
        documents: 3,
    }
}

fn weight(expression: Expression, hits: &[Hit]) -> i32 {
    let mut scorer = Scorer::new(Ranker::Expression(Arc::new(expression)), query(4));
    scorer.weight(&Found { fields: 1, sum: 0.1 }, hits, &())
}

fn hit(position: u32, query_position: u32) -> Hit {
    Hit {
        at: position,
        query_position,
        node_position: 0,
        weight: 1,
        span: 1,
        length: 1,
        others: 0,
        is_last: false,
    }
}

#[test]
fn expressions_never_panic() {
    let mut random = Random(20_261_125);
    let hits: Vec<Hit> = (1..9).map(|position| hit(position, 1 + position % 4)).collect();
    let mut understood = 0;
    for _ in 0..40_000 {
        let count = 1 + random.below(14);
        let tokens: Vec<&str> = (0..count).map(|_| TOKENS[random.below(TOKENS.len())]).collect();
        let mut text = tokens.join(" ");
        for _ in 0..random.below(3) {
            text.push(')');
        }
        if let Ok(expression) = Expression::parse(&text, &()) {
            understood += 1;
            weight(expression, &hits);
        }
    }
    assert!(understood > 50, "{understood}");
}

/// The recorded queries to Sphinx: expressions of every form.
const EXPRESSIONS: &str = include_str!("answers/expressions.txt");

#[test]
fn mutated_expressions_never_panic() {
    let mut random = Random(20_261_126);
    let hits: Vec<Hit> = (1..9).map(|position| hit(position, 1 + position % 4)).collect();
    let lines = EXPRESSIONS.lines().filter(|line| !line.starts_with(['#', '[', '=']));
    let lines: Vec<Vec<char>> = lines.map(|line| line.chars().collect()).collect();
    let mut understood = 0;
    for _ in 0..60_000 {
        let mut text = lines[random.below(lines.len())].clone();
        for _ in 0..=random.below(2) {
            let (one, two) = (random.below(text.len()), random.below(text.len()));
            match random.below(4) {
                0 if text.len() > 1 => drop(text.remove(one)),
                1 => text.insert(one, text[two]),
                2 => text.swap(one, two),
                _ => {
                    let other = &lines[random.below(lines.len())];
                    text.insert(one, other[random.below(other.len())]);
                }
            }
        }
        if let Ok(expression) = Expression::parse(&String::from_iter(text), &()) {
            understood += 1;
            weight(expression, &hits);
        }
    }
    assert!(understood > 1000, "{understood}");
}

#[test]
fn too_deep_and_too_long_expressions_are_refused() {
    let deep = 10_000;
    for text in [
        "(".repeat(deep) + "1" + &")".repeat(deep),
        "-".repeat(deep) + "1",
        "not ".repeat(deep) + "1",
        "1".to_owned() + &"&bm25".repeat(deep),
        "abs(".repeat(deep) + "1" + &")".repeat(deep),
        "1".to_owned() + &"-(1".repeat(deep) + &")".repeat(deep),
        "x[".repeat(deep),
    ] {
        let message = Expression::parse(&text, &()).unwrap_err().to_string();
        let limit =
            format!("ranking expression is nested deeper than {MAX_EXPRESSION_DEPTH} levels");
        assert_eq!(message, limit);
    }
    let message = Expression::parse(&"1 ".repeat(40_000), &()).unwrap_err().to_string();
    assert_eq!(message, "ranking expression is longer than 65536 bytes");
    for text in ["", "  \t"] {
        let message = Expression::parse(text, &()).unwrap_err().to_string();
        let missing = "missing ranker expression (use OPTION ranker=expr('1+2') for example)";
        assert_eq!(message, missing);
    }
}

#[test]
fn deepest_allowed_nesting_is_computed() {
    let depth = MAX_EXPRESSION_DEPTH - 1;
    let text = "0".to_owned() + &"|bm25".repeat(depth);
    let expression = Expression::parse(&text, &()).unwrap();
    assert_eq!(weight(expression, &[]), 600);
    // An operand in parentheses is two levels.
    let text = "1+(".repeat(depth / 2) + "bm25" + &")".repeat(depth / 2);
    let expression = Expression::parse(&text, &()).unwrap();
    assert_eq!(weight(expression, &[]), 600 + depth as i32 / 2);
}

/// Chains of `+ - * /` are as long as the text may be, and not nested.
#[test]
fn flat_chains_of_any_length_are_computed() {
    let of = |text: &str| weight(Expression::parse(text, &()).unwrap(), &[]);
    let count = 10_000;
    assert_eq!(of(&("1".to_owned() + &"+bm25".repeat(count))), 1 + 600 * count as i32);
    assert_eq!(of(&("bm25".to_owned() + &"-1+2".repeat(count))), 600 + count as i32);
    assert_eq!(of(&("bm25".to_owned() + &"*1".repeat(count))), 600);
    let power = (0..5_000).fold(1_i32, |power, _| power.wrapping_mul(601));
    assert_eq!(of(&("1".to_owned() + &"*(bm25+1)".repeat(5_000))), power);
    let sum = "+bm25".repeat(3_000);
    let nested = format!("if(bm25{sum}>bm25,abs(-bm25{sum})-(2{sum}),in(bm25{sum},1))");
    assert_eq!(of(&nested), -602);
    let both = format!("(bm25{sum})*(1{sum})+(bm25{sum})/(bm25{sum})");
    assert_eq!(
        of(&both),
        ((600.0 * 3_001.0_f32) * (1.0 + 600.0 * 3_000.0_f32) + 1.0) as i64 as i32
    );
    let mixed = (0..2_000).fold(600.0_f32, |sum, _| sum + 360_000.0 - 1.0);
    assert_eq!(of(&("bm25".to_owned() + &"+bm25*bm25-bm25/bm25".repeat(2_000))), mixed as i32);
}

/// A long chain is computed in the order that Sphinx gives to short ones: constants in front of what stands before them.
#[test]
fn long_chains_round_like_short_ones() {
    let seventh = 1.0_f32 / 7.0 * 600.0;
    for count in [1, 2, 60, 100, 130, 500, 4_000] {
        let text = format!("(bm25/7{})*1000", "+0.1+bm25/7".repeat(count));
        let (mut rest, mut constant) = (seventh, None);
        for _ in 0..count {
            rest = constant.map_or(rest, |before: f32| before + rest);
            constant = Some(0.1_f32);
            rest += seventh;
        }
        let expected = 1000.0 * (constant.unwrap() + rest);
        let expression = Expression::parse(&text, &()).unwrap();
        assert_eq!(weight(expression, &[]), expected as i64 as i32, "{count}");
    }
}

#[test]
fn functions_of_texts_and_times_are_refused_by_name() {
    for name in ["now", "crc32", "geodist", "remap", "zonespanlist", "all", "yearmonthday"] {
        let message = Expression::parse(&format!("1+{name}(1)"), &()).unwrap_err().to_string();
        assert_eq!(message, format!("{name}() is not a function of ranking expressions"));
    }
}

#[test]
fn only_what_needs_hits_asks_for_them() {
    let needs = |text: &str| {
        let expression = Arc::new(Expression::parse(text, &()).unwrap());
        let scorer = Scorer::new(Ranker::Expression(expression), query(2));
        (scorer.needs().hits, scorer.with_factors(false).needs().hits)
    };
    for text in ["bm25", "max_lcs*query_word_count", "ln(bm25)+2"] {
        assert_eq!(needs(text), (false, true), "{text}");
    }
    for text in ["sum(lcs)", "sum(1)", "bm25a(1,1)", "bm25f(1,1)", "field_mask", "doc_word_count"] {
        assert_eq!(needs(text), (true, true), "{text}");
    }
}

/// A pattern of hits with long windows: one word at both ends, others in between.
#[test]
fn many_hits_cost_no_more_each() {
    let text = "sum(lcs+min_gaps+max_window_hits(1000000)+lccs+exact_order+min_best_span_pos)
        +sum(1000*(atc+wlccs+tf_idf))+bm25f(1.2,0.5,{title=2})+bm25a(1,1)";
    let expression = Arc::new(Expression::parse(text, &()).unwrap());
    let mut scorer = Scorer::new(Ranker::Expression(expression), query(4)).with_factors(true);
    let count = 100_000;
    let hits: Vec<Hit> = (1..=count)
        .map(|position| {
            let word = if position % 10_000 == 1 { 1 } else { 2 + position % 2 };
            hit(position, word)
        })
        .collect();
    let begin = Instant::now();
    for _ in 0..5 {
        scorer.weight(&Found { fields: 1, sum: 0.1 }, &hits, &());
    }
    let factors = scorer.factors().unwrap();
    assert_eq!(factors.fields[0].1.hit_count, count);
    assert_eq!(factors.fields[0].1.max_window_hits, count);
    // Half a million hits take a fraction of a second; were each looked at again for each other, it would be hours.
    assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
}
