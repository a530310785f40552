//! The initial contents of the tables.

use anyhow::Result;
use mysql::{Conn, prelude::Queryable};

use super::{
    Connect, DISTRICTS, Scale,
    schema::TABLES,
    values::{Values, last_name, money},
};

/// Rows per INSERT.
const ROWS: usize = 500;
/// The timestamp of all initial rows.
const BEGINNING: &str = "2026-01-01 00:00:00";

/// Creates and fills the tables.
pub fn load(connect: Connect<'_>, scale: Scale) -> Result<()> {
    let mut connection = connect()?;
    for table in TABLES {
        connection.query_drop(format!("{table} ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"))?;
    }
    let mut values = Values::new(1);
    connection.query_drop("SET autocommit = 0")?;
    items(&mut connection, &mut values, scale)?;
    for warehouse in 1..=scale.warehouses {
        fill_warehouse(&mut connection, &mut values, scale, warehouse)?;
    }
    let names =
        "warehouse, district, customer, history, new_order, oorder, order_line, item, stock";
    connection.query_drop(format!("ANALYZE TABLE {names}"))?;
    Ok(())
}

/// Rows of one table, inserted in batches.
struct Rows<'c> {
    connection: &'c mut Conn,
    insert: &'static str,
    sql: String,
    count: usize,
}

impl<'c> Rows<'c> {
    fn new(connection: &'c mut Conn, insert: &'static str) -> Self {
        Self { connection, insert, sql: String::new(), count: 0 }
    }

    /// Adds a row: values without the parentheses.
    fn add(&mut self, values: std::fmt::Arguments<'_>) -> Result<()> {
        use std::fmt::Write;
        let before = if self.count == 0 { self.insert } else { "," };
        write!(self.sql, "{before} ({values})")?;
        self.count += 1;
        if self.count == ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if self.count > 0 {
            self.connection.query_drop(&self.sql)?;
            self.sql.clear();
            self.count = 0;
        }
        Ok(())
    }
}

fn items(connection: &mut Conn, values: &mut Values, scale: Scale) -> Result<()> {
    let mut rows = Rows::new(connection, "INSERT INTO item VALUES");
    for item in 1..=scale.items {
        let (name, data) = (values.letters(14, 24), values.data(26, 50));
        let (price, image) = (values.between(100, 10_000), values.between(1, 10_000));
        rows.add(format_args!("{item},'{name}',{},'{data}',{image}", money(price.into())))?;
    }
    rows.write()
}

fn fill_warehouse(
    connection: &mut Conn,
    values: &mut Values,
    scale: Scale,
    warehouse: u32,
) -> Result<()> {
    let tens = u64::from(scale.customers) * 1_000;
    let (address, tax) = (address(values), values.between(0, 2_000));
    let name = values.letters(6, 10);
    connection.query_drop(format!(
        "INSERT INTO warehouse VALUES
         ({warehouse},{},0.{tax:04},'{name}',{address})",
        money(tens * u64::from(DISTRICTS))
    ))?;
    stock(connection, values, scale, warehouse)?;
    connection.query_drop("COMMIT")?;
    for district in 1..=DISTRICTS {
        let (address, tax) = (self::address(values), values.between(0, 2_000));
        let (name, next) = (values.letters(6, 10), scale.customers + 1);
        connection.query_drop(format!(
            "INSERT INTO district VALUES
             ({warehouse},{district},{},0.{tax:04},{next},'{name}',{address})",
            money(tens)
        ))?;
        customers(connection, values, scale, (warehouse, district))?;
        orders(connection, values, scale, (warehouse, district))?;
        connection.query_drop("COMMIT")?;
    }
    Ok(())
}

/// Streets, city, state and postal code.
fn address(values: &mut Values) -> String {
    let mut text = || values.letters(10, 20);
    let (one, two, city) = (text(), text(), text());
    let (state, zip) = (values.letters(2, 2), values.digits(4));
    format!("'{one}','{two}','{city}','{state}','{zip}11111'")
}

