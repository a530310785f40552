//! SELECT through the whole crate: names, joins, groups, windows, subqueries, errors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Server, rows, run};
use remora_engine::{ColumnType, Decimal, Value};

fn server() -> Server {
    let server = Server::new();
    let number = Value::Int;
    let text = |text: &str| Value::Text(text.into());
    let money = |scaled: i128| Value::Decimal(Decimal::from_scaled(scaled, 2));
    server.table(
        "item",
        &[
            ("id", ColumnType::Int(32)),
            ("Name", ColumnType::Text),
            ("price", ColumnType::Decimal(10, 2)),
            ("kind", ColumnType::Int(32)),
        ],
        1,
        vec![
            vec![number(1), text("apple"), money(150), number(1)],
            vec![number(2), text("Banana"), money(25), number(1)],
            vec![number(3), text("chair"), money(4_999), number(2)],
            vec![number(4), text("desk"), Value::Null, number(2)],
            vec![number(5), text("egg"), money(30), Value::Null],
        ],
    );
    server.table(
        "kind",
        &[("id", ColumnType::Int(32)), ("label", ColumnType::Text)],
        1,
        vec![
            vec![number(1), text("fruit")],
            vec![number(2), text("thing")],
            vec![number(3), text("none")],
        ],
    );
    server
}

/// Runs each statement and compares its rows.
async fn expect(cases: &[(&str, &str)]) {
    let server = server();
    let mut session = server.session();
    for (statement, expected) in cases {
        let got = rows(&mut session, statement).await;
        assert_eq!(got, *expected, "{statement}");
    }
}

#[tokio::test]
async fn rows_are_filtered_sorted_and_cut() {
    expect(&[
        ("select 1", "1"),
        ("select id, name from item where id = 3", "3|chair"),
        ("select ID from item order by id desc limit 2", "5\n4"),
        ("select id from item order by id limit 1, 2", "2\n3"),
        ("select id from item where kind is null", "5"),
        ("select id from item where kind <> 1 order by 1", "3\n4"),
        ("select id from item where id in (1, 3, 9) order by 1", "1\n3"),
        ("select id from item where id between 2 and 3 order by 1", "2\n3"),
        ("select id from item where price > 1 order by price", "1\n3"),
        ("select id x from item having x = 2", "2"),
        ("select distinct kind from item order by kind", "NULL\n1\n2"),
        ("select t.* from item t where t.id = 2", "2|Banana|0.25|1"),
        ("select *, id from item where id = 1", "1|apple|1.50|1|1"),
        ("select test.item.id from test.item where item.id = 1", "1"),
    ])
    .await;
}

#[tokio::test]
async fn tables_are_joined() {
    expect(&[
        ("select i.id, k.label from item i join kind k on i.kind = k.id order by 1",
         "1|fruit\n2|fruit\n3|thing\n4|thing"),
        ("select i.id, k.label from item i left join kind k on i.kind = k.id where i.id > 3 order by 1",
         "4|thing\n5|NULL"),
        ("select k.id, count(i.id) from item i right join kind k on i.kind = k.id group by k.id order by 1",
         "1|2\n2|2\n3|0"),
        ("select id from item join kind using (id) order by id", "1\n2\n3"),
        ("select * from kind a natural join kind b where id = 1", "1|fruit"),
        ("select count(*) from item, kind", "15"),
        ("select a.id from item a, item b where a.id = b.id + 4", "5"),
    ])
    .await;
}

#[tokio::test]
async fn rows_are_grouped() {
    expect(&[
        ("select count(*), sum(price), min(id), max(name) from item", "5|52.04|1|egg"),
        (
            "select kind, count(*) c from item group by kind order by c desc, kind",
            "1|2\n2|2\nNULL|1",
        ),
        (
            "select kind k, sum(price) from item group by k having sum(price) > 1 order by 1",
            "1|1.75\n2|49.99",
        ),
        ("select id, name from item group by id having id = 2", "2|Banana"),
        (
            "select kind, count(*) from item where kind is not null group by kind with rollup",
            "1|2\n2|2\nNULL|4",
        ),
        ("select kind, rank() over (order by kind) r from item order by id limit 2", "1|2\n1|2"),
        ("select id, sum(id) over (order by id) from item order by id limit 3", "1|1\n2|3\n3|6"),
    ])
    .await;
}

