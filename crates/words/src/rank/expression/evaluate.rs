//! Evaluates an expression for one document.
//!
//! Long chains of operators are evaluated by a loop ([`chain`]), everything else by recursion.
//!
//! Each node can be evaluated as a 32-bit integer, a 64-bit integer or a real; a node with real values only
//! truncates. The consumer decides which: `in(a/2, 1)` is evaluated with integers and `a/2 < 1` with reals, as in
//! Sphinx.

use super::{
    MAX_DEPTH,
    functions::Function,
    node::{
        Aggregate, Arithmetic, Attribute, Bits, Comparison, Constants, ExpressionNode, Factor, What,
    },
    value_kind::ValueKind,
};

/// The value of a factor. Its type decides how it becomes an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::rank) enum Value {
    Signed(i32),
    Unsigned(u32),
    Real(f32),
}

/// The values of one document that an expression reads.
pub(in crate::rank) trait Values {
    /// The value of a factor; `field` matters if it is a factor of a field.
    fn factor(&self, factor: Factor, field: usize) -> Value;
    /// The value of the expression's `bm25f` with this number.
    fn bm25f(&self, number: usize, parameters: (f32, f32)) -> f32;
    /// The number of fields.
    fn fields(&self) -> usize;
    /// Whether the field has hits.
    fn is_matched(&self, field: usize) -> bool;
    /// The value of a column.
    fn attribute(&self, number: usize) -> Attribute;
}

/// The document, and within an aggregate the current field.
#[derive(Clone, Copy)]
pub(in crate::rank) struct Scope<'v> {
    values: &'v dyn Values,
    field: usize,
}

impl<'v> Scope<'v> {
    pub(super) fn document(values: &'v dyn Values) -> Self {
        Self { values, field: 0 }
    }

    /// A scope for each matched field.
    fn fields(self) -> impl Iterator<Item = Scope<'v>> {
        let values = self.values;
        let matched = (0..values.fields()).filter(move |&field| values.is_matched(field));
        matched.map(move |field| Scope { values, field })
    }
}

/// A logarithm, computed from the natural one.
pub(super) fn scaled_ln(value: f32, scale: f64) -> f32 {
    (f64::from(value.ln()) * scale) as f32
}

/// The whole part; `i32::MIN` if the value is NaN or out of range.
pub(super) fn integer_of(value: f32) -> i32 {
    let whole = value.trunc();
    if (-2_147_483_648.0..2_147_483_648.0).contains(&whole) { whole as i32 } else { i32::MIN }
}

fn big_of(value: f32) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&value) { value as i64 } else { i64::MIN }
}

/// The low 32 bits of the whole part.
pub(super) fn low_bits(value: f32) -> i32 {
    big_of(value) as i32
}

fn part(node: &ExpressionNode, number: usize) -> Option<&ExpressionNode> {
    node.parts.get(number)
}

fn real_part(node: &ExpressionNode, number: usize, scope: Scope<'_>) -> f32 {
    part(node, number).map_or(0.0, |part| real(part, scope))
}

fn integer_part(node: &ExpressionNode, number: usize, scope: Scope<'_>) -> i32 {
    part(node, number).map_or(0, |part| integer(part, scope))
}

fn big_part(node: &ExpressionNode, number: usize, scope: Scope<'_>) -> i64 {
    part(node, number).map_or(0, |part| big(part, scope))
}

/// Whether a node is too high for recursion and may be evaluated by [`chain`]. Integers are not divided, but reals are.
fn is_chain(node: &ExpressionNode, divides: bool) -> bool {
    node.height > MAX_DEPTH
        && match node.what {
            What::Arithmetic(Arithmetic::Divide) => divides,
            What::Arithmetic(_) => true,
            What::Function(function, _) => {
                matches!(function, Function::MultiplyAdd | Function::Product)
            }
            _ => false,
        }
}

