//! A table with many of the types side by side, with columns the server computes, filled with
//! random rows out of the cases, changed and deleted at random.

use mysql::Conn;

use super::{execute, follow::Followed, table};

const ROWS: u64 = 300;
/// Every run takes the same way.
pub const SEED: u64 = 88_172_645_463_325_252;

/// A small generator, so that a failing run can be repeated.
pub struct Random(pub u64);

impl Random {
    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }
}

pub fn fill(connection: &mut Conn, cases: &[(String, Vec<String>)], followed: &mut Followed) {
    let mut random = Random(SEED);
    // Rows have at most 65,535 bytes and 1,017 columns.
    let chosen: Vec<_> = cases.iter().filter(|(column, _)| column.len() < 60).step_by(2).collect();
    let columns: Vec<_> =
        chosen.iter().enumerate().map(|(at, (column, _))| format!("c{at} {column}")).collect();
    let declared = columns.join(", ");
    let places: Vec<_> = (0..chosen.len()).map(|at| format!("c{at}")).collect();
    let names = format!("a, {}, b", places.join(", "));
    execute(
        connection,
        &format!(
            "CREATE TABLE wide (a INT, {declared}, b VARCHAR(20) NOT NULL, PRIMARY KEY (b, a)) \
             ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4"
        ),
    );
    for id in 0..ROWS {
        let mut value = |(_, values): &&(String, Vec<String>)| match random.below(8) {
            0 => "NULL".to_owned(),
            _ => values[random.below(values.len())].clone(),
        };
        // A row's long values lie outside of its page, but each leaves something in it.
        let values: Vec<_> = chosen.iter().map(&mut value).map(shortened).collect();
        let values = values.join(", ");
        execute(
            connection,
            &format!("INSERT INTO wide ({names}) VALUES ({id}, {values}, 'k{}')", id % 7),
        );
    }
    for _ in 0..ROWS {
        let at = random.below(chosen.len());
        let values = &chosen[at].1;
        let value = shortened(values[random.below(values.len())].clone());
        let id = random.below(ROWS as usize);
        execute(connection, &format!("UPDATE wide SET c{at} = {value} WHERE a = {id}"));
    }
    execute(connection, "UPDATE wide SET b = UPPER(b) WHERE a % 3 = 0");
    execute(connection, "DELETE FROM wide WHERE a % 5 = 0");
    followed.add(table(connection, "wide"));
}

fn shortened(value: String) -> String {
    if value.starts_with("REPEAT") || value.contains("CONCAT") { "NULL".to_owned() } else { value }
}
