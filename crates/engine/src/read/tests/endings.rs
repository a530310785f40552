//! Searches by keywords end where they are told to: whatever is asked, and wherever they are.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use remora_words::{
    rank::{Expression, Ranker},
    settings::Settings,
};

use super::{
    random::Random,
    searches::term,
    table::{BM25, BODY, CATEGORY, POSITION, Stored, TITLE, row, schema, single, view},
};
use crate::{
    Ending, Error, FacetRequest, FactorsForm, IndexColumn, IndexDef, Interrupt, KeywordQuery,
    Result, ScanRequest, Schema, SearchRequest, Selection, SortBy, SortKey, TextQuery, Value,
    ValuesRequest, WordsDef,
    interrupt::InterruptCheck,
    read::{
        facet::facet,
        ranked::{ALONE, Ranked},
        runs::values_in_order,
        scan::ViewScan,
        search::{access, best, count, search},
    },
    register_text_key,
    snapshot::TableView,
};

/// Rows that are there.
const ROWS: i64 = 900;
/// Postings that are read between two looks, in tests.
const POSTINGS: usize = 16;

/// Lets a read go on for so many looks.
pub(super) struct After {
    pub looks: AtomicUsize,
    pub most: usize,
}

impl Interrupt for After {
    fn ending(&self) -> Option<Ending> {
        let before = self.looks.fetch_add(1, Ordering::Relaxed);
        (before >= self.most).then_some(Ending::Interrupted)
    }
}

/// Three segments, of whose rows some are gone. Each has a word of its own, most have `often`.
fn table() -> Arc<TableView> {
    let mut settings = Settings::default();
    settings.set("min_infix_len", "1").unwrap();
    let words = WordsDef::new(9, vec![TITLE, BODY], &settings, Vec::new()).unwrap();
    let mut random = Random::new(7);
    let mut segments: Vec<Vec<Stored>> = (0..3).map(|_| Vec::new()).collect();
    for id in 1..=ROWS + ROWS / 9 {
        let mut body = format!("own{id}");
        for (word, share) in [("often", 80), ("a", 50), ("b", 50), ("c", 30), ("often", 40)] {
            if random.chance(share) {
                body = format!("{body} {word}");
            }
        }
        let title = if random.chance(40) { "often b" } else { "a" };
        let stored = Stored { row: row(id, title, &body), deleted: id > ROWS };
        segments[(id % 3) as usize].push(stored);
    }
    Arc::new(view(Schema { words: Some(words), ..schema(false) }, segments))
}

