//! Keys of every kind, compared with a sorted vector.

use std::collections::BTreeSet;

use proptest::{collection::btree_set, prelude::*};

use super::*;

fn sections(keys: &[Vec<u8>]) -> Sections {
    let mut writer = KeysWriter::default();
    keys.iter().for_each(|key| writer.push(key).unwrap());
    let mut out = SectionWriter::new();
    writer.finish(&mut out).unwrap();
    Sections::open(out.finish()).unwrap()
}

fn read(keys: &Keys, doc: u32) -> Vec<u8> {
    let mut key = Vec::new();
    keys.read(doc, &mut key);
    key
}

/// Sorted keys of one of the shapes: dense numbers, numbers with huge gaps, bytes of few letters
/// (long shared prefixes, the empty key) or after the highest heads, eight bytes among others, any bytes.
fn shapes() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let dense = (any::<u64>(), 0u64..5000).prop_map(|(start, count)| {
        let end = start.saturating_add(count);
        (start..end).map(|key| key.to_be_bytes().to_vec()).collect::<BTreeSet<_>>()
    });
    let gappy = btree_set(0u64..20_000, 0..3000).prop_map(|keys| numbers(keys, 3));
    let huge = btree_set(any::<u64>(), 0..2100).prop_map(|keys| numbers(keys, 1));
    let letters = btree_set("[ab]{0,12}", 0..300);
    let letters = letters.prop_map(|keys| keys.into_iter().map(String::into_bytes).collect());
    let high = btree_set("[ab]{0,6}", 0..120).prop_map(|keys| {
        let key = |tail: String| [&[0xff; 9], tail.as_bytes()].concat();
        keys.into_iter().map(key).chain([vec![0]]).collect()
    });
    let mixed = btree_set(proptest::collection::vec(any::<u8>(), 7..10), 0..100);
    let long = btree_set(proptest::collection::vec(0u8..2, 0..400), 0..60);
    prop_oneof![dense, gappy, huge, letters, high, mixed, long]
        .prop_map(|keys| keys.into_iter().collect())
}

fn numbers(keys: BTreeSet<u64>, factor: u64) -> BTreeSet<Vec<u8>> {
    keys.into_iter().map(|key| key.wrapping_mul(factor).to_be_bytes().to_vec()).collect()
}

/// The key itself, and keys next to it, most of which are absent.
fn neighbours(key: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![key.to_vec(), [key, &[0]].concat(), [key, &[0xff]].concat()];
    if let Some((last, head)) = key.split_last() {
        all.push(head.to_vec());
        all.push([head, &[last.wrapping_add(1)]].concat());
        all.push([head, &[last.wrapping_sub(1)]].concat());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn keys_of_every_shape_are_read_and_found(
        keys in shapes(),
        others in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..10), 20),
    ) {
        let opened = Keys::open(&sections(&keys)).unwrap();
        prop_assert_eq!(opened.len() as usize, keys.len());
        for (doc, key) in keys.iter().enumerate() {
            prop_assert_eq!(&read(&opened, doc as u32), key);
        }
        prop_assert!(read(&opened, keys.len() as u32).is_empty());
        let probes = keys.iter().flat_map(|key| neighbours(key)).chain(others);
        for probe in probes.chain([Vec::new(), vec![0xff; 9], vec![0xff; 8], vec![0; 8]]) {
            let found = keys.binary_search(&probe);
            prop_assert_eq!(opened.find(&probe), found.ok().map(|doc| doc as u32));
            let bound = found.unwrap_or_else(|bound| bound);
            prop_assert_eq!(opened.lower_bound(&probe) as usize, bound, "{:?}", probe);
        }
    }

    #[test]
    fn documents_of_two_segments_are_ordered_by_key(a in shapes(), b in shapes()) {
        let (left, right) =
            (Keys::open(&sections(&a)).unwrap(), Keys::open(&sections(&b)).unwrap());
        for (doc, key) in a.iter().enumerate().step_by(7) {
            for (other_doc, other) in b.iter().enumerate().step_by(a.len() / 7 + 1) {
                let order = left.compare(doc as u32, &right, other_doc as u32);
                prop_assert_eq!(order, key.cmp(other));
            }
        }
    }

    #[test]
    fn damaged_keys_answer_without_panic(
        keys in shapes(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..6),
        in_bloom in any::<bool>(),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let good = sections(&keys);
        let mut out = SectionWriter::new();
        for (tag, id, _) in good.sizes() {
            let mut bytes = good.get(tag, id).unwrap().to_vec();
            if (tag == BLOOM) == in_bloom {
                for (place, bit) in &flips {
                    let place = place.index(bytes.len());
                    bytes[place] ^= 1 << bit;
                }
                cut.iter().for_each(|cut| bytes.truncate(cut.index(bytes.len())));
            }
            out.add(tag, id, &bytes);
        }
        let Ok(damaged) = Keys::open(&Sections::open(out.finish()).unwrap()) else {
            return Ok(());
        };
        for doc in (0..damaged.len()).take(300).chain([damaged.len(), u32::MAX]) {
            let key = read(&damaged, doc);
            prop_assert!(key.len() <= good.len() as usize);
            prop_assert!(damaged.lower_bound(&key) <= damaged.len());
            damaged.find(&key);
            damaged.compare(doc, &damaged, 0);
        }
        for key in keys.iter().step_by(keys.len() / 100 + 1) {
            prop_assert!(damaged.find(key).is_none_or(|doc| doc < damaged.len()));
        }
    }
}

#[test]
fn keys_out_of_order_or_too_long_are_refused() {
    let mut writer = KeysWriter::default();
    writer.push(&5u64.to_be_bytes()).unwrap();
    for refused in [&5u64.to_be_bytes()[..], &4u64.to_be_bytes(), &[0], &[9; MAX_KEY_BYTES + 1]] {
        assert!(matches!(writer.push(refused), Err(IndexError::Invalid(_))));
    }
    writer.push(&[9; MAX_KEY_BYTES]).unwrap();
    let mut out = SectionWriter::new();
    writer.finish(&mut out).unwrap();
    let keys = Keys::open(&Sections::open(out.finish()).unwrap()).unwrap();
    assert_eq!((keys.len(), keys.find(&[9; MAX_KEY_BYTES])), (2, Some(1)));
}

#[test]
fn dense_integer_keys_take_two_bytes_and_a_half_with_the_filter() {
    let keys: Vec<Vec<u8>> = (0..100_000u64).map(|key| key.to_be_bytes().to_vec()).collect();
    let bytes: u64 = sections(&keys).sizes().map(|(_, _, bytes)| bytes).sum();
    assert!(bytes <= 255_000, "{bytes} bytes");
}
