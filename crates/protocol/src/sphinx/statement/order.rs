//! Converts the order of rows and of groups to ORDER BY.
//!
//! ```text
//! clause := value ("ASC" | "DESC") ("," value ("ASC" | "DESC"))*
//! value  := name | "weight" "(" ")" | "count" "(" "*" ")" | "@random"
//! ```

use super::{
    Result,
    lex::{Token, Tokens},
    names::{Names, Term},
};

/// The most values of a clause.
const MAX_VALUES: usize = 64;
const HOUR_SECONDS: u32 = 3_600;
/// The ages at which segments of time end, in hours: an hour, a day, a week, 30 days, 90 days.
const SEGMENT_HOURS: [u32; 5] = [1, 24, 24 * 7, 24 * 30, 24 * 90];

/// Converts a clause. `value` gives the SQL of a name.
///
/// # Errors
/// A sentence for what is no clause and for unknown names.
pub fn order(
    clause: &str,
    names: &Names<'_>,
    mut value: impl FnMut(&str) -> Option<String>,
) -> Result<Vec<String>> {
    let refuse = |why: String| names.shape.refuse(why);
    let mut tokens = Tokens::new(clause)?;
    let mut values = Vec::new();
    loop {
        let name = name(&mut tokens)?;
        if values.len() == MAX_VALUES {
            return Err(refuse(format!("an order of more than {MAX_VALUES} values")));
        }
        if name.eq_ignore_ascii_case("@random") {
            let _ = tokens.take_name("asc") || tokens.take_name("desc");
            values.push("RAND()".to_owned());
        } else {
            let unknown = || refuse(format!("sort-by attribute '{name}' not found"));
            if names.find(name).is_some_and(|term| term.kind.is_set()) {
                return Err(refuse("order by MVA is undefined".to_owned()));
            }
            let value = value(name).ok_or_else(unknown)?;
            values.push(format!("{value} {}", direction(&mut tokens, names)?));
        }
        if !tokens.take(",") {
            break;
        }
    }
    if tokens.is_end() { Ok(values) } else { Err(tokens.unexpected()) }
}

fn name<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str> {
    let is_call = tokens.is_call();
    let unexpected = tokens.unexpected();
    let Some(Token::Name(name)) = tokens.next() else { return Err(unexpected) };
    if !is_call {
        return Ok(name);
    }
    tokens.need("(")?;
    let called = match &*name.to_lowercase() {
        "weight" => "@weight",
        "count" => {
            tokens.need("*")?;
            "@count"
        }
        _ => return Err(unexpected),
    };
    tokens.need(")")?;
    Ok(called)
}

fn direction(tokens: &mut Tokens<'_>, names: &Names<'_>) -> Result<&'static str> {
    if tokens.take_name("asc") {
        return Ok("ASC");
    }
    if tokens.take_name("desc") {
        return Ok("DESC");
    }
    Err(names.shape.refuse(match tokens.peek() {
        Some(Token::Name(other)) => format!("invalid sorting order '{other}'"),
        _ => "no sort order defined".to_owned(),
    }))
}

/// The number of the segment of time in which a time lies; the most recent is 0.
pub fn segment(moment: Term) -> Term {
    let moment = moment.operand();
    let mut sql = "(CASE".to_owned();
    for (number, hours) in SEGMENT_HOURS.iter().enumerate() {
        let seconds = hours * HOUR_SECONDS;
        let value = &moment.sql;
        sql.push_str(&format!(" WHEN {value} >= UNIX_TIMESTAMP() - {seconds} THEN {number}"));
    }
    sql.push_str(&format!(" ELSE {} END)", SEGMENT_HOURS.len()));
    Term { sql, ..moment }
}
