//! SQL statements by the library.

use std::sync::atomic::{AtomicU32, Ordering};

use remora::{Database, Date, DateTime, Decimal, Error, Type, Value, arrow, params};
use serde::Deserialize;

use crate::Tested;

const EVERY_TYPE: &str = "CREATE TABLE every (
    id INT PRIMARY KEY, tiny TINYINT, big BIGINT, huge BIGINT UNSIGNED, price DECIMAL(20, 4),
    wide DECIMAL(60, 2), single FLOAT, twice DOUBLE, bits BIT(10), y YEAR, name VARCHAR(50), body TEXT,
    data BLOB, fixed BINARY(3), level ENUM('low', 'high'), tags SET('a', 'b'), d DATE, t TIME(3),
    dt DATETIME(6), ts TIMESTAMP, doc JSON)";

#[derive(Debug, Deserialize, PartialEq)]
struct Every {
    id: i32,
    tiny: i8,
    big: i64,
    huge: u64,
    price: String,
    wide: String,
    single: f32,
    twice: f64,
    bits: Vec<u8>,
    y: u16,
    name: String,
    body: String,
    data: Vec<u8>,
    fixed: Vec<u8>,
    level: String,
    tags: String,
    d: String,
    t: String,
    dt: String,
    ts: String,
    doc: serde_json::Value,
}

fn every_value() -> [Value; 21] {
    let day = Date { year: 2024, month: 2, day: 29 };
    let moment = DateTime { date: day, micros: 45_296_123_456 };
    params![
        7,
        -128_i8,
        i64::MIN,
        u64::MAX,
        Decimal::from_scaled(-123_456_789, 4),
        "123456789012345678901234567890.55",
        1.5_f32,
        -0.1,
        513,
        2024,
        "naïve 日本",
        "long",
        vec![0_u8, 255, 10],
        &b"abc"[..],
        "high",
        "a,b",
        day,
        Value::Time(-3_723_004_000),
        moment,
        "2024-02-29 01:02:03",
        serde_json::json!({"a": [1, null, "x"]})
    ]
}

fn with_every_type() -> Result<Database, Error> {
    let db = Database::in_memory()?;
    db.execute(EVERY_TYPE, [])?;
    let marks = ["?"; 21].join(", ");
    let inserted = db.execute(&format!("INSERT INTO every VALUES ({marks})"), every_value())?;
    assert_eq!((inserted.rows_changed, inserted.warnings), (1, 0));
    Ok(db)
}

#[test]
fn every_type_comes_back() -> Tested {
    let db = with_every_type()?;
    let rows = db.query("SELECT * FROM every WHERE id = ?", params![7])?;
    let expected = Every {
        id: 7,
        tiny: -128,
        big: i64::MIN,
        huge: u64::MAX,
        price: "-12345.6789".into(),
        wide: "123456789012345678901234567890.55".into(),
        single: 1.5,
        twice: -0.1,
        bits: vec![2, 1],
        y: 2024,
        name: "naïve 日本".into(),
        body: "long".into(),
        data: vec![0, 255, 10],
        fixed: b"abc".to_vec(),
        level: "high".into(),
        tags: "a,b".into(),
        d: "2024-02-29".into(),
        t: "-01:02:03.004000".into(),
        dt: "2024-02-29 12:34:56.123456".into(),
        ts: "2024-02-29 01:02:03".into(),
        doc: serde_json::json!({"a": [1, null, "x"]}),
    };
    assert_eq!(rows.one::<Every>()?, expected);
    let kinds: Vec<Type> = rows.columns().iter().map(|column| column.kind).collect();
    assert_eq!(
        kinds[..6],
        [Type::Int, Type::Int, Type::Int, Type::Uint, Type::Decimal(20, 4), Type::Decimal(60, 2)]
    );
    let row = rows.first().ok_or("a row")?;
    assert_eq!(row.value("d")?, &Value::Date(Date { year: 2024, month: 2, day: 29 }));
    assert_eq!(row.get::<f64>("price")?, -12_345.678_9);
    let given = params![true, Value::Timestamp(1_709_168_523_000_000), Value::Json("[1]".into())];
    let given =
        db.query("SELECT ? + 1, CAST(? AS DATETIME) > '2024-02-28', JSON_LENGTH(?)", given)?;
    assert_eq!(given.one::<(i32, bool, i32)>()?, (2, true, 1));
    // All values are NULL but the key.
    db.execute("INSERT INTO every (id) VALUES (8)", [])?;
    let nulls = db.query("SELECT * FROM every WHERE id = 8", [])?;
    let nulls = nulls.first().ok_or("a row")?;
    assert!(nulls.values()[1..].iter().all(Value::is_null));
    assert_eq!(nulls.get::<Option<String>>("name")?, None);
    Ok(())
}

