//! Statements and documents in one transaction, and batches of documents that read what they change.

use remora::{Collection, Connection, Database, Error, params};
use serde_json::{Value as Json, json};

use crate::Tested;

const ACCOUNTS: &str = "CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL)";

fn with_accounts() -> Result<(Database, Collection), Error> {
    let db = Database::in_memory()?;
    db.execute(ACCOUNTS, [])?;
    db.execute("INSERT INTO accounts VALUES (1, 100), (2, 0)", [])?;
    let orders = db.collection("orders")?;
    Ok((db, orders))
}

fn balance(db: &Database, id: i32) -> Result<i32, Error> {
    db.query("SELECT balance FROM accounts WHERE id = ?", params![id])?.one()
}

#[test]
fn documents_and_rows_are_committed_together() -> Tested {
    let (db, orders) = with_accounts()?;
    let books = db.keyed_collection("books")?;
    let kept = orders.insert(&json!({"state": "open", "n": 1}))?;
    let gone = orders.insert(&json!({"state": "open", "n": 2}))?;
    let (_, version) = orders.get_versioned(kept)?.ok_or("it is there")?;
    let (made, more) = db.transaction(|tx| {
        tx.execute("UPDATE accounts SET balance = balance - 30 WHERE id = 1", [])?;
        let mut open = tx.documents(&orders)?;
        let made = open.insert(&json!({"state": "new", "x": 1.0}))?;
        let more = open.insert_many([json!({"state": "new"}), json!({"state": "old"})])?;
        open.insert_as(5, &json!({"state": "open"}))?;
        assert!(matches!(open.insert_as(5, &json!({})), Err(Error::Exists(_))));
        open.upsert(5, &json!({"state": "open", "n": 5}))?;
        open.upsert_many([(6, json!({"state": "six"}))])?;
        let version = open.replace_if(kept, version, &json!({"state": "paid"}))?;
        assert!(matches!(
            open.replace_if(kept, remora::Version(0), &json!({})),
            Err(Error::Changed(_))
        ));
        assert_eq!(open.get_versioned(kept)?, Some((json!({"state": "paid"}), version)));
        open.patch(made, &json!([{"op": "add", "path": "/tags", "value": [1]}]))?;
        open.merge_patch(made, &json!({"by": "Ann"}))?;
        open.update(made, |document| {
            document["tags"][0] = json!(2);
            Ok(())
        })?;
        assert!(open.delete(gone)? && !open.delete(gone)?);
        assert!(matches!(open.replace(gone, &json!({})), Err(Error::NotFound(_))));
        assert_eq!(
            (open.get(gone)?, open.get_as::<Json>(6)?),
            (None, Some(json!({"state": "six"})))
        );
        // Both ways of reading see all of it, and nobody else does.
        let ids = |found: Vec<remora::Document>| found.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(open.find("state = 'open'")?), [5]);
        assert_eq!(ids(open.find("state = 'new' OR state = 'paid'")?), [kept, made, more[0]]);
        assert_eq!(open.delete_found("state = 'old'")?, 1);
        let states =
            "SELECT COUNT(*) FROM orders WHERE doc->>'$.state' IN ('open', 'new', 'paid', 'six')";
        assert_eq!(tx.query(states, [])?.one::<i32>()?, 5);
        tx.execute("UPDATE orders SET doc = JSON_SET(doc, '$.n', 6) WHERE id = 6", [])?;
        assert_eq!(tx.documents(&orders)?.get(6)?, Some(json!({"n": 6, "state": "six"})));
        tx.documents(&books)?.insert_as("isbn", &json!({"order": made}))?;
        assert_eq!((orders.len()?, books.len()?, balance(&db, 1)?), (2, 0, 100));
        Ok::<_, Error>((made, more))
    })?;
    assert_eq!(balance(&db, 1)?, 70);
    let text = r#"{"by":"Ann","state":"new","tags":[2],"x":1.0}"#;
    assert_eq!(orders.get_json(made)?.as_deref(), Some(text), "documents keep their form");
    assert_eq!(orders.all().ids()?, [5, 6, kept, made, more[0]]);
    assert_eq!(books.get("isbn")?, Some(json!({"order": made})));
    Ok(())
}

