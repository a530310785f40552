//! Large segments leave most of their bytes in their files once they are written: less memory, the
//! same answers.

use std::fs;

use remora_engine::{Database, Normalization, Schema};

use crate::common::*;

const ROWS: i64 = 4_000;

/// Texts of some words each, so that the positions of words matter.
fn texts(random: &mut Random) -> Vec<String> {
    (0..ROWS).map(|_| (0..12).map(|_| random.text()).collect::<Vec<_>>().join(" ")).collect()
}

fn compare(database: &Database, texts: &[String]) {
    let normalization = Normalization::default();
    let texts: Vec<_> = texts.iter().map(|text| normalization.apply(text)).collect();
    for term in ["database ship", "p a d", "river strom", "東京都 data", "shipyard", "été-20"]
    {
        let term = normalization.apply(term);
        let has = |text: &&std::borrow::Cow<'_, str>| text.contains(&*term);
        let expected: Vec<i64> =
            (0..).zip(&texts).filter(|(_, text)| has(text)).map(|(id, _)| id).collect();
        assert_eq!(find(database, &term), expected, "{term}");
    }
}

#[test]
fn segments_read_from_their_files_answer_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let mut texts = texts(&mut Random::seeded());
    let fill = |texts: &[String]| {
        let changes = (0..).zip(texts).map(|(id, text)| put(id, id, text));
        apply(&database, changes.collect()).unwrap();
    };
    fill(&texts);
    let in_memory = database.statistics(TABLE).unwrap().index_bytes;
    compare(&database, &texts);
    database.checkpoint().unwrap();
    let in_file = database.statistics(TABLE).unwrap().index_bytes;
    println!("{in_memory} bytes in memory before the checkpoint, {in_file} behind it");
    assert!(in_file < in_memory, "{in_file} of {in_memory}");
    compare(&database, &texts);
    for id in [0, 7, 3_999] {
        texts[id as usize] = "replaced by a database ship".to_owned();
        apply(&database, vec![put(id, id, &texts[id as usize])]).unwrap();
    }
    compare(&database, &texts);
    // A merge reads its inputs back from their files; its output is in memory, then in a file.
    database.optimize(None).unwrap();
    compare(&database, &texts);
    database.close().unwrap();
    let database = Database::open(directory.path(), quick()).unwrap();
    compare(&database, &texts);
    check_is_clean(database);
    flip_a_bit_of_each_part(directory.path(), &texts);
}

/// Wherever in a large file a bit is flipped, the start finds it.
fn flip_a_bit_of_each_part(path: &std::path::Path, texts: &[String]) {
    for part in 0..4 {
        let mut files = fs::read_dir(path.join("segments")).unwrap();
        let file = files.next().unwrap().unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let at = bytes.len() / 8 * (2 * part + 1);
        bytes[at] ^= 4;
        fs::write(&file, bytes).unwrap();
        let report = Database::check(path, &mut |_| {}).unwrap();
        assert!(!report.problems.is_empty(), "byte {at}");
        let database = Database::open(path, quick()).unwrap();
        compare(&database, texts);
        database.optimize(None).unwrap();
        check_is_clean(database);
    }
}

/// A file that is damaged while the database has it open: its table's merges fail and are told, the
/// other table goes on, and the next start rebuilds it.
#[test]
fn a_merge_that_cannot_read_its_file_stops_its_table_alone() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let other = Schema { name: "other".to_owned(), ..schema() };
    database.create_table(other).unwrap();
    let texts = texts(&mut Random::seeded());
    let changes = (0..).zip(&texts).map(|(id, text)| put(id, id, text));
    apply(&database, changes.collect()).unwrap();
    database.checkpoint().unwrap();
    for file in fs::read_dir(directory.path().join("segments")).unwrap() {
        let file = fs::OpenOptions::new().write(true).open(file.unwrap().path()).unwrap();
        file.set_len(100).unwrap();
    }
    apply(&database, vec![delete(7)]).unwrap();
    let error = database.optimize(Some(TABLE)).unwrap_err();
    let failures = database.merge_failures();
    let [(table, told)] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!(table, TABLE);
    assert!(told.contains(".seg") && told.contains(&error.to_string()), "{told}");
    assert_eq!(database.statistics("other").unwrap().merge_failure, None);
    for id in 0..200 {
        let mut batch = batch(vec![put(id, id, "x")]);
        batch.tables[0].table = "other".into();
        database.apply(batch).unwrap();
        apply(&database, vec![put(10_000 + id, id, "written meanwhile")]).unwrap();
    }
    assert!(database.statistics("other").unwrap().merges > 0);
    assert_eq!(database.write_refusal(), None);
    assert_eq!(count(&database), ROWS as u64 - 1 + 200);
    assert_eq!(find(&database, "written meanwhile").len(), 200);
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(database.merge_failures(), []);
    assert_eq!(count(&database), ROWS as u64 - 1 + 200);
    database.optimize(None).unwrap();
    check_is_clean(database);
}
