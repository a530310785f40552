//! MySQL's grammar for the parser: its own idea of it, with MySQL's precedence of operators.
//!
//! If a special form does not fit, the parser reads the same tokens again as something else, which doubles with each
//! level of nesting. So forms that cannot be anything else are read here, and started expressions are counted: too many
//! of them, or an ended statement, stop the parser.

use std::{
    any::TypeId,
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use datafusion::sql::sqlparser::{
    ast::{
        BinaryOperator, CastKind, DataType, DateTimeField, Expr, ExtractSyntax, Ident, Interval,
        ObjectName, SearchModifier, TrimWhereField, UnaryOperator, Value,
    },
    dialect::{Dialect, MySqlDialect, Precedence},
    keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS},
    parser::{IsOptional::Mandatory, Parser, ParserError},
    tokenizer::{Token, Word},
};

use super::{
    cast::{cast, convert},
    distance::distance,
    factors::factors,
    highlight::highlight,
    interval::placed,
    json_value::{has_clauses, json_value},
};
use crate::parse::{KEYWORDS, MATCH_OF, MATCH_OF_PATHS, Unit, function_call};

/// MySQL, as the parser should have it.
#[derive(Debug)]
pub(super) struct MySql {
    /// How many more expressions may be begun.
    left: Cell<usize>,
    /// Set when the statement is to end.
    interrupted: Arc<AtomicBool>,
    /// Whether the text was stored: its casts may have all types.
    is_kept: bool,
}

/// How often one token may be read as the beginning of an expression, on average.
const READ_AGAIN: usize = 32;

/// Calls the same method of the parser's own MySQL dialect.
macro_rules! supports {
    ($($name:ident)*) => { $(fn $name(&self) -> bool { true })* };
}

/// Words that end a table instead of naming it.
const NO_TABLE_ALIAS: [Keyword; 5] =
    [Keyword::USE, Keyword::IGNORE, Keyword::FORCE, Keyword::STRAIGHT_JOIN, Keyword::LOCK];

/// Words that are no aliases after a selected expression either.
const NO_COLUMN_ALIAS: [Keyword; 3] = [Keyword::FOR, Keyword::LOCK, Keyword::WINDOW];

/// Words that the parser would take as the beginning of clauses that MySQL does not have: they name what stands before.
const COLUMN_ALIAS: [Keyword; 9] = [
    Keyword::CLUSTER,
    Keyword::DISTRIBUTE,
    Keyword::END,
    Keyword::EXCLUDE,
    Keyword::ILIKE,
    Keyword::MINUS,
    Keyword::SORT,
    Keyword::TOP,
    Keyword::VIEW,
];
const TABLE_ALIAS: [Keyword; 23] = [
    Keyword::ANTI,
    Keyword::ANY,
    Keyword::ARRAY,
    Keyword::ASOF,
    Keyword::CLUSTER,
    Keyword::CONNECT,
    Keyword::DISTRIBUTE,
    Keyword::END,
    Keyword::FORMAT,
    Keyword::FULL,
    Keyword::GLOBAL,
    Keyword::MINUS,
    Keyword::OPEN,
    Keyword::PIVOT,
    Keyword::PREWHERE,
    Keyword::SAMPLE,
    Keyword::SEMI,
    Keyword::SETTINGS,
    Keyword::SOME,
    Keyword::SORT,
    Keyword::START,
    Keyword::UNPIVOT,
    Keyword::VIEW,
];

const ASSIGNMENT: u8 = 3;
const COMPARISON: u8 = 20;
/// LIKE, which binds tighter than IN and BETWEEN, as these than comparisons.
const PREDICATE: u8 = COMPARISON + 2;
/// `!` and `BINARY` bind what stands next to them, tighter than `^`.
const BANG: u8 = 46;

/// `a SOUNDS LIKE b`, as an operator.
pub(crate) const SOUNDS_LIKE: &str = "SOUNDS LIKE";