/// Evaluates a high tree of arithmetic: goes down to the end of its longest chain and computes upwards from there. `of`
/// evaluates the other operands, which are no deeper than they are written.
fn chain<T: Copy + Default>(
    node: &ExpressionNode,
    scope: Scope<'_>,
    divides: bool,
    of: fn(&ExpressionNode, Scope<'_>) -> T,
    result: fn(Arithmetic, T, T) -> T,
) -> T {
    let (mut way, mut at) = (Vec::new(), node);
    while is_chain(at, divides)
        && let Some((place, part)) = at.parts.iter().enumerate().max_by_key(|(_, part)| part.height)
    {
        way.push((at, place));
        at = part;
    }
    let mut value = of(at, scope);
    for (node, place) in way.into_iter().rev() {
        let operand = |number: usize| match part(node, number) {
            _ if number == place => value,
            Some(part) => of(part, scope),
            None => T::default(),
        };
        let product = || result(Arithmetic::Multiply, operand(0), operand(1));
        value = match node.what {
            What::Arithmetic(operation) => result(operation, operand(0), operand(1)),
            What::Function(Function::MultiplyAdd, _) => {
                result(Arithmetic::Add, product(), operand(2))
            }
            _ => result(Arithmetic::Multiply, product(), operand(2)),
        };
    }
    value
}

fn real_result(operation: Arithmetic, one: f32, two: f32) -> f32 {
    match operation {
        Arithmetic::Add => one + two,
        Arithmetic::Subtract => one - two,
        Arithmetic::Multiply => one * two,
        Arithmetic::Divide if two == 0.0 => 0.0,
        Arithmetic::Divide => one / two,
    }
}

/// Divisions are of reals.
fn integer_result(operation: Arithmetic, one: i32, two: i32) -> i32 {
    match operation {
        Arithmetic::Add => one.wrapping_add(two),
        Arithmetic::Subtract => one.wrapping_sub(two),
        Arithmetic::Multiply | Arithmetic::Divide => one.wrapping_mul(two),
    }
}

/// Divisions are of reals.
fn big_result(operation: Arithmetic, one: i64, two: i64) -> i64 {
    match operation {
        Arithmetic::Add => one.wrapping_add(two),
        Arithmetic::Subtract => one.wrapping_sub(two),
        Arithmetic::Multiply | Arithmetic::Divide => one.wrapping_mul(two),
    }
}

/// Evaluates a node as a real.
pub(super) fn real(node: &ExpressionNode, scope: Scope<'_>) -> f32 {
    if is_chain(node, true) {
        return chain(node, scope, true, real, real_result);
    }
    let of = |number| real_part(node, number, scope);
    match &node.what {
        What::Integer(value) if node.kind == ValueKind::Integer => *value as i32 as f32,
        What::Integer(value) => *value as f32,
        What::Real(value) => *value,
        What::Attribute(number) => match scope.values.attribute(*number) {
            Attribute::Integer(value) => value as f32,
            Attribute::Real(value) => value,
        },
        What::Factor(_) | What::MaxWindowHits(_) | What::Bm25a(..) => match factor(node, scope) {
            Value::Signed(value) => value as f32,
            Value::Unsigned(value) => value as f32,
            Value::Real(value) => value,
        },
        What::Bm25f { number, parameters, .. } => scope.values.bm25f(*number, *parameters),
        What::Negate => -of(0),
        What::Arithmetic(operation) => real_result(*operation, of(0), of(1)),
        What::Bits(operation) => bits(*operation, integer_of(of(0)), integer_of(of(1))) as f32,
        What::Function(function, kind) => real_function(*function, *kind, node, scope),
        What::Aggregate(Aggregate::Sum) => {
            let fields = scope.fields().map(|field| real_part(node, 0, field));
            fields.fold(0.0, |sum, value| sum + value)
        }
        What::Aggregate(Aggregate::Top) => {
            let fields = scope.fields().map(|field| real_part(node, 0, field));
            fields.fold(f32::MIN_POSITIVE, |top, value| if top < value { value } else { top })
        }
        What::Not(_) | What::Comparison(..) | What::In(_) => integer(node, scope) as f32,
        What::Unknown(_) | What::Text | What::Map(_) | What::Weight => 0.0,
    }
}

/// Evaluates a node as a 32-bit integer.
pub(super) fn integer(node: &ExpressionNode, scope: Scope<'_>) -> i32 {
    if is_chain(node, false) {
        return chain(node, scope, false, integer, integer_result);
    }
    let of = |number| integer_part(node, number, scope);
    match &node.what {
        What::Integer(value) => *value as i32,
        What::Attribute(number) => match scope.values.attribute(*number) {
            Attribute::Integer(value) => value as i32,
            Attribute::Real(value) => integer_of(value),
        },
        What::Factor(_) | What::MaxWindowHits(_) => match factor(node, scope) {
            Value::Signed(value) => value,
            Value::Unsigned(value) => value as i32,
            Value::Real(value) => integer_of(value),
        },
        What::Negate => of(0).wrapping_neg(),
        What::Arithmetic(operation) if *operation != Arithmetic::Divide => {
            integer_result(*operation, of(0), of(1))
        }
        What::Bits(operation) => bits(*operation, of(0), of(1)),
        What::Not(ValueKind::BigInteger) => i32::from(big_part(node, 0, scope) == 0),
        What::Not(_) => i32::from(of(0) == 0),
        What::Comparison(comparison, kind) => i32::from(compared(*comparison, *kind, node, scope)),
        What::In(constants) => i32::from(is_in(constants, node, scope)),
        What::Function(function, kind) => integer_function(*function, *kind, node, scope),
        What::Aggregate(Aggregate::Sum) => {
            let fields = scope.fields().map(|field| integer_part(node, 0, field));
            fields.fold(0, i32::wrapping_add)
        }
        What::Aggregate(Aggregate::Top) => {
            let fields = scope.fields().map(|field| integer_part(node, 0, field));
            fields.fold(i32::MIN, i32::max)
        }
        _ => integer_of(real(node, scope)),
    }
}

/// Evaluates a node as a 64-bit integer.
pub(super) fn big(node: &ExpressionNode, scope: Scope<'_>) -> i64 {
    if is_chain(node, false) {
        return chain(node, scope, false, big, big_result);
    }
    let of = |number| big_part(node, number, scope);
    match &node.what {
        What::Integer(value) if node.kind == ValueKind::Integer => i64::from(*value as i32),
        What::Integer(value) => *value,
        What::Attribute(number) => match scope.values.attribute(*number) {
            Attribute::Integer(value) => value,
            Attribute::Real(value) => big_of(value),
        },
        What::Negate => of(0).wrapping_neg(),
        What::Arithmetic(operation) if *operation != Arithmetic::Divide => {
            big_result(*operation, of(0), of(1))
        }
        What::Bits(Bits::And) => of(0) & of(1),
        What::Bits(Bits::Or) => of(0) | of(1),
        What::Bits(Bits::Remainder) => match of(1) {
            0 => 0,
            divisor => of(0).wrapping_rem(divisor),
        },
        What::Not(_) | What::Comparison(..) | What::In(_) => integer(node, scope).into(),
        What::Function(function, kind) => big_function(*function, *kind, node, scope),
        _ => big_of(real(node, scope)),
    }
}

fn factor(node: &ExpressionNode, scope: Scope<'_>) -> Value {
    let factor = match node.what {
        What::Factor(factor) => factor,
        What::MaxWindowHits(_) => Factor::MaxWindowHits,
        _ => Factor::Bm25a,
    };
    scope.values.factor(factor, scope.field)
}

fn bits(operation: Bits, one: i32, two: i32) -> i32 {
    match operation {
        Bits::And => one & two,
        Bits::Or => one | two,
        Bits::Remainder if two == 0 => 0,
        Bits::Remainder => one.wrapping_rem(two),
    }
}

fn compared(
    comparison: Comparison,
    kind: ValueKind,
    node: &ExpressionNode,
    scope: Scope<'_>,
) -> bool {
    fn ordered<T: PartialOrd>(comparison: Comparison, one: T, two: T) -> bool {
        match comparison {
            Comparison::Less => one < two,
            Comparison::Greater => one > two,
            Comparison::AtMost => one <= two,
            Comparison::AtLeast => one >= two,
            Comparison::NotEqual => one != two,
            Comparison::Equal | Comparison::And | Comparison::Or => one == two,
        }
    }
    match (comparison, kind) {
        (Comparison::And, ValueKind::Integer) => {
            integer_part(node, 0, scope) != 0 && integer_part(node, 1, scope) != 0
        }
        (Comparison::Or, ValueKind::Integer) => {
            integer_part(node, 0, scope) != 0 || integer_part(node, 1, scope) != 0
        }
        (Comparison::And, _) => big_part(node, 0, scope) != 0 && big_part(node, 1, scope) != 0,
        (Comparison::Or, _) => big_part(node, 0, scope) != 0 || big_part(node, 1, scope) != 0,
        (_, ValueKind::Integer) => {
            ordered(comparison, integer_part(node, 0, scope), integer_part(node, 1, scope))
        }
        (_, ValueKind::BigInteger) => {
            ordered(comparison, big_part(node, 0, scope), big_part(node, 1, scope))
        }
        _ => {
            let (one, two) = (real_part(node, 0, scope), real_part(node, 1, scope));
            // Reals within 1e-6 are equal.
            let distance = f64::from((one - two).abs());
            match comparison {
                Comparison::Equal => distance <= 1e-6,
                Comparison::NotEqual => distance > 1e-6,
                _ => ordered(comparison, one, two),
            }
        }
    }
}

fn is_in(constants: &Constants, node: &ExpressionNode, scope: Scope<'_>) -> bool {
    match constants {
        Constants::Integers(all) => all.binary_search(&integer_part(node, 0, scope)).is_ok(),
        Constants::BigIntegers(all) => all.binary_search(&big_part(node, 0, scope)).is_ok(),
        Constants::Reals(all) => {
            let value = real_part(node, 0, scope);
            all.binary_search_by(|other| other.total_cmp(&value)).is_ok()
        }
    }
}

/// The number of leading bounds that are not above the value; the bounds are the arguments after the first.
fn interval(kind: ValueKind, node: &ExpressionNode, scope: Scope<'_>) -> i32 {
    let bounds = node.parts.get(1..).unwrap_or_default();
    let count = bounds.len();
    let place = match kind {
        ValueKind::Integer => {
            let value = integer_part(node, 0, scope);
            bounds.iter().position(|bound| value < integer(bound, scope))
        }
        ValueKind::BigInteger => {
            let value = big_part(node, 0, scope);
            bounds.iter().position(|bound| value < big(bound, scope))
        }
        _ => {
            let value = real_part(node, 0, scope);
            bounds.iter().position(|bound| value < real(bound, scope))
        }
    };
    place.unwrap_or(count) as i32
}

/// The arguments after the first whose bit is set in the first.
fn chosen<'n>(
    node: &'n ExpressionNode,
    scope: Scope<'_>,
) -> impl Iterator<Item = &'n ExpressionNode> {
    let mask = big_part(node, 0, scope);
    let others = node.parts.get(1..).unwrap_or_default().iter().enumerate();
    others.filter(move |(bit, _)| *bit < 64 && mask >> bit & 1 == 1).map(|(_, part)| part)
}

