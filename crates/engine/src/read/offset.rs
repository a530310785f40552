//! OFFSET: finds the start of a page in sorted sequences that are merged, without reading the rows before it.

use std::cmp::Ordering;

/// How many elements of each sequence are among the first `offset` of all, given their lengths and how the element at
/// a place of one compares with that of another. Of equal elements those of the first sequence come first. At most as
/// many as there are.
///
/// Each round halves the sequence of which the most is undecided, so that it takes about (sequences · log length)²
/// comparisons.
pub(super) fn split(
    lengths: &[u32],
    offset: u64,
    compare: impl Fn((usize, u32), (usize, u32)) -> Ordering,
) -> Vec<u32> {
    let all: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    if offset >= all {
        return lengths.to_vec();
    }
    // Those before `low` are among the first, those from `high` on are not.
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
            // The middle is among the first too.
            low = behind;
            low[of] += 1;
        } else {
            high = behind;
        }
    }
}

/// The first place within for which a condition does not hold; it holds for none behind it.
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
        fn the_first_of_all_are_the_first_of_each(
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
