//! Combines constants, sums and products in the same order as Sphinx. Reals are rounded after each operation, so the
//! order affects the result.

use super::{
    evaluate::{integer_of, scaled_ln},
    functions::Function,
    node::{Arithmetic, ExpressionNode, What},
};

/// Simplifies an expression.
pub(super) fn simplify(root: ExpressionNode) -> ExpressionNode {
    let passes = [move_constants, fold_constants, join_products, ExpressionNode::measure];
    passes.into_iter().fold(root, bottom_up)
}

/// Changes all nodes of a tree, operands before operators.
fn bottom_up(root: ExpressionNode, each: fn(&mut ExpressionNode)) -> ExpressionNode {
    // The way to the current node: each node with the number of operands that are done or taken out.
    let mut open: Vec<(ExpressionNode, usize)> = vec![(root, 0)];
    loop {
        let Some((above, taken)) = open.last_mut() else { return ExpressionNode::integer(0) };
        if let Some(part) = above.parts.get_mut(*taken) {
            let part = std::mem::replace(part, ExpressionNode::integer(0));
            *taken += 1;
            open.push((part, 0));
            continue;
        }
        let Some((mut node, _)) = open.pop() else { return ExpressionNode::integer(0) };
        each(&mut node);
        let Some((above, taken)) = open.last_mut() else { return node };
        if let Some(place) = taken.checked_sub(1).and_then(|place| above.parts.get_mut(place)) {
            *place = node;
        }
    }
}

fn arithmetic(node: &ExpressionNode) -> Option<Arithmetic> {
    if let What::Arithmetic(operation) = node.what { Some(operation) } else { None }
}

/// Moves constants to the left, and constants of left operands one level up.
fn move_constants(node: &mut ExpressionNode) {
    let Some(mut operation) = arithmetic(node) else { return };
    let [left, right] = node.parts.as_mut_slice() else { return };
    if !left.is_constant() && right.is_constant() {
        std::mem::swap(left, right);
        match operation {
            // a - 2 is -2 + a.
            Arithmetic::Subtract => {
                operation = Arithmetic::Add;
                left.what = match left.what {
                    What::Integer(value) => What::Integer(value.wrapping_neg()),
                    What::Real(value) => What::Real(-value),
                    _ => return,
                };
            }
            // a / 2 is 0.5 * a.
            Arithmetic::Divide => {
                operation = Arithmetic::Multiply;
                left.what = What::Real(1.0 / left.constant().unwrap_or(0.0));
            }
            Arithmetic::Add | Arithmetic::Multiply => {}
        }
    }
    node.what = What::Arithmetic(operation);
    promote(node);
}

/// `(2 + a) - b` becomes `2 + (a - b)`; similarly for other operators.
fn promote(node: &mut ExpressionNode) {
    let Some(operation) = arithmetic(node) else { return };
    let [left, right] = node.parts.as_mut_slice() else { return };
    let Some(inner) = arithmetic(left) else { return };
    if inner.is_sum() != operation.is_sum()
        || !left.parts.first().is_some_and(ExpressionNode::is_constant)
    {
        return;
    }
    let [constant, rest] = left.parts.as_mut_slice() else { return };
    let is_plain = matches!(operation, Arithmetic::Add | Arithmetic::Multiply);
    let (outer, inner) = match inner {
        Arithmetic::Add | Arithmetic::Multiply => (inner, operation),
        Arithmetic::Subtract if is_plain => (Arithmetic::Subtract, Arithmetic::Subtract),
        Arithmetic::Subtract => (Arithmetic::Subtract, Arithmetic::Add),
        Arithmetic::Divide if is_plain => (operation, Arithmetic::Divide),
        Arithmetic::Divide => (operation, Arithmetic::Multiply),
    };
    // Swap the parts, so that the constant is above and the two other operands are together below.
    let is_turned = arithmetic_is_quotient(&left.what);
    std::mem::swap(constant, rest);
    // Now: left = (rest, constant) and right.
    if let Some(constant) = left.parts.get_mut(1) {
        std::mem::swap(constant, right);
    }
    // Now: left = (rest, right), right = constant.
    if is_turned {
        left.parts.reverse();
    }
    left.what = What::Arithmetic(inner);
    std::mem::swap(left, right);
    node.what = What::Arithmetic(outer);
}

fn arithmetic_is_quotient(what: &What) -> bool {
    matches!(what, What::Arithmetic(Arithmetic::Divide))
}

