//! Rows that a foreign key changes.

use remora_peers::Kind;
use remora_source::mysql::TableState;

use crate::pair::Pair;

const TABLES: [&str; 7] = [
    "CREATE TABLE parents (id INT PRIMARY KEY, code VARCHAR(9) NOT NULL, UNIQUE (code))",
    "CREATE TABLE children (id INT PRIMARY KEY, parent INT, note VARCHAR(20), KEY (parent),
     FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE orphans (id INT PRIMARY KEY, code VARCHAR(9), KEY (code),
     FOREIGN KEY (code) REFERENCES parents (code) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE grandchildren (child INT, place INT, note TEXT, PRIMARY KEY (child, place),
     FOREIGN KEY (child) REFERENCES children (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO parents VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')",
    "INSERT INTO children VALUES (10, 1, 'a'), (11, 1, 'b'), (20, 2, 'c'), (30, 3, 'd'), (90, NULL, 'e')",
    "INSERT INTO grandchildren VALUES (10, 1, 'x'), (10, 2, 'y'), (20, 1, 'z'), (30, 1, 'w')",
];

/// Deletes and changes of what others refer to, alone and among other changes.
const CHANGES: [&str; 34] = [
    "DELETE FROM parents WHERE id = 1",
    "UPDATE parents SET id = 300 WHERE id = 3",
    "UPDATE parents SET code = 'TWO' WHERE id = 2",
    "START TRANSACTION",
    "INSERT INTO parents VALUES (5, 'five'), (6, 'six')",
    "INSERT INTO children VALUES (50, 5, 'f'), (51, 5, 'g'), (60, 6, 'h')",
    "INSERT INTO grandchildren VALUES (50, 1, 'in the same transaction'), (60, 1, 'i')",
    "UPDATE children SET parent = 6 WHERE id = 51",
    "DELETE FROM children WHERE id = 60",
    "DELETE FROM parents WHERE id = 5",
    "UPDATE parents SET id = id + 1000 WHERE id = 6",
    "COMMIT",
    "START TRANSACTION",
    "DELETE FROM parents WHERE id = 300",
    "ROLLBACK",
    "UPDATE children SET id = id + 100 WHERE id = 30",
    "SET foreign_key_checks = 0",
    "INSERT INTO parents VALUES (7, 'seven')",
    "INSERT INTO children VALUES (70, 7, 'stays')",
    "DELETE FROM parents WHERE id = 7",
    "SET foreign_key_checks = 1",
    "CREATE TABLE tree (id INT PRIMARY KEY, up INT, note TEXT,
     FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)",
    "INSERT INTO tree VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'c'), (5, 4, 'd')",
    "INSERT INTO tree VALUES (6, NULL, 'other'), (7, 6, 'e')",
    "DELETE FROM tree WHERE id = 2",
    "DELETE FROM tree WHERE up IS NULL AND id = 6",
    "RENAME TABLE parents TO elders",
    "DELETE FROM elders WHERE id = 300",
    "ALTER TABLE elders CHANGE id number INT NOT NULL",
    "INSERT INTO elders VALUES (8, 'eight')",
    "INSERT INTO children VALUES (80, 8, 'j'), (81, 8, 'k')",
    "INSERT INTO grandchildren VALUES (80, 1, 'l')",
    "DELETE FROM elders",
    "DELETE FROM tree",
];

fn cascades_are_followed(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    pair.run("INSERT INTO orphans VALUES (1, 'one'), (2, 'two'), (3, 'two'), (4, NULL)");
    pair.compare();
    let mut open = false;
    for statement in CHANGES {
        println!("{statement}");
        pair.run(statement);
        open =
            statement == "START TRANSACTION" || open && !matches!(statement, "COMMIT" | "ROLLBACK");
        if !open {
            pair.compare();
        }
    }
}

/// Copies of what is changed so are made while it is, and go on after a restart.
fn cascades_and_copies_meet(kind: Kind) {
    let mut pair = Pair::start_with(kind, &[], &TABLES, |settings| {
        settings.chunk_rows = 50;
        settings.copy_rows_per_second = Some(2_000);
    });
    pair.compare();
    let rows = |from: usize, to: usize, row: fn(usize) -> String| {
        (from..to).map(row).collect::<Vec<_>>().join(", ")
    };
    let parents = rows(1_000, 1_500, |id| format!("({id}, 'p{id}')"));
    let children = rows(0, 3_000, |id| format!("({}, {}, 'x')", 10_000 + id, 1_000 + id % 500));
    let grandchildren = rows(0, 3_000, |id| format!("({}, 1, 'y')", 10_000 + id));
    pair.run(&format!("INSERT INTO parents VALUES {parents}"));
    pair.run(&format!("INSERT INTO children VALUES {children}"));
    pair.run(&format!("INSERT INTO grandchildren VALUES {grandchildren}"));
    pair.move_to(tempfile::tempdir().unwrap());
    pair.follower = None;
    pair.database = None;
    pair.open();
    for id in 1_000..1_200 {
        match id % 3 {
            0 => pair.run(&format!("UPDATE parents SET id = id + 5000 WHERE id = {id}")),
            1 => pair.run(&format!("DELETE FROM parents WHERE id = {id}")),
            _ => pair.run(&format!("UPDATE parents SET code = 'q{id}' WHERE id = {id}")),
        }
        if id == 1_100 {
            pair.close();
            pair.open();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    pair.compare();
    pair.follower().sync("shop.children").unwrap();
    for id in 1_200..1_300 {
        pair.run(&format!("DELETE FROM parents WHERE id = {id}"));
    }
    pair.compare();
}

/// Without the other table nobody can tell which rows changed, and that is said.
fn a_parent_that_is_not_followed_is_asked_for(kind: Kind) {
    let mut pair = Pair::start_with(kind, &[], &TABLES, |settings| {
        settings.tables = vec!["children".to_owned(), "orphans".to_owned()];
    });
    pair.run("INSERT INTO orphans VALUES (1, 'one'), (2, 'two')");
    pair.run("UPDATE children SET note = 'still followed' WHERE id = 10");
    pair.run("INSERT INTO parents VALUES (9, 'nine')");
    pair.catch_up();
    pair.compare_table("children");
    pair.run("DELETE FROM parents WHERE id = 1");
    for table in ["children", "orphans"] {
        pair.wait("a word", |_| match pair.state(table) {
            Some(TableState::Stopped(reason)) => reason.contains("follow shop.parents too"),
            _ => false,
        });
    }
    assert_eq!(pair.rows("children").len(), 5);
    pair.close();
    pair.settings.tables.push("parents".to_owned());
    pair.open();
    pair.catch_up();
    for table in ["children", "orphans", "parents"] {
        pair.compare_table(table);
    }
    pair.run("DELETE FROM parents WHERE id = 2");
    pair.catch_up();
    pair.compare_table("children");
}

/// Nor can anyone tell where the other table's rows change so in turn, with a followed one or not.
fn a_chain_through_a_table_that_is_not_followed_is_refused(kind: Kind) {
    let tables = [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE q (id INT PRIMARY KEY, p INT, \
         FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "CREATE TABLE r (id INT PRIMARY KEY, q INT, \
         FOREIGN KEY (q) REFERENCES q (id) ON DELETE CASCADE)",
    ];
    let mut pair = Pair::start_with(kind, &[], &tables, |settings| {
        settings.tables = vec!["p".to_owned(), "r".to_owned()];
    });
    let is_refused = |pair: &Pair| match pair.state("r") {
        Some(TableState::Refused(reason)) => reason.contains("follow shop.q too"),
        _ => false,
    };
    pair.wait("a word", |_| is_refused(&pair));
    pair.run("ALTER TABLE q DROP FOREIGN KEY q_ibfk_1");
    pair.run("ALTER TABLE r COMMENT 'look again'");
    pair.run("INSERT INTO q VALUES (1, 1)");
    pair.run("INSERT INTO r VALUES (1, 1)");
    pair.catch_up();
    pair.compare_table("r");
    pair.run("INSERT INTO p VALUES (1)");
    pair.run("ALTER TABLE q ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE");
    pair.wait("another word", |_| match pair.state("r") {
        Some(TableState::Stopped(reason)) => reason.contains("follow shop.q too"),
        _ => false,
    });
}

/// It is unknown which rows of the second table changed, so nobody knows which of the tables behind it did.
fn tables_behind_unknown_changes_are_copied_too(kind: Kind) {
    let mut pair = Pair::start(kind, &CHAINS);
    pair.compare();
    for statements in UNKNOWN_CHANGES {
        for statement in statements.split("; ") {
            println!("{statement}");
            pair.run(statement);
        }
        pair.compare();
    }
}

/// Columns that are set to NULL change nothing in the tables that reference other columns, so these are not copied. Of a
/// parent that had another name a moment ago no action is applied.
fn tables_behind_columns_that_are_not_referenced_stay(kind: Kind) {
    let tables = [
        "CREATE TABLE users (id VARCHAR(9) PRIMARY KEY)",
        "CREATE TABLE posts (id INT PRIMARY KEY, author VARCHAR(9),
         FOREIGN KEY (author) REFERENCES users (id) ON DELETE SET NULL)",
        "CREATE TABLE comments (id INT PRIMARY KEY, post INT,
         FOREIGN KEY (post) REFERENCES posts (id) ON DELETE CASCADE)",
        "INSERT INTO users VALUES ('a'), ('b')",
        "INSERT INTO posts VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO comments VALUES (1, 1), (2, 2)",
        "CREATE TABLE one (id INT PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TABLE of_one (id INT PRIMARY KEY, one INT,
         FOREIGN KEY (one) REFERENCES one (id) ON DELETE CASCADE)",
        "INSERT INTO one VALUES (1), (2)",
        "INSERT INTO other VALUES (1), (2)",
        "INSERT INTO of_one VALUES (1, 1), (2, 2)",
    ];
    let mut pair = Pair::start(kind, &tables);
    pair.compare();
    let copied = |pair: &Pair, name: &str| {
        let tables = pair.status().tables;
        let table = tables.iter().find(|table| table.table == name).unwrap();
        table.copied.as_ref().map(|copied| copied.times)
    };
    let before = copied(&pair, "shop.comments");
    pair.run("DELETE FROM users WHERE id = 'a'");
    pair.compare();
    assert_eq!(copied(&pair, "shop.comments"), before);
    for _ in 0..3 {
        pair.run("RENAME TABLE one TO t, other TO one, t TO other");
        pair.run("DELETE FROM one WHERE id = 1");
        pair.run("INSERT INTO one VALUES (1)");
        pair.compare();
    }
}

const CHAINS: [&str; 15] = [
    "CREATE TABLE p (id VARCHAR(9) PRIMARY KEY)",
    "CREATE TABLE c (id INT PRIMARY KEY, pid VARCHAR(9),
     FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE)",
    "CREATE TABLE gc (id INT PRIMARY KEY, cid INT,
     FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE)",
    "CREATE TABLE ggc (id INT PRIMARY KEY, gcid INT,
     FOREIGN KEY (gcid) REFERENCES gc (id) ON DELETE CASCADE)",
    "INSERT INTO p VALUES ('a'), ('b')",
    "INSERT INTO c VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO gc VALUES (1, 1), (2, 2)",
    "INSERT INTO ggc VALUES (1, 1), (2, 2)",
    "CREATE TABLE k (id INT PRIMARY KEY)",
    "CREATE TABLE keyless (a INT, b INT, KEY (a), KEY (b),
     FOREIGN KEY (b) REFERENCES k (id) ON DELETE CASCADE)",
    "CREATE TABLE of_keyless (id INT PRIMARY KEY, a INT,
     FOREIGN KEY (a) REFERENCES keyless (a) ON DELETE CASCADE)",
    "INSERT INTO k VALUES (1), (2), (3), (4)",
    "INSERT INTO keyless VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "INSERT INTO of_keyless VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "CREATE TABLE plain (id INT PRIMARY KEY)",
];

