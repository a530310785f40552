//! The five transactions of TPC-C, statement by statement.

use mysql::{Result, prelude::Queryable};

use super::{
    DISTRICTS,
    terminal::{Terminal, Transaction},
    values::money,
};

/// Runs one transaction; returns whether it committed.
pub fn run(terminal: &mut Terminal, kind: Transaction) -> Result<bool> {
    match kind {
        Transaction::NewOrder => new_order(terminal),
        Transaction::Payment => payment(terminal),
        Transaction::OrderStatus => order_status(terminal),
        Transaction::Delivery => delivery(terminal),
        Transaction::StockLevel => stock_level(terminal),
    }
}

/// An order line.
struct Line {
    item: u32,
    supplier: u32,
    quantity: u32,
}

fn new_order(terminal: &mut Terminal) -> Result<bool> {
    let (warehouse, district) = (terminal.warehouse, terminal.values.between(1, DISTRICTS));
    let customer = terminal.values.customer(terminal.scale.customers);
    let lines = lines(terminal);
    let connection = &mut terminal.connection;
    let (_, order): (String, u32) = first(connection.exec_first(
        "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
        (warehouse, district),
    )?)?;
    let _: (String, String) = first(connection.exec_first(
        "SELECT c_discount, w_tax FROM customer JOIN warehouse ON w_id = c_w_id
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        (warehouse, district, customer),
    )?)?;
    connection.exec_drop(
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
        (warehouse, district),
    )?;
    let local = lines.iter().all(|line| line.supplier == warehouse);
    connection.exec_drop(
        "INSERT INTO oorder (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
         VALUES (?, ?, ?, ?, NOW(), ?, ?)",
        (order, district, warehouse, customer, lines.len(), local),
    )?;
    connection.exec_drop(
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
        (order, district, warehouse),
    )?;
    for (number, line) in (1_u32..).zip(&lines) {
        if !order_line(terminal, (warehouse, district, order, number), line)? {
            terminal.connection.query_drop("ROLLBACK")?;
            return Ok(false);
        }
    }
    terminal.connection.query_drop("COMMIT")?;
    Ok(true)
}

/// The order's lines, in the order of their stock rows, to avoid deadlocks between terminals. One order in 100 has an
/// item that does not exist.
fn lines(terminal: &mut Terminal) -> Vec<Line> {
    let (scale, home) = (terminal.scale, terminal.warehouse);
    let values = &mut terminal.values;
    let mut lines: Vec<Line> = (0..values.between(5, 15))
        .map(|_| Line {
            item: values.item(scale.items),
            supplier: if values.chance(1) { values.between(1, scale.warehouses) } else { home },
            quantity: values.between(1, 10),
        })
        .collect();
    lines.sort_by_key(|line| (line.supplier, line.item));
    if values.chance(1)
        && let Some(last) = lines.last_mut()
    {
        last.item = scale.items + 1;
    }
    lines
}

/// Adds an order line; false if the item does not exist.
fn order_line(
    terminal: &mut Terminal,
    (warehouse, district, order, number): (u32, u32, u32, u32),
    line: &Line,
) -> Result<bool> {
    let connection = &mut terminal.connection;
    let price = connection.exec_first(
        "SELECT CAST(i_price * 100 AS SIGNED) FROM item WHERE i_id = ?",
        (line.item,),
    )?;
    let Some(cents): Option<u64> = price else { return Ok(false) };
    let (held, place): (u32, String) = first(connection.exec_first(
        format!(
            "SELECT s_quantity, s_dist_{district:02} FROM stock
             WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
        ),
        (line.supplier, line.item),
    )?)?;
    let left = if held >= line.quantity + 10 { held } else { held + 91 } - line.quantity;
    connection.exec_drop(
        "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1,
           s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
        (left, line.quantity, line.supplier != warehouse, line.supplier, line.item),
    )?;
    let amount = money(cents * u64::from(line.quantity));
    connection.exec_drop(
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
           ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            order,
            district,
            warehouse,
            number,
            line.item,
            line.supplier,
            line.quantity,
            amount,
            place,
        ),
    )?;
    Ok(true)
}