impl MySql {
    /// The grammar for a statement of so many tokens.
    pub(super) fn new(tokens: usize, interrupted: &Arc<AtomicBool>, is_kept: bool) -> Self {
        let left = Cell::new(tokens.saturating_add(1).saturating_mul(READ_AGAIN));
        Self { left, interrupted: Arc::clone(interrupted), is_kept }
    }

    /// Whether the statement was interrupted or too many expressions were begun. Then nothing more is read.
    fn is_over(&self) -> bool {
        if self.interrupted.load(Ordering::Relaxed) {
            self.left.set(0);
        }
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0
    }
}

impl Dialect for MySql {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        MySqlDialect {}.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        MySqlDialect {}.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    supports! {
        supports_string_literal_backslash_escape supports_string_literal_concatenation
        ignores_wildcard_escapes supports_numeric_prefix supports_bitwise_shift_operators
        supports_multiline_comment_hints require_interval_qualifier supports_limit_comma
        supports_create_table_select supports_insert_set supports_user_host_grantee
        supports_table_hints requires_single_line_comment_whitespace supports_match_against
        supports_select_modifiers supports_set_names supports_comma_separated_set_assignments
        supports_update_order_by supports_data_type_signed_suffix supports_cross_join_constraint
        supports_double_ampersand_operator supports_binary_kw_as_cast
        supports_constraint_keyword_without_name supports_key_column_option
        supports_group_by_with_modifier supports_window_clause_named_window_reference
        supports_group_by_expr supports_parens_around_table_factor
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if self.is_over() {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        let word = match &parser.peek_token_ref().token {
            Token::Word(word) => word,
            Token::ExclamationMark => {
                parser.advance_token();
                let operand = parser.parse_subexpr(BANG);
                let not = |expr| Expr::UnaryOp { op: UnaryOperator::BangNot, expr };
                return Some(operand.map(|operand| not(Box::new(operand))));
            }
            Token::LBracket => {
                return Some(parser.expected_ref("an expression", parser.peek_token_ref()));
            }
            _ => return None,
        };
        let parse: fn(&mut Parser) -> Result<Expr, ParserError> = match word.keyword {
            Keyword::BINARY => binary,
            Keyword::INTERVAL => interval,
            Keyword::CASE => |parser| parser.parse_case_expr(),
            Keyword::NOT => |parser| parser.parse_not(),
            Keyword::MATCH => matching,
            _ if parser.peek_nth_token_ref(1).token != Token::LParen => return None,
            Keyword::CHAR => characters,
            Keyword::EXTRACT => extract,
            Keyword::EXISTS => |parser| parser.parse_exists_expr(false),
            Keyword::CAST if self.is_kept => |parser| parser.parse_cast_expr(CastKind::Cast),
            Keyword::CONVERT if self.is_kept => |parser| parser.parse_convert_expr(false),
            Keyword::CAST => cast,
            Keyword::CONVERT => convert,
            Keyword::POSITION => position,
            Keyword::TRIM => trim,
            Keyword::CEIL => |parser| parser.parse_ceil_floor_expr(true),
            Keyword::FLOOR => |parser| parser.parse_ceil_floor_expr(false),
            Keyword::ARRAY
            | Keyword::CURRENT_DATE
            | Keyword::CURRENT_TIME
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::LOCALTIME
            | Keyword::LOCALTIMESTAMP
            | Keyword::OVERLAY
            | Keyword::SAFE_CAST
            | Keyword::STRUCT
            | Keyword::TRY_CAST => {
                let name = Ident::new(word.value.clone());
                parser.advance_token();
                return Some(parser.parse_function(ObjectName::from(vec![name])));
            }
            Keyword::SUBSTR | Keyword::SUBSTRING => return Some(parser.parse_substring()),
            _ if is_word(word, "JSON_VALUE") && has_clauses(parser) => json_value,
            _ if is_word(word, "HIGHLIGHT") => highlight,
            _ if is_word(word, "GEODIST") => distance,
            _ if is_word(word, "PACKEDFACTORS") || is_word(word, "FACTORS") => factors,
            _ => return None,
        };
        parser.advance_token();
        Some(parse(parser))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let Token::Word(word) = &parser.peek_token_ref().token else { return None };
        let op = match word.keyword {
            Keyword::AND => return Some(chain(parser, expr, BinaryOperator::And, precedence)),
            Keyword::OR => return Some(chain(parser, expr, BinaryOperator::Or, precedence)),
            Keyword::DIV => BinaryOperator::MyIntegerDivide,
            Keyword::IN | Keyword::NOT if is_list_of_queries(parser) => {
                return Some(list_of_queries(parser, expr));
            }
            Keyword::REGEXP | Keyword::RLIKE if is_null_next(parser) => {
                return Some(regexp(parser, expr, false));
            }
            Keyword::NOT if is_regexp(&parser.peek_nth_token_ref(1).token) => {
                parser.advance_token();
                return Some(regexp(parser, expr, true));
            }
            _ if is_word(word, "MOD") => BinaryOperator::Modulo,
            _ if sounds_like(parser) => {
                parser.advance_token();
                BinaryOperator::Custom(SOUNDS_LIKE.to_owned())
            }
            _ => return None,
        };
        parser.advance_token();
        let right = parser.parse_subexpr(precedence);
        let left = Box::new(expr.clone());
        Some(right.map(|right| Expr::BinaryOp { left, op, right: Box::new(right) }))
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let precedence = match &parser.peek_token_ref().token {
            Token::Assignment => ASSIGNMENT,
            Token::ShiftLeft | Token::ShiftRight => 28,
            Token::Word(word) if is_word(word, "MOD") => self.prec_value(Precedence::MulDivModOp),
            // The parser knows `a NOT NULL`, which MySQL does not.
            Token::Word(word) if word.keyword == Keyword::NOT && is_null_next(parser) => 0,
            _ if sounds_like(parser) => self.prec_value(Precedence::Like),
            _ => return None,
        };
        Some(Ok(precedence))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 60,
            Precedence::PgOther => 55,
            Precedence::AtTz => 50,
            Precedence::Caret => 45,
            Precedence::MulDivModOp => 40,
            Precedence::PlusMinus => 30,
            Precedence::Ampersand => 26,
            Precedence::Pipe | Precedence::Colon => 24,
            // The right side of a comparison may be a LIKE, IN or BETWEEN, and that of BETWEEN a LIKE: `a = b IN (c)` is
            // `a = (b IN (c))` ("predicate" in MySQL's grammar).
            Precedence::Like => PREDICATE,
            Precedence::Between => PREDICATE - 1,
            Precedence::Eq | Precedence::Is => COMPARISON,
            Precedence::UnaryNot => 15,
            Precedence::And => 10,
            Precedence::Xor => 8,
            Precedence::Or => 5,
        }
    }