#[test]
fn rows_are_arrow_too() -> Tested {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimestampMicrosecondType};
    let db = with_every_type()?;
    db.execute("INSERT INTO every (id) VALUES (8)", [])?;
    let batches = db.query_arrow("SELECT * FROM every ORDER BY id", [])?;
    assert_eq!((batches.len(), batches[0].num_rows(), batches[0].num_columns()), (1, 2, 21));
    let column = |name: &str| batches[0].column_by_name(name).ok_or("no column");
    assert_eq!(column("id")?.as_primitive::<Int64Type>().values(), &[7, 8]);
    assert_eq!(column("price")?.as_primitive::<Decimal128Type>().value(0), -123_456_789);
    assert_eq!(column("price")?.data_type(), &DataType::Decimal128(20, 4));
    assert_eq!(column("wide")?.as_string::<i32>().value(0), "123456789012345678901234567890.55");
    assert_eq!(
        column("dt")?.as_primitive::<TimestampMicrosecondType>().value(0),
        1_709_210_096_123_456
    );
    assert!(
        column("doc")?.is_null(1) && column("data")?.as_binary::<i32>().value(0) == [0, 255, 10]
    );
    let none = db.query_arrow("SELECT id, name FROM every WHERE id > 100", [])?;
    assert_eq!((none[0].num_rows(), none[0].num_columns()), (0, 2));
    let many = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                SELECT a.i FROM n a JOIN n b ON b.i <= 20";
    let sizes: Vec<usize> = db.query_arrow(many, [])?.iter().map(|it| it.num_rows()).collect();
    assert_eq!(sizes, [8_192, 8_192, 1_616]);
    Ok(())
}

#[test]
fn errors_say_what_can_be_done() -> Tested {
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)", [])?;
    db.execute("INSERT INTO t VALUES (1, 1)", [])?;
    let told = |text: &str| db.execute(text, []).err().ok_or(format!("{text} is no error"));
    let duplicate = told("INSERT INTO t VALUES (1, 2)")?;
    assert!(matches!(duplicate, Error::Exists(_)) && duplicate.mysql_code() == Some(1062));
    assert!(duplicate.to_string().contains("Duplicate entry '1'"), "{duplicate}");
    let syntax = told("SELEC 1")?;
    assert!(matches!(syntax, Error::Request(_)) && syntax.mysql_code() == Some(1064));
    assert!(matches!(told("SELECT * FROM nowhere")?, Error::NotFound(_)));
    assert!(matches!(told("SELECT nothing FROM t")?, Error::NotFound(_)));
    assert!(matches!(told("INSERT INTO t VALUES (2, NULL)")?, Error::Request(_)));
    assert!(matches!(told("")?, Error::Request(_)));
    let count = db.query("SELECT ?", params![1, 2]).err().ok_or("two values for one ?")?;
    assert!(count.to_string().contains("has 1 ?, but 2 values"), "{count}");
    let nan = db.query("SELECT ?", params![f64::NAN]).err().ok_or("NaN")?;
    assert!(nan.to_string().contains("value 1 is no finite number"), "{nan}");
    let rowless = db.query("UPDATE t SET n = 5", []).err().ok_or("rows of an update")?;
    assert!(rowless.to_string().contains("execute()"), "{rowless}");
    assert!(told("BEGIN")?.to_string().contains("transaction(|tx|"));
    let two = told("SELECT 1; SELECT 2")?;
    assert!(matches!(two, Error::Request(_)), "{two}");
    let one = db.query("SELECT id FROM t WHERE id > 5", [])?.one::<i32>();
    assert!(matches!(one, Err(Error::NotFound(_))));
    Ok(())
}