/// What a transaction finds of a collection with indexes, and what everybody finds of another one with the same
/// documents and without indexes.
fn compare(
    indexed: &Collection,
    own: &remora::Moment,
    plain: &Collection,
    random: &mut u64,
) -> Tested {
    let mut next = |below: u64| {
        *random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % below
    };
    for _ in 0..20 {
        let filter = match next(6) {
            0 => format!("n = {}", next(9)),
            1 => format!("n < {} AND kind = 'k{}'", next(9), next(3)),
            2 => format!("NOT kind = 'k{}'", next(3)),
            3 => format!("text MATCHES 'word{}'", next(5)),
            4 => format!("free = {}", next(4)),
            _ => "n EXISTS".to_owned(),
        };
        let (offset, limit) = (next(5) as usize, 1 + next(40) as usize);
        let (sort, descends) = (["n", "free", "kind"][next(3) as usize], next(2) == 0);
        let find = |of: &Collection| {
            let found = of.find(&filter).offset(offset).limit(limit).facet("n").facet("free");
            if descends { found.sort_by_desc(sort) } else { found.sort_by(sort) }
        };
        let (found, wanted) = (find(indexed).at(own).run()?, find(plain).run()?);
        let told =
            |found: &remora::FoundDocuments| format!("{:?} {:?}", found.documents, found.facets);
        assert_eq!(told(&found), told(&wanted), "{filter} by {sort}");
        assert_eq!(
            indexed.find(&filter).at(own).count()?,
            plain.find(&filter).count()?,
            "{filter}"
        );
        assert_eq!(indexed.find(&filter).at(own).ids()?, plain.find(&filter).ids()?, "{filter}");
    }
    Ok(())
}

#[test]
fn a_transaction_finds_its_own_documents_by_every_index() -> Tested {
    let db = Database::in_memory()?;
    let (indexed, plain) = (db.collection("indexed")?, db.collection("plain")?);
    for path in ["n", "kind"] {
        indexed.index(path)?;
    }
    indexed.index(["kind", "n"])?;
    indexed.index_text("text")?;
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random: u64 = seed.unwrap_or(20_261_128);
    println!("REMORA_SEED={random}");
    let document = |n: u64| json!({"n": n % 9, "kind": format!("k{}", n % 3), "free": n % 4, "text": format!("word{} x", n % 5)});
    for n in 0..200_i64 {
        indexed.insert_as(n, &document(n as u64 * 7))?;
        plain.insert_as(n, &document(n as u64 * 7))?;
    }
    db.transaction(|tx| {
        let mut own = tx.documents(&indexed)?;
        for round in 0..12_i64 {
            for at in 0..1 + round % 4 * 9 {
                let id = (round * 37 + at * 11) % 260;
                if (round + at) % 3 == 0 {
                    assert_eq!(own.delete(id)?, plain.delete(id)?);
                } else {
                    own.upsert(id, &document((round * at + id) as u64))?;
                    plain.upsert(id, &document((round * at + id) as u64))?;
                }
            }
            let now = own.now()?;
            if let Err(error) = compare(&indexed, &now, &plain, &mut random) {
                panic!("{error}");
            }
        }
        Ok::<_, Error>(())
    })?;
    compare(&indexed, &indexed.now(), &plain, &mut random)
}

#[test]
fn what_fails_leaves_nothing_of_either() -> Tested {
    let (db, orders) = with_accounts()?;
    orders.index_unique("number")?;
    orders.insert(&json!({"number": 1}))?;
    let work = |tx: &mut Connection, number: i32| -> Result<(), Error> {
        tx.documents(&orders)?.insert(&json!({"number": 2}))?;
        tx.execute("UPDATE accounts SET balance = 0", [])?;
        tx.documents(&orders)?.insert(&json!({"number": number}))?;
        if number == 3 { Err(Error::Changed("no".to_owned().into())) } else { Ok(()) }
    };
    assert!(matches!(db.transaction(|tx| work(tx, 3)), Err(Error::Changed(_))));
    // A unique path is compared at the commit.
    for number in [1, 2] {
        assert!(matches!(db.transaction(|tx| work(tx, number)), Err(Error::Exists(_))));
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = db.transaction(|tx| {
            tx.documents(&orders)?.insert(&json!({"number": 9}))?;
            if tx.in_transaction() { panic!("in the middle") } else { Ok::<_, Error>(()) }
        });
    }));
    assert!(panicked.is_err());
    assert_eq!((orders.len()?, balance(&db, 1)?), (1, 100));
    Ok(())
}