fn fold_constants(node: &mut ExpressionNode) {
    match node.what {
        What::Negate => {
            let folded = match node.parts.first().map(|part| &part.what) {
                Some(What::Integer(value)) => What::Integer(value.wrapping_neg()),
                Some(What::Real(value)) => What::Real(-value),
                _ => return,
            };
            become_leaf(node, folded);
        }
        What::Not(_) => {
            let Some(What::Integer(value)) = node.parts.first().map(|part| &part.what) else {
                return;
            };
            let folded = What::Integer(i64::from(*value == 0));
            become_leaf(node, folded);
        }
        What::Arithmetic(operation) => fold_arithmetic(node, operation),
        What::Function(function, _) => {
            let Some(argument) = node.parts.first().filter(|part| part.is_constant()) else {
                return;
            };
            if let Some(folded) = fold_function(function, argument) {
                become_leaf(node, folded);
            }
        }
        _ => {}
    }
}

fn become_leaf(node: &mut ExpressionNode, what: What) {
    node.what = what;
    node.parts.clear();
}

/// The result of an operator on two constants.
fn folded(operation: Arithmetic, left: &ExpressionNode, right: &ExpressionNode) -> Option<What> {
    if let (What::Integer(one), What::Integer(two)) = (&left.what, &right.what) {
        let result = match operation {
            Arithmetic::Add => Some(one.wrapping_add(*two)),
            Arithmetic::Subtract => Some(one.wrapping_sub(*two)),
            Arithmetic::Multiply => Some(one.wrapping_mul(*two)),
            Arithmetic::Divide => None,
        };
        if let Some(result) = result {
            return Some(What::Integer(result));
        }
    }
    let (one, two) = (left.constant()?, right.constant()?);
    Some(What::Real(match operation {
        Arithmetic::Add => one + two,
        Arithmetic::Subtract => one - two,
        Arithmetic::Multiply => one * two,
        Arithmetic::Divide => one / two,
    }))
}

fn fold_arithmetic(node: &mut ExpressionNode, operation: Arithmetic) {
    let [left, right] = node.parts.as_mut_slice() else { return };
    if right.is_constant() {
        let is_by_zero = operation == Arithmetic::Divide && right.constant() == Some(0.0);
        let all = folded(operation, left, right);
        let all = if is_by_zero && all.is_some() { Some(What::Real(0.0)) } else { all };
        if let Some(all) = all {
            become_leaf(node, all);
        }
        return;
    }
    // 2 - (3 + a) becomes (2 - 3) - a; similarly for other operators.
    let Some(inner) = arithmetic(right).filter(|inner| inner.is_sum() == operation.is_sum()) else {
        return;
    };
    let [constant, _] = right.parts.as_slice() else { return };
    let Some(both) = folded(operation, left, constant) else { return };
    left.what = both;
    let is_same = operation == inner;
    let outer = match (operation.is_sum(), is_same) {
        (true, true) => Arithmetic::Add,
        (true, false) => Arithmetic::Subtract,
        (false, true) => Arithmetic::Multiply,
        (false, false) => Arithmetic::Divide,
    };
    if let Some(rest) = right.parts.pop() {
        *right = rest;
    }
    node.what = What::Arithmetic(outer);
}

fn fold_function(function: Function, argument: &ExpressionNode) -> Option<What> {
    let value = argument.constant()?;
    let positive = |result: f32| if value > 0.0 { result } else { 0.0 };
    Some(match function {
        Function::Abs => match argument.what {
            What::Integer(value) => What::Integer(value.wrapping_abs()),
            _ => What::Real(value.abs()),
        },
        Function::Ceil => What::Integer(integer_of(value.ceil()).into()),
        Function::Floor => What::Integer(integer_of(value.floor()).into()),
        Function::Sin => What::Real(value.sin()),
        Function::Cos => What::Real(value.cos()),
        Function::Ln => What::Real(positive(value.ln())),
        Function::Log2 => What::Real(positive(scaled_ln(value, std::f64::consts::LOG2_E))),
        Function::Log10 => What::Real(positive(scaled_ln(value, std::f64::consts::LOG10_E))),
        Function::Exp => What::Real(value.exp()),
        Function::Sqrt => What::Real(positive(value.sqrt())),
        _ => return None,
    })
}

/// Turns `a * b + c` and `a * b * c` into one operation each.
fn join_products(node: &mut ExpressionNode) {
    let Some(operation) = arithmetic(node) else { return };
    let [left, right] = node.parts.as_mut_slice() else { return };
    let is_product = |node: &ExpressionNode| arithmetic(node) == Some(Arithmetic::Multiply);
    let joined = match operation {
        Arithmetic::Add => Function::MultiplyAdd,
        Arithmetic::Multiply => Function::Product,
        Arithmetic::Subtract => return,
        Arithmetic::Divide => {
            // The divisor may have become a constant only now.
            if let What::Real(value) = right.what {
                right.what = What::Real(1.0 / value);
                node.what = What::Arithmetic(Arithmetic::Multiply);
            }
            return;
        }
    };
    if !is_product(left) {
        if !is_product(right) {
            return;
        }
        std::mem::swap(left, right);
    }
    let mut parts = std::mem::take(&mut left.parts);
    parts.extend(node.parts.pop());
    node.what = What::Function(joined, node.kind);
    node.parts = parts;
}
