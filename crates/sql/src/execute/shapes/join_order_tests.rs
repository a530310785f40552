//! The order of joins that the planner chooses: the rows are those of the order in the text, which STRAIGHT_JOIN keeps.

use std::fmt::Write;

use super::tests::{Fixture, fixture};

/// Random numbers of a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The rows of each table.
const SIZES: [u64; 5] = [100, 30, 60, 6, 40];

fn tables(random: &mut Random) -> Fixture {
    let mut fixture = fixture();
    for (number, rows) in SIZES.iter().enumerate() {
        fixture.run(&format!(
            "CREATE TABLE shop.j{number} (id INT PRIMARY KEY, a INT, b BIGINT UNSIGNED, t VARCHAR(9), KEY (a), KEY (t, b))"
        ));
        let rows = (0..*rows).map(|id| {
            let a =
                if random.chance(10) { "NULL".to_owned() } else { random.below(25).to_string() };
            let b = if random.chance(10) { "NULL".to_owned() } else { random.below(9).to_string() };
            let t = random.one(&["NULL", "'x'", "'X'", "'y'", "'É'", "'e'", "'zz'", "'z'"]);
            format!("({id}, {a}, {b}, {t})")
        });
        let rows: Vec<String> = rows.collect();
        fixture.run(&format!("INSERT INTO shop.j{number} VALUES {}", rows.join(", ")));
    }
    fixture
}

/// An equality of two relations.
fn equality(random: &mut Random, of: u64, with: u64) -> String {
    let numbers = ["id", "a", "b"];
    match random.below(8) {
        0 => format!("r{of}.t = r{with}.t"),
        1 => format!("r{of}.a + 1 = r{with}.{}", random.one(&numbers)),
        2 => format!("r{of}.id = r{with}.id + r{with}.b"),
        _ => format!("r{of}.{} = r{with}.{}", random.one(&numbers), random.one(&numbers)),
    }
}

/// A statement without its SELECT.
fn statement(random: &mut Random) -> String {
    let relations = 3 + random.below(3);
    let sums: Vec<String> =
        (0..relations).map(|at| format!("SUM(r{at}.id * {})", at + 3)).collect();
    let mut text = format!("COUNT(*), {} FROM ", sums.join(", "));
    let mut conditions = Vec::new();
    for at in 0..relations {
        let table = random.below(SIZES.len() as u64);
        let relation = match random.below(9) {
            0 => format!("(SELECT id, a, b, t FROM shop.j{table} WHERE b < 7) r{at}"),
            1 => format!(
                "(SELECT a AS id, a, MAX(b) AS b, MIN(t) AS t FROM shop.j{table} GROUP BY a) r{at}"
            ),
            _ => format!("shop.j{table} r{at}"),
        };
        if at == 0 {
            text += &relation;
            continue;
        }
        let mut on = match random.below(6) {
            0 if at > 1 => format!("r{at}.id = r0.b + r{}.a", at - 1),
            _ => equality(random, at, random.0 % at),
        };
        for _ in 0..random.below(3) {
            let with = random.below(at);
            let more = match random.below(3) {
                0 => format!("r{at}.b <= r{with}.a"),
                1 => format!("r{at}.id <> r{with}.id"),
                _ => equality(random, at, with),
            };
            write!(on, " AND {more}").unwrap();
        }
        match random.below(8) {
            0 => {
                write!(text, ", {relation}").unwrap();
                conditions.push(on);
            }
            1 => write!(text, " LEFT JOIN {relation} ON {on}").unwrap(),
            _ => write!(text, " JOIN {relation} ON {on}").unwrap(),
        }
    }
    // A comma binds less than JOIN.
    let text = text.replace(", shop", " CROSS JOIN shop").replace(", (", " CROSS JOIN (");
    for at in 0..relations {
        match random.below(6) {
            0 => conditions.push(format!("r{at}.id < {}", random.below(30))),
            1 => conditions.push(format!("r{at}.a IN (1, 2, {})", random.below(20))),
            2 => conditions.push(format!(
                "r{at}.id IN (SELECT a FROM shop.j1 WHERE b <> {})",
                random.below(9)
            )),
            3 => conditions.push(format!("(r{at}.b = 1 OR r0.a < 20)")),
            _ => {}
        }
    }
    match conditions.is_empty() {
        true => text,
        false => format!("{text} WHERE {}", conditions.join(" AND ")),
    }
}

