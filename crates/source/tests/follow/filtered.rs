//! Tables that have only the rows of the source that satisfy a filter, and what is counted of them.

use remora_engine::{Comparison, Filter, Literal};
use remora_peers::Kind;
use remora_source::mysql::FollowerStatus;

use crate::pair::Pair;

/// The counters in the order of the protocol, without what depends on other tables.
fn counts(status: &FollowerStatus) -> [u64; 9] {
    [
        status.inserts,
        status.inserts_skipped,
        status.updates,
        status.updates_added,
        status.updates_removed,
        status.updates - status.updates_added - status.updates_removed,
        status.updates_skipped,
        status.deletes,
        status.deletes_skipped,
    ]
}

fn counts_what_the_filter_made_of_rows(kind: Kind) {
    let mut pair = Pair::start(
        kind,
        &["CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(50), enabled TINYINT NOT NULL)"],
    );
    pair.catch_up();
    let mut schema = (*pair.database().schema("shop.goods").unwrap()).clone();
    schema.required = Some(Filter::Compare {
        column: "enabled".to_owned(),
        comparison: Comparison::Equal,
        literal: Literal::Text("1".to_owned()),
    });
    // A definition of the settings has the filter before the table is followed.
    pair.close();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.settings.definitions = vec![schema];
    pair.open();
    pair.catch_up();
    let mut before = counts(&pair.status());
    // Inserts, skipped; updates, added, removed, modified, skipped; deletes, skipped.
    for (statement, expected) in [
        ("INSERT INTO goods VALUES (1, 'a', 1), (2, 'b', 1)", [2, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("INSERT INTO goods VALUES (3, 'c', 0), (4, 'd', 0)", [0, 2, 0, 0, 0, 0, 0, 0, 0]),
        ("UPDATE goods SET name = 'x' WHERE id = 1", [0, 0, 1, 0, 0, 1, 0, 0, 0]),
        ("UPDATE goods SET enabled = 1 WHERE id = 3", [0, 0, 1, 1, 0, 0, 0, 0, 0]),
        ("UPDATE goods SET enabled = 0 WHERE id = 2", [0, 0, 1, 0, 1, 0, 0, 0, 0]),
        ("UPDATE goods SET name = 'y' WHERE id = 4", [0, 0, 0, 0, 0, 0, 1, 0, 0]),
        ("UPDATE goods SET id = 9 WHERE id = 1", [1, 0, 0, 0, 0, 0, 0, 1, 0]),
        ("DELETE FROM goods WHERE id = 9", [0, 0, 0, 0, 0, 0, 0, 1, 0]),
        ("DELETE FROM goods WHERE id IN (2, 4)", [0, 0, 0, 0, 0, 0, 0, 0, 2]),
    ] {
        pair.run(statement);
        pair.catch_up();
        let after = counts(&pair.status());
        let more: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(more, expected, "{statement}");
        before = after;
    }
    assert_eq!(pair.rows("goods").len(), 1);
}

#[test]
fn counts_on_mariadb() {
    counts_what_the_filter_made_of_rows(Kind::MariaDb1011);
}

#[test]
fn counts_on_mysql() {
    counts_what_the_filter_made_of_rows(Kind::MySql97);
}