/// The values of the keys are equal in a collation only, or the table has no key, or its parent is not known for a while.
const UNKNOWN_CHANGES: [&str; 4] = [
    "DELETE FROM p WHERE id = 'a'",
    "DELETE FROM k WHERE id = 1",
    "RENAME TABLE k TO k2; DELETE FROM k2 WHERE id = 2; RENAME TABLE k2 TO k",
    "ALTER TABLE k ADD y INT; DELETE FROM k WHERE id = 3; ALTER TABLE k MODIFY y VARCHAR(5)",
];

const CHAIN: [&str; 6] = [
    "CREATE TABLE p (id INT PRIMARY KEY, x INT)",
    "CREATE TABLE c (id INT PRIMARY KEY, pid INT,
     FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE g (id INT AUTO_INCREMENT PRIMARY KEY, cid INT,
     FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE)",
    "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "INSERT INTO c VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "INSERT INTO g (cid) SELECT id FROM c",
];

/// What makes the foreign keys of a table in the middle unknown, and changes rows meanwhile: before it, and in between.
const WHILE_BEHIND: [(&str, &str); 5] = [
    ("", "DELETE FROM p WHERE id = 1; ALTER TABLE c ADD COLUMN a INT AFTER id, ALGORITHM=COPY"),
    (
        "",
        "ALTER TABLE c ADD COLUMN a INT AFTER id, ALGORITHM=COPY; ALTER TABLE p RENAME TO q; \
         DELETE FROM q WHERE id = 1",
    ),
    (
        "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1",
        "ALTER TABLE c ADD FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE; \
         DELETE FROM p WHERE id = 1; ALTER TABLE c ADD COLUMN a INT AFTER id, ALGORITHM=COPY",
    ),
    (
        "DROP TABLE g; CREATE TABLE g (id INT AUTO_INCREMENT PRIMARY KEY, cid INT)",
        "INSERT INTO g (cid) SELECT id FROM c; \
         ALTER TABLE g ADD FOREIGN KEY (cid) REFERENCES c (id) ON DELETE CASCADE; \
         DELETE FROM p WHERE id = 1; ALTER TABLE g ADD COLUMN a INT AFTER id, ALGORITHM=COPY",
    ),
    ("", "DELETE FROM p WHERE id = 1; ALTER TABLE c RENAME TO c2; DELETE FROM p WHERE id = 2"),
];

