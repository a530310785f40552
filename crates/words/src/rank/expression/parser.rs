//! The parser of expressions, with the errors of Sphinx's parser.

use super::{
    MAX_DEPTH,
    functions::{Arity, Function, Named},
    lexer::{ExpressionLexer, ExpressionToken},
    node::{
        Arithmetic, AttributeKind, Attributes, Bits, Comparison, Constants, ExpressionNode, Factor,
        What,
    },
    refused,
    value_kind::ValueKind,
};
use crate::Result;

/// Parses a whole expression.
pub(super) fn parse(text: &str, attributes: &dyn Attributes) -> Result<ExpressionNode> {
    let mut lexer = ExpressionLexer::new(text, attributes);
    let (token, from) = lexer.next()?;
    let mut parser = Parser { lexer, attributes, token, from, depth: 0, bm25f_count: 0 };
    let root = parser.expression(0)?;
    match parser.token {
        ExpressionToken::End => Ok(root),
        _ => Err(parser.unexpected(&["$end"])),
    }
}

struct Parser<'t> {
    lexer: ExpressionLexer<'t>,
    attributes: &'t dyn Attributes,
    /// The current token, and the text from its start on.
    token: ExpressionToken,
    from: &'t str,
    depth: usize,
    bm25f_count: usize,
}

/// A binary operator.
#[derive(Clone, Copy)]
enum Operator {
    Arithmetic(Arithmetic),
    Bits(Bits),
    Comparison(Comparison),
    Quotient,
}

/// The binary operator of a token, and how tightly it binds.
fn operator(token: &ExpressionToken) -> Option<(usize, Operator)> {
    Some(match token {
        ExpressionToken::Or => (1, Operator::Comparison(Comparison::Or)),
        ExpressionToken::And => (2, Operator::Comparison(Comparison::And)),
        ExpressionToken::Symbol('|') => (3, Operator::Bits(Bits::Or)),
        ExpressionToken::Symbol('&') => (4, Operator::Bits(Bits::And)),
        ExpressionToken::Equal => (5, Operator::Comparison(Comparison::Equal)),
        ExpressionToken::NotEqual => (5, Operator::Comparison(Comparison::NotEqual)),
        ExpressionToken::Symbol('<') => (6, Operator::Comparison(Comparison::Less)),
        ExpressionToken::Symbol('>') => (6, Operator::Comparison(Comparison::Greater)),
        ExpressionToken::AtMost => (6, Operator::Comparison(Comparison::AtMost)),
        ExpressionToken::AtLeast => (6, Operator::Comparison(Comparison::AtLeast)),
        ExpressionToken::Symbol('+') => (7, Operator::Arithmetic(Arithmetic::Add)),
        ExpressionToken::Symbol('-') => (7, Operator::Arithmetic(Arithmetic::Subtract)),
        ExpressionToken::Symbol('*') => (8, Operator::Arithmetic(Arithmetic::Multiply)),
        ExpressionToken::Symbol('/') => (8, Operator::Arithmetic(Arithmetic::Divide)),
        ExpressionToken::Symbol('%') | ExpressionToken::Mod => (8, Operator::Bits(Bits::Remainder)),
        ExpressionToken::Div => (8, Operator::Quotient),
        _ => return None,
    })
}

fn joined(operator: Operator, one: ExpressionNode, two: ExpressionNode) -> Result<ExpressionNode> {
    let widest = one.kind.widest(two.kind);
    let operands = vec![one, two];
    let needs_integers = |name: &str| match widest.is_integer() {
        true => Ok(()),
        false => Err(refused(format!("{name} arguments must be integer"))),
    };
    let (what, kind) = match operator {
        Operator::Arithmetic(Arithmetic::Divide) => {
            (What::Arithmetic(Arithmetic::Divide), ValueKind::Real)
        }
        Operator::Arithmetic(operation) => (What::Arithmetic(operation), widest),
        Operator::Bits(operation) => {
            needs_integers(match operation {
                Bits::And => "AND",
                Bits::Or => "OR",
                Bits::Remainder => "MOD",
            })?;
            (What::Bits(operation), widest)
        }
        Operator::Comparison(comparison) => {
            match comparison {
                Comparison::And => needs_integers("AND")?,
                Comparison::Or => needs_integers("OR")?,
                _ => {}
            }
            (What::Comparison(comparison, widest), ValueKind::Integer)
        }
        Operator::Quotient => (What::Function(Function::Quotient, widest), widest),
    };
    limited(ExpressionNode::new(what, kind, operands))
}

