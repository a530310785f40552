//! TPC-C's twelve consistency conditions, each as a query that counts the violations.

use anyhow::{Context, Result};
use mysql::{Conn, prelude::Queryable};

/// The eleventh condition holds only until the first write.
const FRESH_ONLY: usize = 11;

/// The conditions, in TPC-C's order.
pub const CONDITIONS: [&str; 12] = [
    // A warehouse's year-to-date amount is the sum of its districts' amounts.
    "SELECT COUNT(*) FROM (
       SELECT w_id FROM warehouse JOIN district ON d_w_id = w_id
       GROUP BY w_id, w_ytd HAVING w_ytd <> SUM(d_ytd)) x",
    // The number of a district's next order follows that of its newest order and of its newest new
    // order, if it has any.
    "SELECT COUNT(*) FROM district
       JOIN (SELECT o_w_id, o_d_id, MAX(o_id) newest FROM oorder GROUP BY o_w_id, o_d_id) o
         ON o_w_id = d_w_id AND o_d_id = d_id
       LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) waiting FROM new_order
                  GROUP BY no_w_id, no_d_id) n
         ON no_w_id = d_w_id AND no_d_id = d_id
     WHERE d_next_o_id - 1 <> newest OR d_next_o_id - 1 <> COALESCE(waiting, newest)",
    // New orders have no gaps.
    "SELECT COUNT(*) FROM (
       SELECT no_w_id FROM new_order GROUP BY no_w_id, no_d_id
       HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) x",
    // A district's orders state as many lines as it has.
    "SELECT COUNT(*) FROM
       (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) said FROM oorder GROUP BY o_w_id, o_d_id) o
       JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) lines_ FROM order_line GROUP BY ol_w_id, ol_d_id) l
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id
     WHERE said <> lines_",
    // An order without a carrier is a new one.
    "SELECT COUNT(*) FROM oorder
       LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
     WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    // An order states as many lines as it has.
    "SELECT COUNT(*) FROM oorder
       LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) lines_ FROM order_line
                  GROUP BY ol_w_id, ol_d_id, ol_o_id) l
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
     WHERE o_ol_cnt <> COALESCE(lines_, 0)",
    // Lines are delivered when their order has a carrier.
    "SELECT COUNT(*) FROM order_line
       JOIN oorder ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
     WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    // A warehouse's year-to-date amount is the sum of its payments.
    "SELECT COUNT(*) FROM warehouse
       JOIN (SELECT h_w_id, SUM(h_amount) paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id
     WHERE w_ytd <> paid",
    // A district's year-to-date amount is the sum of its payments.
    "SELECT COUNT(*) FROM district
       JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) paid FROM history GROUP BY h_w_id, h_d_id) h
         ON h_w_id = d_w_id AND h_d_id = d_id
     WHERE d_ytd <> paid",
    // A customer's balance is what was delivered minus what was paid.
    "SELECT COUNT(*) FROM customer
       LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) delivered FROM oorder
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                  WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
       LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) paid FROM history
                  GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
     WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)",
    // Seven in ten of the initial orders are delivered.
    "SELECT COUNT(*) FROM
       (SELECT o_w_id, o_d_id, COUNT(*) orders_ FROM oorder GROUP BY o_w_id, o_d_id) o
       JOIN (SELECT no_w_id, no_d_id, COUNT(*) waiting FROM new_order
             GROUP BY no_w_id, no_d_id) n
         ON no_w_id = o_w_id AND no_d_id = o_d_id
     WHERE orders_ - waiting <> FLOOR(orders_ * 7 / 10)",
    // A customer's balance plus what was paid is what was delivered.
    "SELECT COUNT(*) FROM customer
       LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) delivered FROM oorder
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                  WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
     WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)",
];

/// The numbers of the violated conditions, each with its number of violating rows.
pub fn broken_conditions(connection: &mut Conn, fresh: bool) -> Result<Vec<(usize, u64)>> {
    let mut broken = Vec::new();
    for (number, condition) in (1..).zip(CONDITIONS) {
        if number == FRESH_ONLY && !fresh {
            continue;
        }
        let rows = connection.query_first(condition)?;
        let rows: u64 = rows.with_context(|| format!("condition {number} gave nothing"))?;
        if rows > 0 {
            broken.push((number, rows));
        }
    }
    Ok(broken)
}
