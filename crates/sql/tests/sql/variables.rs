//! Variables that statements assign: answers of MySQL 9.7.

use crate::support::{Server, rows};

const TABLES: [&str; 3] = [
    "create table t (id int primary key, a int, b int)",
    "insert into t values (1, 10, 0), (2, 20, 0), (3, 30, 0)",
    "create table e (id int primary key, a int)",
];

async fn expect(cases: &[(&str, &str)]) {
    let server = Server::new();
    let mut session = server.session();
    for statement in TABLES {
        assert_eq!(rows(&mut session, statement).await, "", "{statement}");
    }
    for (statement, expected) in cases {
        assert_eq!(rows(&mut session, statement).await, *expected, "{statement}");
    }
}

const ASSIGNED: &[(&str, &str)] = &[
    ("set @a = null", ""),
    ("select (@a := 1) and 0", "0"),
    ("select @a", "1"),
    ("set @a = null", ""),
    ("select 0 and (@a := 1)", "0"),
    ("select @a", "NULL"),
    ("set @a = null", ""),
    ("select (@a := 1) or 1, 1 or (@a := 2), @a", "1|1|1"),
    ("select @a", "1"),
    ("set @a = 0", ""),
    ("select id, (@a := @a + 1) and 0 from t order by id", "1|0\n2|0\n3|0"),
    ("select @a", "3"),
    ("set @a = 0", ""),
    ("update t set b = @a := @a + 1", ""),
    ("update t set b = (@a := @a + 1)", ""),
    ("select * from t", "1|10|4\n2|20|5\n3|30|6"),
    ("select @a", "6"),
    ("set @a = 0", ""),
    ("update t set b = (@a := @a + 10) order by id desc", ""),
    ("select * from t", "1|10|30\n2|20|20\n3|30|10"),
    ("update t set b = @a := 5 where id = 1", ""),
    ("select * from t", "1|10|5\n2|20|20\n3|30|10"),
    ("set @a = 0", ""),
    ("update t set a = (@a := a), b = @a where id > 0", ""),
    ("select * from t", "1|10|10\n2|20|20\n3|30|30"),
    ("select @a", "30"),
    ("set @a = 0", ""),
    ("select @a", "0"),
    ("set @x = 0", ""),
    ("update t set b = (@x := @x + 1) limit 2", ""),
    ("select * from t", "1|10|1\n2|20|2\n3|30|30"),
    ("select @x", "2"),
    ("set @y = 100", ""),
    ("update t, (select @y := 0) i set b = (@y := @y + 1)", ""),
    ("select * from t", "1|10|1\n2|20|2\n3|30|3"),
    ("select @y", "3"),
    ("set @y = 100", ""),
    ("insert into e values (1, @y := @y + 1), (2, @y := @y + 1)", ""),
    ("select * from e", "1|101\n2|102"),
    ("select @y", "102"),
];

#[tokio::test(flavor = "multi_thread")]
async fn assignments_are_made_where_mysql_makes_them() {
    expect(ASSIGNED).await;
}

/// MySQL keeps the id of the last row that it gives. These rows come in several batches, and without an order from
/// several threads.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_many_rows_gives_the_id() {
    let server = Server::new();
    let mut session = server.session();
    let rows_of_a_statement = 5_000;
    assert_eq!(rows(&mut session, "create table many (id int primary key, v int)").await, "");
    for from in (0..20_000).step_by(rows_of_a_statement) {
        let values =
            (from..from + rows_of_a_statement).map(|id| format!("({id}, {})", id * 7 % 20_021));
        let values: Vec<String> = values.collect();
        let insert = format!("insert into many values {}", values.join(","));
        assert_eq!(rows(&mut session, &insert).await, "");
    }
    for behind in [
        "",
        " order by v desc",
        " order by v limit 12000",
        " where v > 100 order by v % 1000, id desc limit 8000 offset 5",
        " where id % 3 = 1",
        " limit 9000",
    ] {
        // Rows of different branches are evaluated in the order of the rows too.
        let branches = "if(id % 2 = 0, last_insert_id(id), last_insert_id(id * 10))";
        for given in ["last_insert_id(id + 1)", branches] {
            let statement = format!("select {given} from many{behind}");
            for _ in 0..2 {
                let given = rows(&mut session, &statement).await;
                let last = given.lines().last().unwrap();
                let kept = rows(&mut session, "select last_insert_id()").await;
                assert_eq!(kept, last, "{statement}");
            }
        }
    }
}