/// Refuses a node that is nested too deeply.
fn limited(node: ExpressionNode) -> Result<ExpressionNode> {
    if node.depth > MAX_DEPTH { Err(too_deep()) } else { Ok(node) }
}

fn too_deep() -> crate::WordsError {
    refused(format!("ranking expression is nested deeper than {MAX_DEPTH} levels"))
}

/// The widest type of some arguments.
fn widest(arguments: &[ExpressionNode]) -> ValueKind {
    let mut kinds = arguments.iter().map(|argument| argument.kind);
    let first = kinds.next().unwrap_or(ValueKind::Integer);
    kinds.fold(first, ValueKind::widest)
}

impl<'t> Parser<'t> {
    /// Moves to the next token; returns the current one.
    fn advance(&mut self) -> Result<ExpressionToken> {
        let (token, from) = self.lexer.next()?;
        self.from = from;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn unexpected(&self, expected: &[&str]) -> crate::WordsError {
        let mut message = format!("Sphinx expr: syntax error, unexpected {}", self.token.name());
        for (number, name) in expected.iter().enumerate() {
            message.push_str(if number == 0 { ", expecting " } else { " or " });
            message.push_str(name);
        }
        refused(format!("{message} near '{}'", self.from))
    }

    fn is_symbol(&self, symbol: char) -> bool {
        matches!(self.token, ExpressionToken::Symbol(other) if other == symbol)
    }

    /// Takes a symbol, which must come next; `expected` lists tokens for the error message.
    fn symbol(&mut self, symbol: char, expected: &[&str]) -> Result<()> {
        if !self.is_symbol(symbol) {
            return Err(self.unexpected(expected));
        }
        self.advance().map(drop)
    }

    /// Parses operands and operators that bind more tightly than `level`.
    fn expression(&mut self, level: usize) -> Result<ExpressionNode> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let mut node = self.operand()?;
        while let Some((binding, operator)) = operator(&self.token).filter(|it| it.0 > level) {
            self.advance()?;
            let right = self.expression(binding)?;
            node = joined(operator, node, right)?;
        }
        self.depth -= 1;
        Ok(node)
    }

    /// Parses an operand with the signs before it.
    fn operand(&mut self) -> Result<ExpressionNode> {
        let mut signs: Vec<ExpressionToken> = Vec::new();
        while matches!(self.token, ExpressionToken::Not | ExpressionToken::Symbol('-')) {
            signs.push(self.advance()?);
        }
        let mut node = self.bare()?;
        for sign in signs.into_iter().rev() {
            let kind = node.kind;
            node = limited(match sign {
                ExpressionToken::Not if kind.is_integer() => {
                    ExpressionNode::new(What::Not(kind), ValueKind::Integer, vec![node])
                }
                ExpressionToken::Not => return Err(refused("NOT argument must be integer")),
                _ => ExpressionNode::new(What::Negate, kind, vec![node]),
            })?;
        }
        Ok(node)
    }

    fn bare(&mut self) -> Result<ExpressionNode> {
        match self.token {
            ExpressionToken::Text => {
                self.advance()?;
                match self.token {
                    ExpressionToken::Equal => {
                        Err(refused("ranking expressions compare numbers, not texts"))
                    }
                    _ => Err(self.unexpected(&["TOK_EQ"])),
                }
            }
            ExpressionToken::Symbol('(') => {
                self.advance()?;
                let node = self.expression(0)?;
                self.symbol(')', &[])?;
                Ok(node)
            }
            ExpressionToken::Symbol('`') => {
                self.advance()?;
                let ExpressionToken::Attribute(number, kind) = self.token else {
                    return Err(self.unexpected(&[]));
                };
                self.advance()?;
                self.symbol('`', &["'`'"])?;
                Ok(attribute(number, kind))
            }
            ExpressionToken::Integer(_)
            | ExpressionToken::Real(_)
            | ExpressionToken::DotNumber(_)
            | ExpressionToken::Attribute(..)
            | ExpressionToken::Factor(_)
            | ExpressionToken::Name(_)
            | ExpressionToken::Key
            | ExpressionToken::AtKey
            | ExpressionToken::AtWeight
            | ExpressionToken::Weight => self.value(),
            _ => self.call(),
        }
    }