/// The source is ahead and tells later definitions, so the foreign keys of a table in the middle of a chain are not known
/// when rows go: with or without the chain itself being new.
fn chains_are_followed_while_behind(kind: Kind) {
    let mut pair = Pair::start(kind, &["CREATE TABLE other (id INT PRIMARY KEY)"]);
    let run = |pair: &mut Pair, statements: &str| {
        let statements = statements.split("; ").filter(|statement| !statement.is_empty());
        statements.for_each(|statement| pair.run(statement));
    };
    for (before, behind) in WHILE_BEHIND {
        for is_new in [true, false] {
            println!("{behind}, of new tables: {is_new}");
            if !is_new {
                CHAIN.iter().for_each(|statement| pair.run(statement));
                run(&mut pair, before);
            }
            pair.compare();
            let stalled = pair.database().begin_large().unwrap();
            // The first definition waits for the row.
            run(
                &mut pair,
                "REPLACE INTO other VALUES (1); CREATE TABLE first (id INT PRIMARY KEY)",
            );
            if is_new {
                CHAIN.iter().for_each(|statement| pair.run(statement));
                run(&mut pair, before);
            }
            run(&mut pair, behind);
            stalled.commit(Vec::new()).unwrap();
            pair.compare();
            let middle = if behind.contains("c2") { "c2" } else { "c" };
            run(&mut pair, &format!("DELETE FROM {middle} WHERE id = 3"));
            pair.compare();
            run(&mut pair, &format!("DROP TABLE g; DROP TABLE {middle}; DROP TABLE first"));
            run(&mut pair, "DELETE FROM other");
            run(&mut pair, if behind.contains("TO q") { "DROP TABLE q" } else { "DROP TABLE p" });
        }
    }
}

