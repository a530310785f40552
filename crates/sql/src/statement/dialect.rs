//! MySQL's grammar for the parser: its own idea of it, with MySQL's precedence of operators.

use std::any::TypeId;

use datafusion::sql::sqlparser::{
    ast::{BinaryOperator, Expr},
    dialect::{Dialect, MySqlDialect, Precedence},
    keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS},
    parser::{Parser, ParserError},
    tokenizer::Token,
};

/// MySQL, as the parser should have it.
#[derive(Debug)]
pub(super) struct MySql;

/// What the parser's own MySQL dialect says yes to.
macro_rules! supports {
    ($($name:ident)*) => { $(fn $name(&self) -> bool { true })* };
}

/// Words that end a table instead of naming it.
const NO_TABLE_ALIAS: [Keyword; 5] =
    [Keyword::USE, Keyword::IGNORE, Keyword::FORCE, Keyword::STRAIGHT_JOIN, Keyword::LOCK];

const ASSIGNMENT: u8 = 3;

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
        supports_group_by_expr
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let Token::Word(word) = &parser.peek_token_ref().token else { return None };
        let op = match word.keyword {
            Keyword::DIV => BinaryOperator::MyIntegerDivide,
            _ if is_mod(word) => BinaryOperator::Modulo,
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
            Token::Word(word) if is_mod(word) => self.prec_value(Precedence::MulDivModOp),
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
            // MySQL's comparisons, LIKE, IN and IS are one level, from left to right.
            Precedence::Eq | Precedence::Like | Precedence::Is | Precedence::Between => 20,
            Precedence::UnaryNot => 15,
            Precedence::And => 10,
            Precedence::Xor => 8,
            Precedence::Or => 5,
        }
    }

    fn is_table_factor_alias(&self, explicit: bool, word: &Keyword, _: &mut Parser) -> bool {
        explicit || !(RESERVED_FOR_TABLE_ALIAS.contains(word) || NO_TABLE_ALIAS.contains(word))
    }
}

fn is_mod(word: &datafusion::sql::sqlparser::tokenizer::Word) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("MOD")
}
