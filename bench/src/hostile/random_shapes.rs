//! Random shapes: several forms nested by turns, or pieces of several kinds in a chain, at a random place of a
//! statement. They find what two forms break together and neither breaks alone.

use super::shapes::{CHAINED, NESTED, Shape, numbered};
use crate::random::SplitMix64;

/// Places of a statement: `@` is the expression.
const PLACES: [&str; 13] = [
    "SELECT @",
    "SELECT @ FROM t",
    "SELECT 1 FROM t WHERE @",
    "SELECT a FROM t ORDER BY @, id",
    "SELECT COUNT(*) FROM t GROUP BY @",
    "SELECT a, COUNT(*) FROM t GROUP BY a HAVING @",
    "SELECT SUM(@) FROM t",
    "SELECT SUM(a) OVER (PARTITION BY @ ORDER BY id) FROM t",
    "SELECT 1 FROM t JOIN u ON @",
    "SELECT * FROM (SELECT @ AS e FROM t) AS d WHERE e > 1",
    "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND @)",
    "UPDATE u SET a = 1 WHERE id = 7 AND @",
    "DELETE FROM u WHERE id = 7 AND @",
];
/// Innermost expressions.
const LEAVES: [&str; 8] =
    ["1", "'a'", "t.a", "t.v", "0.5", "NULL", "(SELECT MAX(u.a) FROM u)", "x'61'"];
/// Forms with subqueries, in addition to the listed shapes.
const ASKING: [&str; 8] = [
    "(@) IN (SELECT u.a FROM u)",
    "(@) NOT IN (SELECT u.a FROM u WHERE u.id = 1)",
    "(@) = ALL (SELECT 1)",
    "(@) < ANY (SELECT u.a FROM u)",
    "(@, 1) IN (SELECT u.a, u.id FROM u)",
    "(@) IN (1, 2, (SELECT 3))",
    "EXISTS (SELECT 1 FROM u WHERE u.a = (@))",
    "(SELECT MAX(u.a + (@)) FROM u)",
];

/// `count` shapes drawn from a seed.
pub fn random_shapes(count: usize, seed: u64) -> Vec<Shape> {
    let mut random = SplitMix64::new(seed);
    (0..count)
        .map(|_| match random.below(2) {
            0 => nested(&mut random),
            _ => chained(&mut random),
        })
        .collect()
}

fn form(random: &mut SplitMix64) -> &'static str {
    match random.below(4) {
        0 => ASKING[random.below(ASKING.len())],
        _ => NESTED[random.below(NESTED.len())],
    }
}

fn place(random: &mut SplitMix64) -> &'static str {
    PLACES[random.below(PLACES.len())]
}

/// A leaf that is valid at the place.
fn leaf(random: &mut SplitMix64, place: &str) -> &'static str {
    let leaf = LEAVES[random.below(LEAVES.len())];
    if leaf.starts_with("t.") && !place.contains("FROM t") { "2" } else { leaf }
}

/// Two to four forms, nested repeatedly.
fn nested(random: &mut SplitMix64) -> Shape {
    let place = place(random);
    let forms: Vec<&str> = (0..2 + random.below(3)).map(|_| form(random)).collect();
    let leaf = leaf(random, place);
    let name = format!("drawn: {} around {leaf} in {place}", forms.join(" | "));
    Shape::new(name, move |size| {
        let parts: Vec<(&str, &str)> = (0..size)
            .map(|at| forms[at % forms.len()])
            .map(|form| form.split_once('@').unwrap_or((form, "")))
            .collect();
        let before: String = parts.iter().rev().map(|part| part.0).collect();
        let after: String = parts.iter().map(|part| part.1).collect();
        place.replacen('@', &format!("{before}{leaf}{after}"), 1)
    })
}

/// Pieces of one or two levels, joined by an operator or as arguments of a call.
fn chained(random: &mut SplitMix64) -> Shape {
    let place = place(random);
    let pieces: Vec<String> = (0..1 + random.below(3))
        .map(|_| {
            let inner = match random.below(2) {
                0 => "#".to_owned(),
                _ => leaf(random, place).to_owned(),
            };
            let once = form(random).replacen('@', &inner, 1);
            match random.below(2) {
                0 => once,
                _ => form(random).replacen('@', &once, 1),
            }
        })
        .collect();
    let operator = match random.below(3) {
        0 => ",",
        _ => CHAINED[random.below(CHAINED.len())],
    };
    let name = format!("drawn: {} joined by {operator} in {place}", pieces.join(" | "));
    Shape::new(name, move |size| {
        let piece = |at: usize| format!("({})", numbered(&pieces[at % pieces.len()], at));
        let whole: Vec<String> = (0..size.max(1)).map(piece).collect();
        let whole = match operator {
            "," => format!("COALESCE({})", whole.join(", ")),
            operator => whole.join(&format!(" {operator} ")),
        };
        place.replacen('@', &whole, 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_a_seed_are_the_same_and_grow() {
        let (one, same) = (random_shapes(50, 7), random_shapes(50, 7));
        for (shape, other) in one.iter().zip(&same) {
            assert_eq!(shape.statement(9), other.statement(9));
            assert!(shape.statement(40).len() > shape.statement(4).len(), "{}", shape.name);
            assert!(
                !shape.statement(3).contains('@') || shape.name.contains("@@"),
                "{}",
                shape.name
            );
        }
        assert_ne!(one[0].statement(9), random_shapes(50, 8)[0].statement(9));
    }
}
