//! Opening and closing, and the memory and disk space of an empty database.

use std::{path::Path, time::Instant};

use remora::{Database, Durability, Error, Options};
use serde_json::json;

use crate::Tested;

/// The allocated size of a file: the journal's length is larger than its blocks.
fn allocated(path: &Path) -> std::io::Result<u64> {
    Ok(std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path)?) * 512)
}

fn bytes_below(path: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        bytes += if kind.is_dir() { bytes_below(&path)? } else { allocated(&path)? };
    }
    Ok(bytes)
}

#[test]
fn an_empty_database_is_small_and_opens_at_once() -> Tested {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("made/when/opened");
    let started = Instant::now();
    let db = Database::open(&path)?;
    let first_ms = started.elapsed().as_secs_f64() * 1e3;
    let open_bytes = bytes_below(&path)?;
    db.close()?;
    let started = Instant::now();
    let again = Database::open(&path)?;
    let again_ms = started.elapsed().as_secs_f64() * 1e3;
    println!("made in {first_ms:.1} ms, opened in {again_ms:.1} ms, {open_bytes} bytes");
    assert!(open_bytes <= 64 << 10, "{open_bytes} bytes");
    assert_eq!(again.tables(), [""; 0]);
    Ok(())
}

#[test]
fn a_directory_is_opened_once() -> Tested {
    let directory = tempfile::tempdir()?;
    let first = Database::open(directory.path())?;
    let Err(second) = Database::open(directory.path()) else { return Err("opened twice".into()) };
    assert!(matches!(second, Error::InUse(_)), "{second:?}");
    let name = directory.path().display().to_string();
    assert!(second.to_string().contains(&name), "{second}");
    drop(first);
    Database::open(directory.path())?;
    Ok(())
}

#[test]
fn rows_are_there_again_after_a_drop() -> Tested {
    let directory = tempfile::tempdir()?;
    let options = Options { durability: Durability::None, ..Options::default() };
    for round in 0..3 {
        let db = Database::open_with(directory.path(), options.clone())?;
        let notes = db.create_table("notes", |t| t.int("id").key().text("body"))?;
        assert_eq!(notes.count()?, round);
        notes.insert(&json!({"id": round, "body": "a reef"}))?;
        db.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT)", [])?;
        db.execute("INSERT INTO t VALUES ()", [])?;
        // What was made of it keeps it open.
        drop(db);
        assert_eq!(notes.search("reef").count()?, round + 1);
    }
    let db = Database::open(directory.path())?;
    assert_eq!(db.query("SELECT id FROM t", [])?.deserialize::<u64>()?, [1, 2, 3]);
    assert_eq!(db.tables(), ["notes", "t"]);
    Ok(())
}

#[test]
fn a_database_in_memory_leaves_nothing() -> Tested {
    let db = Database::in_memory()?;
    let other = Database::in_memory()?;
    let path = db.path();
    assert!(path.is_dir() && path != other.path());
    db.execute("CREATE TABLE t (id INT PRIMARY KEY)", [])?;
    assert!(other.tables().is_empty());
    let connection = db.connection();
    drop(db);
    assert!(path.is_dir());
    drop(connection);
    assert!(!path.exists());
    Ok(())
}

#[test]
fn a_closed_database_says_so() -> Tested {
    let db = Database::in_memory()?;
    let table = db.create_table("t", |t| t.int("id").key())?;
    let collection = db.collection("c")?;
    let prepared = db.prepare("SELECT * FROM t WHERE id = ?")?;
    db.close()?;
    db.close()?;
    assert!(matches!(table.insert(&json!({"id": 1})), Err(Error::Closed)));
    assert!(matches!(table.get(1), Err(Error::Closed)));
    assert!(matches!(collection.insert(&json!({})), Err(Error::Closed)));
    assert!(matches!(collection.find("a = 1").run(), Err(Error::Closed)));
    for error in [db.query("SELECT * FROM t", []).err(), prepared.query(remora::params![1]).err()] {
        let error = error.ok_or("a closed database answers")?;
        assert!(matches!(error, Error::Closed), "{error:?}");
    }
    Ok(())
}
