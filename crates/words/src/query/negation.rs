//! Converts the parsed tree to the one that is evaluated: NOT becomes a part of the AND around it.

use super::{
    raw::{QueryOperator, Raw},
    tree::{Node, QuotedKind},
};
use crate::{Result, WordsError};

/// Converts a parsed tree. With `takes_only_not`, a query of nothing but exclusions finds all other documents.
///
/// # Errors
/// [`WordsError::Query`] if a NOT is where it cannot be evaluated.
pub(super) fn computable(root: Raw, takes_only_not: bool) -> Result<Node> {
    check_thresholds(&root)?;
    let root = if takes_only_not { with_every(root) } else { root };
    match convert(root)? {
        Converted::Wanted(node) => Ok(node),
        Converted::Unwanted(_) => Err(refused("single NOT operator")),
    }
}

/// Adds every document to a query of nothing but exclusions.
fn with_every(root: Raw) -> Raw {
    let is_not = |part: &Raw| matches!(part, Raw::Not(_));
    let mut parts = match root {
        Raw::Not(_) => vec![root],
        Raw::Joined(QueryOperator::And | QueryOperator::Any, parts) if parts.iter().all(is_not) => {
            parts
        }
        root => return root,
    };
    parts.insert(0, Raw::Every);
    Raw::Joined(QueryOperator::And, parts)
}

enum Converted {
    Wanted(Node),
    /// The operand of a NOT.
    Unwanted(Node),
}

fn convert(raw: Raw) -> Result<Converted> {
    let node = match raw {
        Raw::Not(part) => {
            return match convert(*part)? {
                Converted::Wanted(node) => Ok(Converted::Unwanted(node)),
                Converted::Unwanted(_) => Err(refused("node consists of NOT operators only")),
            };
        }
        Raw::Word(word) => Node::Word(word),
        Raw::Quoted(quoted) => Node::Quoted(quoted),
        Raw::Joined(operator, parts) => join(operator, parts)?,
        Raw::Empty => Node::Or(Vec::new()),
        Raw::Every => Node::Every,
    };
    Ok(Converted::Wanted(node))
}

fn join(operator: QueryOperator, parts: Vec<Raw>) -> Result<Node> {
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for part in parts {
        match convert(part)? {
            Converted::Wanted(node) => wanted.push(node),
            Converted::Unwanted(node) => unwanted.push(node),
        }
    }
    if !unwanted.is_empty() {
        if wanted.is_empty() {
            return Err(refused("node consists of NOT operators only"));
        }
        let message = match operator {
            QueryOperator::Or => "NOT is not allowed within OR",
            QueryOperator::Maybe => "NOT is not allowed within MAYBE",
            QueryOperator::Near(_) => "NOT is not allowed within NEAR",
            QueryOperator::NotNear(_) => "NOT is not allowed within NOTNEAR",
            QueryOperator::Before => "NOT cannot be used as before operand",
            QueryOperator::And | QueryOperator::Any | QueryOperator::Unit(_) => "",
        };
        if !message.is_empty() {
            return Err(refused(message));
        }
        let only = |mut nodes: Vec<Node>, of: fn(Vec<Node>) -> Node| match nodes.len() {
            1 => nodes.pop().unwrap_or_else(|| of(Vec::new())),
            _ => of(nodes),
        };
        let joined = if operator == QueryOperator::Any { Node::Or } else { Node::And };
        let (wanted, unwanted) = (only(wanted, joined), only(unwanted, Node::Or));
        return Ok(Node::AndNot(Box::new(wanted), Box::new(unwanted)));
    }
    Ok(match operator {
        QueryOperator::And => Node::And(wanted),
        QueryOperator::Unit(unit) => Node::Unit(wanted, unit),
        QueryOperator::Or | QueryOperator::Any => Node::Or(wanted),
        QueryOperator::Maybe => Node::Maybe(wanted),
        QueryOperator::Before => Node::Before(wanted),
        QueryOperator::Near(distance) => Node::Near { parts: wanted, distance },
        QueryOperator::NotNear(distance) => {
            let mut parts = wanted.into_iter();
            let wanted = Box::new(parts.next().unwrap_or(Node::Or(Vec::new())));
            Node::NotNear { wanted, unwanted: parts.collect(), distance }
        }
    })
}

/// Returns the error for the first threshold that is out of bounds.
fn check_thresholds(raw: &Raw) -> Result<()> {
    match raw {
        Raw::Quoted(quoted) => match quoted.kind {
            QuotedKind::Quorum(0) => Err(query("quorum threshold too low (0)")),
            QuotedKind::Proximity(0) => Err(query("proximity threshold too low (0)")),
            QuotedKind::QuorumShare(share) => {
                let percent = (share * 100.0) as u32;
                if (1..=100).contains(&percent) {
                    return Ok(());
                }
                let shown = percent as f32 / 100.0;
                let shown = format!("{shown:.6}");
                Err(query(format!("quorum threshold out of bounds 0.0 and 1.0f ({shown})")))
            }
            _ => Ok(()),
        },
        Raw::Joined(_, parts) => parts.iter().try_for_each(check_thresholds),
        Raw::Not(part) => check_thresholds(part),
        Raw::Empty | Raw::Every | Raw::Word(_) => Ok(()),
    }
}

fn query(message: impl Into<String>) -> WordsError {
    WordsError::Query(message.into())
}

fn refused(what: &str) -> WordsError {
    query(format!("query is non-computable ({what})"))
}