#[tokio::test]
async fn queries_stand_in_queries() {
    expect(&[
        ("select id from item where id = (select max(id) from item)", "5"),
        ("select id from item where kind in (select id from kind where label = 'fruit') order by 1",
         "1\n2"),
        ("select id from kind k where not exists (select 1 from item i where i.kind = k.id)", "3"),
        ("select k.id, (select count(*) from item i where i.kind = k.id) n from kind k order by 1",
         "1|2\n2|2\n3|0"),
        ("select x.n from (select count(*) n from item) x", "5"),
        ("with big as (select * from item where id > 3) select count(*) from big", "2"),
        ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 4) select * from n",
         "1\n2\n3\n4"),
        ("select id from kind union select id from item order by id desc limit 2", "5\n4"),
        ("select 1 union all select 1", "1\n1"),
    ])
    .await;
}

#[tokio::test]
async fn functions_of_columns_ask_their_session() {
    let server = server();
    let mut session = server.session();
    for (statement, expected) in [
        ("set time_zone = '+05:00'", ""),
        ("select from_unixtime(id) from item where id = 1", "1970-01-01 05:00:01"),
        ("select concat(id, 'x') + 0 from item where id = 2", "2"),
        ("show warnings", "Warning|1292|Truncated incorrect DOUBLE value: '2x'"),
        ("select id + connection_id() from item where id = 1", "8"),
    ] {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
}

#[tokio::test]
async fn chance_with_a_seed_goes_on_from_row_to_row() {
    let server = server();
    let mut session = server.session();
    let first = rows(&mut session, "select rand(3) from item limit 3").await;
    assert_eq!(first, "0.9057697559760601\n0.37307905813034536\n0.14808605345719125");
    assert_eq!(rows(&mut session, "select rand(3) from item limit 3").await, first);
    let pairs = "select rand(3) = rand(1 + 2), rand(id) = rand(3) from item where id < 3";
    assert_eq!(rows(&mut session, pairs).await, "1|0\n1|0");
    let own = rows(&mut session, "select rand(id) from item where id in (1, 3)").await;
    assert_eq!(own, "0.40540353712197724\n0.9057697559760601");
}

#[tokio::test]
async fn invisible_columns_are_seen_where_they_are_named() {
    let server = Server::new();
    let mut session = server.session();
    for (statement, expected) in [
        ("create table a (id int primary key, x int invisible, y int)", ""),
        ("create table b (id int primary key, x int invisible, z int)", ""),
        ("insert into a (id, x, y) values (1, 2, 3)", ""),
        ("insert into b (id, x, z) values (1, 7, 4)", ""),
        ("select * from a", "1|3"),
        ("table a", "1|3"),
        ("select a.*, x from a", "1|3|2"),
        ("select * from a natural join b", "1|3|4"),
        ("select * from a join b using (x)", ""),
        ("select * from (select id, x from a) d", "1|2"),
        ("select * from a where x = 2 order by x", "1|3"),
        ("insert into b (id, z) select * from a where id > 1", ""),
    ] {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
}

#[tokio::test]
async fn recursion_has_as_many_rounds_as_the_session_lets_it() {
    let server = server();
    let mut session = server.session();
    let count = |most: u32| {
        format!(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < {most}) \
             select count(*) from n"
        )
    };
    let aborted = |rounds: u32| {
        format!(
            "3636 Recursive query aborted after {rounds} iterations. Try increasing \
             @@cte_max_recursion_depth to a larger value."
        )
    };
    assert_eq!(rows(&mut session, &count(1000)).await, "1000");
    assert_eq!(rows(&mut session, &count(1001)).await, aborted(1001));
    rows(&mut session, "set cte_max_recursion_depth = 4").await;
    assert_eq!(rows(&mut session, &count(4)).await, "4");
    assert_eq!(rows(&mut session, &count(5)).await, aborted(5));
    let twice = count(4).replace("count(*) from n", "count(*) from n a, n b");
    assert_eq!(rows(&mut session, &twice).await, "16");
}

#[tokio::test]
async fn wrong_names_are_told_as_mysql_does() {
    expect(&[
        ("select nope from item", "1054 Unknown column 'nope' in 'field list'"),
        ("select id from item where nope = 1", "1054 Unknown column 'nope' in 'where clause'"),
        ("select id from item order by nope", "1054 Unknown column 'nope' in 'order clause'"),
        ("select id from item group by nope", "1054 Unknown column 'nope' in 'group statement'"),
        ("select id from item order by 9", "1054 Unknown column '9' in 'order clause'"),
        ("select id from item, kind", "1052 Column 'id' in field list is ambiguous"),
        ("select * from nope", "1146 Table 'test.nope' doesn't exist"),
        ("select * from nope.t", "1049 Unknown database 'nope'"),
        ("select 1 from item a, kind a", "1066 Not unique table/alias: 'a'"),
        ("select * from (select 1 a, 2 a) x", "1060 Duplicate column name 'a'"),
        ("select * from (select 1)", "1248 Every derived table must have its own alias"),
        ("select id from item where max(id) > 1", "1111 Invalid use of group function"),
        ("select kind, name from item group by kind",
         "1055 Expression #2 of SELECT list is not in GROUP BY clause and contains nonaggregated \
          column 'test.item.Name' which is not functionally dependent on columns in GROUP BY clause; \
          this is incompatible with sql_mode=only_full_group_by"),
        ("select id, max(id) from item",
         "1140 In aggregated query without GROUP BY, expression #1 of SELECT list contains \
          nonaggregated column 'test.item.id'; this is incompatible with sql_mode=only_full_group_by"),
        ("select 1 union select 1, 2",
         "1222 The used SELECT statements have a different number of columns"),
        ("select id from item limt 3",
         "1064 You have an error in your SQL syntax; check the manual that corresponds to your \
          MySQL server version for the right syntax to use near '3' at line 1"),
        ("select id from item order by name desc nulls last",
         "1064 You have an error in your SQL syntax; check the manual that corresponds to your \
          MySQL server version for the right syntax to use near 'nulls last' at line 1"),
        ("select group_concat(id order by name nulls first) from item",
         "1064 You have an error in your SQL syntax; check the manual that corresponds to your \
          MySQL server version for the right syntax to use near 'nulls first) from item' at line 1"),
        ("select distinct on (kind) id from item",
         "1235 This version of Remora doesn't yet support 'DISTINCT ON'"),
    ])
    .await;
}

#[tokio::test]
async fn columns_are_called_as_they_were_written() {
    let server = server();
    let mut session = server.session();
    let text = "select ID, NAME as n, id+1 , count( * ), 'abc' from item where id=1 group by id";
    let answers = run(&mut session, text).await.unwrap();
    assert_eq!(answers.sets[0].names(), ["ID", "n", "id+1", "count( * )", "abc"]);
    let id = &answers.sets[0].columns[0];
    assert_eq!((id.original_name.as_str(), id.original_table.as_str()), ("id", "item"));
    assert_eq!((id.database.as_str(), id.primary_key), ("test", true));
}

#[tokio::test]
async fn variables_are_set_and_read() {
    expect(&[
        ("set @a = 3, @b = 'x'", ""),
        ("select @a, @B, @none", "3|x|NULL"),
        ("set names utf8mb4 collate utf8mb4_bin", ""),
        ("select @@collation_connection, @@character_set_client", "utf8mb4_bin|utf8mb4"),
        ("set sql_mode = 'ANSI_QUOTES', time_zone = '+02:00'", ""),
        ("select @@sql_mode, @@session.time_zone", "ANSI_QUOTES|+02:00"),
        ("select \"id\" from \"item\" where id = 1", "1"),
        ("set nope = 1", "1193 Unknown system variable 'nope'"),
        ("set sql_select_limit = 2", ""),
        ("select id from item order by id", "1\n2"),
        ("set sql_select_limit = default", ""),
        ("select count(*) from (select * from item) t", "5"),
        ("set global max_connections = 10", ""),
        ("select @@global.max_connections", "10"),
    ])
    .await;
}

/// What is said of a statement whose variables have no order.
fn refused(what: &str) -> String {
    format!("1235 This version of Remora doesn't yet support '{what}'")
}

#[tokio::test]
async fn variables_are_assigned_where_there_is_an_order() {
    let elsewhere = refused(
        "a variable that the statement assigns by :=, elsewhere than in the list of a SELECT that stands alone or \
         in FROM alone",
    );
    let distinct = refused(":= beside DISTINCT");
    let windows = refused(":= beside window functions");
    let groups = refused(":= beside GROUP BY");
    let several = refused(":= in several SELECTs that read tables");
    let counted = refused(":= beside SQL_CALC_FOUND_ROWS");
    let sorted = refused("ORDER BY of what := gives and of what is not selected");
    let query = refused(":= compared with a query");
    expect(&[
        ("set @a = 9007199254740993", ""),
        // A variable that the statement does not assign keeps its type.
        ("select @b := 1, @a + 1", "1|9007199254740994"),
        ("select @`A` := 2, @a", "2|2"),
        ("select @a := 1 order by @a", &elsewhere),
        ("select @a := 1 union select @a", &elsewhere),
        ("select @a := 1 where @a is null", &elsewhere),
        ("select id from item where (@a := id) > 1", &elsewhere),
        ("select @a := id as v from item having v > 1", &elsewhere),
        ("select sum(@a := id) from item", &elsewhere),
        ("select (select @a := 1)", &elsewhere),
        ("with c as (select @a := 1) select * from c", &elsewhere),
        ("select * from item i, (select @a := id from item) d", &elsewhere),
        ("select id from item i join (select @a := id as a from item) d on d.a = i.id", &elsewhere),
        ("select * from item union select @a := id, 1, 2, 3 from item", &elsewhere),
        ("select distinct @a := id from item", &distinct),
        ("select @a := id, rank() over (order by id) from item", &windows),
        ("select kind, @a := kind from item group by kind", &groups),
        ("select @a := v from (select @b := id as v from item) d", &several),
        ("select sql_calc_found_rows @a := id from item limit 1", &counted),
        ("select @a := id as v from item order by v, name", &sorted),
        ("select (@a := id) in (select id from kind) from item", &query),
        ("select @a", "2"),
    ])
    .await;
}

#[tokio::test]
async fn variables_go_on_with_each_run() {
    let repeated = "select id, @n := @n + 1 from item order by id limit 2";
    expect(&[
        ("set @n = 0", ""),
        (repeated, "1|1\n2|2"),
        (repeated, "1|3\n2|4"),
        (repeated, "1|5\n2|6"),
        // The same text, and variables of another type.
        ("set @n = 0.5", ""),
        (repeated, "1|1.5\n2|2.5"),
        ("set @n = '7'", ""),
        (repeated, "1|8\n2|9"),
        ("set max_execution_time = 50", ""),
        (
            "select count(*) from (select @n := @n + 1 as n from item a, item b, item c, item d, item e, item f, item g, \
             item h, item i, item j, item k, item l, item m, item o, item p, item q) x",
            "3024 Query execution was interrupted, maximum statement execution time exceeded",
        ),
    ])
    .await;
}

/// Of MySQL 9.7: rows are numbered before a sort by the number, and after any other.
#[tokio::test]
async fn rows_are_numbered_in_the_order_that_the_statement_says() {
    expect(&[
        ("set @n = 0", ""),
        (
            "select @n := @n + 1 as k, name from item order by k desc",
            "5|egg\n4|desk\n3|chair\n2|Banana\n1|apple",
        ),
        ("set @n = 0", ""),
        (
            "select * from (select @n := @n + 1 as nth, id from item order by price) x order by id",
            "4|1\n2|2\n5|3\n1|4\n3|5",
        ),
        ("set @n = 0", ""),
        (
            "select count(*) from (select @n := @n + 1 as nth, id from item order by price) x where nth = 1 and id = 4",
            "1",
        ),
        ("select distinct @q := 1", "1"),
        ("set @m = x'ff00'", ""),
        ("select hex(@m := @m) from item limit 1", "FF00"),
        ("select hex(@m)", "FF00"),
        (
            "select hex(coalesce(null, x'ff', name)) from item limit 1",
            "3854 Cannot convert string '\\xFF' from binary to utf8mb4",
        ),
    ])
    .await;
}

#[tokio::test]
async fn variables_are_assigned_by_prepared_statements() {
    let server = server();
    let mut session = server.session();
    let text = b"select id, @p := ifnull(@p, 0) + ? from item order by id limit 2";
    let prepared = session.prepare(text).await.unwrap();
    for expected in ["1|10\n2|20", "1|30\n2|40"] {
        let mut answers = crate::support::Answers::default();
        session.execute(&prepared, &[Value::Int(10)], &mut answers).await.unwrap();
        assert_eq!(answers.sets[0].text(), expected);
    }
}

#[tokio::test]
async fn a_text_of_nulls_does_not_decide_how_others_compare() {
    expect(&[
        ("select 'APPLE' between 'a' and left(null, 2)", "NULL"),
        ("select 'APPLE' between left(null, 2) and 'a'", "0"),
        ("select collation(left(null, 2)), collation(concat(left(null, 2)))", "binary|binary"),
    ])
    .await;
}

#[tokio::test]
async fn statements_are_prepared_with_values() {
    let server = server();
    let mut session = server.session();
    let prepared = session.prepare(b"select name from item where id = ? or id = ?").await.unwrap();
    assert_eq!((prepared.parameters, prepared.columns.len()), (2, 1));
    let mut answers = crate::support::Answers::default();
    let values = [Value::Int(1), Value::Text("3".into())];
    session.execute(&prepared, &values, &mut answers).await.unwrap();
    assert_eq!(answers.sets[0].text(), "apple\nchair");
    expect(&[
        ("prepare p from 'select ? + 1'", ""),
        ("set @v = 4", ""),
        ("execute p using @v", "5"),
        ("deallocate prepare p", ""),
        ("set time_zone = '+00:00', @v = '2020-01-01', @w = '2020-01-01 00:00:00.25'", ""),
        ("prepare m from 'select unix_timestamp(?)'", ""),
        ("execute m using @v", "1577836800.000000"),
        ("execute m using @w", "1577836800.250000"),
        ("set @v = 20200101, @w = null", ""),
        ("execute m using @v", "1577836800.000000"),
        ("execute m using @w", "NULL"),
        ("execute p", "1243 Unknown prepared statement handler (p) given to EXECUTE"),
    ])
    .await;
}

#[tokio::test]
async fn several_statements_and_found_rows() {
    let server = server();
    let mut session = server.session();
    let answers = run(&mut session, "select 1; select 2;").await.unwrap();
    let texts: Vec<String> = answers.sets.iter().map(crate::support::Answer::text).collect();
    assert_eq!(texts, ["1", "2"]);
    assert_eq!(
        rows(&mut session, "select sql_calc_found_rows id from item order by id limit 1, 2").await,
        "2\n3"
    );
    assert_eq!(rows(&mut session, "select found_rows()").await, "5");
    assert_eq!(rows(&mut session, "do 1 + 1").await, "");
}

#[tokio::test]
async fn long_queries_are_ended() {
    let server = server();
    let mut session = server.session();
    let long = "select max(a.id + b.id * c.id - d.id * k.id) from item a, item b, item c, item d, item e, item f, item g, \
                item h, item i, item j, item k";
    rows(&mut session, "set max_execution_time = 100").await;
    assert!(rows(&mut session, long).await.starts_with("3024 "));
    session.interrupter().store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(rows(&mut session, "select 1").await.starts_with("1317 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_with_a_union_ends() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE a (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE b (id INT PRIMARY KEY, n INT)",
        "INSERT INTO a VALUES (1, 10), (2, 20), (3, 10)",
        "INSERT INTO b VALUES (2, 7), (3, 8), (4, 9)",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    let union = "(SELECT id, n FROM a UNION ALL SELECT id, n FROM b) t";
    let grouped =
        format!("SELECT t.id, COUNT(*) FROM {union} JOIN a ON a.id = t.id WHERE a.n = 10");
    let statement = format!("{grouped} GROUP BY t.id ORDER BY t.id");
    let asked = rows(&mut session, &statement);
    let told = tokio::time::timeout(std::time::Duration::from_secs(60), asked).await.unwrap();
    assert_eq!(told, "1|1\n3|2");
    let sorted = format!("SELECT t.n FROM a JOIN {union} ON a.id = t.id ORDER BY t.n");
    assert_eq!(rows(&mut session, &sorted).await, "7\n8\n10\n10\n20");
    let limited = format!("SELECT t.n FROM a JOIN {union} ON a.id = t.id LIMIT 3");
    assert_eq!(rows(&mut session, &limited).await.lines().count(), 3);
    // No ORDER BY, LIMIT or GROUP BY above the join merges its partitions.
    let joined =
        "SELECT t.id FROM (SELECT a.id FROM b JOIN a ON a.id = b.id UNION ALL SELECT id FROM a) t";
    let all = "SELECT id FROM a UNION ALL SELECT id FROM b";
    let plain = [
        (format!("SELECT t.n FROM {union} JOIN a ON a.id = t.id"), "10\n10\n20\n7\n8"),
        (format!("{joined} JOIN b ON b.id = t.id"), "2\n2\n3\n3"),
        (format!("{joined} WHERE EXISTS (SELECT 1 FROM b WHERE b.id = t.id)"), "2\n2\n3\n3"),
        (format!("{joined} WHERE t.id IN (SELECT id + 0 FROM b)"), "2\n2\n3\n3"),
        (format!("{joined} JOIN ({all}) u ON u.id = t.id"), "1\n2\n2\n2\n2\n3\n3\n3\n3"),
        (format!("{joined} LEFT JOIN ({all}) u ON u.id = t.id + 1"), "1\n1\n2\n2\n2\n2\n3\n3"),
        (format!("{joined} JOIN b ON b.id = t.id UNION ALL {joined}"), "1\n2\n2\n2\n2\n3\n3\n3\n3"),
        (
            format!("{joined} JOIN b ON b.id = t.id UNION ALL {all} LIMIT 100"),
            "1\n2\n2\n2\n2\n3\n3\n3\n3\n4",
        ),
    ];
    // The first run plans it, the later ones use the plan for its shape.
    for _ in 0..3 {
        for (statement, expected) in &plain {
            let asked = rows(&mut session, statement);
            let told = tokio::time::timeout(std::time::Duration::from_secs(60), asked).await;
            assert!(told.is_ok(), "does not end: {statement}");
            let told = told.unwrap();
            let mut told: Vec<&str> = told.lines().collect();
            told.sort_unstable();
            assert_eq!(told.join("\n"), *expected, "{statement}");
        }
    }
}
