//! SENTENCE and PARAGRAPH: operands that no mark divides.
//!
//! The rules are those of Sphinx 2.2.11. Marks are only where sentences and paragraphs end, so what stands behind the last
//! mark of a field and before the first one of the next field is not divided.

use crate::hits::Hit;

/// Appends the hits of both operands that stand together between two `marks`, as soon as one of each does. All ascend.
pub(crate) fn find((first, second): (&[Hit], &[Hit]), marks: &[u32], out: &mut Vec<Hit>) {
    let (mut one, mut two, mut mark) = (0, 0, 0);
    while let (Some(a), Some(b)) = (first.get(one), second.get(two)) {
        let (least, greatest) = (a.at.min(b.at), a.at.max(b.at));
        mark = behind(marks, mark, least);
        if let Some(&divider) = marks.get(mark).filter(|&&divider| divider < greatest) {
            let is_before = |hit: &&Hit| hit.at <= divider;
            one += first[one..].iter().take_while(is_before).count();
            two += second[two..].iter().take_while(is_before).count();
            continue;
        }
        mark = behind(marks, mark, greatest);
        let end = marks.get(mark).copied().unwrap_or(u32::MAX);
        loop {
            let a = first.get(one).filter(|hit| hit.at < end);
            let b = second.get(two).filter(|hit| hit.at < end);
            match (a, b) {
                (Some(a), b) if b.is_none_or(|b| a.at < b.at) => {
                    out.push(*a);
                    one += 1;
                }
                (_, Some(b)) => {
                    out.push(*b);
                    two += 1;
                }
                (_, None) => break,
            }
        }
    }
}

/// The first of the marks from `from` on that is behind a place.
fn behind(marks: &[u32], from: usize, place: u32) -> usize {
    let rest = marks.get(from..).unwrap_or(&[]);
    from + rest.iter().take_while(|&&mark| mark <= place).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(places: &[u32]) -> Vec<Hit> {
        let hit = |&at: &u32| Hit {
            at,
            query_position: 1,
            node_position: 0,
            weight: 1,
            span: 1,
            length: 1,
            others: 0,
            is_last: false,
        };
        places.iter().map(hit).collect()
    }

    fn found(first: &[u32], second: &[u32], marks: &[u32]) -> Vec<u32> {
        let mut out = Vec::new();
        find((&hits(first), &hits(second)), marks, &mut out);
        out.iter().map(|hit| hit.at).collect()
    }

    #[test]
    fn marks_divide_operands() {
        assert_eq!(found(&[1, 9], &[3], &[]), [1, 3, 9]);
        assert_eq!(found(&[1], &[3], &[2]), []);
        assert_eq!(found(&[1, 4, 9], &[3], &[2, 6]), [3, 4]);
        assert_eq!(found(&[1, 4, 9], &[3, 12], &[2, 6]), [3, 4, 9, 12]);
        assert_eq!(found(&[1, 4], &[9], &[6, 7]), []);
        // Before the first mark, and behind the last one.
        assert_eq!(found(&[1, 20], &[2, 21], &[5, 10, 15]), [1, 2, 20, 21]);
        assert_eq!(found(&[1, 7, 20], &[2, 21], &[5, 10, 15]), [1, 2, 20, 21]);
    }
}