fn stock(connection: &mut Conn, values: &mut Values, scale: Scale, warehouse: u32) -> Result<()> {
    let mut rows = Rows::new(connection, "INSERT INTO stock VALUES");
    for item in 1..=scale.items {
        let (quantity, data) = (values.between(10, 100), values.data(26, 50));
        let places: Vec<String> = (0..10).map(|_| values.letters(24, 24)).collect();
        let places = places.join("','");
        rows.add(format_args!("{warehouse},{item},{quantity},0,0,0,'{data}','{places}'"))?;
    }
    rows.write()
}

fn customers(
    connection: &mut Conn,
    values: &mut Values,
    scale: Scale,
    (warehouse, district): (u32, u32),
) -> Result<()> {
    let mut rows = Rows::new(connection, "INSERT INTO customer VALUES");
    for customer in 1..=scale.customers {
        let last = match customer {
            ..=1_000 => last_name(customer - 1),
            _ => values.last_name(scale.customers),
        };
        let (discount, first) = (values.between(0, 5_000), values.letters(8, 16));
        let credit = if values.chance(10) { "BC" } else { "GC" };
        let (address, phone, data) = (address(values), values.digits(16), values.letters(300, 500));
        rows.add(format_args!(
            "{warehouse},{district},{customer},0.{discount:04},'{credit}','{last}','{first}',50000,
             -10,10,1,0,{address},'{phone}','{BEGINNING}','OE','{data}'"
        ))?;
    }
    rows.write()?;
    let insert =
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount,
                  h_data) VALUES";
    let mut rows = Rows::new(connection, insert);
    for customer in 1..=scale.customers {
        let data = values.letters(12, 24);
        rows.add(format_args!(
            "{customer},{district},{warehouse},{district},{warehouse},'{BEGINNING}',10,'{data}'"
        ))?;
    }
    rows.write()
}

fn orders(
    connection: &mut Conn,
    values: &mut Values,
    scale: Scale,
    (warehouse, district): (u32, u32),
) -> Result<()> {
    // Every customer has one order; the assignment is random.
    let mut customers: Vec<u32> = (1..=scale.customers).collect();
    for place in (1..customers.len()).rev() {
        customers.swap(place, values.between(0, place as u32) as usize);
    }
    let lines: Vec<u32> = customers.iter().map(|_| values.between(5, 15)).collect();
    let orders = || (1..).zip(customers.iter().zip(&lines));
    let mut rows = Rows::new(connection, "INSERT INTO oorder VALUES");
    for (order, (customer, lines)) in orders() {
        let carrier = match order <= scale.delivered() {
            true => values.between(1, 10).to_string(),
            false => "NULL".to_owned(),
        };
        rows.add(format_args!(
            "{warehouse},{district},{order},{customer},{carrier},{lines},1,'{BEGINNING}'"
        ))?;
    }
    rows.write()?;
    let mut rows = Rows::new(connection, "INSERT INTO new_order VALUES");
    for order in scale.delivered() + 1..=scale.customers {
        rows.add(format_args!("{warehouse},{district},{order}"))?;
    }
    rows.write()?;
    let mut rows = Rows::new(connection, "INSERT INTO order_line VALUES");
    for (order, (_, lines)) in orders() {
        for line in 1..=*lines {
            let (item, place) = (values.between(1, scale.items), values.letters(24, 24));
            let (delivered, cents) = match order <= scale.delivered() {
                true => (format!("'{BEGINNING}'"), 0),
                false => ("NULL".to_owned(), values.between(1, 999_999)),
            };
            rows.add(format_args!(
                "{warehouse},{district},{order},{line},{item},{delivered},{},{warehouse},5,
                 '{place}'",
                money(cents.into())
            ))?;
        }
    }
    rows.write()
}