    fn is_column_alias(&self, word: &Keyword, _: &mut Parser) -> bool {
        COLUMN_ALIAS.contains(word)
            || !(RESERVED_FOR_COLUMN_ALIAS.contains(word) || NO_COLUMN_ALIAS.contains(word))
    }

    fn is_table_factor_alias(&self, explicit: bool, word: &Keyword, _: &mut Parser) -> bool {
        explicit
            || TABLE_ALIAS.contains(word)
            || !(RESERVED_FOR_TABLE_ALIAS.contains(word) || NO_TABLE_ALIAS.contains(word))
    }
}

/// Whether `[NOT] IN (` is followed by a query in parentheses that is not all of it: by
/// `((SELECT …), …)`, which is a list.
fn is_list_of_queries(parser: &Parser) -> bool {
    let is_in = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::IN);
    let is_not = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::NOT);
    let all = (parser.get_current_index() + 1..).map(|at| &parser.token_at(at).token);
    let mut tokens = all.filter(|token| !matches!(token, Token::Whitespace(_)));
    let begins = tokens
        .next()
        .is_some_and(|first| is_in(first) || is_not(first) && tokens.next().is_some_and(is_in));
    if !begins || tokens.next() != Some(&Token::LParen) || tokens.next() != Some(&Token::LParen) {
        return false;
    }
    let (mut depth, mut is_query) = (1, false);
    while depth > 0 {
        match tokens.next() {
            None | Some(Token::EOF) => return false,
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            Some(token) if !is_query && !begins_query(token) => return false,
            Some(_) => is_query = true,
        }
    }
    match tokens.next() {
        None | Some(Token::EOF | Token::RParen) => false,
        Some(Token::Word(word)) => !goes_on(word),
        Some(_) => true,
    }
}

