//! Parses the text of a filter.

use remora_engine::{DateTime, Decimal, Value};

use super::{Condition, Field, Test};
use crate::{Error, Result};

/// The deepest nesting of parentheses and NOT.
const MAX_DEPTH: usize = 64;
/// The most bytes of a filter's text.
const MAX_BYTES: usize = 1 << 20;
/// The most digits of a number that is compared exactly, and the most of them after the decimal point.
const MAX_DIGITS: u8 = 65 + MAX_SCALE;
const MAX_SCALE: u8 = 38;
/// The signs of comparisons. A sign stands before the shorter ones that it begins with.
const SIGNS: [(&str, Test); 7] = [
    ("!=", Test::NotEqual),
    ("<>", Test::NotEqual),
    ("<=", Test::LessOrEqual),
    (">=", Test::GreaterOrEqual),
    ("=", Test::Equal),
    ("<", Test::Less),
    (">", Test::Greater),
];

/// Reads the text of a literal; `None` if it is none.
type ReadText = fn(&str) -> Option<Value>;
/// The words before dates and times.
const DATES: [(&str, ReadText); 2] = [("DATE", date), ("TIMESTAMP", timestamp)];

/// Parses a filter.
pub(super) fn parse(text: &str) -> Result<Condition> {
    let mut reader = Reader { text, at: 0 };
    if text.len() > MAX_BYTES {
        return Err(reader.wrong("is longer than 1 MiB, which is the limit"));
    }
    let condition = reader.any_of(0)?;
    match reader.rest().is_empty() {
        true => Ok(condition),
        false => Err(reader.expected("AND, OR or the end")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// The rest of the text. Passes over spaces.
    fn rest(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn wrong(&self, what: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let place = before.chars().count() + 1;
        Error::request(format!("the filter {what}, at character {place}"))
    }

    fn expected(&mut self, what: &str) -> Error {
        let rest: String = self.rest().chars().take(20).collect();
        let found = if rest.is_empty() { "its end".to_owned() } else { format!("{rest:?}") };
        self.wrong(&format!("has {found} where {what} was expected"))
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// The name or word at the beginning of the rest; empty if there is none.
    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found = self.word().eq_ignore_ascii_case(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn any_of(&mut self, depth: usize) -> Result<Condition> {
        let first = self.all_of(depth)?;
        let mut parts = vec![first];
        while self.takes_word("OR") {
            parts.push(self.all_of(depth)?);
        }
        Ok(joined(parts, Condition::Or))
    }

    fn all_of(&mut self, depth: usize) -> Result<Condition> {
        let first = self.part(depth)?;
        let mut parts = vec![first];
        while self.takes_word("AND") {
            parts.push(self.part(depth)?);
        }
        Ok(joined(parts, Condition::And))
    }

    fn part(&mut self, depth: usize) -> Result<Condition> {
        if depth >= MAX_DEPTH {
            return Err(self.wrong(&format!("nests deeper than {MAX_DEPTH} levels")));
        }
        if self.takes_word("NOT") {
            return Ok(Condition::Not(Box::new(self.part(depth + 1)?)));
        }
        if let Some(fields) = self.fields()? {
            return self.matches(fields)?.ok_or_else(|| self.expected("MATCHES"));
        }
        if self.takes("(") {
            let inner = self.any_of(depth + 1)?;
            return match self.takes(")") {
                true => Ok(inner),
                false => Err(self.expected("AND, OR or )")),
            };
        }
        let field = self.field()?;
        match self.takes_word("HAS") {
            true => self.has(field, depth),
            false => self.test(field),
        }
    }

    /// The condition on an element.
    fn has(&mut self, field: Field, depth: usize) -> Result<Condition> {
        if !self.takes("(") {
            return Err(self.expected("( after HAS"));
        }
        let inner = self.any_of(depth + 1)?;
        match self.takes(")") {
            true => Ok(Condition::Has(field, Box::new(inner))),
            false => Err(self.expected("AND, OR or )")),
        }
    }

    /// Several fields in parentheses; `None` if the parentheses contain something else.
    fn fields(&mut self) -> Result<Option<Vec<Field>>> {
        let start = self.at;
        if !self.takes("(") {
            return Ok(None);
        }
        // A check without an error: making one counts the characters before it, at each parenthesis again.
        if self.word().is_empty() && !self.rest().starts_with(['`', '"']) {
            self.at = start;
            return Ok(None);
        }
        let Some(first) = self.field().ok().filter(|_| self.rest().starts_with(',')) else {
            self.at = start;
            return Ok(None);
        };
        let mut fields = vec![first];
        while self.takes(",") {
            fields.push(self.field()?);
        }
        if self.takes(")") { Ok(Some(fields)) } else { Err(self.expected(", or )")) }
    }

    /// A MATCHES of these fields; `None` if another test follows.
    fn matches(&mut self, fields: Vec<Field>) -> Result<Option<Condition>> {
        let start = self.at;
        let negated = self.takes_word("NOT");
        if !self.takes_word("MATCHES") {
            self.at = start;
            return Ok(None);
        }
        if !self.rest().starts_with('\'') {
            return Err(self.expected("a text in '…'"));
        }
        let matches = Condition::Matches(fields, self.quoted('\'')?);
        Ok(Some(perhaps_not(negated, matches)))
    }

    fn field(&mut self) -> Result<Field> {
        let mut parts = vec![self.name()?];
        while self.text.get(self.at..).is_some_and(|rest| rest.starts_with('.')) {
            self.at += 1;
            parts.push(self.name()?);
        }
        Ok(Field { parts })
    }

    fn name(&mut self) -> Result<String> {
        for quote in ['`', '"'] {
            if self.rest().starts_with(quote) {
                return self.quoted(quote);
            }
        }
        match self.word() {
            "" => Err(self.expected("the name of a field")),
            word => {
                self.at += word.len();
                Ok(word.to_owned())
            }
        }
    }

    /// The text between two of these quotes. A doubled quote inside stands for one.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let begin = self.at;
        self.at += quote.len_utf8();
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some((before, behind)) = rest.split_once(quote) else {
                self.at = begin;
                return Err(self.wrong(&format!("has a {quote} that is not closed")));
            };
            out.push_str(before);
            self.at += before.len() + quote.len_utf8();
            if !behind.starts_with(quote) {
                return Ok(out);
            }
            out.push(quote);
            self.at += quote.len_utf8();
        }
    }

    fn test(&mut self, field: Field) -> Result<Condition> {
        for (sign, test) in SIGNS {
            if self.takes(sign) {
                let value = self.literal()?;
                return Ok(Condition::Compare(field, test, value));
            }
        }
        if self.takes_word("EXISTS") {
            return Ok(Condition::Exists(field));
        }
        if self.takes_word("IS") {
            let negated = self.takes_word("NOT");
            return match self.takes_word("NULL") {
                true => Ok(perhaps_not(negated, Condition::IsNull(field))),
                false => Err(self.expected("NULL")),
            };
        }
        if let Some(matches) = self.matches(vec![field.clone()])? {
            return Ok(matches);
        }
        let negated = self.takes_word("NOT");
        if self.takes_word("IN") {
            return Ok(perhaps_not(negated, Condition::In(field, self.list()?)));
        }
        if self.takes_word("BETWEEN") {
            let from = self.literal()?;
            if !self.takes_word("AND") {
                return Err(self.expected("AND"));
            }
            return Ok(perhaps_not(negated, Condition::Between(field, from, self.literal()?)));
        }
        if self.takes_word("BEGINS") {
            if !self.rest().starts_with('\'') {
                return Err(self.expected("a text in '…'"));
            }
            return Ok(perhaps_not(negated, Condition::Begins(field, self.quoted('\'')?)));
        }
        Err(self.expected("a comparison, IN, BETWEEN, BEGINS, MATCHES, HAS, IS or EXISTS"))
    }

    fn list(&mut self) -> Result<Vec<Value>> {
        if !self.takes("(") {
            return Err(self.expected("("));
        }
        let mut values = vec![self.literal()?];
        while self.takes(",") {
            values.push(self.literal()?);
        }
        if self.takes(")") { Ok(values) } else { Err(self.expected(", or )")) }
    }

    fn literal(&mut self) -> Result<Value> {
        if self.rest().starts_with('\'') {
            return Ok(Value::Text(self.quoted('\'')?.into()));
        }
        for truth in [true, false] {
            if self.takes_word(if truth { "true" } else { "false" }) {
                return Ok(Value::Bool(truth));
            }
        }
        for (word, parse) in DATES {
            if self.takes_word(word) {
                if !self.rest().starts_with('\'') {
                    return Err(self.expected("a date in '…'"));
                }
                let begin = self.at;
                let value = parse(&self.quoted('\'')?);
                self.at = if value.is_some() { self.at } else { begin };
                return value.ok_or_else(|| self.expected(&format!("a {word} of ISO 8601")));
            }
        }
        let rest = self.rest();
        let is_of_number =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '+');
        let end = rest.find(|letter| !is_of_number(letter)).unwrap_or(rest.len());
        let Some(number) = rest.get(..end).and_then(number) else {
            return Err(self.expected("a number, a text in '…', true or false"));
        };
        self.at += end;
        Ok(number)
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#')
}

fn date(text: &str) -> Option<Value> {
    let micros = DateTime::parse_instant(text).filter(|_| text.len() == "2024-05-01".len())?;
    Some(Value::Date(DateTime::from_timestamp(micros)?.date))
}

/// A date and time in UTC.
fn timestamp(text: &str) -> Option<Value> {
    DateTime::from_timestamp(DateTime::parse_instant(text)?).map(Value::DateTime)
}

fn number(text: &str) -> Option<Value> {
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number {
        return None;
    }
    let whole = text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::Uint));
    whole.ok().or_else(|| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
        Some(decimal(text, number).unwrap_or(Value::Float(number)))
    })
}

