//! Tables that refer to each other, so that the source changes rows that nobody named.

use super::Generator;

pub const TABLES: [&str; 3] = [
    "CREATE TABLE family_parents (id INT PRIMARY KEY, note VARCHAR(20)) ENGINE=InnoDB",
    "CREATE TABLE family_children (id INT PRIMARY KEY, parent INT, other INT, note VARCHAR(20),
     FOREIGN KEY (parent) REFERENCES family_parents (id) ON DELETE CASCADE ON UPDATE CASCADE,
     FOREIGN KEY (other) REFERENCES family_parents (id) ON DELETE SET NULL ON UPDATE SET NULL
     ) ENGINE=InnoDB",
    "CREATE TABLE family_pairs (child INT, place INT, note TEXT, PRIMARY KEY (child, place),
     FOREIGN KEY (child) REFERENCES family_children (id) ON DELETE CASCADE ON UPDATE CASCADE
     ) ENGINE=InnoDB",
];

/// Keys are below this, so that they meet.
const KEYS: usize = 25;

/// A transaction of a few changes.
pub fn change(generator: &mut Generator) {
    generator.run("START TRANSACTION");
    for _ in 0..1 + generator.random.below(5) {
        let statement = statement(generator);
        generator.run(&statement);
    }
    let end = if generator.random.chance(85) { "COMMIT" } else { "ROLLBACK" };
    generator.run(end);
}

fn statement(generator: &mut Generator) -> String {
    let mut key = || generator.random.below(KEYS);
    let (a, b, c) = (key(), key(), key());
    match generator.random.below(14) {
        0..=2 => format!("INSERT IGNORE INTO family_parents VALUES ({a}, 'p'), ({b}, 'q')"),
        3..=5 => format!("INSERT IGNORE INTO family_children VALUES ({a}, {b}, {c}, 'c')"),
        6..=7 => format!("INSERT IGNORE INTO family_pairs VALUES ({a}, {b}, 'x'), ({a}, {c}, 'y')"),
        8 => format!("DELETE FROM family_parents WHERE id = {a}"),
        9 => format!("DELETE FROM family_parents WHERE id BETWEEN {a} AND {a} + 3"),
        10 => format!("UPDATE IGNORE family_parents SET id = {a} WHERE id = {b}"),
        11 => format!("UPDATE IGNORE family_children SET id = {a}, note = 'moved' WHERE id = {b}"),
        12 => format!("UPDATE IGNORE family_children SET parent = {a}, other = {b} WHERE id = {c}"),
        _ => format!("DELETE FROM family_children WHERE id = {a}"),
    }
}