/// Whether a word after a query in parentheses continues the query.
fn goes_on(word: &Word) -> bool {
    const WORDS: [&str; 8] =
        ["UNION", "EXCEPT", "INTERSECT", "MINUS", "ORDER", "LIMIT", "FOR", "LOCK"];
    WORDS.iter().any(|each| is_word(word, each))
}

/// `[NOT] IN (expression, …)`.
fn list_of_queries(parser: &mut Parser, expr: &Expr) -> Result<Expr, ParserError> {
    let negated = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword(Keyword::IN)?;
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr: Box::new(expr.clone()), list, negated })
}

fn is_word(word: &Word, wanted: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted)
}

/// Whether NULL follows the next token.
fn is_null_next(parser: &Parser) -> bool {
    let behind = &parser.peek_nth_token_ref(1).token;
    matches!(behind, Token::Word(word) if word.keyword == Keyword::NULL)
}

fn sounds_like(parser: &Parser) -> bool {
    let Token::Word(word) = &parser.peek_token_ref().token else { return false };
    let like = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::LIKE);
    is_word(word, "SOUNDS") && like(&parser.peek_nth_token_ref(1).token)
}

fn is_regexp(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::REGEXP | Keyword::RLIKE))
}

/// `a REGEXP b`. The parser would take a NULL behind the operator for a part of it.
fn regexp(parser: &mut Parser, expr: &Expr, negated: bool) -> Result<Expr, ParserError> {
    let regexp = parser.parse_keyword(Keyword::REGEXP);
    if !regexp {
        parser.expect_keyword(Keyword::RLIKE)?;
    }
    let pattern = Box::new(parser.parse_subexpr(COMPARISON)?);
    Ok(Expr::RLike { negated, expr: Box::new(expr.clone()), pattern, regexp })
}

/// `BINARY a`: it takes its operand alone.
fn binary(parser: &mut Parser) -> Result<Expr, ParserError> {
    let operand = parser.parse_subexpr(BANG)?;
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(operand),
        data_type: DataType::Binary(None),
        array: false,
        format: None,
    })
}

/// `INTERVAL size unit`, or the function: `INTERVAL(value, limit, …)`.
fn interval(parser: &mut Parser) -> Result<Expr, ParserError> {
    let place = parser.get_current_index();
    let in_parentheses = parser.peek_token_ref().token == Token::LParen;
    let size = match in_parentheses && !begins_query(&parser.peek_nth_token_ref(1).token) {
        true => {
            parser.advance_token();
            let mut values = parser.parse_comma_separated(Parser::parse_expr)?;
            parser.expect_token(&Token::RParen)?;
            match (values.pop(), values.is_empty()) {
                (Some(only), true) => rest_of(parser, Expr::Nested(Box::new(only)))?,
                (last, _) => {
                    values.extend(last);
                    return Ok(function_call("interval_index", values));
                }
            }
        }
        false => parser.parse_expr()?,
    };
    let span = Expr::Interval(Interval {
        value: Box::new(size),
        leading_field: Some(unit(parser)?),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    });
    placed(parser, span, place)
}

/// The operators behind an operand that was read.
fn rest_of(parser: &mut Parser, operand: Expr) -> Result<Expr, ParserError> {
    let mut whole = operand;
    loop {
        match parser.get_next_precedence()? {
            0 => return Ok(whole),
            precedence => whole = parser.parse_infix(whole, precedence)?,
        }
    }
}

fn begins_query(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::SELECT | Keyword::WITH))
}

