//! Changes that are not committed are read as if they were, can be added one after the other, and are bounded: indexing
//! them ends when it is told to, or when it takes too much memory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use remora_engine::{
    Change, Ending, Error, Interrupt, Reader, Row, SearchRequest, Selection, SortBy, SortKey,
    TextQuery,
};

use crate::common::*;

/// Lets a read go on for so many looks.
struct After(AtomicUsize);

impl Interrupt for After {
    fn ending(&self) -> Option<Ending> {
        let left =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.is_err().then_some(Ending::Interrupted)
    }
}

fn indexed(reader: &Reader, changes: Vec<Change>) -> Result<Reader, Error> {
    let changes = reader.index_changes(batch(changes), u64::MAX)?;
    reader.with_changes(&changes.expect("there is no limit"))
}

fn found(reader: &Reader, term: &str) -> Vec<Row> {
    let selection = Selection {
        table: TABLE.to_owned(),
        text: Some(TextQuery::Term(term.to_owned())),
        ..Selection::default()
    };
    let sort = vec![SortKey { by: SortBy::Key, descending: false }];
    let request = SearchRequest {
        selection,
        sort,
        limit: 10_000,
        fields: vec!["*".to_owned()],
        ..SearchRequest::default()
    };
    reader.search(&request).unwrap().hits.into_iter().map(|hit| hit.fields).collect()
}

#[test]
fn changes_over_changes_are_read_as_after_their_commits() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..200).map(|id| put(id, id, "reef")).collect()).unwrap();
    let mut reader = database.reader();
    for _ in 0..12 {
        let changes: Vec<Change> = (0..1 + random.below(40))
            .map(|_| {
                let id = random.below(260) as i64;
                match random.below(3) {
                    0 => delete(id),
                    // The last change of a key counts.
                    _ => put(id, random.below(9) as i64, if id % 2 == 0 { "reef" } else { "knot" }),
                }
            })
            .collect();
        reader = indexed(&reader, changes.clone()).unwrap();
        apply(&database, changes).unwrap();
        let committed = database.reader();
        for term in ["reef", "knot", "e"] {
            assert_eq!(found(&reader, term), found(&committed, term), "{term}");
        }
        assert_eq!(reader.row_count(TABLE).unwrap(), committed.row_count(TABLE).unwrap());
        for id in 0..260 {
            let key = [remora_engine::Value::Int(id)];
            assert_eq!(reader.get(TABLE, &key).unwrap(), committed.get(TABLE, &key).unwrap());
        }
    }
}

#[test]
fn indexing_changes_ends_when_it_is_told_to_and_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..9_000).map(|id| put(id, id, "reef")).collect()).unwrap();
    let changes: Vec<Change> = (0..9_000).map(|id| put(id, -id, "granny knot")).collect();
    let after = |looks| {
        let reader = database.reader().with_interrupt(Arc::new(After(AtomicUsize::new(looks))));
        indexed(&reader, changes.clone()).map(drop)
    };
    for looks in [0, 5, 1_000, 9_000, 9_012] {
        let ended = after(looks);
        assert!(matches!(ended, Err(Error::Ended(Ending::Interrupted))), "{looks}: {ended:?}");
    }
    after(20_000).unwrap();
    // Of the memory: the changes alone, and with their index.
    let reader = database.reader();
    let whole = reader.index_changes(batch(changes.clone()), u64::MAX).unwrap().unwrap().bytes();
    for (most, fits) in [(1_000, false), (whole - 1, false), (whole, true)] {
        let made = reader.index_changes(batch(changes.clone()), most).unwrap();
        assert_eq!(made.is_some(), fits, "{most} of {whole}");
    }
}
