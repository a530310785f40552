//! Compares GTID sets with sets of single transactions.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

type Naive = BTreeSet<(u8, u8, u64)>;

fn tag(number: u8) -> Tag {
    if number == 0 { Tag::default() } else { Tag::parse(&format!("tag_{number}")).unwrap() }
}

fn gtid(server: u8, label: u8, number: u64) -> Gtid {
    Gtid::MySql(MySqlGtid { uuid: Uuid([server; 16]), tag: tag(label), number })
}

fn set_of(naive: &Naive) -> GtidSet {
    let mut set = GtidSet::empty(Flavor::MySql);
    naive.iter().for_each(|(server, label, number)| set.add(&gtid(*server, *label, *number)));
    set
}

/// Ranges that often touch and overlap.
fn any_set() -> impl Strategy<Value = Naive> {
    let range = (0_u8..3, 0_u8..3, 1_u64..40, 0_u64..8);
    prop::collection::vec(range, 0..12).prop_map(|ranges| {
        let numbers = ranges.into_iter().flat_map(|(server, label, first, more)| {
            (first..=first + more).map(move |number| (server, label, number))
        });
        numbers.collect()
    })
}

proptest! {
    #[test]
    fn mysql_gtid_sets_behave_like_sets(a in any_set(), b in any_set(), order in any::<prop::sample::Index>()) {
        let (first, second) = (set_of(&a), set_of(&b));
        prop_assert_eq!(first.covers(&second), b.is_subset(&a));
        prop_assert_eq!(first.count_beyond(&second), a.difference(&b).count() as u64);
        prop_assert_eq!(first.is_empty(), a.is_empty());

        let text = first.to_string();
        prop_assert_eq!(&GtidSet::parse_as(Flavor::MySql, &text).unwrap(), &first);

        let mut united = first.clone();
        united.unite(&second);
        prop_assert_eq!(&united, &set_of(&a.union(&b).copied().collect()));

        // The text form does not depend on the order of additions.
        let mut shuffled: Vec<_> = a.iter().copied().collect();
        if !shuffled.is_empty() {
            let at = order.index(shuffled.len());
            shuffled.rotate_left(at);
            shuffled.reverse();
        }
        let mut backwards = GtidSet::empty(Flavor::MySql);
        shuffled.iter().for_each(|(s, l, n)| backwards.add(&gtid(*s, *l, *n)));
        prop_assert_eq!(backwards.to_string(), text);

        for (server, label, number) in &b {
            let one = gtid(*server, *label, *number);
            prop_assert_eq!(first.contains(&one), a.contains(&(*server, *label, *number)));
        }
    }

    #[test]
    fn ranges_are_added_like_their_numbers(ranges in prop::collection::vec((1_u64..60, 0_u64..9), 0..20)) {
        let text = ranges.iter().map(|(first, more)| format!(":{first}-{}", first + more));
        let text = format!("00000000-0000-0000-0000-000000000000{}", text.collect::<String>());
        let numbers = ranges.iter().flat_map(|(first, more)| *first..=first + more);
        let naive: Naive = numbers.map(|number| (0, 0, number)).collect();
        prop_assert_eq!(GtidSet::parse_as(Flavor::MySql, &text).unwrap().covers(&set_of(&naive)), true);
        prop_assert_eq!(
            GtidSet::parse_as(Flavor::MySql, &text).unwrap().count_beyond(&set_of(&naive)), 0
        );
    }

    #[test]
    fn mariadb_gtid_sets_contain_all_earlier_transactions(
        a in prop::collection::btree_map(0_u32..4, 1_u64..30, 0..4),
        b in prop::collection::btree_map(0_u32..4, 1_u64..30, 0..4),
    ) {
        let set = |of: &std::collections::BTreeMap<u32, u64>| {
            let texts: Vec<_> = of.iter().map(|(domain, last)| format!("{domain}-7-{last}")).collect();
            GtidSet::parse_as(Flavor::MariaDb, &texts.join(",")).unwrap()
        };
        let naive = |of: &std::collections::BTreeMap<u32, u64>| -> BTreeSet<(u32, u64)> {
            of.iter().flat_map(|(d, last)| (1..=*last).map(move |n| (*d, n))).collect()
        };
        let (first, second) = (set(&a), set(&b));
        prop_assert_eq!(first.covers(&second), naive(&b).is_subset(&naive(&a)));
        prop_assert_eq!(first.count_beyond(&second), naive(&a).difference(&naive(&b)).count() as u64);
        let mut united = first.clone();
        united.unite(&second);
        prop_assert!(united.covers(&first) && united.covers(&second));
        prop_assert_eq!(united.count_beyond(&first), second.count_beyond(&first));
        prop_assert_eq!(GtidSet::parse_as(Flavor::MariaDb, &first.to_string()).unwrap(), first);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-f:,x_\\-\n ]{0,60}") {
        for flavor in [Flavor::MySql, Flavor::MariaDb] {
            if let Ok(set) = GtidSet::parse_as(flavor, &text) {
                prop_assert_eq!(GtidSet::parse_as(flavor, &set.to_string()).unwrap(), set);
            }
        }
        let _ = GtidSet::parse(&text);
    }
}

#[test]
fn gtid_sets_of_the_servers_are_parsed() {
    let text = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:11-18:blue:1-3:red:7,\n\
                4E11FA47-71CA-11E1-9E33-C80AA9429562:3";
    let set = GtidSet::parse(text).unwrap();
    assert_eq!(
        set.to_string(),
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:11-18:blue:1-3:red:7,\
         4e11fa47-71ca-11e1-9e33-c80aa9429562:3"
    );
    assert_eq!(set.count_beyond(&GtidSet::empty(Flavor::MySql)), 18);
    assert_eq!(GtidSet::parse("0-3-26, 5-1-7").unwrap().to_string(), "0-3-26,5-1-7");
    for wrong in ["", "x", "0-3", "0-3-4-5", "1-2-x", "0-1-2,0-1-3"] {
        assert!(GtidSet::parse(wrong).is_err(), "{wrong}");
    }
    for wrong in ["3e11fa47:1", "3e11fa47-71ca-11e1-9e33-c80aa9429562:0-4", "a:b:c"] {
        assert!(GtidSet::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_mariadb_position_never_goes_back() {
    let mut set = GtidSet::parse("0-1-10").unwrap();
    set.add(&Gtid::MariaDb(MariaDbGtid { domain: 0, server: 2, sequence: 9 }));
    assert_eq!(set.to_string(), "0-1-10");
    set.add(&Gtid::MariaDb(MariaDbGtid { domain: 0, server: 2, sequence: 11 }));
    assert_eq!(set.to_string(), "0-2-11");
}
