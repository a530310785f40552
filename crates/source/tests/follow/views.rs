//! Views of the source are kept at their places in its log.

use mysql::prelude::Queryable;
use remora_engine::DeclaredView;
use remora_peers::Kind;

use crate::pair::Pair;

impl Pair {
    /// The SELECT of a view as it is kept, and as the source has it.
    fn view(&mut self, name: &str) -> (Option<String>, Option<String>) {
        self.catch_up();
        let position = DeclaredView::position(&format!("shop.{name}"));
        let kept = self.database().source_position(&position).unwrap();
        let kept = kept.map(|kept| DeclaredView::read(&kept).unwrap());
        let select = kept.map(|kept| {
            assert_eq!((kept.refused, kept.source.is_some()), (None, true));
            kept.statement.split_once(" AS ").unwrap().1.to_owned()
        });
        let theirs = self.conn.query_first(format!(
            "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = '{name}'"
        ));
        (select, theirs.unwrap())
    }

    fn same_view(&mut self, name: &str, is_there: bool) {
        let (ours, theirs) = self.view(name);
        assert_eq!(ours.is_some(), is_there, "{name}");
        assert_eq!(ours, theirs, "{name}");
    }
}

fn views_are_followed(kind: Kind) {
    let mut pair = Pair::start(
        kind,
        &[
            "GRANT SHOW VIEW ON *.* TO 'follower'@'%'",
            "CREATE TABLE a (id INT PRIMARY KEY, n INT)",
            "CREATE VIEW v AS SELECT * FROM a",
            "CREATE VIEW w (x, y) AS SELECT v.id, a.n FROM v JOIN a ON a.id = v.id",
        ],
    );
    pair.same_view("v", true);
    pair.same_view("w", true);
    pair.run("CREATE OR REPLACE VIEW v AS SELECT id, n + 1 AS n FROM a");
    pair.same_view("v", true);
    pair.run("ALTER VIEW v AS SELECT id FROM a WHERE n > 3");
    pair.same_view("v", true);
    pair.run("CREATE VIEW z AS SELECT 1 AS one");
    pair.same_view("z", true);
    pair.run("DROP VIEW z");
    pair.same_view("z", false);
    pair.run("RENAME TABLE w TO u");
    pair.same_view("w", false);
    pair.same_view("u", true);
    // A view and a table change names.
    pair.run("CREATE VIEW k AS SELECT 7 AS seven");
    pair.run("RENAME TABLE a TO c, k TO a, c TO k");
    pair.same_view("a", true);
    pair.same_view("k", false);
    pair.run("RENAME TABLE a TO c, k TO a, c TO k");
    pair.same_view("a", false);
    pair.same_view("k", true);
    pair.run("INSERT INTO a VALUES (1, 2)");
    pair.compare_table_after_catching_up("a");
    // What happens while nobody follows.
    pair.close();
    pair.run("DROP VIEW u");
    pair.run("CREATE VIEW late AS SELECT n FROM a");
    pair.open();
    pair.same_view("u", false);
    pair.same_view("late", true);
    pair.run("DROP VIEW IF EXISTS late, v");
    pair.same_view("late", false);
    pair.same_view("v", false);
}

#[test]
fn mariadb_10_11_views_are_followed() {
    views_are_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_views_are_followed() {
    views_are_followed(Kind::MySql97);
}

/// An account that may not see a definition is told what it lacks.
fn hidden_view_definitions_are_reported(kind: Kind) {
    let tables = ["CREATE TABLE a (id INT PRIMARY KEY)", "CREATE VIEW v AS SELECT id FROM a"];
    let mut pair = Pair::start(kind, &tables);
    pair.catch_up();
    let kept = pair.database().source_position(&DeclaredView::position("shop.v")).unwrap();
    let refused = DeclaredView::read(&kept.unwrap()).unwrap().refused.unwrap();
    assert!(refused.contains("GRANT SHOW VIEW ON `shop`.`v`"), "{refused}");
    pair.run("GRANT SHOW VIEW ON shop.v TO 'follower'@'%'");
    pair.run("CREATE VIEW w AS SELECT id FROM a");
    pair.same_view("v", true);
}

#[test]
fn mariadb_10_11_reports_hidden_view_definitions() {
    hidden_view_definitions_are_reported(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_reports_hidden_view_definitions() {
    hidden_view_definitions_are_reported(Kind::MySql97);
}