#[test]
fn joins_in_any_order_return_the_rows_of_the_written_order() {
    let (mut found, mut reordered) = (0, 0);
    for seed in 1..=4_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut fixture = tables(&mut random);
        for _ in 0..15 {
            let text = statement(&mut random);
            let free = format!("SELECT {text}");
            let straight = format!("SELECT STRAIGHT_JOIN {text}");
            let chosen = fixture.general(&free);
            assert_eq!(chosen.rows, fixture.general(&straight).rows, "seed {seed}: {text}");
            found += usize::from(chosen.rows[0][1] != "Null");
            let order = fixture.planned_tables(&free);
            reordered += usize::from(order != fixture.planned_tables(&straight));
        }
    }
    assert!(found > 2 && reordered > 0, "{found} found rows, {reordered} in another order");
}

#[test]
fn joins_begin_with_the_fewest_rows() {
    let mut fixture = fixture();
    for (table, columns, rows) in [
        ("users", "name VARCHAR(9)", 5_000_u64),
        ("orders", "user INT, made INT, KEY (user)", 30_000),
        ("items", "orders INT, product INT, KEY (orders)", 60_000),
        ("payments", "orders INT, method VARCHAR(9), KEY (method)", 30_000),
    ] {
        fixture.run(&format!("CREATE TABLE shop.{table} (id INT PRIMARY KEY, {columns})"));
        for from in (0..rows).step_by(5_000) {
            let rows: Vec<String> = (from..from + 5_000)
                .map(|id| match table {
                    "users" => format!("({id}, 'n{id}')"),
                    "orders" => format!("({id}, {}, {id})", id % 5_000),
                    "items" => format!("({id}, {}, {})", id / 2, id % 700),
                    _ => {
                        format!("({id}, {id}, '{}')", if id % 10 == 0 { "invoice" } else { "card" })
                    }
                })
                .collect();
            fixture.run(&format!("INSERT INTO shop.{table} VALUES {}", rows.join(", ")));
        }
    }
    let text = "COUNT(*), SUM(i.product) FROM shop.users u JOIN shop.orders o ON o.user = u.id \
                JOIN shop.items i ON i.orders = o.id JOIN shop.payments p ON p.orders = o.id WHERE p.method = 'invoice'";
    let chosen = fixture.general(&format!("SELECT {text}"));
    assert_eq!(chosen.rows, fixture.general(&format!("SELECT STRAIGHT_JOIN {text}")).rows);
    let order = fixture.planned_tables(&format!("SELECT {text}"));
    assert_eq!(order, ["p", "o", "u", "i"]);
    // Which side of a join is read first is still chosen by the numbers of rows.
    let written = fixture.planned_tables(&format!("SELECT STRAIGHT_JOIN {text}"));
    assert_eq!(written, ["p", "u", "o", "i"]);
}

#[test]
fn equalities_of_several_tables_hold_in_any_order() {
    let mut fixture = fixture();
    fixture.run("CREATE TABLE shop.a (id INT PRIMARY KEY, x INT)");
    fixture.run("CREATE TABLE shop.b (id INT PRIMARY KEY, y INT)");
    fixture.run("CREATE TABLE shop.f (id INT PRIMARY KEY, a INT, z INT, KEY (a))");
    let pairs: Vec<String> = (0..1_000).map(|id| format!("({id}, {id})")).collect();
    for table in ["a", "b"] {
        fixture.run(&format!("INSERT INTO shop.{table} VALUES {}", pairs.join(", ")));
    }
    let facts: Vec<String> =
        (0..20_000).map(|id| format!("({id}, {}, {})", id % 200, id / 200)).collect();
    fixture.run(&format!("INSERT INTO shop.f VALUES {}", facts.join(", ")));
    for joins in [
        "shop.f JOIN shop.a ON f.a = a.id JOIN shop.b ON f.z = a.x + b.y",
        "shop.a CROSS JOIN shop.b JOIN shop.f ON f.a = a.id AND f.z = a.x + b.y",
        "shop.a, shop.b, shop.f WHERE f.a = a.id AND f.z = a.x + b.y AND TRUE",
    ] {
        let further = if joins.contains("WHERE") { "AND" } else { "WHERE" };
        let found = fixture
            .general(&format!("SELECT COUNT(*) FROM {joins} {further} a.id = 1 AND b.id = 2"));
        assert_eq!(found.rows, [["Int(1)"]], "{joins}");
    }
}
