//! Ranking expressions: `OPTION ranker=expr('1000*sum(lcs*user_weight)+bm25')`.
//!
//! ```text
//! expression = operand , { operator , operand } ;        (* all operators associate to the left *)
//! operator   = "or" ; "and" ; "|" ; "&" ; "=" "==" "<>" ; "<" ">" "<=" ">=" ; "+" "-" ; "*" "/" "%" "div" "mod" ;
//!                                                          (* from the loosest to the tightest *)
//! operand    = { "-" | "not" } , ( number | column | factor | call | "(" expression ")" ) ;
//! call       = name "(" [ argument { "," argument } ] ")" | "in(" argument "," constant { "," constant } ")" ;
//! argument   = expression | "{" name "=" integer { "," name "=" integer } "}" ;
//! column     = name | "`" name "`" ;                       (* names of columns come before those of factors *)
//! ```
//!
//! An expression is computed in 32-bit or 64-bit integers if all its parts are integers, otherwise in 32-bit reals,
//! rounded after each operation. A division by zero gives infinity or 0, as in Sphinx, and counts as 0 at the end.
//! Integers overflow. As in Sphinx, constants are combined before anything is computed ([`simplify`]), because that
//! affects the last bits.
//!
//! The reference is Sphinx 2.2.11; errors are the same, word for word. The differences: the remainder of a division
//! by zero is 0 (Sphinx crashes); a factor of a field outside `sum()` and `top()` is that of the first field, where
//! Sphinx allows it; functions of texts, times, places and sets are refused by name.

mod check;
mod evaluate;
mod functions;
mod lexer;
mod node;
mod parser;
mod simplify;
mod value_kind;

pub use node::{Attribute, AttributeKind, Attributes};

pub(super) use evaluate::{Value as FactorValue, Values};
pub(super) use node::Factor;

use std::{fmt, sync::Arc};

use crate::{Result, WordsError};
use evaluate::Scope;
use node::{ExpressionNode, What};
use value_kind::ValueKind;

/// The longest text of an expression, in bytes.
pub const MAX_LENGTH: usize = 64 << 10;
/// The deepest nesting of an expression. Chains of `+ - * /` are one level, those of other operators a level for each.
pub const MAX_DEPTH: usize = 256;

/// What a ranking expression reads of a document, and parameters of its factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reads {
    /// Whether it reads hits.
    pub hits: bool,
    /// Whether it reads `atc`, the closeness of hits, which is expensive.
    pub closeness: bool,
    /// Whether it reads the occurrences of each word in each field.
    pub field_frequencies: bool,
    /// The width of the window of `max_window_hits`, one for the whole expression.
    pub window: i32,
    /// The parameters of `bm25a` if it is read, one pair for the whole expression.
    pub bm25a: Option<(f32, f32)>,
}

/// A parsed ranking expression.
#[derive(Clone)]
pub struct Expression {
    text: String,
    root: Arc<ExpressionNode>,
    kind: ValueKind,
    reads: Reads,
    attributes: Vec<usize>,
}

impl Expression {
    /// Parses an expression. Columns are looked up in `attributes`.
    ///
    /// # Errors
    /// [`WordsError::Expression`], with Sphinx's message if it has one.
    pub fn parse(text: &str, attributes: &dyn Attributes) -> Result<Self> {
        if text.trim().is_empty() {
            return Err(refused(
                "missing ranker expression (use OPTION ranker=expr('1+2') for example)",
            ));
        }
        if text.len() > MAX_LENGTH {
            let message = format!("ranking expression is longer than {MAX_LENGTH} bytes");
            return Err(refused(message));
        }
        let root = parser::parse(text, attributes)?;
        let kind = root.kind;
        let root = simplify::simplify(root);
        check::check(&root, kind)?;
        let (reads, attributes) = check::reads(&root);
        Ok(Self { text: text.to_owned(), root: Arc::new(root), kind, reads, attributes })
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The numbers of the columns that it reads, ascending, as given by [`Attributes`].
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    pub(super) fn reads(&self) -> Reads {
        self.reads
    }

    /// The field names and weights of each `bm25f`, by its number.
    pub(super) fn weights(&self) -> Vec<&[(String, i32)]> {
        let mut weights = Vec::new();
        check::for_each(&self.root, &mut |node| {
            if let What::Bm25f { number, weights: given, .. } = &node.what {
                weights.push((*number, given.as_slice()));
            }
        });
        weights.sort_unstable_by_key(|(number, _)| *number);
        weights.into_iter().map(|(_, given)| given).collect()
    }

    /// Computes the weight of a document.
    pub(super) fn weight(&self, values: &dyn Values) -> i32 {
        let scope = Scope::document(values);
        match self.kind {
            ValueKind::Integer => evaluate::integer(&self.root, scope),
            _ => evaluate::low_bits(evaluate::real(&self.root, scope)),
        }
    }
}

/// Two expressions are equal if their texts are, and the columns that they read.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.kind == other.kind && self.attributes == other.attributes
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// The error for a refused expression.
fn refused(message: impl Into<String>) -> WordsError {
    WordsError::Expression(message.into())
}
