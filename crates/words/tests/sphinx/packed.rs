//! The texts of `PACKEDFACTORS()`, read from Sphinx by SphinxQL.

use std::rc::Rc;

use crate::{
    collection::Collection,
    compare,
    corpus::{Corpus, Vocabulary},
    engine::{Options, Ranker},
    expressions, known, queries,
    queries::QueryStyle,
    random::Random,
    run,
    server::{Index, Server},
    sql::{Rows, Sql},
};

const QUERIES: usize = 400;
/// The percentage of queries whose text may differ: those with a word both excluded and searched, and those with known
/// differences in matching.
const MOST_DIFFERENT: usize = 5;
/// The most texts in a report.
const SHOWN: usize = 8;

/// The forms of the factors in a query.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Json,
    WithoutCloseness,
}

impl Form {
    fn call(self) -> &'static str {
        match self {
            Self::Text => "packedfactors()",
            Self::Json => "packedfactors({json=1})",
            Self::WithoutCloseness => "packedfactors({no_atc=1})",
        }
    }
}

#[test]
fn packed_factors() {
    let seed = run::seed();
    let mut random = Random::named(seed, "packed_factors");
    let corpora: Vec<Rc<Corpus>> =
        (0..2).map(|_| Rc::new(Corpus::random(&mut random, Vocabulary::Tiny, &[]))).collect();
    let indexes: Vec<Index> =
        corpora.iter().map(|corpus| Index { corpus: Rc::clone(corpus), shards: 1 }).collect();
    let mut server = Server::start(&indexes);
    let engines: Vec<Collection> = corpora.iter().map(|corpus| Collection::new(corpus)).collect();
    let mut sql = server.connect_sql().unwrap();
    let (mut wrong, mut asked, mut count, mut crashed) = (Vec::new(), 0, 0, 0);
    for number in 0..QUERIES {
        let index = number % corpora.len();
        let corpus = &corpora[index];
        let wanted = if random.once_in(4) { QueryStyle::Repeated } else { QueryStyle::Distinct };
        let query = queries::query(&mut random, corpus, wanted);
        let expression = expressions::expression(&mut random, corpus);
        if known::is_loose(&query) || compare::tolerated(corpus, &query) {
            continue;
        }
        let form = [Form::Text, Form::Json, Form::WithoutCloseness][number % 3];
        let statement = statement(index, &query, &expression, form);
        let theirs = match rows(&mut sql, &statement) {
            Some(Ok(theirs)) => theirs,
            Some(Err(_)) => continue,
            None => {
                crashed += 1;
                server.restart();
                sql = server.connect_sql().unwrap();
                continue;
            }
        };
        let ours = ours(&engines[index], &query, expression, form);
        asked += 1;
        count += theirs.len();
        let differing = theirs.iter().zip(&ours).find(|(theirs, ours)| theirs != ours);
        if differing.is_some() || theirs.len() != ours.len() {
            wrong.push(format!("{statement}\n{} {}\n{differing:#?}", theirs.len(), ours.len()));
        }
    }
    let failed = wrong.len();
    println!("packed_factors, seed {seed}: {asked} queries, {count} texts, {crashed} crashed");
    println!("{failed} of {asked} queries differ");
    assert!(count > QUERIES, "too few rows were found: {count}");
    wrong.truncate(SHOWN);
    assert!(
        failed * 100 <= asked * MOST_DIFFERENT,
        "{failed} of {asked} differ; repeat with REMORA_SEED={seed}:\n{}",
        wrong.join("\n")
    );
    assert!(crashed * 100 <= asked * MOST_DIFFERENT, "Sphinx crashed at {crashed} of {asked}");
}

fn statement(index: usize, query: &str, expression: &str, form: Form) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    format!(
        "select id, {} f from {} where match('{}') order by id asc limit 1000 option \
         max_matches=1000, ranker=expr('{}')",
        form.call(),
        Server::name(index),
        quoted(query),
        quoted(expression)
    )
}

/// The rows of a statement, its error, or nothing if Sphinx crashed.
fn rows(sql: &mut Sql, statement: &str) -> Option<Result<Rows, String>> {
    sql.rows(statement).ok()
}

fn ours(engine: &Collection, query: &str, expression: String, form: Form) -> Rows {
    let options = Options { ranker: Ranker::Expression(expression), ..Options::default() };
    let has_closeness = !matches!(form, Form::WithoutCloseness);
    let Ok(found) = engine.factors(query, &options, has_closeness) else { return Vec::new() };
    let text = |(id, _, factors): (u64, i32, remora_words::rank::Factors)| {
        let factors = match form {
            Form::Json => factors.to_json(),
            Form::Text | Form::WithoutCloseness => factors.to_string(),
        };
        vec![id.to_string(), factors]
    };
    found.into_iter().take(1000).map(text).collect()
}