/// A number that its double does not represent exactly: as an integer if it is one, else as a decimal. `None` if the
/// double is exact.
fn decimal(text: &str, double: f64) -> Option<Value> {
    let read = |text: &str| Decimal::parse(text, MAX_DIGITS, MAX_SCALE);
    let (exact, shown) = (read(text)?, read(&double.to_string())?);
    if exact == shown {
        return None;
    }
    let digits = exact.as_str().trim_end_matches('0').trim_end_matches('.');
    let whole = digits.parse().map(Value::Int).or_else(|_| digits.parse().map(Value::Uint));
    whole.ok().or_else(|| {
        let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        Decimal::parse(digits, MAX_DIGITS, u8::try_from(scale).ok()?).map(Value::Decimal)
    })
}

fn joined(mut parts: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn perhaps_not(negated: bool, condition: Condition) -> Condition {
    if negated { Condition::Not(Box::new(condition)) } else { condition }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, field, path};

    fn read(text: &str) -> Filter {
        Filter(parse(text).unwrap())
    }

    #[test]
    fn texts_are_read() {
        assert_eq!(read(" a=1 "), field("a").equals(1));
        assert_eq!(read("a.b.0 <> 'it''s'"), field("a.b.0").differs_from("it's"));
        assert_eq!(read("`a.b`.\"c d\" >= -1.5e3"), path(["a.b", "c d"]).at_least(-1500.0));
        assert_eq!(read("a = 18446744073709551615"), field("a").equals(u64::MAX));
        assert_eq!(read("a is null or not b exists"), field("a").is_null() | !field("b").exists());
        assert_eq!(
            read("a NOT IN (1, true)"),
            !field("a").is_in([Value::Int(1), Value::Bool(true)])
        );
        let mixed = read("a = 1 AND b = 2 OR c BETWEEN 1 AND 2");
        assert_eq!(mixed, (field("a").equals(1) & field("b").equals(2)) | field("c").between(1, 2));
        assert_eq!(read("a begins 'x' AND NOT a BEGINS 'xy'"), {
            field("a").begins_with("x") & !field("a").begins_with("xy")
        });
        assert_eq!(read("((a = 1))"), field("a").equals(1));
        assert_eq!(read("a.b HAS (c = 1 OR NOT d has (has = 2)) AND e = 3"), {
            let inner = field("c").equals(1) | !field("d").has(field("has").equals(2));
            field("a.b").has(inner) & field("e").equals(3)
        });
        let date = remora_engine::Date { year: 2024, month: 2, day: 29 };
        assert_eq!(read("date >= DATE '2024-02-29'"), field("date").at_least(date));
        let noon = DateTime { date, micros: 43_200_000_000 };
        assert_eq!(read("a IN (timestamp '2024-02-29T14:00+02:00')"), field("a").is_in([noon]));
        assert_eq!(read("a not matches 'it''s'"), !field("a").matches("it's"));
        assert_eq!(read("NOT (a.b, `c,d` ) MATCHES 'x'"), {
            !Filter::matches([path(["a", "b"]), path(["c,d"])], "x")
        });
        assert_eq!(read("(matches MATCHES 'x')"), field("matches").matches("x"));
        assert_eq!(read("日本 = '東京'"), field("日本").equals("東京"));
    }

    #[test]
    fn nested_parentheses_are_read_in_one_pass() {
        let nested = format!("{}a = 1{}", "(".repeat(60), ")".repeat(60));
        let mut text = nested.clone();
        while text.len() + nested.len() + 5 <= MAX_BYTES {
            text.push_str(" AND ");
            text.push_str(&nested);
        }
        let Condition::And(parts) = read(&text).0 else { panic!("{text:.100}") };
        assert!(parts.len() > 8_000 && parts.iter().all(|part| *part == field("a").equals(1).0));
        assert_eq!(read("( (a, `b`) MATCHES 'x' )"), Filter::matches(["a", "b"], "x"));
        assert_eq!(read("(\"a\", b) MATCHES 'x'"), Filter::matches(["a", "b"], "x"));
    }

    #[test]
    fn numbers_keep_their_digits() {
        let value = |text: &str| match read(&format!("a = {text}")).0 {
            Condition::Compare(_, _, value) => value,
            other => panic!("{other:?}"),
        };
        let decimal = |text: &str| {
            let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            Value::Decimal(Decimal::parse(text, 65, scale as u8).unwrap())
        };
        for text in ["0.1", "1.5", "-2.50", "1e300", "1e-300", "9007199254740992.0"] {
            assert_eq!(value(text), Value::Float(text.parse().unwrap()), "{text}");
        }
        for text in [
            "9007199254740993.25",
            "-9007199254740993.5",
            "0.1234567890123456789",
            "18446744073709551617",
            "-9223372036854775809",
        ] {
            assert_eq!(value(text), decimal(text), "{text}");
        }
        assert_eq!(value("9007199254740993.0"), Value::Int(9_007_199_254_740_993));
        assert_eq!(value("9.007199254740993e15"), Value::Int(9_007_199_254_740_993));
        assert_eq!(value("18446744073709551615.00"), Value::Uint(u64::MAX));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |text: &str| parse(text).unwrap_err().to_string();
        for (text, words) in [
            ("", "has its end where the name of a field was expected, at character 1"),
            ("a", "has its end where a comparison"),
            ("é = 1 b = 2", "has \"b = 2\" where AND, OR or the end was expected, at character 7"),
            ("a = 'x", "a ' that is not closed, at character 5"),
            ("a = b", "where a number, a text"),
            ("a IN ()", "where a number, a text"),
            ("(a = 1", "AND, OR or )"),
            ("a BEGINS 5", "where a text in '…' was expected"),
            ("a = 1e999", "where a number, a text"),
            ("(a, b) = 1", "where MATCHES was expected"),
            ("(a, b MATCHES 'x'", "where , or ) was expected"),
            ("a MATCHES 5", "where a text in '…' was expected"),
            ("a = --1", "where a number, a text"),
            ("a = DATE '2023-02-29'", "where a DATE of ISO 8601 was expected, at character 10"),
            ("a = DATE '2024-02-29T00:00'", "where a DATE of ISO 8601"),
            ("a = TIMESTAMP 5", "where a date in '…'"),
            ("a HAS b = 1", "where ( after HAS"),
            ("a HAS (b = 1", "where AND, OR or )"),
        ] {
            assert!(told(text).contains(words), "{text}: {}", told(text));
        }
        let deep = format!("{}a = 1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(told(&deep).contains("deeper than 64"));
        assert!(told(&"NOT ".repeat(10_000)).contains("deeper than 64"));
    }
}