/// By doubling: F(2n) = F(n) (2 F(n+1) - F(n)), F(2n+1) = F(n)^2 + F(n+1)^2.
fn fibonacci(number: i32) -> i32 {
    let number = number.max(0);
    let (mut one, mut two) = (0_i32, 1_i32);
    for bit in (0..31).rev() {
        let even = one.wrapping_mul(two.wrapping_mul(2).wrapping_sub(one));
        let odd = one.wrapping_mul(one).wrapping_add(two.wrapping_mul(two));
        (one, two) = match number >> bit & 1 {
            0 => (even, odd),
            _ => (odd, even.wrapping_add(odd)),
        };
    }
    one
}

fn real_function(
    function: Function,
    kind: ValueKind,
    node: &ExpressionNode,
    scope: Scope<'_>,
) -> f32 {
    let of = |number| real_part(node, number, scope);
    let positive =
        |value: f32, result: fn(f32) -> f32| if value > 0.0 { result(value) } else { 0.0 };
    match function {
        Function::Abs => of(0).abs(),
        Function::Ceil => of(0).ceil(),
        Function::Floor => of(0).floor(),
        Function::Sin => of(0).sin(),
        Function::Cos => of(0).cos(),
        Function::Ln => positive(of(0), f32::ln),
        Function::Log2 => positive(of(0), |value| scaled_ln(value, std::f64::consts::LOG2_E)),
        Function::Log10 => positive(of(0), |value| scaled_ln(value, std::f64::consts::LOG10_E)),
        Function::Exp => of(0).exp(),
        Function::Sqrt => positive(of(0), f32::sqrt),
        Function::Called => of(0),
        Function::Min => {
            let (one, two) = (of(0), of(1));
            if one < two { one } else { two }
        }
        Function::Max => {
            let (one, two) = (of(0), of(1));
            if one < two { two } else { one }
        }
        Function::Pow => of(0).powf(of(1)),
        Function::Atan2 => of(0).atan2(of(1)),
        Function::Quotient => match integer_of(of(1)) {
            0 => 0.0,
            divisor => integer_of(of(0)).wrapping_div(divisor) as f32,
        },
        Function::If if of(0) != 0.0 => of(1),
        Function::If => of(2),
        Function::MultiplyAdd => of(0) * of(1) + of(2),
        Function::Product => of(0) * of(1) * of(2),
        Function::BitDot => match kind {
            ValueKind::Integer => integer(node, scope) as f32,
            ValueKind::BigInteger => big(node, scope) as f32,
            _ => chosen(node, scope).fold(0.0, |sum, part| sum + real(part, scope)),
        },
        Function::Fibonacci | Function::Signed | Function::Interval => integer(node, scope) as f32,
    }
}