/// `(code, … [USING charset])`.
fn characters(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let codes = parser.parse_comma_separated(Parser::parse_expr)?;
    let charset = match parser.parse_keyword(Keyword::USING) {
        true => Some(parser.parse_identifier()?),
        false => None,
    };
    parser.expect_token(&Token::RParen)?;
    let Some(charset) = charset else { return Ok(function_call("char", codes)) };
    let charset = charset.value.to_lowercase();
    let of_bytes = |bytes: Expr| {
        let charset = Value::SingleQuotedString(charset.clone());
        function_call("char_using", vec![bytes, Expr::Value(charset.into())])
    };
    // A code is one character where none has a single byte, else it may be a part of one.
    let is_wide = matches!(charset.as_str(), "utf16" | "utf16le" | "ucs2" | "utf32");
    if !is_wide || codes.len() == 1 {
        return Ok(of_bytes(function_call("char", codes)));
    }
    let each = codes.into_iter().map(|code| of_bytes(function_call("char", vec![code])));
    Ok(function_call("concat", each.collect()))
}

/// `([[BOTH | LEADING | TRAILING] [what] FROM] text)`. The parser does not know a side alone, `TRIM(BOTH FROM text)`.
fn trim(parser: &mut Parser) -> Result<Expr, ParserError> {
    let keyword = |nth: usize| match &parser.peek_nth_token_ref(nth).token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let side = match (keyword(1), keyword(2)) {
        (Some(Keyword::BOTH), Some(Keyword::FROM)) => TrimWhereField::Both,
        (Some(Keyword::LEADING), Some(Keyword::FROM)) => TrimWhereField::Leading,
        (Some(Keyword::TRAILING), Some(Keyword::FROM)) => TrimWhereField::Trailing,
        _ => return parser.parse_trim_expr(),
    };
    parser.expect_token(&Token::LParen)?;
    parser.advance_token();
    parser.advance_token();
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    let space = Expr::Value(Value::SingleQuotedString(" ".to_owned()).into());
    let (trim_where, trim_what) = (Some(side), Some(Box::new(space)));
    Ok(Expr::Trim { expr, trim_where, trim_what, trim_characters: None })
}

/// `(unit FROM moment)`.
fn extract(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let field = unit(parser)?;
    parser.expect_keyword(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Extract { field, expr, syntax: ExtractSyntax::From })
}

/// `(sought IN text)`.
fn position(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_subexpr(PREDICATE)?);
    parser.expect_keyword_is(Keyword::IN)?;
    let r#in = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Position { expr, r#in })
}

/// `(column, …) AGAINST (sought [mode])`: of a literal as the parser has it, of any other expression and of texts at
/// paths as a function. The columns may stand without parentheses.
fn matching(parser: &mut Parser) -> Result<Expr, ParserError> {
    let is_enclosed = parser.peek_token_ref().token == Token::LParen;
    let is_query = is_enclosed
        && match &parser.peek_nth_token_ref(1).token {
            Token::SingleQuotedString(_) | Token::Number(..) => true,
            // A parameter without a value too.
            Token::Word(word) => word.keyword == Keyword::NULL && word.quote_style.is_none(),
            _ => false,
        };
    if is_query {
        return keywords(parser);
    }
    if lists_paths(parser) {
        parser.expect_token(&Token::LParen)?;
        let paths = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        let (sought, mode) = against(parser)?;
        let mode = mode.map_or(String::new(), |mode| mode.to_string());
        let mut args = vec![Expr::Value(Value::SingleQuotedString(mode).into()), sought];
        args.extend(paths);
        return Ok(function_call(MATCH_OF_PATHS, args));
    }
    let columns = match is_enclosed {
        true => parser.parse_parenthesized_qualified_column_list(Mandatory, false)?,
        false => parser.parse_comma_separated(|parser| parser.parse_object_name(true))?,
    };
    let (sought, mode) = against(parser)?;
    if let Expr::Value(match_value) = sought {
        return Ok(Expr::MatchAgainst { columns, match_value, opt_search_modifier: mode });
    }
    let mode = mode.map_or(String::new(), |mode| mode.to_string());
    let mut args = vec![Expr::Value(Value::SingleQuotedString(mode).into()), sought];
    args.extend(columns.into_iter().map(|column| {
        Expr::CompoundIdentifier(
            column.0.iter().filter_map(|part| part.as_ident().cloned()).collect(),
        )
    }));
    Ok(function_call(MATCH_OF, args))
}

