//! Converts the parsed tree to the one that is evaluated: NOT becomes a part of the AND around it.

use super::{
    raw::{QueryOperator, Raw},
    tree::{Node, QuotedKind},
};
use crate::{Result, WordsError};

/// Converts a parsed tree.
///
/// # Errors
/// [`WordsError::Query`] if a NOT is where it cannot be evaluated.
pub(super) fn computable(root: Raw) -> Result<Node> {
    check_thresholds(&root)?;
    match convert(root)? {
        Converted::Wanted(node) => Ok(node),
        Converted::Unwanted(_) => Err(refused("single NOT operator")),
    }
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
            QueryOperator::Before => "NOT cannot be used as before operand",
            QueryOperator::And | QueryOperator::Unit(_) => "",
        };
        if !message.is_empty() {
            return Err(refused(message));
        }
        let only = |mut nodes: Vec<Node>, of: fn(Vec<Node>) -> Node| match nodes.len() {
            1 => nodes.pop().unwrap_or_else(|| of(Vec::new())),
            _ => of(nodes),
        };
        let (wanted, unwanted) = (only(wanted, Node::And), only(unwanted, Node::Or));
        return Ok(Node::AndNot(Box::new(wanted), Box::new(unwanted)));
    }
    Ok(match operator {
        QueryOperator::And | QueryOperator::Unit(_) => Node::And(wanted),
        QueryOperator::Or => Node::Or(wanted),
        QueryOperator::Maybe => Node::Maybe(wanted),
        QueryOperator::Before => Node::Before(wanted),
        QueryOperator::Near(distance) => Node::Near { parts: wanted, distance },
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
        Raw::Empty | Raw::Word(_) => Ok(()),
    }
}

fn query(message: impl Into<String>) -> WordsError {
    WordsError::Query(message.into())
}

fn refused(what: &str) -> WordsError {
    query(format!("query is non-computable ({what})"))
}
