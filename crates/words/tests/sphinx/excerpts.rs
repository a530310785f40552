//! Excerpts and keywords of random texts and queries, compared with Sphinx.

use std::{fmt::Write as _, rc::Rc, sync::Arc};

use remora_words::{
    analysis::Analyzer,
    keywords,
    settings::{Files, Settings},
};

use crate::{
    corpus::{Corpus, Document, Vocabulary},
    excerpt_case::{
        Case,
        Value::{self, Number, Text},
    },
    random::Random,
    run,
    server::{Index, Server},
};

/// The settings of one group of queries.
struct Kind {
    name: &'static str,
    settings: &'static [&'static str],
    vocabulary: Vocabulary,
    options: fn(&mut Random) -> Vec<(&'static str, Value)>,
    /// The percentage of answers that may differ: by the choice between passages of equal weight, by their boundaries,
    /// and in query mode by repeated words of a proximity.
    most_different: usize,
}

const KINDS: [Kind; 10] = [
    Kind {
        name: "default options",
        settings: &[],
        vocabulary: Vocabulary::Natural,
        options: |_| Vec::new(),
        most_different: 2,
    },
    Kind {
        name: "default options, few words",
        settings: &[],
        vocabulary: Vocabulary::Tiny,
        options: |_| Vec::new(),
        most_different: 12,
    },
    Kind {
        name: "limits",
        settings: &[],
        vocabulary: Vocabulary::Natural,
        options: |random| {
            let mut options = vec![("limit", Number(random.between(1, 400) as u32))];
            options.push(("around", Number(random.between(0, 8) as u32)));
            match random.below(4) {
                0 => options.push(("limit_passages", Number(random.between(1, 4) as u32))),
                1 => options.push(("limit_words", Number(random.between(1, 40) as u32))),
                _ => {}
            }
            options
        },
        most_different: 8,
    },
    Kind {
        name: "the whole text",
        settings: &["html_strip = 1"],
        vocabulary: Vocabulary::Natural,
        options: |random| {
            let mut options = vec![("limit", Number(0))];
            let modes = ["none", "index", "strip", "retain"];
            options.push(("html_strip_mode", Text(random.pick(&modes))));
            options.push(("before_match", Text("[%PASSAGE_ID%:")));
            options
        },
        most_different: 1,
    },
    Kind {
        name: "morphology",
        settings: &["morphology = stem_en"],
        vocabulary: Vocabulary::Inflected,
        options: |_| Vec::new(),
        most_different: 10,
    },
    Kind {
        name: "wildcards",
        settings: &["min_infix_len = 2"],
        vocabulary: Vocabulary::Natural,
        options: |_| Vec::new(),
        most_different: 6,
    },
    Kind {
        name: "query_mode",
        settings: &[],
        vocabulary: Vocabulary::Tiny,
        options: |_| vec![("query_mode", Number(1)), ("limit", Number(0))],
        most_different: 12,
    },
    Kind {
        name: "flags",
        settings: &[],
        vocabulary: Vocabulary::Natural,
        options: |random| {
            let flags = ["exact_phrase", "weight_order", "allow_empty"];
            vec![(random.pick(&flags), Number(1))]
        },
        most_different: 6,
    },
    Kind {
        name: "force_all_words",
        settings: &[],
        vocabulary: Vocabulary::Natural,
        options: |_| vec![("force_all_words", Number(1))],
        most_different: 16,
    },
    Kind {
        name: "sentences",
        settings: &[],
        vocabulary: Vocabulary::Natural,
        options: |_| vec![("passage_boundary", Text("sentence"))],
        most_different: 2,
    },
];

/// The default number of texts of each kind; `REMORA_QUERIES` overrides it.
const TEXTS: usize = 400;
/// The most cases of each kind in a report.
const SHOWN: usize = 4;

#[test]
fn excerpts() {
    let seed = run::seed();
    let count = run::count(TEXTS);
    let mut random = Random::named(seed, "excerpts");
    let corpus = |kind: &Kind, random: &mut Random| {
        let mut corpus = Corpus::random(random, kind.vocabulary, kind.settings);
        corpus.fields.truncate(1);
        corpus.documents = vec![Document { id: 1, fields: vec!["alpha".to_owned()] }];
        Rc::new(corpus)
    };
    let corpora: Vec<Rc<Corpus>> = KINDS.iter().map(|kind| corpus(kind, &mut random)).collect();
    let index = |corpus: &Rc<Corpus>| Index { corpus: Rc::clone(corpus), shards: 1 };
    let server = Server::start(&corpora.iter().map(index).collect::<Vec<Index>>());
    let mut failed = String::new();
    for (number, kind) in KINDS.iter().enumerate() {
        let analyzer = Arc::new(analyzer(&corpora[number]));
        let mut client = server.connect().unwrap();
        let (mut different, mut marked, mut shown) = (0, 0, String::new());
        for _ in 0..count {
            let case = case(kind, &corpora[number], &mut random);
            let theirs = client.excerpt(&Server::name(number), &case).unwrap();
            let ours = case.excerpt(&analyzer);
            marked += usize::from(theirs.as_ref().is_ok_and(|text| *text != case.document));
            if ours != theirs {
                different += 1;
                if different <= SHOWN {
                    write!(shown, "{case:?}\n  theirs {theirs:?}\n  ours   {ours:?}\n").unwrap();
                }
            }
        }
        println!(
            "excerpts, {}, seed {seed}: {different} of {count} differ, {marked} marked",
            kind.name
        );
        if different * 100 > count * kind.most_different {
            write!(failed, "{}: {different} of {count} differ\n{shown}", kind.name).unwrap();
        }
    }
    assert!(failed.is_empty(), "repeat with REMORA_SEED={seed}:\n{failed}");
}

