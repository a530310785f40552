//! Sorts documents by an index. For each document a sort key is made once; sort keys compare by bytes as the
//! columns of the index compare.
//!
//! ```text
//! key   := part*
//! part  := 0 (NULL) | 1 ordinal:u64 (big endian) | 1 escaped 0 0
//! escaped := the bytes, each zero followed by 255
//! ```
//! All bytes of a descending part are inverted.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use crate::{TextOrder, column::Cell};

/// The most documents whose keys are held at once.
const RUN: usize = 1 << 20;
/// The most bytes of these keys; the last one may go beyond.
const RUN_BYTES: usize = 64 << 20;

/// Appends a value to a sort key. `text` is a scratch buffer.
pub(super) fn push_part(
    cell: Cell<'_>,
    (descending, order): (bool, Option<TextOrder>),
    text: &mut Vec<u8>,
    key: &mut Vec<u8>,
) {
    let start = key.len();
    match (cell, order) {
        (Cell::Null, _) => key.push(0),
        (Cell::Ordinal(number), _) => {
            key.push(1);
            key.extend(number.to_be_bytes());
        }
        (Cell::Bytes(bytes), None) => push_bytes(bytes, key),
        (Cell::Bytes(bytes), Some(order)) => {
            order.write_key(bytes, text);
            push_bytes(text, key);
        }
    }
    if descending {
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

fn push_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    key.push(1);
    for (at, piece) in bytes.split(|byte| *byte == 0).enumerate() {
        if at > 0 {
            key.extend([0, u8::MAX]);
        }
        key.extend_from_slice(piece);
    }
    key.extend([0, 0]);
}

/// A document with its key.
struct KeyedDocument {
    /// The first bytes of the key.
    first: u128,
    /// The range of the whole key in the buffer of keys.
    start: u32,
    end: u32,
    doc: u32,
}

/// Sorts documents, given in ascending order, by their keys; equal keys are in document order.
pub(super) fn sorted(
    docs: impl IntoIterator<Item = u32>,
    write_key: impl Fn(u32, &mut Vec<u8>),
) -> Vec<u32> {
    let mut runs = Vec::new();
    let mut docs = docs.into_iter().peekable();
    while docs.peek().is_some() {
        runs.push(sorted_run(&mut docs, &write_key).into_iter());
    }
    merged(runs, write_key)
}

/// Sorts one run of documents: as many as fit in memory with their keys.
fn sorted_run(docs: impl Iterator<Item = u32>, write_key: &impl Fn(u32, &mut Vec<u8>)) -> Vec<u32> {
    let (mut keys, mut run) = (Vec::new(), Vec::new());
    for doc in docs {
        let start = keys.len();
        write_key(doc, &mut keys);
        let mut first = [0; 16];
        first.iter_mut().zip(keys.iter().skip(start)).for_each(|(slot, byte)| *slot = *byte);
        let (start, end) = (start as u32, keys.len() as u32);
        run.push(KeyedDocument { first: u128::from_be_bytes(first), start, end, doc });
        if run.len() == RUN || keys.len() >= RUN_BYTES {
            break;
        }
    }
    let key = |of: &KeyedDocument| keys.get(of.start as usize..of.end as usize).unwrap_or_default();
    run.sort_unstable_by(|a, b| {
        let keys = || key(a).cmp(key(b));
        a.first.cmp(&b.first).then_with(keys).then(a.doc.cmp(&b.doc))
    });
    run.into_iter().map(|keyed| keyed.doc).collect()
}

/// Merges sorted runs. The key of each document is made once.
pub(super) fn merged(
    mut runs: Vec<impl Iterator<Item = u32>>,
    write_key: impl Fn(u32, &mut Vec<u8>),
) -> Vec<u32> {
    if let [only] = runs.as_mut_slice() {
        return only.collect();
    }
    let mut heads = BinaryHeap::with_capacity(runs.len());
    for (number, run) in runs.iter_mut().enumerate() {
        if let Some(doc) = run.next() {
            let mut key = Vec::new();
            write_key(doc, &mut key);
            heads.push(Reverse((key, doc, number)));
        }
    }
    let mut all = Vec::new();
    while let Some(mut least) = heads.peek_mut() {
        let Reverse((key, doc, number)) = &mut *least;
        all.push(*doc);
        match runs.get_mut(*number).and_then(Iterator::next) {
            Some(next) => {
                *doc = next;
                key.clear();
                write_key(next, key);
            }
            None => _ = PeekMut::pop(least),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Value = Option<Vec<u8>>;

    fn cell(value: &Value) -> Cell<'_> {
        value.as_deref().map_or(Cell::Null, Cell::Bytes)
    }

    proptest! {
        #[test]
        fn encoded_keys_order_like_their_values(
            rows in proptest::collection::vec(
                (proptest::option::of(proptest::collection::vec(0..3u8, 0..4)), any::<u64>()),
                2..40,
            ),
            descending in any::<bool>(),
        ) {
            let key = |row: &(Value, u64)| {
                let (mut text, mut key) = (Vec::new(), Vec::new());
                push_part(cell(&row.0), (descending, None), &mut text, &mut key);
                push_part(Cell::Ordinal(row.1), (!descending, None), &mut text, &mut key);
                key
            };
            for (a, b) in rows.iter().zip(&rows[1..]) {
                let directed = |ordering: std::cmp::Ordering, descending| match descending {
                    true => ordering.reverse(),
                    false => ordering,
                };
                let texts = directed(cell(&a.0).cmp(&cell(&b.0)), descending);
                let expected = texts.then(directed(a.1.cmp(&b.1), !descending));
                prop_assert_eq!(key(a).cmp(&key(b)), expected, "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn any_number_of_runs_is_merged() {
        let key = |doc: u32, key: &mut Vec<u8>| key.push((doc % 7) as u8);
        let mut expected: Vec<u32> = (0..200).collect();
        expected.sort_by_key(|doc| doc % 7);
        assert_eq!(sorted(0..200, key), expected);
        for count in 0..5 {
            let run = |number| (0..200).filter(move |doc| doc % count.max(1) == number);
            let runs = (0..count).map(|number| sorted(run(number), key).into_iter());
            let all = if count == 0 { Vec::new() } else { expected.clone() };
            assert_eq!(merged(runs.collect(), key), all, "{count}");
        }
    }
}
