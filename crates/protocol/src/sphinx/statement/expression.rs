//! Converts expressions of select lists to SQL.
//!
//! ```text
//! or      := and ("OR" and)*              and  := bits ("AND" bits)*
//! bits    := both ("|" both)*              both := compare ("&" compare)*
//! compare := sum (("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") sum)*
//! sum     := product (("+" | "-") product)*
//! product := factor (("*" | "/" | "%" | "DIV" | "MOD") factor)*
//! factor  := ("-" | "NOT") factor | number | text | name | name "(" [or ("," or)*] ")" | "(" or ")"
//! ```

use super::{
    ColumnKind, Refused, Result,
    lex::{Token, Tokens},
    names::{Names, Term, geodist},
    quote,
};

/// The deepest nesting of expressions.
const MAX_DEPTH: usize = 64;
/// The most bytes of an expression in SQL.
const MAX_BYTES: usize = 1 << 16;

/// Reads an expression.
///
/// # Errors
/// A sentence for what is no expression, for unknown names and for functions that have no equivalent.
pub fn expression(tokens: &mut Tokens<'_>, names: &Names<'_>) -> Result<Term> {
    Reader { tokens, names, depth: 0 }.level(0)
}

/// The operators by precedence, from lowest to highest.
const LEVELS: [&[&str]; 7] = [
    &["or"],
    &["and"],
    &["|"],
    &["&"],
    &["=", "!=", "<>", "<", "<=", ">", ">="],
    &["+", "-"],
    &["*", "/", "%", "div", "mod"],
];

struct Reader<'r, 'a> {
    tokens: &'r mut Tokens<'a>,
    names: &'r Names<'r>,
    depth: usize,
}

impl Reader<'_, '_> {
    fn level(&mut self, level: usize) -> Result<Term> {
        let Some(operators) = LEVELS.get(level) else { return self.factor() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            let right = self.level(level + 1)?.operand();
            self.check_single(&left)?;
            self.check_single(&right)?;
            left = binary(operator, left.operand(), right);
            self.check_length(&left)?;
        }
        self.check_length(&left)?;
        Ok(left)
    }

    /// Refuses a set as an operand, which has to be one value.
    fn check_single(&self, term: &Term) -> Result<()> {
        match term.kind.is_set() {
            true => Err(self.names.shape.refuse(format!("parse error: {} is a set", term.sql))),
            false => Ok(()),
        }
    }