#[test]
fn sessions_of_single_statements_know_nothing_of_each_other() -> Tested {
    let db = Database::in_memory()?;
    db.execute("SET @x = 5", [])?;
    assert_eq!(db.query("SELECT @x", [])?.one::<Option<i32>>()?, None);
    db.execute("CREATE TEMPORARY TABLE gone (id INT)", [])?;
    assert!(db.query("SELECT * FROM gone", []).is_err());
    db.execute("CREATE DATABASE shop", [])?;
    db.execute("USE shop", [])?;
    assert_eq!(db.query("SELECT DATABASE()", [])?.one::<String>()?, "remora");
    let mut connection = db.connection();
    connection.execute("USE shop", [])?;
    connection.execute("CREATE TABLE t (id INT PRIMARY KEY)", [])?;
    connection.execute("INSERT INTO t VALUES (?)", params![3])?;
    assert_eq!(db.query("SELECT id FROM shop.t", [])?.one::<i32>()?, 3);
    assert_eq!(db.table("shop.t")?.count()?, 1);
    // A text means something else in another database, and in another mode.
    connection.execute("USE remora", [])?;
    assert!(connection.execute("INSERT INTO t VALUES (?)", params![4]).is_err());
    assert_eq!(connection.query("SELECT \"a\", ?", params![1])?.one::<(String, i32)>()?.0, "a");
    connection.execute("SET sql_mode = 'ANSI_QUOTES'", [])?;
    assert!(connection.query("SELECT \"a\", ?", params![1]).is_err());
    Ok(())
}

#[test]
fn transactions_are_whole() -> Tested {
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE account (id INT PRIMARY KEY, coins INT NOT NULL)", [])?;
    db.execute("INSERT INTO account VALUES (1, 10), (2, 0)", [])?;
    let coins = || db.query("SELECT coins FROM account ORDER BY id", [])?.deserialize::<i32>();
    let pay = |much: i32| -> Result<(), Box<dyn std::error::Error>> {
        db.transaction(|tx| {
            tx.execute("UPDATE account SET coins = coins - ? WHERE id = 1", params![much])?;
            let left: i32 = tx.query("SELECT coins FROM account WHERE id = 1", [])?.one()?;
            assert_eq!(coins()?, [10, 0], "nobody else sees it");
            if left < 0 {
                return Err("too little".into());
            }
            tx.execute("UPDATE account SET coins = coins + ? WHERE id = 2", params![much])?;
            Ok(())
        })
    };
    assert!(pay(11).is_err_and(|error| error.to_string() == "too little"));
    assert_eq!(coins()?, [10, 0]);
    pay(7)?;
    assert_eq!(coins()?, [3, 7]);
    // What is not committed is rolled back with its connection.
    let mut connection = db.connection();
    connection.execute("BEGIN", [])?;
    connection.execute("DELETE FROM account", [])?;
    assert!(connection.transaction(|_| Ok::<_, Error>(())).is_err(), "one within another");
    drop(connection);
    assert_eq!(coins()?, [3, 7]);
    Ok(())
}