#[test]
fn a_transaction_reads_one_moment_and_the_faster_writer_wins() -> Tested {
    let (db, orders) = with_accounts()?;
    orders.insert_as(1, &json!({"n": 1}))?;
    let mut slow = db.connection();
    slow.execute("BEGIN", [])?;
    orders.insert_as(2, &json!({"n": 1}))?;
    orders.replace(1, &json!({"n": 2}))?;
    let mut seen = slow.documents(&orders)?;
    assert_eq!((seen.get(1)?, seen.get(2)?), (Some(json!({"n": 1})), None));
    assert_eq!(seen.find("n = 1")?.len(), 1);
    seen.upsert(1, &json!({"n": 9}))?;
    slow.execute("INSERT INTO accounts VALUES (3, 3)", [])?;
    assert!(matches!(slow.execute("COMMIT", []), Err(Error::Conflict(_))));
    assert_eq!(orders.get(1)?, Some(json!({"n": 2})));
    assert!(db.query("SELECT balance FROM accounts WHERE id = 3", [])?.is_empty());
    // In READ COMMITTED each read sees what is committed when it begins.
    slow.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", [])?;
    slow.execute("BEGIN", [])?;
    assert_eq!(slow.documents(&orders)?.get(1)?, Some(json!({"n": 2})));
    orders.replace(1, &json!({"n": 3}))?;
    assert_eq!(slow.documents(&orders)?.get(1)?, Some(json!({"n": 3})));
    assert_eq!(slow.documents(&orders)?.find("n = 3")?.len(), 1);
    slow.execute("ROLLBACK", [])?;
    // Without a transaction each call is one, and is tried again.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut connection = db.connection();
                for _ in 0..20 {
                    let mut documents = connection.documents(&orders).unwrap();
                    let added = documents.update(1, |document| {
                        document["n"] = json!(document["n"].as_i64().unwrap_or(0) + 1);
                        Ok(())
                    });
                    added.unwrap();
                }
            });
        }
    });
    assert_eq!(orders.get(1)?, Some(json!({"n": 63})));
    // Without autocommit the first call begins a transaction.
    slow.execute("SET autocommit = 0", [])?;
    slow.documents(&orders)?.delete(1)?;
    assert!(slow.in_transaction() && orders.get(1)?.is_some());
    slow.execute("COMMIT", [])?;
    assert_eq!(orders.get(1)?, None);
    Ok(())
}

#[test]
fn batches_read_what_they_change_when_they_are_committed() -> Tested {
    for key in [None, Some("CREATE UNIQUE INDEX u ON a ((CAST(doc->>'$.u' AS SIGNED)))")] {
        let db = Database::in_memory()?;
        let (a, b) = (db.collection("a")?, db.keyed_collection("b")?);
        let rows = db.create_table("rows", |t| t.int("id").key().short_text("name"))?;
        if let Some(key) = key {
            db.execute(key, [])?;
        }
        a.insert_as(1, &json!({"n": 1, "u": 1}))?;
        a.insert_as(2, &json!({"n": 1, "u": 2}))?;
        a.insert_as(3, &json!({"n": 3, "u": 3}))?;
        let (_, version) = a.get_versioned(3)?.ok_or("it is there")?;
        let mut batch = db.batch();
        let made = batch.insert_document(&a, &json!({"n": 4, "u": 4}))?;
        batch.insert_document_as(&b, "x", &json!({"n": 1}))?;
        batch.merge_patch_document(&a, made, &json!({"n": 5}))?;
        batch.patch_document(&a, 1, &json!([{"op": "add", "path": "/n", "value": 7}]))?;
        batch.delete_found_documents(&a, "n = 1 OR n = 5")?;
        batch.insert_document_as(&a, 9, &json!({"n": 1, "u": 2}))?;
        let new = batch.replace_document_if(&a, 3, version, &json!({"n": 8, "u": 3}))?;
        batch.replace_document_if(&a, 3, new, &json!({"n": 9, "u": 3}))?;
        batch.replace_document(&b, "x", &json!({"n": 2}))?;
        batch.insert(&rows, &json!({"id": 1, "name": "Ann"}))?;
        batch.upsert_document(&b, "y", &json!({}))?;
        batch.delete_document(&b, "y")?;
        assert_eq!((a.len()?, b.len()?, rows.count()?), (3, 0, 0));
        batch.commit()?;
        let all: Vec<(i64, Json)> =
            a.all().run()?.documents.into_iter().map(|it| (it.id, it.doc)).collect();
        let expected = [
            (1, json!({"n": 7, "u": 1})),
            (3, json!({"n": 9, "u": 3})),
            (9, json!({"n": 1, "u": 2})),
        ];
        assert_eq!(all, expected, "{key:?}");
        assert_eq!((b.get("x")?, b.len()?, rows.count()?), (Some(json!({"n": 2})), 1, 1));
        refused(&db, &a)?;
        assert_eq!((a.len()?, rows.count()?), (3, 1), "{key:?}");
    }
    Ok(())
}