    fn check_length(&self, term: &Term) -> Result<()> {
        if term.sql.len() > MAX_BYTES {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> Refused {
        self.names.shape.refuse("an expression is too long")
    }

    fn operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        operators.iter().copied().find(|operator| {
            self.tokens.take(operator)
                || (operator.starts_with(char::is_alphabetic) && self.tokens.take_name(operator))
        })
    }

    fn factor(&mut self) -> Result<Term> {
        if self.depth == MAX_DEPTH {
            let why = format!("an expression lies deeper than {MAX_DEPTH} levels");
            return Err(self.names.shape.refuse(why));
        }
        self.depth += 1;
        let factor = self.factor_within();
        self.depth -= 1;
        factor
    }

    fn factor_within(&mut self) -> Result<Term> {
        if self.tokens.take("-") {
            let term = self.factor()?.operand();
            self.check_single(&term)?;
            return Ok(Term::made_of(format!("(-{})", term.sql), joined(&term, &term), &[term]));
        }
        if self.tokens.take_name("not") {
            let term = self.factor()?.operand();
            self.check_single(&term)?;
            let sql = format!("(NOT {})", term.sql);
            return Ok(Term::made_of(sql, ColumnKind::Number, &[term]));
        }
        if self.tokens.take("(") {
            let term = self.level(0)?;
            self.tokens.need(")")?;
            return Ok(term);
        }
        let is_call = self.tokens.is_call();
        let unexpected = self.tokens.unexpected();
        match self.tokens.next() {
            Some(Token::Name(name)) if is_call => self.call(name),
            Some(Token::Name(name)) => self.name(name),
            Some(Token::Number(number)) => literal(number),
            Some(Token::Text(text)) => Ok(Term::computed(quote::text(&text), ColumnKind::Text)),
            _ => Err(unexpected),
        }
    }

    fn name(&mut self, name: &str) -> Result<Term> {
        if self.tokens.take(".") || self.tokens.take("[") {
            return Err(self.names.shape.refuse(format!("parts of '{name}' are not answered")));
        }
        match self.names.find(name) {
            Some(term) => Ok(term),
            None if name.eq_ignore_ascii_case("@geodist") => Err(self
                .names
                .shape
                .refuse("parse error: geoanchor is not set, @geodist expression unavailable")),
            None => Err(self.names.shape.refuse(format!("parse error: unknown column: {name}"))),
        }
    }

    fn call(&mut self, name: &str) -> Result<Term> {
        self.tokens.need("(")?;
        let (mut arguments, mut bytes) = (Vec::new(), 0);
        if !self.tokens.take(")") {
            loop {
                let argument = self.level(0)?.operand();
                bytes += argument.sql.len();
                if bytes > MAX_BYTES {
                    return Err(self.too_long());
                }
                arguments.push(argument);
                if !self.tokens.take(",") {
                    break;
                }
            }
            self.tokens.need(")")?;
        }
        let lower = name.to_lowercase();
        let takes_set = match &*lower {
            "in" => true,
            "length" | "least" | "greatest" => arguments.len() == 1,
            _ => false,
        };
        let single = arguments.get(usize::from(takes_set)..).unwrap_or_default();
        single.iter().try_for_each(|argument| self.check_single(argument))?;
        function(&lower, &arguments).ok_or_else(|| {
            let why = format!("function {lower}() of {} values is not answered", arguments.len());
            self.names.shape.refuse(why)
        })
    }
}

fn literal(number: &str) -> Result<Term> {
    if number.contains(['.', 'e', 'E']) {
        return Ok(Term::computed(number, ColumnKind::Double));
    }
    let value: i64 =
        number.parse().map_err(|_| Refused::new(format!("the number {number} is too great")))?;
    let is_narrow = u32::try_from(value).is_ok();
    let kind = if is_narrow { ColumnKind::Number } else { ColumnKind::BigInt };
    Ok(Term::computed(value.to_string(), kind))
}

/// The type of the result of an operator with these operands.
fn joined(left: &Term, right: &Term) -> ColumnKind {
    let is = |kinds: &[ColumnKind]| kinds.contains(&left.kind) || kinds.contains(&right.kind);
    if is(&[ColumnKind::Float, ColumnKind::Double]) {
        return ColumnKind::Double;
    }
    if left.kind == right.kind && left.kind == ColumnKind::Text {
        return ColumnKind::Text;
    }
    if is(&[ColumnKind::BigInt]) { ColumnKind::BigInt } else { ColumnKind::Number }
}

fn binary(operator: &str, left: Term, right: Term) -> Term {
    let kind = match operator {
        "+" | "-" | "*" | "%" | "div" | "mod" | "|" | "&" => joined(&left, &right),
        "/" => ColumnKind::Double,
        _ => ColumnKind::Number,
    };
    let (a, b) = (&left.sql, &right.sql);
    let sql = match operator {
        // A quotient of whole numbers has four digits in MySQL.
        "/" => format!("(({a} + 0e0) / {b})"),
        "!=" => format!("({a} <> {b})"),
        "div" | "mod" | "and" | "or" => format!("({a} {} {b})", operator.to_uppercase()),
        _ => format!("({a} {operator} {b})"),
    };
    if is_quotient(operator) && may_be_zero(&right) {
        return Term::partial(sql, kind, &[left, right]);
    }
    Term::made_of(sql, kind, &[left, right])
}

fn is_quotient(operator: &str) -> bool {
    ["/", "%", "div", "mod"].contains(&operator)
}

/// Whether a divisor may be zero: yes, unless it is a literal that is not.
fn may_be_zero(divisor: &Term) -> bool {
    divisor.sql.parse().map_or(true, |number: f64| number == 0.0)
}

/// A function of Sphinx's in SQL; `None` if it has no equivalent with so many arguments.
fn function(name: &str, arguments: &[Term]) -> Option<Term> {
    let sql: Vec<&str> = arguments.iter().map(|term| &*term.sql).collect();
    let made = |sql: String, kind| Some(Term::made_of(sql, kind, arguments));
    let partial = |sql: String, kind| Some(Term::partial(sql, kind, arguments));
    match (name, &*sql) {
        ("weight", []) => Some(Term::weight()),
        ("now", []) => made("UNIX_TIMESTAMP()".to_owned(), ColumnKind::Number),
        ("abs", [a]) => made(format!("ABS({a})"), arguments.first()?.kind),
        ("ceil" | "floor", [a]) => {
            made(format!("{}({a})", name.to_uppercase()), ColumnKind::Number)
        }
        ("sqrt" | "ln" | "log2" | "log10", [a]) => {
            partial(format!("{}({a})", name.to_uppercase()), ColumnKind::Double)
        }
        ("exp" | "sin" | "cos", [a]) => {
            made(format!("{}({a})", name.to_uppercase()), ColumnKind::Double)
        }
        ("pow" | "atan2", [a, b]) => {
            made(format!("{}({a}, {b})", name.to_uppercase()), ColumnKind::Double)
        }
        ("length", [a]) if arguments.iter().all(|term| term.kind.is_set()) => {
            made(format!("LENGTH({a})"), ColumnKind::Number)
        }
        ("least" | "greatest", [a]) if arguments.iter().all(|term| term.kind.is_set()) => {
            let is_wide = arguments.iter().any(|term| term.kind == ColumnKind::WideSet);
            let kind = if is_wide { ColumnKind::BigInt } else { ColumnKind::Number };
            made(format!("{}({a})", name.to_uppercase()), kind)
        }
        ("crc32", [a]) => made(format!("CRC32({a})"), ColumnKind::Number),
        // A cast alone would round.
        ("bigint" | "sint" | "integer", [a]) => {
            made(format!("CAST(TRUNCATE({a}, 0) AS SIGNED)"), ColumnKind::BigInt)
        }
        ("double", [a]) => made(format!("({a} + 0e0)"), ColumnKind::Double),
        ("in", [a, _, ..]) => {
            let list = sql.get(1..)?.join(", ");
            made(format!("({a} IN ({list}))"), ColumnKind::Number)
        }
        ("interval", [_, _, ..]) => {
            made(format!("INTERVAL({})", sql.join(", ")), ColumnKind::Number)
        }
        ("geodist", [_, _, _, _]) => Some(geodist(arguments.try_into().ok()?)),
        // There are no moments before 1970.
        (_, [a]) => partial(of_moment(name, a)?, ColumnKind::Number),
        _ => of_several(name, arguments),
    }
}

/// A function whose result has the type of its arguments.
fn of_several(name: &str, arguments: &[Term]) -> Option<Term> {
    let (sql, left, right) = match (name, arguments) {
        ("min", [a, b]) => (format!("LEAST({}, {})", a.sql, b.sql), a, b),
        ("max", [a, b]) => (format!("GREATEST({}, {})", a.sql, b.sql), a, b),
        ("idiv", [a, b]) => return Some(binary("div", a.clone(), b.clone())),
        ("if", [is, a, b]) => (format!("IF({}, {}, {})", is.sql, a.sql, b.sql), a, b),
        _ => return None,
    };
    Some(Term::made_of(sql, joined(left, right), arguments))
}

/// The part of a time (such as its month) that is given in seconds since 1970.
fn of_moment(name: &str, seconds: &str) -> Option<String> {
    let moment = format!("FROM_UNIXTIME({seconds})");
    Some(match name {
        "year" | "month" => format!("{}({moment})", name.to_uppercase()),
        "day" => format!("DAYOFMONTH({moment})"),
        "yearmonth" => format!("(YEAR({moment}) * 100 + MONTH({moment}))"),
        "yearmonthday" => {
            format!("(YEAR({moment}) * 10000 + MONTH({moment}) * 100 + DAYOFMONTH({moment}))")
        }
        _ => return None,
    })
}