fn integer_function(
    function: Function,
    kind: ValueKind,
    node: &ExpressionNode,
    scope: Scope<'_>,
) -> i32 {
    let of = |number| integer_part(node, number, scope);
    match function {
        Function::Abs => of(0).wrapping_abs(),
        Function::Ceil => integer_of(real_part(node, 0, scope).ceil()),
        Function::Floor => integer_of(real_part(node, 0, scope).floor()),
        Function::Called | Function::Signed => of(0),
        Function::Min => of(0).min(of(1)),
        Function::Max => of(0).max(of(1)),
        Function::Quotient => match of(1) {
            0 => 0,
            divisor => of(0).wrapping_div(divisor),
        },
        Function::If if of(0) != 0 => of(1),
        Function::If => of(2),
        Function::MultiplyAdd => of(0).wrapping_mul(of(1)).wrapping_add(of(2)),
        Function::Product => of(0).wrapping_mul(of(1)).wrapping_mul(of(2)),
        Function::Fibonacci => fibonacci(of(0)),
        Function::Interval => interval(kind, node, scope),
        Function::BitDot => match kind {
            ValueKind::Integer => {
                chosen(node, scope).fold(0, |sum: i32, part| sum.wrapping_add(integer(part, scope)))
            }
            ValueKind::BigInteger => big(node, scope) as i32,
            _ => integer_of(real(node, scope)),
        },
        _ => integer_of(real(node, scope)),
    }
}

