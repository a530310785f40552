//! SHOW WARNINGS, SHOW ERRORS, and their counts.

use remora_mysql::Collation;

use crate::{
    Cell, Column, Outcome, Reply, Result, SqlType,
    parse::{Source, Statement},
    state::{SessionState, WarningLevel},
};

/// Runs SHOW WARNINGS, SHOW ERRORS and their counts.
pub(super) async fn run<R: Reply>(
    session: &SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Option<Outcome>> {
    let source = &statement.source;
    let is = |at: usize, word: &str| source.is_word(at, word);
    if is(1, "COUNT") && source.is(2, "(") && source.is(3, "*") && source.is(4, ")") {
        let (name, count) = match is(5, "ERRORS") {
            true => ("@@session.error_count", session.warnings.errors()),
            false => ("@@session.warning_count", u64::from(session.warnings.count())),
        };
        reply.columns(&[number(name)])?;
        reply.row(&[Cell::Uint(count)])?;
        return Ok(Some(Outcome::default()));
    }
    let errors = is(1, "ERRORS");
    if !errors && !is(1, "WARNINGS") {
        return Ok(None);
    }
    let (offset, limit) = window(source)?;
    reply.columns(&[
        text("Level", 7),
        Column { length: 4, ..number("Code") },
        text("Message", 512),
    ])?;
    let list = session.warnings.list();
    let shown = list.iter().filter(|warning| !errors || warning.level == WarningLevel::Error);
    for warning in shown.skip(offset).take(limit) {
        reply.row(&[
            Cell::Text(warning.level.name()),
            Cell::Uint(u64::from(warning.code.number())),
            Cell::Text(&warning.message),
        ])?;
    }
    Ok(Some(Outcome::default()))
}

/// Whether the statement reads the previous one's warnings or counts, and so must keep them.
pub(super) fn are_kept_by(statement: &Statement<'_>) -> bool {
    let source = &statement.source;
    let asks = ["WARNINGS", "ERRORS", "META"].iter().any(|word| source.is_word(1, word));
    source.is_word(0, "SHOW") && (asks || source.is_word(1, "COUNT"))
}

/// Parses `LIMIT [offset ","] rows`.
fn window(source: &Source) -> Result<(usize, usize)> {
    if source.tokens.len() == 2 {
        return Ok((0, usize::MAX));
    }
    let number = |at: usize| {
        let parsed = source.plain(at).and_then(|digits| digits.parse().ok());
        parsed.ok_or_else(|| source.syntax_error(at))
    };
    if !source.is_word(2, "LIMIT") {
        return Err(source.syntax_error(2));
    }
    match (source.is(4, ","), source.tokens.len()) {
        (true, 6) => Ok((number(3)?, number(5)?)),
        (false, 4) => Ok((0, number(3)?)),
        _ => Err(source.syntax_error(4)),
    }
}

fn text(name: &str, characters: u32) -> Column {
    Column {
        kind: SqlType::VarChar,
        unsigned: false,
        collation: Collation::UTF8MB4_0900_AI_CI.0,
        length: characters * 4,
        ..number(name)
    }
}

fn number(name: &str) -> Column {
    Column {
        kind: SqlType::BigInt,
        unsigned: true,
        not_null: true,
        length: 21,
        ..Column::computed(name)
    }
}
