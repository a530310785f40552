//! Checks an expression as a whole, and collects what it reads.

use super::{
    Reads,
    node::{Aggregate, Comparison, ExpressionNode, Factor, What},
    refused,
    value_kind::ValueKind,
};
use crate::Result;

/// Calls `each` with every node, parents before children.
pub(super) fn for_each<'n>(root: &'n ExpressionNode, each: &mut dyn FnMut(&'n ExpressionNode)) {
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        each(node);
        left.extend(node.parts.iter().rev());
    }
}

/// Refuses what cannot be computed. The checks are in Sphinx's order, so that the same error comes first.
pub(super) fn check(root: &ExpressionNode, kind: ValueKind) -> Result<()> {
    let mut failed = None;
    for_each(root, &mut |node| failed = failed.or_else(|| operands(node)));
    if let Some(message) = failed {
        return Err(refused(message));
    }
    if let Some(name) = unknown(root) {
        return Err(refused(format!("unknown column: {name}")));
    }
    if !matches!(kind, ValueKind::Integer | ValueKind::Real) {
        return Err(refused("ranking expression must evaluate to integer or float"));
    }
    let mut has_weight = false;
    for_each(root, &mut |node| has_weight |= node.what == What::Weight);
    if has_weight {
        return Err(refused("ranking expression must not refer to WEIGHT()"));
    }
    nesting(root)
}

/// The error for the operands of an operator, if they do not fit.
fn operands(node: &ExpressionNode) -> Option<&'static str> {
    let [one, two] = node.parts.as_slice() else { return None };
    let is_number = |node: &ExpressionNode| node.kind.is_number();
    match node.what {
        What::Arithmetic(_) => {
            let is_known = is_number(one) && two.kind == ValueKind::Unknown
                || is_number(two) && one.kind == ValueKind::Unknown;
            let is_right = is_known || is_number(one) && is_number(two);
            (!is_right).then_some("numeric operation applied to non-numeric operands")
        }
        What::Comparison(Comparison::Equal, _) => {
            let is_text = |node: &ExpressionNode| node.kind == ValueKind::Text;
            (is_text(one) != is_text(two))
                .then_some("equal operation applied to part string operands")
        }
        _ => None,
    }
}

/// The first name that is not a column.
fn unknown(root: &ExpressionNode) -> Option<&str> {
    let mut found = None;
    for_each(root, &mut |node| match &node.what {
        What::Unknown(name) if found.is_none() => found = Some(name.as_str()),
        _ => {}
    });
    found
}

fn nesting(root: &ExpressionNode) -> Result<()> {
    let mut left = vec![(root, false)];
    while let Some((node, is_within)) = left.pop() {
        let is_of_field = match &node.what {
            What::Factor(factor) => factor.is_of_field(),
            What::MaxWindowHits(_) => true,
            What::Aggregate(_) if is_within => {
                return Err(refused("field aggregates can not be nested in ranking expression"));
            }
            _ => false,
        };
        if is_of_field && !is_within {
            let message =
                "field factors must only occur withing field aggregates in ranking expression";
            return Err(refused(message));
        }
        let is_within =
            is_within || matches!(node.what, What::Aggregate(Aggregate::Sum | Aggregate::Top));
        left.extend(node.parts.iter().rev().map(|part| (part, is_within)));
    }
    Ok(())
}

/// The values that the expression reads, and the numbers of its columns.
pub(super) fn reads(root: &ExpressionNode) -> (Reads, Vec<usize>) {
    let mut reads =
        Reads { hits: false, closeness: false, field_frequencies: false, window: 1, bm25a: None };
    let mut attributes = Vec::new();
    for_each(root, &mut |node| match &node.what {
        What::Attribute(number) => attributes.push(*number),
        What::Factor(factor) => {
            reads.hits |= !factor.is_without_hits();
            reads.closeness |= *factor == Factor::Closeness;
        }
        What::Aggregate(_) => reads.hits = true,
        // The window of the last `max_window_hits` applies to all of them.
        What::MaxWindowHits(window) => reads.window = *window,
        What::Bm25a(saturation, length) => {
            reads.hits = true;
            reads.bm25a = Some((*saturation, *length));
        }
        What::Bm25f { .. } => {
            reads.hits = true;
            reads.field_frequencies = true;
        }
        _ => {}
    });
    attributes.sort_unstable();
    attributes.dedup();
    (reads, attributes)
}