fn payment(terminal: &mut Terminal) -> Result<bool> {
    let (warehouse, district) = (terminal.warehouse, terminal.values.between(1, DISTRICTS));
    let amount = money(terminal.values.between(100, 500_000).into());
    let by_name = terminal.values.chance(60);
    let connection = &mut terminal.connection;
    connection.exec_drop(
        "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
        (&amount, warehouse, district),
    )?;
    connection
        .exec_drop("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", (&amount, warehouse))?;
    let customer = match by_name {
        true => customer_by_name(terminal, district)?,
        false => terminal.values.customer(terminal.scale.customers),
    };
    let connection = &mut terminal.connection;
    let (credit, data): (String, String) = first(connection.exec_first(
        "SELECT c_credit, c_data FROM customer
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
        (warehouse, district, customer),
    )?)?;
    let data = match credit.as_str() {
        "BC" => {
            let note = format!("{customer} {district} {warehouse} {amount} ");
            Some((note + &data).chars().take(500).collect::<String>())
        }
        _ => None,
    };
    connection.exec_drop(
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,
           c_payment_cnt = c_payment_cnt + 1, c_data = COALESCE(?, c_data)
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        (&amount, &amount, data, warehouse, district, customer),
    )?;
    connection.exec_drop(
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
         VALUES (?, ?, ?, ?, ?, NOW(), ?, 'payment')",
        (customer, district, warehouse, district, warehouse, &amount),
    )?;
    connection.query_drop("COMMIT")?;
    Ok(true)
}

/// The customer in the middle, by first name, of those with a random last name; a random customer
/// if there is none.
fn customer_by_name(terminal: &mut Terminal, district: u32) -> Result<u32> {
    let name = terminal.values.last_name(terminal.scale.customers);
    let found: Vec<u32> = terminal.connection.exec(
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
        (terminal.warehouse, district, name),
    )?;
    let middle = found.get(found.len().saturating_sub(1) / 2).copied();
    Ok(middle.unwrap_or_else(|| terminal.values.customer(terminal.scale.customers)))
}

fn order_status(terminal: &mut Terminal) -> Result<bool> {
    let (warehouse, district) = (terminal.warehouse, terminal.values.between(1, DISTRICTS));
    let customer = customer_by_name(terminal, district)?;
    let connection = &mut terminal.connection;
    let order: Option<u32> = connection.exec_first(
        "SELECT o_id FROM oorder WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?
         ORDER BY o_id DESC LIMIT 1",
        (warehouse, district, customer),
    )?;
    if let Some(order) = order {
        let _: Vec<(u32, String)> = connection.exec(
            "SELECT ol_i_id, ol_amount FROM order_line
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? ORDER BY ol_number",
            (warehouse, district, order),
        )?;
    }
    connection.query_drop("ROLLBACK")?;
    Ok(true)
}

fn delivery(terminal: &mut Terminal) -> Result<bool> {
    let (warehouse, carrier) = (terminal.warehouse, terminal.values.between(1, 10));
    let connection = &mut terminal.connection;
    for district in 1..=DISTRICTS {
        let oldest: Option<u32> = connection.exec_first(
            "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ?
             ORDER BY no_o_id LIMIT 1 FOR UPDATE",
            (warehouse, district),
        )?;
        let Some(order) = oldest else { continue };
        let this = (warehouse, district, order);
        connection.exec_drop(
            "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            this,
        )?;
        let customer: u32 = first(connection.exec_first(
            "SELECT o_c_id FROM oorder WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            this,
        )?)?;
        connection.exec_drop(
            "UPDATE oorder SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            (carrier, warehouse, district, order),
        )?;
        connection.exec_drop(
            "UPDATE order_line SET ol_delivery_d = NOW()
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            this,
        )?;
        let amount: String = first(connection.exec_first(
            "SELECT CAST(SUM(ol_amount) AS CHAR) FROM order_line
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            this,
        )?)?;
        connection.exec_drop(
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            (amount, warehouse, district, customer),
        )?;
    }
    connection.query_drop("COMMIT")?;
    Ok(true)
}

fn stock_level(terminal: &mut Terminal) -> Result<bool> {
    let (warehouse, district) = (terminal.warehouse, terminal.values.between(1, DISTRICTS));
    let threshold = terminal.values.between(10, 20);
    let connection = &mut terminal.connection;
    let _: u64 = first(connection.exec_first(
        "SELECT COUNT(DISTINCT s_i_id) FROM district
           JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id
             AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id
           JOIN stock ON s_w_id = d_w_id AND s_i_id = ol_i_id
         WHERE d_w_id = ? AND d_id = ? AND s_quantity < ?",
        (warehouse, district, threshold),
    )?)?;
    connection.query_drop("ROLLBACK")?;
    Ok(true)
}

/// A row that must exist.
fn first<T>(row: Option<T>) -> Result<T> {
    row.ok_or_else(|| std::io::Error::other("a row that TPC-C needs is not there").into())
}
