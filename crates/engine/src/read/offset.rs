//! OFFSET: finds the start of a page in sorted sequences that are merged, without reading the rows before it.

use std::cmp::Ordering;

/// For each of several sorted sequences, the number of its elements among the first `offset` of the merged
/// sequence. `lengths` are their lengths; a closure compares two elements by sequence and index. Equal elements
/// come in the order of their sequences. If there are fewer than `offset`, all are counted.
///
/// Each round halves the undecided range of the sequence where that is longest. Cost: about (sequences · log
/// length)² comparisons.
pub(super) fn split(
    lengths: &[u32],
    offset: u64,
    compare: impl Fn((usize, u32), (usize, u32)) -> Ordering,
) -> Vec<u32> {
    let all: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    if offset >= all {
        return lengths.to_vec();
    }
    // Elements before `low` are among the first `offset`, those from `high` on are not.
    let mut low = vec![0; lengths.len()];
    let mut high = lengths.to_vec();
    loop {
        let undecided = |at: &usize| high[*at] - low[*at];
        let Some(of) = (0..lengths.len()).max_by_key(undecided).filter(|at| undecided(at) > 0)
        else {
            return low;
        };
        let middle = low[of] + (high[of] - low[of]) / 2;
        let before = |at: usize, place: u32| match compare((at, place), (of, middle)) {
            Ordering::Equal => at < of,
            ordering => ordering.is_lt(),
        };
        let behind: Vec<u32> = (0..lengths.len())
            .map(|at| match at == of {
                true => middle,
                false => partition_point(low[at], high[at], |place| before(at, place)),
            })
            .collect();
        let count: u64 = behind.iter().map(|count| u64::from(*count)).sum();
        if count < offset {
            // The middle element is among them too.
            low = behind;
            low[of] += 1;
        } else {
            high = behind;
        }
    }
}

/// The partition point: the first index for which `holds` is false; it is false for all behind.
fn partition_point(low: u32, high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merged_offset_equals_the_offsets_of_the_sequences(
            sequences in prop::collection::vec(prop::collection::vec(0_u8..20, 0..30), 1..6),
            offset in 0_u64..120,
        ) {
            let sequences: Vec<Vec<u8>> = sequences
                .into_iter()
                .map(|mut sequence| {
                    sequence.sort_unstable();
                    sequence
                })
                .collect();
            let mut all: Vec<(u8, usize)> = Vec::new();
            for (at, sequence) in sequences.iter().enumerate() {
                all.extend(sequence.iter().map(|element| (*element, at)));
            }
            all.sort();
            let first = all.iter().take(offset as usize);
            let mut expected = vec![0_u32; sequences.len()];
            first.for_each(|(_, at)| expected[*at] += 1);
            let lengths: Vec<u32> = sequences.iter().map(|it| it.len() as u32).collect();
            let compare = |(a, i): (usize, u32), (b, j): (usize, u32)| {
                sequences[a][i as usize].cmp(&sequences[b][j as usize])
            };
            prop_assert_eq!(split(&lengths, offset, compare), expected);
        }
    }
}
