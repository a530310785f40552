//! The analysis compared with the results of Sphinx 2.2.11.

mod documents;
mod queries;

use super::*;

/// Texts under some settings, each with the expected result.
struct Case {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    files: &'static [(&'static str, &'static str)],
    texts: &'static [(&'static str, &'static str)],
}

fn analyzer(settings: &[(&str, &str)], files: &[(&str, &str)]) -> Analyzer {
    let mut all = Settings::default();
    settings.iter().for_each(|(name, value)| all.set(name, value).unwrap());
    let mut read = |name: &str| {
        let (_, text) = files.iter().find(|(other, _)| *other == name).unwrap();
        Ok((*text).to_owned())
    };
    Analyzer::new(&all, &Files::read(&all, &mut read).unwrap()).unwrap()
}

/// The distinct keywords of a field as `position:keyword`, sorted.
fn keywords(analyzer: &Analyzer, text: &str) -> String {
    let mut found = std::collections::BTreeSet::new();
    let mut last = 0;
    let mut scratch = Scratch::default();
    let count = analyzer.document(text, &mut scratch, &mut |keyword: &str, position: u32| {
        assert!(position >= last.max(1), "{text}");
        last = position;
        found.insert((position, keyword.to_owned()));
    });
    assert_eq!(count, last);
    found.into_iter().map(|(at, word)| format!("{at}:{word}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn documents_have_the_keywords_of_sphinx() {
    let mut wrong = Vec::new();
    for case in documents::CASES {
        let analyzer = analyzer(case.settings, case.files);
        for (text, expected) in case.texts {
            let found = keywords(&analyzer, text);
            if found != *expected {
                wrong.push(format!(
                    "{}: {text:?}\n  found    {found}\n  expected {expected}",
                    case.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The positions that Sphinx's `@title[N]` shows of these texts.
#[test]
fn phrases_end_at_boundaries() {
    let settings = [("phrase_boundary", "., ?"), ("phrase_boundary_step", "10")];
    let analyzer = analyzer(&settings, &[]);
    for (text, expected) in [
        (". alpha beta", "11:alpha 12:beta"),
        ("alpha. beta", "1:alpha 12:beta"),
        ("alpha.beta", "1:alpha 2:beta"),
        ("alpha . beta", "1:alpha 12:beta"),
        ("alpha .. ? beta", "1:alpha 12:beta"),
        ("alpha.", "1:alpha"),
        ("alpha.-beta", "1:alpha 12:beta"),
        ("alpha, the. beta", "1:alpha 2:the 13:beta"),
    ] {
        assert_eq!(keywords(&analyzer, text), expected, "{text}");
    }
}

/// What is replaced before a text is split, and what is cut out of blended words.
#[test]
fn filters_and_modes_of_blending_act_on_documents() {
    let filter = [("regexp_filter", "(\\d+)\" => \\1 inch; (blue|red) => color")];
    let filter = analyzer(&filter, &[]);
    assert_eq!(keywords(&filter, "red 5\" long"), "1:color 2:5 3:inch 4:long");
    assert_eq!(&*filter.replaced("blue | red"), "color | color");
    let html = analyzer(&[("html_strip", "1"), ("regexp_filter", "b => x")], &[]);
    assert_eq!(keywords(&html, "<b>ab</b>"), "1:ax");
    // Where nothing is marked, the codes of marks are characters like others.
    let codes = "ab\u{4}bb\u{4}b\u{3}b";
    assert_eq!(keywords(&html, codes), "1:ax 2:xx 3:x 4:x");
    assert_eq!(html.stripped(codes, false), codes);
    let trim = analyzer(&[("blend_chars", "&, ."), ("blend_mode", "trim_all, trim_none")], &[]);
    assert_eq!(keywords(&trim, "@u.s.a."), "1:u 1:u.s.a. 1:usa 2:s 3:a");
}

/// The words of a query with their positions, as a parser counts them.
fn words(analyzer: &Analyzer, query: &str) -> String {
    let stop_step = analyzer.settings().stopword_step();
    let (mut position, mut is_quoted, mut is_exact) = (0, false, false);
    let (mut found, mut start) = (Vec::new(), 0);
    for token in analyzer.query(query) {
        assert!(token.start >= start && token.end <= query.len() && token.start <= token.end);
        start = token.start;
        match token.kind {
            QueryTokenKind::Special('"') => is_quoted ^= true,
            QueryTokenKind::Special('=') => is_exact = true,
            QueryTokenKind::Special('*') => {
                position += u32::from(is_quoted || analyzer.settings().has_wildcards());
            }
            QueryTokenKind::Special(_) => {}
            QueryTokenKind::Word { word, is_stop, positions } => {
                position += token.skipped;
                let exact = if std::mem::take(&mut is_exact) { "=" } else { "" };
                if !is_stop {
                    found.push(format!("{}:{exact}{word}", position + 1));
                }
                position = position + positions + if is_stop { stop_step } else { 1 } - 1;
            }
        }
    }
    found.join(" ")
}

#[test]
fn queries_have_the_words_of_sphinx() {
    let mut wrong = Vec::new();
    for case in queries::CASES {
        let analyzer = analyzer(case.settings, case.files);
        for (text, expected) in case.texts {
            let found = words(&analyzer, text);
            if found != *expected {
                wrong.push(format!(
                    "{}: {text:?}\n  found    {found}\n  expected {expected}",
                    case.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pseudorandom numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// The pieces of random texts.
#[rustfmt::skip]
const PIECES: [&str; 44] = [
    "a",
    "b",
    "the",
    "new",
    " york",
    "running",
    "C++",
    "AT & T",
    "&",
    "+",
    "-",
    "\\",
    "\"",
    "*",
    "?",
    "%",
    "(",
    ")",
    "|",
    "!",
    "@f",
    "~3",
    "/2",
    "^",
    "$",
    "=",
    "<<",
    " ",
    "  ",
    "\t",
    "\n",
    "é",
    "日",
    "本語",
    "\u{ad}",
    "\u{10400}",
    "\0",
    "<b>",
    "</",
    "<!--",
    "&eacute;",
    "<a title='x'>",
    "ё",
    "'",
];

/// Combinations of settings that no other case has.
const MORE: Case = Case {
    name: "more",
    settings: &[
        ("charset_table", "0..9, english, russian, U+E9, -, $"),
        ("ngram_len", "2"),
        ("ngram_chars", "U+3000..U+2FA1F"),
        ("blend_chars", "&, +, U+2A"),
        ("exceptions_list", "C++ => cplusplus; AT & T => AT&T"),
        ("wordforms_list", "new york > ny; a b > c d e; a > b"),
        ("morphology", "stem_en, libstemmer_fr, soundex"),
        ("stopwords_list", "the"),
        ("min_infix_len", "1"),
        ("html_strip", "1"),
        ("html_index_attrs", "a=title"),
    ],
    files: &[],
    texts: &[],
};

#[test]
fn any_text_passes_the_analyzer() {
    let mut random = Random(7);
    let mut all: Vec<_> = documents::CASES.iter().chain(queries::CASES).collect();
    all.push(&MORE);
    for case in all {
        let analyzer = analyzer(case.settings, case.files);
        for _ in 0..200 {
            let count = random.below(12);
            let text: String = (0..count).map(|_| PIECES[random.below(PIECES.len())]).collect();
            keywords(&analyzer, &text);
            words(&analyzer, &text);
            let mut tokens = analyzer.query(&text);
            // A parser may continue at any place.
            for _ in 0..10 {
                let at = random.below(text.len() + 1);
                if text.is_char_boundary(at) {
                    tokens.seek(at);
                }
                let _ = tokens.next();
            }
        }
    }
}

/// Words of scripts without spaces are found by their characters, unless the settings say what words are made of.
#[test]
fn scripts_without_spaces_are_cut_into_characters() {
    let text = "東京タワー、Tokyo 2020年";
    let cut = "1:東 2:京 3:タ 4:ワ 5:ー 6:tokyo 7:2020 8:年";
    let whole = "1:東京タワー 2:tokyo 3:2020年";
    assert_eq!(keywords(&analyzer(&[], &[]), text), cut);
    assert_eq!(keywords(&analyzer(&[("ngram_len", "1")], &[]), text), cut);
    assert_eq!(keywords(&analyzer(&[("ngram_len", "0")], &[]), text), whole);
    assert_eq!(keywords(&analyzer(&[("charset_table", "non_cont, cont")], &[]), text), whole);
    assert_eq!(keywords(&analyzer(&[("charset_table", "sphinx22")], &[]), text), "1:tokyo 2:2020");
    let only = [("ngram_chars", "U+6771")];
    assert_eq!(keywords(&analyzer(&only, &[]), text), "1:東 2:京タワー 3:tokyo 4:2020年");
    assert_eq!(words(&analyzer(&[], &[]), "東京 tokyo"), "1:東 2:京 3:tokyo");
}

#[test]
fn stems_are_those_of_sphinx() {
    // Each line: the morphology, a word and its stem by Sphinx or the library it uses.
    let mut made: std::collections::HashMap<&str, Analyzer> = std::collections::HashMap::new();
    let mut wrong = Vec::new();
    for line in include_str!("stems.tsv").lines() {
        let parts: Vec<_> = line.split('\t').collect();
        let [morphology, word, expected] = parts[..] else { panic!("{line}") };
        let analyzer =
            made.entry(morphology).or_insert_with(|| analyzer(&[("morphology", morphology)], &[]));
        let found = analyzer.keyword(word, false).unwrap();
        if found != expected {
            wrong.push(format!("{line}, found {found}"));
        }
    }
    assert!(made.len() > 15 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Positions that Sphinx's `@title[N]`, SENTENCE, PARAGRAPH and ZONE tell of these texts.
#[test]
fn marks_take_positions_like_words() {
    let zones = ("index_zones", "h*, note");
    let all = analyzer(&[("html_strip", "1"), ("index_sp", "1"), zones], &[]);
    let shown = |analyzer: &Analyzer, text: &str| {
        let marks =
            [("\u{3}sentence", "S"), ("\u{3}paragraph", "P"), ("\u{4}/", "</"), ("\u{4}", "<")];
        marks.iter().fold(keywords(analyzer, text), |found, (mark, name)| found.replace(mark, name))
    };
    for (text, expected) in [
        ("a b. C d", "1:a 2:b 3:S 4:c 5:d"),
        ("a b. c J. D e.", "1:a 2:b 3:c 4:j 5:d 6:e 7:S"),
        ("a <p> b</p> c", "1:a 2:P 2:S 3:b 4:P 4:S 5:c"),
        ("a.</p><p>B", "1:a 2:S 3:P 3:S 4:b"),
        ("a<p><H1 id=x>b</h1><p> c", "1:a 2:P 2:S 2:<h1 3:b 4:P 4:S 4:</h1 5:c"),
        ("a. \n b<b>c</b>&#3;d&amp;", "1:a 2:bc 3:d"),
        ("<note.x>a", "1:a"),
        ("<note>a\u{4}h1\u{4}b\u{3}c", "1:P 1:S 1:<note 2:a 3:h1 4:b 5:c"),
    ] {
        assert_eq!(shown(&all, text), expected, "{text}");
    }
    let long = format!("<h{0}>a", "x".repeat(64));
    assert_eq!(shown(&all, &long), "1:a");
    let only_signs = analyzer(&[("index_sp", "1"), zones, ("regexp_filter", "x => y! ")], &[]);
    assert_eq!(shown(&only_signs, "ax <p>b\u{3}c"), "1:ay 2:S 3:p 4:b 5:c");
    let only_zones = analyzer(&[("html_strip", "1"), zones, ("min_word_len", "2")], &[]);
    assert_eq!(
        shown(&only_zones, "aa b <h2>cc! dd</h2>"),
        "1:aa 3:P 3:S 3:<h2 4:cc 5:dd 6:P 6:S 6:</h2"
    );
    let plain = analyzer(&[("html_strip", "1")], &[]);
    assert_eq!(shown(&plain, "a. B <p>c <h1>d"), "1:a 2:b 3:c 4:d");
}
