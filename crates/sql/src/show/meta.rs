//! SHOW META: results and cost of the session's last search.

use remora_engine::{Selection, TextQuery, Value};
use remora_mysql::Collation;

use super::{filter::Filter, like::first_is_like};
use crate::{
    Cell, Column, Error, Outcome, Reply, Result,
    error::from_engine,
    meaning::types::ExprType,
    parse::{Source, Tokens},
    state::{Meta, SessionState},
};

/// Answers SHOW META with Sphinx's names.
pub(crate) fn show<R: Reply>(
    session: &mut SessionState,
    source: &Source,
    reply: &mut R,
) -> Result<Outcome> {
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    tokens.expect("SHOW")?;
    tokens.expect("META")?;
    let filter = Filter::read(&mut tokens)?;
    if matches!(filter, Filter::Where(_)) {
        return Err(Error::unsupported("SHOW META WHERE: say LIKE"));
    }
    let figures = figures(session)?;
    reply.columns(&[column("Variable_name"), column("Value")])?;
    for (name, value) in &figures {
        let row = [Value::Text(name.as_str().into())];
        let is_shown = match &filter {
            Filter::Like(pattern) => first_is_like(&row, pattern),
            _ => true,
        };
        if is_shown {
            reply.row(&[Cell::Text(name), Cell::Text(value)])?;
        }
    }
    Ok(Outcome::default())
}

/// Names and values that describe the last search.
fn figures(session: &mut SessionState) -> Result<Vec<(String, String)>> {
    let Some(meta) = session.meta.clone() else { return Ok(Vec::new()) };
    if !meta.figures.is_empty() {
        return Ok(meta.figures);
    }
    let seconds = |time: std::time::Duration| format!("{:.6}", time.as_secs_f64());
    let report = &meta.report;
    if meta.is_of_keywords() {
        return keywords(session, &meta);
    }
    let mut rows = vec![
        ("total".to_owned(), report.returned.to_string()),
        ("total_found".to_owned(), meta.total_found.to_string()),
        ("total_relation".to_owned(), "eq".to_owned()),
        ("time".to_owned(), seconds(report.total_time)),
        ("index_time".to_owned(), seconds(report.index_time)),
        ("filter_time".to_owned(), seconds(report.filter_time)),
        ("segments".to_owned(), report.segments.to_string()),
        ("texts_read".to_owned(), report.texts_read.to_string()),
    ];
    let reader = session.reader();
    for (number, word) in meta.words.iter().enumerate() {
        let table = meta.table.clone();
        let selection = Selection { table, text: Some(word.clone()), ..Selection::default() };
        let text = match word {
            TextQuery::Term(text) => text.clone(),
            TextQuery::Piece(piece) => piece.text.clone(),
            _ => continue,
        };
        let counted = reader.count(&selection).map_err(|error| from_engine(&error))?;
        rows.push((format!("keyword[{number}]"), text));
        rows.push((format!("docs[{number}]"), counted.count.to_string()));
    }
    Ok(rows)
}

/// The number of rows returned, and for each keyword its documents and occurrences.
fn keywords(session: &mut SessionState, meta: &Meta) -> Result<Vec<(String, String)>> {
    let total = match session.variables.is_sphinx && meta.is_counted {
        true => meta.total_found.min(meta.most),
        false => meta.report.returned,
    };
    let mut figures = vec![("total".to_owned(), total.to_string())];
    if meta.is_counted {
        figures.push(("total_found".to_owned(), meta.total_found.to_string()));
        let seconds = meta.report.total_time.as_secs_f64();
        figures.push(("time".to_owned(), format!("{seconds:.3}")));
    }
    session.ask_agents(meta.asked);
    let reader = session.reading_own()?;
    let (mut warnings, mut number) = (Vec::new(), 0);
    for query in &meta.words {
        let TextQuery::Keywords(query) = query else { continue };
        let report = reader.keywords(&meta.table, query).map_err(|error| from_engine(&error))?;
        for word in report.words {
            figures.push((format!("keyword[{number}]"), word.word));
            figures.push((format!("docs[{number}]"), word.counts.documents.to_string()));
            figures.push((format!("hits[{number}]"), word.counts.hits.to_string()));
            number += 1;
        }
        warnings.extend(report.warning.map(|warning| ("warning".to_owned(), warning)));
    }
    warnings.extend(figures);
    Ok(warnings)
}

fn column(name: &str) -> Column {
    ExprType::text(255, Collation::UTF8MB4_0900_AI_CI).not_null().column_named(name)
}
