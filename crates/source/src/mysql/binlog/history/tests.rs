//! Binlog files of real servers, intact and damaged.

use proptest::prelude::*;

use super::*;

const MYSQL: &[u8] = include_bytes!("fixtures/mysql-9.7.binlog");
const MARIADB: &[u8] = include_bytes!("fixtures/mariadb-10.11.binlog");

/// The events of a binlog file, each with its header and checksum.
fn events(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = file.strip_prefix(b"\xfebin").unwrap();
    let mut events = Vec::new();
    while !rest.is_empty() {
        let size = Header::parse(rest.first_chunk().unwrap()).size as usize;
        let (event, after) = rest.split_at(size);
        events.push(event.to_vec());
        rest = after;
    }
    events
}

/// A short description of each event; the last may be the error.
fn translate(events: &[Vec<u8>], summed: bool) -> Vec<String> {
    let mut history = History::default();
    let mut translated = Vec::new();
    for bytes in events {
        let Some(event) = RawEvent::of_file(bytes, summed) else { continue };
        let mut more = history.push(event).map(|()| true);
        while let Ok(true) = more {
            translated.extend(std::iter::from_fn(|| history.take()).filter_map(describe));
            more = history.unpack();
        }
        if let Err(error) = more {
            translated.push(error.to_string());
            break;
        }
    }
    translated
}

fn describe(event: SourceEvent) -> Option<String> {
    Some(match event {
        SourceEvent::Begin { gtid, committed_at_us } => {
            assert!((1_700_000_000_000_000..2_000_000_000_000_000).contains(&committed_at_us));
            format!("begin {}", gtid.to_string().rsplit_once(['-', ':']).unwrap().1)
        }
        SourceEvent::AlsoCovers(gtid) => {
            format!("also {}", gtid.to_string().rsplit_once([':']).unwrap().1)
        }
        SourceEvent::TableMap(_) | SourceEvent::File { .. } | SourceEvent::Heartbeat { .. } => {
            return None;
        }
        SourceEvent::Rows { table, kind, version, body } => {
            format!("{kind:?} {version:?} {} {}", table.table, body.len())
        }
        SourceEvent::Statement { query, standalone } => {
            let words: Vec<_> = query.sql.split_whitespace().take(3).collect();
            format!("{}: {} {standalone}", query.database, words.join(" "))
        }
        SourceEvent::Commit { end } => format!("commit {}", end.offset),
        SourceEvent::Rollback { end } => format!("rollback {}", end.offset),
        SourceEvent::Abandoned => "abandoned".to_owned(),
    })
}

#[test]
fn mysql_binlog_is_translated_as_recorded() {
    compare(&translate(&events(MYSQL), true), include_str!("fixtures/mysql-9.7.txt"));
}

#[test]
fn mariadb_binlog_is_translated_as_recorded() {
    compare(&translate(&events(MARIADB), true), include_str!("fixtures/mariadb-10.11.txt"));
}

fn compare(translated: &[String], expected: &str) {
    let expected: Vec<_> = expected.lines().collect();
    assert_eq!(translated, expected, "\n{}\n", translated.join("\n"));
}

/// The first event with a changed byte ends the history as damaged.
#[test]
fn every_flipped_byte_is_detected() {
    for file in [MYSQL, MARIADB] {
        let whole = events(file);
        for (at, event) in whole.iter().enumerate() {
            for byte in 0..event.len() {
                let mut changed = whole.get(..=at).unwrap().to_vec();
                changed[at][byte] ^= 0x10;
                let translated = translate(&changed, true);
                let last = translated.last().map(String::as_str).unwrap_or_default();
                assert!(last.contains("damaged"), "event {at} byte {byte}: {last}");
            }
        }
    }
}