#[test]
fn mariadb_11_8_follows_chains_while_behind() {
    chains_are_followed_while_behind(Kind::MariaDb118);
}

#[test]
fn mysql_5_6_follows_chains_while_behind() {
    chains_are_followed_while_behind(Kind::MySql56);
}

#[test]
fn mariadb_11_8_copies_what_is_behind_unknown_changes() {
    tables_behind_unknown_changes_are_copied_too(Kind::MariaDb118);
    tables_behind_columns_that_are_not_referenced_stay(Kind::MariaDb118);
}

#[test]
fn mysql_5_6_copies_what_is_behind_unknown_changes() {
    tables_behind_unknown_changes_are_copied_too(Kind::MySql56);
    tables_behind_columns_that_are_not_referenced_stay(Kind::MySql56);
}

const FAMILY: [&str; 4] = [
    "CREATE TABLE heads (id INT PRIMARY KEY)",
    "CREATE TABLE members (id INT PRIMARY KEY, head INT, second INT, note VARCHAR(20), KEY (head),
     KEY (second), FOREIGN KEY (head) REFERENCES heads (id) ON DELETE CASCADE ON UPDATE CASCADE,
     FOREIGN KEY (second) REFERENCES heads (id) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE guests (id INT PRIMARY KEY, member INT, note VARCHAR(20), KEY (member),
     FOREIGN KEY (member) REFERENCES members (id) ON DELETE CASCADE)",
    "INSERT INTO heads VALUES (1), (2), (3), (4), (5), (6)",
];