fn big_function(
    function: Function,
    kind: ValueKind,
    node: &ExpressionNode,
    scope: Scope<'_>,
) -> i64 {
    let of = |number| big_part(node, number, scope);
    match function {
        Function::Abs => of(0).wrapping_abs(),
        Function::Ceil => big_of(real_part(node, 0, scope).ceil()),
        Function::Floor => big_of(real_part(node, 0, scope).floor()),
        Function::Called => of(0),
        Function::Min => of(0).min(of(1)),
        Function::Max => of(0).max(of(1)),
        Function::Quotient => match of(1) {
            0 => 0,
            divisor => of(0).wrapping_div(divisor),
        },
        Function::If if of(0) != 0 => of(1),
        Function::If => of(2),
        Function::MultiplyAdd => of(0).wrapping_mul(of(1)).wrapping_add(of(2)),
        Function::Product => of(0).wrapping_mul(of(1)).wrapping_mul(of(2)),
        Function::Fibonacci | Function::Signed | Function::Interval => integer(node, scope).into(),
        Function::BitDot => match kind {
            ValueKind::BigInteger => {
                chosen(node, scope).fold(0, |sum: i64, part| sum.wrapping_add(big(part, scope)))
            }
            ValueKind::Integer => integer(node, scope).into(),
            _ => big_of(real(node, scope)),
        },
        _ => big_of(real(node, scope)),
    }
}