#[test]
fn binlog_file_starting_within_a_transaction_abandons_it() {
    let whole = events(MARIADB);
    let begin = whole.iter().position(|event| event[4] == event_kind::MARIADB_GTID);
    let rows = whole.iter().position(|event| event[4] == event_kind::TABLE_MAP).unwrap();
    let mut crashed = whole.get(..=rows).unwrap().to_vec();
    assert!(begin.unwrap() < rows);
    crashed.push(whole[0].clone());
    assert_eq!(translate(&crashed, true).last().map(String::as_str), Some("abandoned"));
}

#[test]
fn binlog_offsets_continue_beyond_four_gib() {
    let place = Coordinates { file: "b.1".to_owned(), offset: 0xffff_fff0 };
    let mut history = History { place, ..History::default() };
    history.advance(&Header { end: 0x20, kind: event_kind::XID, ..Header::default() });
    assert_eq!(history.place.offset, 0x1_0000_0020);
    history.advance(&Header { end: 0x40, kind: event_kind::XID, ..Header::default() });
    assert_eq!(history.place.offset, 0x1_0000_0040);
}

#[test]
fn a_rotate_before_the_format_may_carry_a_checksum() {
    let mut bytes = vec![0_u8; 4];
    bytes.extend([event_kind::ROTATE, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0]);
    bytes.extend(4_u64.to_le_bytes());
    bytes.extend(b"mbin.000007");
    let plain = bytes.clone();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    for bytes in [plain, bytes] {
        let (header, body) = bytes.split_first_chunk().unwrap();
        let mut history = History::default();
        history.push(RawEvent::unpacked(Header::parse(header), body.to_vec())).unwrap();
        assert_eq!(history.place().to_string(), "mbin.000007:4");
    }
}

#[derive(Clone, Debug)]
enum Corruption {
    Flip(prop::sample::Index, prop::sample::Index, u8),
    Cut(prop::sample::Index, prop::sample::Index),
    Drop(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    Retype(prop::sample::Index, u8),
}

fn any_corruption() -> impl Strategy<Value = Corruption> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), index(), any::<u8>()).prop_map(|(a, b, c)| Corruption::Flip(a, b, c)),
        2 => (index(), index()).prop_map(|(a, b)| Corruption::Cut(a, b)),
        1 => index().prop_map(Corruption::Drop),
        1 => (index(), index()).prop_map(|(a, b)| Corruption::Repeat(a, b)),
        1 => (index(), any::<u8>()).prop_map(|(a, b)| Corruption::Retype(a, b)),
    ]
}

fn corrupt(events: &mut Vec<Vec<u8>>, corruption: &Corruption) {
    if events.is_empty() {
        return;
    }
    let count = events.len();
    match corruption {
        Corruption::Flip(event, byte, value) => {
            let event = &mut events[event.index(count)];
            let at = byte.index(event.len());
            event[at] ^= value;
        }
        Corruption::Cut(event, byte) => {
            let event = &mut events[event.index(count)];
            let keep = byte.index(event.len()).max(24);
            event.truncate(keep);
        }
        Corruption::Drop(event) => drop(events.remove(event.index(count))),
        Corruption::Repeat(event, at) => {
            let copy = events[event.index(count)].clone();
            events.insert(at.index(count), copy);
        }
        Corruption::Retype(event, kind) => events[event.index(count)][4] = *kind,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Without checksums the parsers see damaged bytes: they return an error or some result, without panicking.
    #[test]
    fn corrupted_binlogs_never_panic(
        mysql in any::<bool>(),
        corruptions in prop::collection::vec(any_corruption(), 1..6),
    ) {
        let mut events = events(if mysql { MYSQL } else { MARIADB });
        corruptions.iter().for_each(|one| corrupt(&mut events, one));
        let mut history = History::default();
        for event in events.iter().filter_map(|bytes| RawEvent::of_file(bytes, false)) {
            let mut more = history.push(event).map(|()| true);
            while let Ok(true) = more {
                while history.take().is_some() {}
                more = history.unpack();
            }
        }
    }
}