fn analyzer(corpus: &Corpus) -> Analyzer {
    let mut settings = Settings::default();
    settings.set("charset_table", "sphinx22").unwrap();
    for line in &corpus.settings {
        let (name, value) = line.split_once(" = ").unwrap();
        settings.set(name, value).unwrap();
    }
    let mut read = |name: &str| {
        let file = corpus.files.iter().find(|(other, _)| other == name);
        file.map(|(_, text)| text.clone()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    let files = Files::read(&settings, &mut read).unwrap();
    Analyzer::new(&settings, &files).unwrap()
}

const SEPARATORS: [&str; 8] = [", ", ". ", "; ", " - ", "! ", " (", ") ", "\n"];

fn case(kind: &Kind, corpus: &Corpus, random: &mut Random) -> Case {
    let options = (kind.options)(random);
    let has_marks = kind.settings.contains(&"html_strip = 1");
    let mut document = String::new();
    for number in 0..random.between(1, 200) {
        if number > 0 {
            let plain = !random.once_in(12);
            document.push_str(if plain { " " } else { random.pick(&SEPARATORS) });
        }
        if has_marks && random.once_in(10) {
            let marks = ["<p>", "</p>", "<i>", "</i>", "<br/>", "<a href=\"be\">", "&amp;"];
            document.push_str(random.pick(&marks));
        }
        document.push_str(&word(corpus, random));
    }
    Case { query: query(kind, corpus, random), document, options }
}

fn word(corpus: &Corpus, random: &mut Random) -> String {
    let share = random.share();
    let place = corpus.vocabulary.len() as f64 * share * share;
    let word = &corpus.vocabulary[place as usize];
    if random.once_in(20) { word.to_uppercase() } else { word.clone() }
}

fn query(kind: &Kind, corpus: &Corpus, random: &mut Random) -> String {
    let count = random.between(1, 5);
    let mut words: Vec<String> = (0..count).map(|_| word(corpus, random)).collect();
    if kind.settings.contains(&"min_infix_len = 2") {
        for word in words.iter_mut().filter(|word| word.len() > 3) {
            match random.below(4) {
                0 => word.replace_range(3.., "*"),
                1 => word.replace_range(..word.len() - 3, "*"),
                _ => {}
            }
        }
    }
    if kind.name == "query_mode" {
        let joints = [" ", " | ", " -", " MAYBE "];
        let joint = random.pick(&joints);
        let text = words.join(joint);
        return match random.below(4) {
            0 => format!("\"{}\"", words[..count.min(3)].join(" ")),
            1 => format!("\"{}\"~{}", words.join(" "), random.between(1, 6)),
            2 if count > 2 => format!("\"{}\"/{}", words.join(" "), random.between(1, count - 1)),
            _ => text,
        };
    }
    words.join(" ")
}

#[test]
fn keywords_of_texts() {
    let seed = run::seed();
    let count = run::count(TEXTS);
    let mut random = Random::named(seed, "keywords_of_texts");
    let settings: [&[&str]; 5] = [
        &[],
        &["morphology = stem_en"],
        &["morphology = stem_en", "min_infix_len = 2"],
        &["blend_chars = &, -"],
        &["min_word_len = 4", "stopword_step = 0"],
    ];
    let mut corpora = Vec::new();
    for settings in settings {
        let mut corpus = Corpus::random(&mut random, Vocabulary::Inflected, settings);
        corpus.fields.truncate(1);
        corpus.documents = vec![Document { id: 1, fields: vec!["alpha".to_owned()] }];
        let (first, third) = (corpus.vocabulary[0].clone(), corpus.vocabulary[2].clone());
        let is_last = settings.contains(&"stopword_step = 0");
        let corpus = if is_last { corpus.with_stopwords(&[&first, &third]) } else { corpus };
        corpora.push(Rc::new(corpus));
    }
    let index = |corpus: &Rc<Corpus>| Index { corpus: Rc::clone(corpus), shards: 1 };
    let server = Server::start(&corpora.iter().map(index).collect::<Vec<Index>>());
    let mut sql = server.connect_sql().unwrap();
    let (mut different, mut shown) = (0, String::new());
    for number in 0..count {
        let which = number % corpora.len();
        let corpus = &corpora[which];
        let analyzer = analyzer(corpus);
        let joints = [" ", " ", " ", ", ", " -", "-", "&", "* ", " *", " & ", " \"", " ="];
        let mut text = word(corpus, &mut random);
        for _ in 0..random.below(10) {
            text.push_str(random.pick(&joints));
            text.push_str(&word(corpus, &mut random));
        }
        let statement = format!("CALL KEYWORDS('{text}', '{}')", Server::name(which));
        let theirs = sql.rows(&statement).unwrap().unwrap();
        let row = |keyword: &keywords::Keyword| {
            let keywords::Keyword { position, tokenized, normalized } = keyword;
            vec![position.to_string(), tokenized.clone(), normalized.clone()]
        };
        let ours: Vec<_> = keywords::keywords(&text, &analyzer).iter().map(row).collect();
        if ours != theirs {
            different += 1;
            write!(shown, "{which} {text}\n  theirs {theirs:?}\n  ours   {ours:?}\n").unwrap();
        }
    }
    println!("keywords of texts, seed {seed}: {different} of {count} differ");
    assert!(different * 100 <= count * 3, "repeat with REMORA_SEED={seed}:\n{shown}");
}
