//! Stock that follows orders: a watcher is told of each order that is committed, by whomever, and writes what is left of the
//! article in one step with how far it is. So each order counts once, whatever ends the program.
//!
//! ```sh
//! cargo run --example watcher                  # with a database of its own
//! cargo run --example watcher -- ~/shop        # goes on with what is there
//! ```

use std::{collections::BTreeMap, thread, time::Duration};

use remora::{Change, Database, Event, Result, Row, Table, params};
use serde_json::json;

/// Pieces of an article before anybody orders it.
const STOCK: i64 = 100;

fn main() -> Result<()> {
    match std::env::args().nth(1) {
        Some(path) => show(&Database::open(path)?),
        None => show(&Database::in_memory()?),
    }
}

fn show(db: &Database) -> Result<()> {
    let columns = "id INT PRIMARY KEY AUTO_INCREMENT, article VARCHAR(20), amount INT";
    db.execute(&format!("CREATE TABLE IF NOT EXISTS orders ({columns})"), params![])?;
    let stock = db.create_table("stock", |t| t.short_text("article").key().int("amount"))?;
    let mut changes = db.watch().named("stock").tables(["orders"]).start()?;
    thread::scope(|scope| {
        let shop = scope.spawn(|| sell(db));
        while let Some(change) = changes.next_within(Duration::from_secs(1))? {
            follow(db, &stock, &change)?;
        }
        shop.join().unwrap_or(Ok(()))
    })?;
    stock.for_each(|row| {
        println!("{}: {}", row.get::<String>("article")?, row.get::<i64>("amount")?);
        Ok(())
    })
}

fn sell(db: &Database) -> Result<()> {
    for (article, amount) in [("lamp", 3), ("shade", 7), ("lamp", 2)] {
        let text = "INSERT INTO orders (article, amount) VALUES (?, ?)";
        db.execute(text, params![article, amount])?;
    }
    // Who changes his mind is told of as well, with what was ordered before.
    db.execute("UPDATE orders SET amount = 1 WHERE article = 'shade'", params![])?;
    db.execute("DELETE FROM orders WHERE amount = 3", params![])?;
    Ok(())
}

/// Writes what is left by a change.
fn follow(db: &Database, stock: &Table, change: &Change) -> Result<()> {
    let (taken, brought): (Option<&Row>, Option<&Row>) = match change.event() {
        Event::Insert { row } => (Some(row), None),
        Event::Update { old, row } => (Some(row), Some(old)),
        Event::Delete { old } => (None, Some(old)),
        // What happens to the table itself: a program decides what it makes of that.
        other => {
            println!("{} {other:?}", change.table());
            return change.save();
        }
    };
    let mut left: BTreeMap<String, i64> = BTreeMap::new();
    for (order, sign) in taken.map(|row| (row, -1)).into_iter().chain(brought.map(|row| (row, 1))) {
        let article: String = order.get("article")?;
        let before = match left.get(&article) {
            Some(before) => *before,
            None => stock.get(&article)?.map_or(Ok(STOCK), |row| row.get("amount"))?,
        };
        left.insert(article, before + sign * order.get::<i64>("amount")?);
    }
    let mut batch = db.batch();
    for (article, amount) in &left {
        println!("order {:?}: {article} {amount}", change.key().unwrap_or_default());
        batch.upsert(stock, &json!({"article": article, "amount": amount}))?;
    }
    // Of a statement that changes several orders each is a step of its own here: see `Change::position`.
    batch.done(change)?;
    batch.commit()
}

#[test]
fn it_runs() -> Result<()> {
    let db = Database::in_memory()?;
    show(&db)?;
    let amount =
        |article: &str| db.table("stock")?.get(article)?.map_or(Ok(0), |it| it.get("amount"));
    assert_eq!((amount("lamp")?, amount("shade")?), (98, 99));
    Ok::<(), remora::Error>(())
}