/// More rows than a batch takes, changed by one row, and by a transaction that is more than a batch
/// and changed what refers to the row before: exactly, without a copy.
fn large_cascades_are_followed(kind: Kind) {
    let mut pair = Pair::start(kind, &FAMILY);
    let members = |from: usize, to: usize, head: usize, second: usize| {
        let rows: Vec<_> = (from..to).map(|id| format!("({id},{head},{second},'m{id}')")).collect();
        format!("INSERT INTO members VALUES {}", rows.join(","))
    };
    let guests = |from: usize, to: usize| {
        let rows: Vec<_> = (from..to).map(|id| format!("({id},{},'g')", id - id % 2)).collect();
        format!("INSERT INTO guests VALUES {}", rows.join(","))
    };
    for first in (0..80_000).step_by(20_000) {
        pair.run(&members(first, first + 20_000, 1, 2));
        pair.run(&guests(first, first + 20_000));
    }
    pair.run(&members(80_000, 90_000, 3, 1));
    pair.compare();
    let numbers = |pair: &Pair| {
        ["shop.heads", "shop.members", "shop.guests"]
            .map(|table| pair.database().table_version(table).unwrap().table)
    };
    let tables = numbers(&pair);
    // 80,000 set to NULL, and changed once more.
    for statement in ["DELETE FROM heads WHERE id = 2", "UPDATE heads SET id = 7 WHERE id = 1"] {
        pair.run(statement);
        pair.compare();
    }
    pair.run("START TRANSACTION");
    pair.run("UPDATE members SET note = 'first' WHERE id < 75000");
    pair.run("UPDATE members SET head = 4, second = 5 WHERE id BETWEEN 100 AND 200");
    pair.run(&members(100_000, 100_010, 7, 5));
    pair.run(&guests(100_000, 100_010));
    pair.run("DELETE FROM guests WHERE id BETWEEN 10 AND 20");
    pair.run("DELETE FROM heads WHERE id IN (5, 7)");
    pair.run("INSERT INTO heads VALUES (7)");
    pair.run(&members(0, 50, 7, 3));
    pair.run("DELETE FROM heads WHERE id = 6");
    pair.run("COMMIT");
    pair.compare();
    pair.run("DELETE FROM heads");
    pair.compare();
    assert_eq!(numbers(&pair), tables, "a table was copied");
}

#[test]
fn mariadb_10_11_changes_many_rows() {
    large_cascades_are_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_5_6_changes_many_rows() {
    large_cascades_are_followed(Kind::MySql56);
}

#[test]
fn mariadb_10_11_applies_cascades_during_copies() {
    cascades_and_copies_meet(Kind::MariaDb1011);
    a_parent_that_is_not_followed_is_asked_for(Kind::MariaDb1011);
    a_chain_through_a_table_that_is_not_followed_is_refused(Kind::MariaDb1011);
}

#[test]
fn mysql_5_6_applies_cascades_during_copies() {
    cascades_and_copies_meet(Kind::MySql56);
    a_parent_that_is_not_followed_is_asked_for(Kind::MySql56);
    a_chain_through_a_table_that_is_not_followed_is_refused(Kind::MySql56);
}

#[test]
fn mariadb_10_11_cascades() {
    cascades_are_followed(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_cascades() {
    cascades_are_followed(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_cascades() {
    cascades_are_followed(Kind::MySql97);
}

#[test]
fn mysql_5_6_cascades() {
    cascades_are_followed(Kind::MySql56);
}