    /// Parses a number or a name.
    fn value(&mut self) -> Result<ExpressionNode> {
        Ok(match self.advance()? {
            ExpressionToken::Integer(value) => ExpressionNode::integer(value),
            ExpressionToken::Real(value) | ExpressionToken::DotNumber(value) => {
                ExpressionNode::real(value)
            }
            ExpressionToken::Attribute(number, kind) => attribute(number, kind),
            ExpressionToken::Factor(factor) => {
                ExpressionNode::leaf(What::Factor(factor), factor.kind())
            }
            ExpressionToken::Key | ExpressionToken::AtKey => match self.attributes.find("id") {
                Some((number, _)) => attribute(number, AttributeKind::BigInteger),
                None => unknown("id".to_owned()),
            },
            ExpressionToken::Name(name) => {
                self.subscripts()?;
                unknown(name)
            }
            ExpressionToken::Weight => {
                self.symbol('(', &["'('"])?;
                self.symbol(')', &["')'"])?;
                ExpressionNode::leaf(What::Weight, ValueKind::Integer)
            }
            _ => ExpressionNode::leaf(What::Weight, ValueKind::Integer),
        })
    }

    /// Parses `.name` and `[number]` after a name. No numeric column has them.
    fn subscripts(&mut self) -> Result<()> {
        loop {
            match self.token {
                ExpressionToken::Subkey | ExpressionToken::DotNumber(_) => drop(self.advance()?),
                ExpressionToken::Symbol('[') => {
                    self.advance()?;
                    match self.token {
                        ExpressionToken::Text => drop(self.advance()?),
                        _ => drop(self.expression(0)?),
                    }
                    self.symbol(']', &[])?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn call(&mut self) -> Result<ExpressionNode> {
        let called = match &self.token {
            ExpressionToken::Function(_)
            | ExpressionToken::In
            | ExpressionToken::Aggregate(_)
            | ExpressionToken::MaxWindowHits
            | ExpressionToken::Bm25a
            | ExpressionToken::Bm25f => self.advance()?,
            ExpressionToken::Refused(name) => {
                return Err(refused(format!("{name}() is not a function of ranking expressions")));
            }
            _ => return Err(self.unexpected(&[])),
        };
        self.symbol('(', &["'('"])?;
        let node = match called {
            ExpressionToken::Function(named) => {
                let arguments = match self.is_symbol(')') {
                    true => Vec::new(),
                    false => self.arguments()?,
                };
                function(named, arguments)?
            }
            ExpressionToken::In => self.membership()?,
            ExpressionToken::Aggregate(aggregate) => {
                let name = format!("{aggregate:?}").to_ascii_uppercase();
                let arguments = exactly(&name, self.arguments()?, 1)?;
                let kind = widest(&arguments);
                ExpressionNode::new(What::Aggregate(aggregate), kind, arguments)
            }
            ExpressionToken::MaxWindowHits => max_window_hits(self.arguments()?)?,
            ExpressionToken::Bm25a => {
                let arguments = exactly("BM25A", constant("BM25A", self.arguments()?)?, 2)?;
                let (saturation, length) = parameters("BM25A", &arguments)?;
                ExpressionNode::leaf(What::Bm25a(saturation, length), Factor::Bm25a.kind())
            }
            _ => {
                let arguments = self.arguments()?;
                self.bm25f_count += 1;
                bm25f(arguments, self.bm25f_count - 1)?
            }
        };
        self.symbol(')', &["')'", "','"])?;
        limited(node)
    }

    /// Parses arguments up to the closing parenthesis.
    fn arguments(&mut self) -> Result<Vec<ExpressionNode>> {
        let mut arguments = vec![self.argument()?];
        while self.is_symbol(',') {
            self.advance()?;
            arguments.push(self.argument()?);
        }
        match self.is_symbol(')') {
            true => Ok(arguments),
            false => Err(self.unexpected(&["')'", "','"])),
        }
    }

    fn argument(&mut self) -> Result<ExpressionNode> {
        match self.token {
            ExpressionToken::Text => {
                self.advance()?;
                match self.token {
                    ExpressionToken::Equal => {
                        Err(refused("ranking expressions compare numbers, not texts"))
                    }
                    _ => Ok(ExpressionNode::leaf(What::Text, ValueKind::Text)),
                }
            }
            ExpressionToken::Symbol('{') => {
                self.advance()?;
                self.map()
            }
            _ => self.expression(0),
        }
    }

    /// Parses `name = number, … }`. A pair with a name instead of a number is ignored.
    fn map(&mut self) -> Result<ExpressionNode> {
        const NAMES: [&str; 4] = ["TOK_ATTR_INT", "TOK_ATTR_STRING", "TOK_FUNC_IN", "TOK_IDENT"];
        let mut pairs = Vec::new();
        loop {
            let name = match &self.token {
                ExpressionToken::Name(name) => name.clone(),
                ExpressionToken::In => "in".to_owned(),
                ExpressionToken::Attribute(_, kind) if *kind != AttributeKind::Real => {
                    let length = self
                        .from
                        .bytes()
                        .take_while(|&it| it.is_ascii_alphanumeric() || it == b'_');
                    self.from.get(..length.count()).unwrap_or_default().to_owned()
                }
                _ => return Err(self.unexpected(&NAMES)),
            };
            self.advance()?;
            match self.token {
                ExpressionToken::Equal => drop(self.advance()?),
                _ => return Err(self.unexpected(&["TOK_EQ"])),
            }
            match &self.token {
                ExpressionToken::Integer(value) => pairs.push((name, *value as i32)),
                ExpressionToken::Name(_) => {}
                _ => return Err(self.unexpected(&["TOK_CONST_INT", "TOK_IDENT"])),
            }
            self.advance()?;
            match self.token {
                ExpressionToken::Symbol('}') => {
                    self.advance()?;
                    return Ok(ExpressionNode::leaf(What::Map(pairs), ValueKind::Map));
                }
                ExpressionToken::Symbol(',') => drop(self.advance()?),
                _ => return Err(self.unexpected(&["','", "'}'"])),
            }
        }
    }

    /// Parses `value, constant, …` of an `in()`.
    fn membership(&mut self) -> Result<ExpressionNode> {
        const NUMBERS: [&str; 3] = ["TOK_CONST_INT", "TOK_CONST_FLOAT", "'-'"];
        let value = self.argument()?;
        if !value.kind.is_number() && value.kind != ValueKind::Unknown {
            return Err(refused("in() compares only numbers with numbers"));
        }
        self.symbol(',', &["','"])?;
        let mut constants = List::default();
        loop {
            let is_negative = self.is_symbol('-');
            if is_negative {
                self.advance()?;
            }
            match &self.token {
                ExpressionToken::Integer(value) => {
                    constants.push_integer(if is_negative { value.wrapping_neg() } else { *value });
                }
                ExpressionToken::Real(value) => {
                    constants.push_real(if is_negative { -value } else { *value });
                }
                ExpressionToken::Text | ExpressionToken::UserVariable => {
                    return Err(refused("in() compares only numbers with numbers"));
                }
                _ if is_negative => return Err(self.unexpected(&NUMBERS[..2])),
                _ if constants.is_empty() => return Err(self.unexpected(&[])),
                _ => return Err(self.unexpected(&NUMBERS)),
            }
            self.advance()?;
            if !self.is_symbol(',') {
                break;
            }
            self.advance()?;
        }
        if !self.is_symbol(')') {
            return Err(self.unexpected(&["')'"]));
        }
        let constants = constants.sorted(value.kind);
        Ok(ExpressionNode::new(What::In(constants), ValueKind::Integer, vec![value]))
    }
}

fn attribute(number: usize, kind: AttributeKind) -> ExpressionNode {
    let kind = match kind {
        AttributeKind::Integer => ValueKind::Integer,
        AttributeKind::BigInteger => ValueKind::BigInteger,
        AttributeKind::Real => ValueKind::Real,
    };
    ExpressionNode::leaf(What::Attribute(number), kind)
}

fn unknown(name: String) -> ExpressionNode {
    ExpressionNode::leaf(What::Unknown(name), ValueKind::Unknown)
}

/// Constants in the order of the text.
#[derive(Default)]
struct List {
    integers: Vec<i64>,
    reals: Vec<f32>,
    /// The type of the last integer, as in Sphinx.
    kind: Option<ValueKind>,
}

impl List {
    fn is_empty(&self) -> bool {
        self.integers.is_empty() && self.reals.is_empty()
    }

    fn push_integer(&mut self, value: i64) {
        if self.kind == Some(ValueKind::Real) {
            self.reals.push(value as f32);
        } else {
            self.kind = Some(ValueKind::of_integer(value));
            self.integers.push(value);
        }
    }

    fn push_real(&mut self, value: f32) {
        self.reals.extend(std::mem::take(&mut self.integers).into_iter().map(|it| it as f32));
        self.kind = Some(ValueKind::Real);
        self.reals.push(value);
    }

    /// The constants sorted in the type in which they are compared with a value of this type.
    fn sorted(self, kind: ValueKind) -> Constants {
        match kind.widest(self.kind.unwrap_or(ValueKind::Integer)) {
            ValueKind::Integer => {
                let mut all: Vec<i32> = self.integers.into_iter().map(|it| it as i32).collect();
                all.sort_unstable();
                Constants::Integers(all)
            }
            ValueKind::BigInteger => {
                let mut all = self.integers;
                all.sort_unstable();
                Constants::BigIntegers(all)
            }
            _ => {
                let mut all = self.reals;
                all.extend(self.integers.into_iter().map(|it| it as f32));
                all.sort_unstable_by(f32::total_cmp);
                Constants::Reals(all)
            }
        }
    }
}

fn function(named: Named, arguments: Vec<ExpressionNode>) -> Result<ExpressionNode> {
    let (name, given) = (named.name, arguments.len());
    match named.arity {
        Arity::Exactly(wanted) if wanted != given => {
            let message = format!("{name}() called with {given} args, {wanted} args expected");
            return Err(refused(message));
        }
        Arity::AtLeast(least) if given < least => {
            return Err(refused(format!(
                "{name}() called with {given} args, at least {least} args expected"
            )));
        }
        Arity::Exactly(_) | Arity::AtLeast(_) => {}
    }
    let has = |kind: ValueKind| arguments.iter().any(|argument| argument.kind == kind);
    if has(ValueKind::Text) {
        return Err(refused(format!("{name}() arguments can not be string")));
    }
    if has(ValueKind::Map) {
        return Err(refused(format!("{name}() arguments can not be a map of constants")));
    }
    let first = arguments.first().map_or(ValueKind::Integer, |argument| argument.kind);
    match named.function {
        Function::BitDot if !first.is_integer() => {
            return Err(refused("first BITDOT() argument must be integer"));
        }
        Function::Signed | Function::Fibonacci if first != ValueKind::Integer => {
            return Err(refused(format!("{name}() argument must be integer")));
        }
        _ => {}
    }
    let all = widest(&arguments);
    let kind = named.kind.unwrap_or(all);
    Ok(ExpressionNode::new(What::Function(named.function, all), kind, arguments))
}

/// Checks that all arguments are constants.
fn constant(name: &str, arguments: Vec<ExpressionNode>) -> Result<Vec<ExpressionNode>> {
    let is_constant = |node: &ExpressionNode| node.is_constant() || node.kind == ValueKind::Map;
    match arguments.iter().all(is_constant) {
        true => Ok(arguments),
        false => Err(refused(format!("{name}() requires constant arguments"))),
    }
}

fn exactly(
    name: &str,
    arguments: Vec<ExpressionNode>,
    wanted: usize,
) -> Result<Vec<ExpressionNode>> {
    let given = arguments.len();
    match given == wanted {
        true => Ok(arguments),
        false => Err(refused(format!("{name}() requires {wanted} argument(s), not {given}"))),
    }
}

fn max_window_hits(arguments: Vec<ExpressionNode>) -> Result<ExpressionNode> {
    let name = "MAX_WINDOW_HITS";
    let arguments = exactly(name, constant(name, arguments)?, 1)?;
    match arguments.first().map(|argument| (&argument.what, argument.kind)) {
        Some((What::Integer(value), ValueKind::Integer)) => {
            Ok(ExpressionNode::leaf(What::MaxWindowHits(*value as i32), ValueKind::Integer))
        }
        _ => Err(refused(format!("argument 0 to {name}() must be integer"))),
    }
}

/// The first two arguments of `bm25a` and `bm25f`: the saturation of repeated words (k1), and the influence of the
/// document's length (b).
fn parameters(name: &str, arguments: &[ExpressionNode]) -> Result<(f32, f32)> {
    let parameter = |number: usize| {
        let argument = arguments.get(number).filter(|it| it.kind != ValueKind::BigInteger);
        argument.and_then(ExpressionNode::constant).ok_or_else(|| {
            let wanted = "must be scalar (integer or float)";
            refused(format!("argument {number} to {name}() {wanted}"))
        })
    };
    Ok((parameter(0)?.max(0.001), parameter(1)?.clamp(0.0, 1.0)))
}

fn bm25f(arguments: Vec<ExpressionNode>, number: usize) -> Result<ExpressionNode> {
    let name = "BM25F";
    let mut arguments = constant(name, arguments)?;
    let is_short = arguments.len() == 2;
    let is_plain = is_short && arguments.iter().all(|it| it.kind != ValueKind::Map);
    let weights = match arguments.pop() {
        Some(last) if is_plain => {
            arguments.push(last);
            Vec::new()
        }
        Some(mut last) => {
            arguments.push(last.clone());
            arguments = exactly(name, arguments, 3)?;
            parameters(name, &arguments)?;
            match &mut last.what {
                What::Map(pairs) => std::mem::take(pairs),
                _ => {
                    let message = format!("argument 2 to {name}() must be a map of constants");
                    return Err(refused(message));
                }
            }
        }
        None => Vec::new(),
    };
    let parameters = parameters(name, &arguments)?;
    Ok(ExpressionNode::leaf(What::Bm25f { number, parameters, weights }, ValueKind::Real))
}
