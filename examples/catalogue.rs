//! A catalogue of products: a search box, filters with their counts, and pages, as a shop shows them.
//! `cargo run --example catalogue -- lamp "brand = 'Reef'"`

use remora::{Database, Result, Table};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
struct Product {
    id: u32,
    name: String,
    brand: &'static str,
    colour: &'static str,
    price: f64,
}

#[derive(Debug, Deserialize)]
struct Shown {
    name: String,
    price: f64,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let db = Database::in_memory()?;
    let products = filled(&db)?;
    let text = arguments.first().map_or("lamp", String::as_str);
    let filter = arguments.get(1).map_or("price BETWEEN 100 AND 250", String::as_str);
    show(&products, text, filter)
}

fn filled(db: &Database) -> Result<Table> {
    let products = db.create_table("products", |t| {
        t.uint("id")
            .key()
            .text("name")
            .short_text("brand")
            .required()
            .short_text("colour")
            .decimal("price", 10, 2)
            .index(["brand", "price"])
    })?;
    let kinds = ["Desk lamp", "Floor lamp", "Mirror", "Lampshade, woven"];
    let brands = ["Kelp", "Reef", "Shore"];
    let colours = ["sand", "coral", "blue", "white", "black"];
    // One durable step, whatever there is of them.
    products.insert_many((0..10_000_usize).map(|id| Product {
        id: id as u32,
        name: format!("{} no. {id}", kinds[id % kinds.len()]),
        brand: brands[id / 7 % brands.len()],
        colour: colours[id / 3 % colours.len()],
        price: 20.0 + (id * 37 % 480) as f64 + 0.95,
    }))?;
    Ok(products)
}

fn show(products: &Table, text: &str, filter: &str) -> Result<()> {
    let search = products.search(text).filter(filter);
    let page = search.facet("brand").facet_of("colour", 3).order_by("price").limit(5).run()?;
    println!("{} products have {text:?} and {filter}", page.total);
    for facet in &page.facets {
        let values = facet.values.iter().map(|(value, rows)| format!("{value} ({rows})"));
        println!("  {}: {}", facet.column, values.collect::<Vec<_>>().join(", "));
    }
    for product in page.deserialize::<Shown>()? {
        println!("  {:8.2}  {}", product.price, product.name);
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<()> {
    show(&filled(&Database::in_memory()?)?, "lamp", "colour = 'coral'")
}