/// Whether what MATCH lists between parentheses is not names alone, but has texts at paths.
fn lists_paths(parser: &Parser) -> bool {
    let all = (parser.get_current_index() + 1..).map(|at| &parser.token_at(at).token);
    let mut tokens = all.filter(|token| !matches!(token, Token::Whitespace(_)));
    if tokens.next() != Some(&Token::LParen) {
        return false;
    }
    let mut last = None;
    for token in tokens {
        match token {
            Token::Word(word) => last = Some(word),
            Token::Period | Token::Comma => last = None,
            Token::Arrow | Token::LongArrow => return true,
            Token::LParen => return last.is_some_and(|word| is_word(word, "JSON_UNQUOTE")),
            _ => return false,
        }
    }
    false
}

/// `AGAINST (sought [mode])`.
fn against(parser: &mut Parser) -> Result<(Expr, Option<SearchModifier>), ParserError> {
    parser.expect_keyword_is(Keyword::AGAINST)?;
    parser.expect_token(&Token::LParen)?;
    // IN begins the mode.
    let sought = parser.parse_subexpr(PREDICATE)?;
    let natural = [Keyword::IN, Keyword::NATURAL, Keyword::LANGUAGE, Keyword::MODE];
    let expansion = [Keyword::WITH, Keyword::QUERY, Keyword::EXPANSION];
    let mode = if parser.parse_keywords(&natural) {
        Some(match parser.parse_keywords(&expansion) {
            true => SearchModifier::InNaturalLanguageModeWithQueryExpansion,
            false => SearchModifier::InNaturalLanguageMode,
        })
    } else if parser.parse_keywords(&[Keyword::IN, Keyword::BOOLEAN, Keyword::MODE]) {
        Some(SearchModifier::InBooleanMode)
    } else {
        parser.parse_keywords(&expansion).then_some(SearchModifier::WithQueryExpansion)
    };
    parser.expect_token(&Token::RParen)?;
    Ok((sought, mode))
}

/// A keyword query without keywords, which finds nothing.
const NOTHING: &str = " ";

/// `('query' [, table])`: a query by keywords.
fn keywords(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = match parser.parse_value()?.value {
        Value::Number(digits, _) => digits,
        Value::Null => NOTHING.to_owned(),
        Value::SingleQuotedString(text) => text,
        other => other.to_string(),
    };
    let query = Expr::Value(Value::SingleQuotedString(query).into());
    let options = Expr::Value(Value::SingleQuotedString(String::new()).into());
    let mut args = vec![query, options];
    if parser.consume_token(&Token::Comma) {
        // A name would be taken for a column's.
        let table = Value::SingleQuotedString(parser.parse_identifier()?.value);
        args.push(Expr::Value(table.into()));
    }
    parser.expect_token(&Token::RParen)?;
    Ok(function_call(KEYWORDS, args))
}

/// A unit of time, of one part or of several.
fn unit(parser: &mut Parser) -> Result<DateTimeField, ParserError> {
    if let Token::Word(word) = &parser.peek_token_ref().token
        && word.quote_style.is_none()
        && Unit::by_name(&word.value).is_some()
    {
        let name = Ident::new(word.value.clone());
        parser.advance_token();
        return Ok(DateTimeField::Custom(name));
    }
    parser.expected_ref("a unit of time", parser.peek_token_ref())
}

/// A chain of AND or OR as a tree that is no deeper than it has to be: there may be thousands.
fn chain(
    parser: &mut Parser,
    first: &Expr,
    op: BinaryOperator,
    precedence: u8,
) -> Result<Expr, ParserError> {
    let keyword = if op == BinaryOperator::And { Keyword::AND } else { Keyword::OR };
    let mut operands = vec![first.clone()];
    while parser.parse_keyword(keyword) {
        operands.push(parser.parse_subexpr(precedence)?);
    }
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    Expr::BinaryOp { left, op: op.clone(), right }
                }
                None => left,
            });
        }
        operands = pairs;
    }
    Ok(operands.pop().unwrap_or_else(|| first.clone()))
}
