//! Connections for bindings of other languages: any statement, and interrupting one.

use std::{thread, time::Duration};

use remora::{Database, Error, Value, params};

use crate::Tested;

const LONG: &str = "SELECT COUNT(*) FROM n a, n b, n c WHERE a.id + b.id * c.id = -1";

fn with_numbers() -> Result<Database, Error> {
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE n (id INT PRIMARY KEY)", params![])?;
    db.transaction(|tx| {
        (0..2_000).try_for_each(|id| tx.execute("INSERT INTO n VALUES (?)", params![id]).map(drop))
    })?;
    Ok(db)
}

#[test]
fn a_statement_is_run_for_whatever_it_answers() -> Tested {
    let db = with_numbers()?;
    let mut connection = db.connection();
    let changed = connection.run("DELETE FROM n WHERE id < ?", params![10])?;
    assert_eq!((changed.rows, changed.outcome.rows_changed), (None, 10));
    let none = connection.run("SELECT id FROM n WHERE id < 10", params![])?.rows.ok_or("rows")?;
    assert!(none.is_empty());
    assert_eq!((none.columns().len(), none.to_arrow()?[0].num_columns()), (1, 1));
    assert!(connection.is_autocommit() && !connection.in_transaction());
    connection.run("SET autocommit = 0", params![])?;
    connection.run("DELETE FROM n", params![])?;
    assert!(!connection.is_autocommit() && connection.in_transaction());
    drop(connection);
    assert_eq!(db.query("SELECT COUNT(*) FROM n", params![])?.one::<i64>()?, 1_990);
    Ok(())
}

#[test]
fn a_statement_is_ended_from_another_thread() -> Tested {
    let db = with_numbers()?;
    let mut connection = db.connection();
    let canceller = connection.canceller()?;
    // Nothing runs: nothing is ended, then and later.
    canceller.cancel();
    assert_eq!(connection.query("SELECT COUNT(*) FROM n", params![])?.one::<i64>()?, 2_000);
    connection.execute("BEGIN", params![])?;
    connection.execute("DELETE FROM n WHERE id = 1", params![])?;
    let (sender, ended) = std::sync::mpsc::channel::<()>();
    let other = canceller.clone();
    let ends = thread::spawn(move || {
        // Until it has ended: it may be about to begin.
        while ended.recv_timeout(Duration::from_millis(50)).is_err() {
            other.cancel();
        }
    });
    for text in
        [LONG, "INSERT INTO n SELECT a.id + 9999 FROM n a, n b, n c WHERE a.id + b.id * c.id = -1"]
    {
        let error = connection.run(text, params![]).err().ok_or("it ends")?;
        assert!(matches!(error, Error::Busy(_)), "{text}: {error}");
        assert_eq!(error.mysql_code(), Some(1317), "{text}: {error}");
    }
    sender.send(())?;
    ends.join().map_err(|_| "it ends")?;
    // The transaction goes on.
    connection.execute("COMMIT", params![])?;
    assert_eq!(connection.query("SELECT COUNT(*) FROM n", params![])?.one::<i64>()?, 1_999);
    Ok(())
}

#[test]
fn who_could_end_a_connection_ends_no_other_later() -> Tested {
    let db = with_numbers()?;
    let mut connection = db.connection();
    let canceller = connection.canceller()?;
    drop(connection);
    // Sessions are kept for others; this one is not. The next would be it.
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = std::sync::Arc::clone(&stop);
    let cancels = thread::spawn(move || {
        while !told.load(std::sync::atomic::Ordering::Relaxed) {
            canceller.cancel();
            thread::yield_now();
        }
    });
    for _ in 0..20 {
        let joined = db.query("SELECT COUNT(*) FROM n a JOIN n b ON a.id = b.id + 1", params![]);
        assert_eq!(joined?.one::<i64>()?, 1_999);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    cancels.join().map_err(|_| "it ends")?;
    Ok(())
}

#[test]
fn a_search_is_arrow_and_knows_its_columns() -> Tested {
    let db = Database::in_memory()?;
    db.execute(
        "CREATE TABLE t (a INT, b INT, body TEXT, PRIMARY KEY (a, b), FULLTEXT (body))",
        params![],
    )?;
    db.execute("INSERT INTO t VALUES (1, 2, 'reef'), (3, 4, 'reef at night')", params![])?;
    let table = db.table("t")?;
    assert!(table.is_of_sql()?);
    let own = db.create_table("own", |t| t.int("id").key())?;
    assert!(!own.is_of_sql()?);
    // A key of any number of columns.
    let row = table.get(vec![Value::Int(3), Value::Int(4)])?.ok_or("it is there")?;
    assert_eq!(row.get::<String>("body")?, "reef at night");
    let found = table.search("reef").columns(["body", "a"]).order_by_key().run()?;
    let batches = found.to_arrow()?;
    let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((batches[0].num_rows(), names), (2, vec!["body", "a"]));
    let none = table.search("nothing").run()?.to_arrow()?;
    assert_eq!((none[0].num_rows(), none[0].num_columns()), (0, 3));
    Ok(())
}
