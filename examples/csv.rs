//! SQL over a CSV file: its columns become those of a table `csv`, numbers where all values are.
//!
//! ```sh
//! cargo run --example csv -- birds.csv "SELECT habitat, COUNT(*) FROM csv GROUP BY habitat"
//! ```

use std::{error::Error, io::Read};

use remora::{Database, Rows, Value};

const SAMPLE: &str =
    "name,habitat,wingspan_cm\nHeron,rivers,185\nKite,woods,170\nKingfisher,rivers,25\n";
const SAMPLE_QUERY: &str = "SELECT habitat, COUNT(*) AS birds, MAX(wingspan_cm) AS widest FROM csv GROUP BY habitat ORDER BY habitat";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let db = Database::in_memory()?;
    match arguments.as_slice() {
        [path, query] => {
            load(&db, std::fs::File::open(path)?)?;
            print(&db.query(query, [])?);
        }
        _ => {
            load(&db, SAMPLE.as_bytes())?;
            print(&db.query(SAMPLE_QUERY, [])?);
        }
    }
    Ok(())
}

fn load(db: &Database, file: impl Read) -> Result<(), Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(file);
    let names = reader.headers()?.clone();
    let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let is_number = |place: usize| {
        let mut values = records.iter().filter_map(|record| record.get(place));
        values.all(|value| value.is_empty() || value.parse::<f64>().is_ok())
    };
    let columns = names.iter().enumerate().map(|(place, name)| {
        let kind = if is_number(place) { "DOUBLE" } else { "TEXT" };
        format!("`{}` {kind}", name.replace('`', "``"))
    });
    db.execute(&format!("CREATE TABLE csv ({})", columns.collect::<Vec<_>>().join(", ")), [])?;

    let marks = vec!["?"; names.len()].join(", ");
    let insert = format!("INSERT INTO csv VALUES ({marks})");
    // One transaction: all rows or none, and one sync.
    db.transaction(|tx| -> remora::Result<()> {
        for record in &records {
            let value = |text: &str| match text {
                "" => Value::Null,
                text => Value::Text(text.into()),
            };
            let values: Vec<Value> = record.iter().map(value).collect();
            tx.execute(&insert, values)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn print(rows: &Rows) {
    let names: Vec<&str> = rows.columns().iter().map(|column| column.name.as_str()).collect();
    println!("{}", names.join("\t"));
    for row in rows {
        let values: Vec<String> = row.values().iter().map(Value::to_string).collect();
        println!("{}", values.join("\t"));
    }
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