#[test]
fn a_connection_means_what_it_is_set_to() -> Tested {
    let db = Database::in_memory()?;
    let mut connection = db.connection();
    for (database, n) in [("one", 1), ("two", 2)] {
        connection.execute(&format!("CREATE DATABASE {database}"), [])?;
        connection
            .execute(&format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, n INT)"), [])?;
        connection.execute(&format!("INSERT INTO {database}.t VALUES (1, ?)"), params![n])?;
    }
    connection.execute("USE one", [])?;
    let text = "SELECT n FROM t WHERE id = ?";
    assert_eq!(connection.query(text, params![1])?.one::<i32>()?, 1);
    connection.execute("-- another\nUSE two", [])?;
    assert_eq!(connection.query(text, params![1])?.one::<i32>()?, 2);
    let text = "SELECT \"n\" FROM t WHERE id = ?";
    assert_eq!(connection.query(text, params![1])?.one::<String>()?, "n");
    connection.execute("SET sql_mode = ?", params!["ANSI_QUOTES"])?;
    assert_eq!(connection.query(text, params![1])?.one::<i32>()?, 2);

    let panics = std::panic::AssertUnwindSafe(|| {
        connection.transaction(|tx| -> Result<(), Error> {
            tx.execute("DELETE FROM t", [])?;
            panic!("within")
        })
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(connection.query("SELECT COUNT(*) FROM t", [])?.one::<i64>()?, 1);
    connection.transaction(|tx| tx.execute("UPDATE t SET n = 7", []))?;
    assert_eq!(db.query("SELECT n FROM two.t", [])?.one::<i32>()?, 7);

    let several = db.query("SELECT id FROM two.t FACET n", []);
    assert!(several.is_err_and(|error| error.to_string().contains("several result sets")));
    Ok(())
}

#[test]
fn the_slower_of_two_transactions_is_told() -> Tested {
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", [])?;
    db.execute("INSERT INTO t VALUES (1, 0)", [])?;
    let lost = db.transaction(|tx| {
        tx.execute("UPDATE t SET n = n + 1 WHERE id = ?", params![1])?;
        db.execute("UPDATE t SET n = 100 WHERE id = 1", []).map(drop)
    });
    assert!(lost.as_ref().is_err_and(Error::is_retryable), "{lost:?}");
    assert_eq!(db.query("SELECT n FROM t", [])?.one::<i32>()?, 100);
    Ok(())
}

#[test]
fn threads_write_and_read_at_once() -> Tested {
    const THREADS: i64 = 8;
    const ROWS: i64 = 50;
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, who INT, KEY (who))", [])?;
    let insert = db.prepare("INSERT INTO t VALUES (?, ?)")?;
    let select = db.prepare("SELECT who FROM t WHERE id = ?")?;
    assert_eq!((insert.parameters(), select.parameters()), (2, 1));
    let run = |thread: i64| -> Result<(), Error> {
        for row in 0..ROWS {
            let id = thread * ROWS + row;
            insert.execute(params![id, thread])?;
            assert_eq!(select.query(params![id])?.one::<i64>()?, thread);
            db.query("SELECT COUNT(*) FROM t WHERE who = ?", params![thread])?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| scope.spawn(move || run(thread)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().all(|thread| thread.join().is_ok_and(|ran| ran.is_ok()))
    })
    .then_some(())
    .ok_or("a thread failed")?;
    let counted: i64 = db.query("SELECT COUNT(*) FROM t", [])?.one()?;
    assert_eq!(counted, THREADS * ROWS);
    Ok(())
}

/// Statements that wait for timers, threads and other statements.
fn use_everything(db: &Database) -> Result<(), Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
    db.execute(&format!("CREATE TABLE {name} (id INT PRIMARY KEY, n INT)"), [])?;
    db.execute(&format!("INSERT INTO {name} VALUES (?, ?)"), params![1, 2])?;
    db.transaction(|tx| tx.execute(&format!("UPDATE {name} SET n = 3"), []))?;
    db.query("SELECT SLEEP(0.01)", [])?;
    let text = format!(
        "SELECT (SELECT MAX(n) FROM {name} i WHERE i.id <= o.id) FROM {name} o GROUP BY o.id"
    );
    assert_eq!(db.query(&text, [])?.one::<i32>()?, 3);
    Ok(())
}

#[test]
fn it_is_called_within_any_runtime() -> Tested {
    let db = Database::in_memory()?;
    use_everything(&db)?;
    let current = tokio::runtime::Builder::new_current_thread().build()?;
    current.block_on(async { use_everything(&db) })?;
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    several.block_on(async { use_everything(&db) })?;
    for blocking in [false, true] {
        let db = db.clone();
        several.block_on(async move {
            match blocking {
                true => tokio::task::spawn_blocking(move || use_everything(&db)).await,
                false => tokio::spawn(async move { use_everything(&db) }).await,
            }
        })??;
    }
    // The last clone may be dropped there too.
    several.block_on(async move { drop(db) });
    Ok(())
}

#[test]
fn deep_statements_are_answered_or_refused_on_small_stacks() -> Tested {
    let db = Database::in_memory()?;
    let nested = |levels: usize| format!("SELECT {}1{}", "(".repeat(levels), ")".repeat(levels));
    let run = || -> Result<(), Error> {
        // Texts of few words run on the caller's stack, others on a larger one.
        for levels in [10, 31, 32, 150] {
            assert_eq!(db.query(&nested(levels), [])?.one::<i32>()?, 1);
        }
        let deep = db.query(&nested(100_000), []);
        assert!(deep.is_err_and(|error| error.to_string().contains("nests deeper")));
        Ok(())
    };
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(2 << 20);
        small.spawn_scoped(scope, run).map(|thread| thread.join())
    })?
    .map_err(|_| "it broke off")??;
    Ok(())
}

