//! `a << b`: operands in this order in one field.

use crate::hits::Hit;

/// A partial sequence: the first operands, in order.
#[derive(Clone, Default)]
struct Sequence {
    hits: Vec<Hit>,
    /// The least position of the next operand.
    end: u32,
}

impl Sequence {
    fn restart(&mut self, hit: Hit) {
        self.hits.clear();
        self.push(hit);
    }

    fn push(&mut self, hit: Hit) {
        self.hits.push(hit);
        self.end = hit.at + hit.span;
    }

    fn continues_with(&self, part: usize, hit: &Hit) -> bool {
        part == self.hits.len() && hit.at >= self.end
    }
}

/// Appends the hits of each complete sequence. `hits` are pairs of operand and hit, in the order of places.
///
/// Two partial sequences are tracked: the longest so far, and one that began later and replaces it once it is
/// as long.
pub(crate) fn find(hits: &[(usize, Hit)], parts: usize, out: &mut Vec<Hit>) {
    let (mut longest, mut recent) = (Sequence::default(), Sequence::default());
    let mut field = None;
    for &(part, hit) in hits {
        if field != Some(hit.field()) {
            longest.hits.clear();
            recent.hits.clear();
            if part == 0 {
                longest.push(hit);
                field = Some(hit.field());
            }
        } else if longest.continues_with(part, &hit) {
            longest.push(hit);
            if longest.hits.len() == parts {
                out.append(&mut longest.hits);
                recent.hits.clear();
                recent.end = longest.end;
            }
        } else if part == 0 {
            recent.restart(hit);
            if longest.hits.is_empty() {
                longest.push(hit);
            }
        } else if recent.continues_with(part, &hit) {
            recent.push(hit);
            if recent.hits.len() >= longest.hits.len() {
                longest = recent.clone();
            }
        }
    }
}
