//! A store of JSON events: written as they are, found by what is in them, read on from where one
//! stopped, and asked with SQL. `cargo run --example events`

use remora::{Collection, Database, Result, field, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Event {
    Ordered { customer: String, total: f64, items: Vec<String> },
    Paid { customer: String, total: f64 },
    Complained { customer: String, text: String },
}

fn main() -> Result<()> {
    let db = Database::in_memory()?;
    let events = db.collection("events")?;
    let first = write(&events)?;

    let large = events.find("kind = 'ordered' AND items = 'lamp' AND total >= 100");
    for event in large.sort_by_desc("total").limit(3).run_as::<Event>()? {
        println!("large: {event:?}");
    }
    let open = events.find(field("kind").equals("complained") & !field("answered").exists());
    println!("{} complaints are open", open.count()?);

    // A consumer keeps the last id that it has seen, and goes on behind it. Nobody inserts meanwhile: of documents that
    // are written at the same time one may come to be seen behind the last.
    let mut seen = first;
    loop {
        let page = events.page(Some(seen), 2)?;
        let Some(last) = page.last() else { break };
        seen = last.id;
        page.iter().for_each(|event| println!("{}: {}", event.id, event.doc["kind"]));
    }

    let text = "SELECT doc->>'$.customer' AS customer, SUM(doc->>'$.total') AS total FROM events \
                WHERE doc->>'$.kind' = ? GROUP BY customer ORDER BY total DESC";
    for (customer, total) in db.query(text, params!["ordered"])?.deserialize::<(String, f64)>()? {
        println!("{customer} ordered for {total}");
    }
    Ok(())
}

fn write(events: &Collection) -> Result<i64> {
    let order = |customer: &str, total, items: &[&str]| Event::Ordered {
        customer: customer.into(),
        total,
        items: items.iter().map(|item| (*item).to_owned()).collect(),
    };
    let first = events.insert(&order("Ann", 120.0, &["lamp", "shade"]))?;
    events.insert_many([
        order("Bo", 80.5, &["lamp"]),
        order("Bo", 310.0, &["lamp", "mirror"]),
        Event::Paid { customer: "Ann".into(), total: 120.0 },
    ])?;
    let text = "The shade is torn".to_owned();
    let complaint = events.insert(&Event::Complained { customer: "Ann".into(), text })?;
    events.insert(&Event::Complained { customer: "Bo".into(), text: "Late".into() })?;
    events.merge_patch(complaint, &json!({"answered": {"by": "Cy"}}))?;
    Ok(first)
}

#[test]
fn it_runs() -> Result<()> {
    main()
}