/// Something that is asked, with the queries that it is asked by and how many looks there are at least.
type Form = (&'static str, fn(&Arc<TableView>, &KeywordQuery, &InterruptCheck) -> Result<()>);

fn selection(query: &KeywordQuery) -> Selection {
    Selection { text: Some(TextQuery::Keywords(query.clone().into())), ..Selection::default() }
}

fn page(query: &KeywordQuery, limit: usize) -> SearchRequest {
    let key = SortKey { by: SortBy::Key, descending: false };
    let sort = vec![SortKey { by: SortBy::Score, descending: true }, key];
    SearchRequest { selection: selection(query), sort, limit, ..term("") }
}

fn scanned(view: &Arc<TableView>, query: &KeywordQuery, unless: &InterruptCheck) -> Result<()> {
    let asked = TextQuery::Keywords(query.clone().into());
    let request = ScanRequest {
        text: Some(asked.clone()),
        columns: vec![0],
        scores: vec![asked],
        batch_rows: 50,
        ..ScanRequest::default()
    };
    let scan = ViewScan::new(Arc::clone(view), request, BM25, (POSITION, unless))?;
    scan.into_iter().try_for_each(|batch| batch.map(drop))
}

/// What weighs each row that is found, or a part of them.
const WEIGHED: [Form; 3] = [
    ("the best rows", |view, query, unless| {
        best(view, &page(query, 5), (POSITION, unless)).map(drop)
    }),
    ("every row", |view, query, unless| {
        search(view, &page(query, 100_000), BM25, (POSITION, unless)).map(drop)
    }),
    ("a scan", scanned),
];

/// What asks which rows are found.
const FOUND: [Form; 4] = [
    ("the best rows, counted", |view, query, unless| {
        search(view, &page(query, 5), BM25, (POSITION, unless)).map(drop)
    }),
    ("how many", |view, query, unless| {
        count(view, &selection(query), (POSITION, unless)).map(drop)
    }),
    ("the values", |view, query, unless| {
        let request = FacetRequest {
            selection: selection(query),
            column: "number".to_owned(),
            ..FacetRequest::default()
        };
        facet(view, &request, (POSITION, unless)).map(drop)
    }),
    ("how they are found", |view, query, unless| access(view, &selection(query), unless).map(drop)),
];

/// What asks of the vocabulary.
const TOLD: [Form; 3] = [
    ("what it is made of", |view, query, unless| Ranked::report(view, query, unless).map(drop)),
    ("how often a word stands there", |view, _, unless| {
        Ranked::counts(view, "often", unless).map(drop)
    }),
    ("each word", |view, _, unless| Ranked::for_each_keyword(view, &mut |_, _| {}, unless)),
];

/// Runs it whole, and again with an end after each of so many looks. It looks `least` times or more, and never again
/// once it was told to end. It runs on one thread, so that it looks as often each time.
fn check(view: &Arc<TableView>, (name, run): Form, query: &KeywordQuery, least: usize) {
    ALONE.set(true);
    let after = |most| {
        let after = Arc::new(After { looks: AtomicUsize::new(0), most });
        let interrupt: Arc<dyn Interrupt> = Arc::<After>::clone(&after);
        let ended = run(view, query, &InterruptCheck::new(interrupt));
        (ended, after.looks.load(Ordering::Relaxed))
    };
    let (ended, looks) = after(usize::MAX);
    assert!(ended.is_ok(), "{name} of {}: {ended:?}", query.text);
    assert!(looks >= least, "{name} of {}: {looks} looks and not {least}", query.text);
    let step = looks.div_ceil(12);
    for most in (0..looks).step_by(step).chain([looks - 1]) {
        let (ended, told) = after(most);
        let is_ended = matches!(ended, Err(Error::Ended(Ending::Interrupted)));
        assert!(is_ended, "{name} of {} after {most} of {looks} looks: {ended:?}", query.text);
        assert_eq!(told, most + 1, "{name} of {} went on", query.text);
    }
}

fn asked(text: &str, ranker: &str) -> KeywordQuery {
    let ranker = Ranker::by_name(ranker).unwrap();
    KeywordQuery { text: text.to_owned(), ranker, ..KeywordQuery::default() }
}

#[test]
fn interrupted_read_reads_no_further_block() {
    let view = table();
    let all = ROWS as usize;
    // Of these the weights cannot be told without a look at each row that is found, a third and more of all.
    for text in ["\"often a\"", "\"a b c\"/2", "a MAYBE \"often b\"", "often -c", "a NEAR/3 b"] {
        let query = asked(text, "wordcount");
        WEIGHED.into_iter().for_each(|form| check(&view, form, &query, 3));
        check(&view, WEIGHED[1], &query, all / 8 / POSTINGS);
    }
    // Positions say which rows these are.
    for text in ["\"often a\"", "a << b", "\"a b c\"~4", "^own1* | \"a b\"", "@body[2] often"] {
        let query = asked(text, "proximity_bm25");
        FOUND.into_iter().for_each(|form| check(&view, form, &query, all / 3 / POSTINGS));
    }
    // The documents of words alone.
    for text in ["often", "a b c", "often | a | b", "often often often a", "\"a b c often\"/3"] {
        let query = asked(text, "proximity_bm25");
        FOUND.into_iter().skip(1).for_each(|form| check(&view, form, &query, 3));
        check(&view, WEIGHED[0], &query, 3);
        check(&view, WEIGHED[1], &query, all / 3 / POSTINGS);
    }
    // Each of many keywords, and each of their documents.
    for text in ["own*", "*n1*", "often | own*"] {
        let query = asked(text, "proximity_bm25");
        for form in WEIGHED.into_iter().chain(FOUND).chain([TOLD[0]]) {
            check(&view, form, &query, 200 / POSTINGS);
        }
    }
    for form in TOLD {
        check(&view, form, &asked("often a", "bm25"), all / 2 / POSTINGS);
    }
}

/// Of several threads each may look once after the end.
#[test]
fn threads_of_a_read_end_with_it() {
    let view = table();
    let query = asked("often | a | b", "proximity_bm25");
    for most in 0..200 {
        ALONE.set(false);
        let after = Arc::new(After { looks: AtomicUsize::new(0), most });
        let interrupt: Arc<dyn Interrupt> = Arc::<After>::clone(&after);
        let ended = WEIGHED[0].1(&view, &query, &InterruptCheck::new(interrupt));
        let looks = after.looks.load(Ordering::Relaxed);
        match ended {
            Ok(()) => assert!(looks <= most, "{looks} looks, told to end after {most}"),
            Err(error) => {
                assert!(matches!(error, Error::Ended(Ending::Interrupted)), "{error:?}");
                assert!(looks <= most + 16, "{looks} looks, told to end after {most}");
            }
        }
    }
}

#[test]
fn ranking_expressions_and_factors_are_interruptible() {
    let view = table();
    let expression = Expression::parse("sum(hit_count*user_weight)+bm25a(1.2,0.7)", &()).unwrap();
    let ranker = Ranker::Expression(Arc::new(expression));
    let query = KeywordQuery { text: "often | a".to_owned(), ranker, ..KeywordQuery::default() };
    for form in WEIGHED.into_iter().chain(FOUND) {
        check(&view, form, &query, 3);
    }
    let all = ROWS as usize;
    check(&view, WEIGHED[1], &query, all / 2 / POSTINGS);
    let query = KeywordQuery { factors: Some(FactorsForm::default()), ..query };
    check(&view, ("factors", scanned), &query, all / 2 / POSTINGS);
}

/// Values that are read along an index.
const VALUES: i64 = 60;

/// Of texts that may be one value each row is looked at, of which it is asked like of postings.
#[test]
fn values_along_an_index_of_texts_end_within_a_few_rows() {
    register_text_key(|_, text, key| key.extend(text.to_ascii_lowercase()));
    let by_category =
        IndexColumn { column: CATEGORY, descending: false, order: Some(3), prefix: None };
    let indexes = vec![IndexDef { columns: vec![by_category] }];
    let texts = (0..VALUES * 20).map(|id| format!("c{:02}", id % VALUES));
    // These are one value, behind those that are read.
    let texts = texts.chain(["z".to_owned(), "Z".to_owned()]);
    let rows = texts.enumerate().map(|(id, text)| {
        let mut row = row(id as i64, "", "");
        row[CATEGORY] = Value::Text(text.as_str().into());
        row
    });
    let view = Arc::new(single(Schema { indexes, ..schema(false) }, rows.collect()));
    let form: Form = ("the first values", |view, _, unless| {
        let request = ValuesRequest {
            columns: vec![("category".to_owned(), Some(3))],
            limit: VALUES as usize,
            ..ValuesRequest::default()
        };
        let reply = values_in_order(view, &request, (POSITION, unless))?;
        assert_eq!(reply.map(|reply| reply.values.len()), Some(VALUES as usize));
        Ok(())
    });
    check(&view, form, &KeywordQuery::default(), VALUES as usize);
}