/// Batches with one change that fails, of which nothing may be left.
fn refused(db: &Database, a: &Collection) -> Tested {
    let rows = db.table("rows")?;
    let begun = || -> Result<remora::Batch, Error> {
        let mut batch = db.batch();
        batch.insert(&rows, &json!({"id": 2}))?;
        batch.insert_document(a, &json!({"u": 77}))?;
        Ok(batch)
    };
    let mut missing = begun()?;
    missing.merge_patch_document(a, 99, &json!({}))?;
    assert!(matches!(missing.commit(), Err(Error::NotFound(_))));
    let mut changed = begun()?;
    changed.replace_document_if(a, 1, remora::Version(0), &json!({}))?;
    assert!(matches!(changed.commit(), Err(Error::Changed(_))));
    let mut tested = begun()?;
    tested.patch_document(a, 1, &json!([{"op": "test", "path": "/n", "value": 0}]))?;
    assert!(matches!(tested.commit(), Err(Error::Changed(_))));
    let mut taken = begun()?;
    taken.merge_patch_document(a, 1, &json!({"n": 0}))?;
    taken.insert_document_as(a, 1, &json!({}))?;
    assert!(matches!(taken.commit(), Err(Error::Exists(_))));
    Ok(())
}

#[test]
fn batches_and_deletions_by_condition_are_tried_again() -> Tested {
    let (db, orders) = with_accounts()?;
    orders.insert_as(1, &json!({"n": 0}))?;
    orders.insert_as(2, &json!({"n": 0}))?;
    let add = |document: i64| -> Result<(), Error> {
        for _ in 0..20 {
            let Some((found, version)) = orders.get_versioned(1)? else { return Ok(()) };
            let mut batch = db.batch();
            let next = found["n"].as_i64().unwrap_or(0) + 1;
            batch.replace_document_if(&orders, 1, version, &json!({"n": next}))?;
            batch.merge_patch_document(&orders, 2, &json!({"n": next, "by": document}))?;
            match batch.commit() {
                Ok(()) | Err(Error::Changed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|number| scope.spawn(move || add(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    let n =
        |id| -> Result<Option<i64>, Error> { Ok(orders.get(id)?.and_then(|it| it["n"].as_i64())) };
    assert_eq!(n(1)?, n(2)?);
    assert!(n(1)? >= Some(20));
    assert_eq!((orders.delete_found("n > 0")?, orders.len()?), (2, 0));
    Ok(())
}

#[test]
fn the_position_of_a_watcher_is_stored_with_a_transaction() -> Tested {
    let (db, orders) = with_accounts()?;
    let mut watch = db.watch().named("billing").tables(["orders"]).start()?;
    orders.insert_as(1, &json!({"price": 30}))?;
    orders.insert_as(2, &json!({"price": 5}))?;
    let change = watch.next().ok_or("a change")??;
    let failed = db.transaction(|tx| {
        tx.execute("UPDATE accounts SET balance = balance - 30 WHERE id = 1", [])?;
        tx.done(&change)?;
        Err::<(), Error>(Error::Changed("not now".to_owned().into()))
    });
    assert!(failed.is_err());
    drop(watch);
    let mut watch = db.watch().named("billing").tables(["orders"]).start()?;
    let again = watch.next().ok_or("the change comes again")??;
    assert_eq!(again.position(), change.position());
    db.transaction(|tx| {
        tx.execute("UPDATE accounts SET balance = balance - 30 WHERE id = 1", [])?;
        tx.done(&again)
    })?;
    assert_eq!(balance(&db, 1)?, 70);
    drop(watch);
    let mut watch = db.watch().named("billing").tables(["orders"]).start()?;
    let next = watch.next().ok_or("the second change")??;
    assert_eq!(next.key(), Some(&[remora::Value::Int(2)][..]));
    // A transaction without changes stores it too; outside of one it is refused.
    assert!(db.connection().done(&next).is_err());
    db.transaction(|tx| tx.done(&next))?;
    drop(watch);
    let mut watch = db.watch().named("billing").tables(["orders"]).start()?;
    assert!(watch.next_within(std::time::Duration::from_millis(50))?.is_none());
    Ok(())
}