/// Rows are streamed: they are equal, and no more are produced than are read.
#[test]
fn rows_come_one_by_one() -> Tested {
    let db = Database::in_memory()?;
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", [])?;
    let table = "INSERT INTO t SELECT a.n * 300 + b.n, a.n FROM \
                 (WITH RECURSIVE s (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < 299) SELECT n FROM s) a, \
                 (WITH RECURSIVE s (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < 299) SELECT n FROM s) b";
    db.execute(table, [])?;
    for text in [
        "SELECT id, n FROM t ORDER BY id",
        "SELECT id, n FROM t WHERE n % 2 = 0",
        "SELECT a.id, b.n FROM t a JOIN t b ON a.id = b.id + 1",
        "SELECT n, COUNT(*) FROM t GROUP BY n",
        "SELECT id FROM t WHERE id < 0",
        "SHOW TABLES",
    ] {
        let all = db.query(text, [])?;
        let stream = db.query_stream(text, [])?;
        assert_eq!(stream.columns(), all.columns(), "{text}");
        let mut streamed: Vec<String> =
            stream.map(|row| row.map(|row| format!("{row:?}"))).collect::<remora::Result<_>>()?;
        let mut all: Vec<String> = all.iter().map(|row| format!("{row:?}")).collect();
        if !text.contains("ORDER BY") {
            all.sort();
            streamed.sort();
        }
        assert!(all == streamed, "{text}: {} and {} rows", all.len(), streamed.len());
    }
    // What is written meanwhile is not seen, and who goes away early ends the statement.
    let mut stream = db.query_stream("SELECT id FROM t WHERE n >= ? ORDER BY id", params![1])?;
    let first = stream.next().ok_or("no row")??.get::<i64>("id")?;
    db.execute("DELETE FROM t WHERE id > 1000", [])?;
    assert_eq!((first, stream.by_ref().take(80_000).filter(Result::is_ok).count()), (300, 80_000));
    drop(stream);
    for (text, values) in
        [("SELECT nosuch FROM t", vec![]), ("SELECT ?", vec![]), ("DELETE FROM t", vec![])]
    {
        let error = db.query_stream(text, &values).err().ok_or("it runs")?;
        assert!(matches!(error, Error::Request(_) | Error::NotFound(_)), "{text}: {error:?}");
    }
    Ok(())
}
